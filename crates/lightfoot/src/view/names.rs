//! Creation, renaming and removal of names.

use super::View;
use crate::dir::Dir;
use crate::error::error;
use crate::file::File;
use crate::path::AsPath;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use vfs::{Base, Errno, PathAt, RenameFlags};

/// Permission bits of a new directory, before the umask.
const DIR_MODE: u32 = 0o777;

impl View {
    /// Makes a directory of mode 0777 less the umask: `mkdir(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `EMLINK`.
    pub fn create_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.mkdir(path, DIR_MODE)
    }

    /// Makes a directory of `mode` less the umask: `mkdir(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `EMLINK`.
    pub fn mkdir(&self, path: impl AsPath, mode: u32) -> io::Result<()> {
        self.inner.mkdir(self.base(), path.as_path_bytes(), mode).map_err(error)
    }

    /// Makes a directory and its missing parents. It may exist already.
    ///
    /// # Errors
    /// `EEXIST` if the name exists and is not a directory; those of `mkdir(2)`.
    pub fn create_dir_all(&self, path: impl AsPath) -> io::Result<()> {
        self.mkdir_all(path.as_path_bytes(), DIR_MODE)
    }

    /// [`View::create_dir_all`] with a mode. Tries from the last component upwards until a parent exists, as `std`
    /// does: if several errors apply, the result depends on this order.
    pub(crate) fn mkdir_all(&self, path: &[u8], mode: u32) -> io::Result<()> {
        let is_dir_anyway = |path: &Path, errno| if self.is_dir(path) { Ok(()) } else { Err(error(errno)) };
        let mkdir = |path: &Path| self.inner.mkdir(self.base(), path.as_path_bytes(), mode);
        let mut missing = Vec::new();
        for path in Path::new(OsStr::from_bytes(path)).ancestors().filter(|path| !path.as_os_str().is_empty()) {
            match mkdir(path) {
                Ok(()) => break,
                Err(Errno::ENOENT) => missing.push(path),
                Err(errno) => {
                    is_dir_anyway(path, errno)?;
                    break;
                }
            }
        }
        for path in missing.into_iter().rev() {
            mkdir(path).or_else(|errno| is_dir_anyway(path, errno))?;
        }
        Ok(())
    }

    /// Makes a FIFO, socket, device node or regular file: `mknod(2)`. `mode` has type and permission bits.
    ///
    /// # Errors
    /// `EEXIST`; `EINVAL`, `EPERM` for a type that cannot be made so; `EINVAL` for a device number of more than 32
    /// bits.
    pub fn mknod(&self, path: impl AsPath, mode: u32, rdev: u64) -> io::Result<()> {
        let rdev = u32::try_from(rdev).map_err(|_| error(Errno::EINVAL))?;
        self.inner.mknod(self.base(), path.as_path_bytes(), mode, rdev).map_err(error)
    }

    /// Makes a symbolic link at `path` with the target `target`: `symlink(2)`. Limits of this view do not restrict the
    /// text of the target, only walks that follow it.
    ///
    /// # Errors
    /// `EEXIST`; `ENOENT` for an empty target.
    pub fn symlink(&self, target: impl AsPath, path: impl AsPath) -> io::Result<()> {
        self.inner.symlink(target.as_path_bytes(), self.base(), path.as_path_bytes()).map_err(error)
    }

    /// [`View::symlink`] by its name in `std::fs`, where it is deprecated.
    ///
    /// # Errors
    /// As for [`View::symlink`].
    pub fn soft_link(&self, target: impl AsPath, path: impl AsPath) -> io::Result<()> {
        self.symlink(target, path)
    }

    /// Gives the file at `original` the further name `link`: `link(2)`. A symbolic link is not followed.
    ///
    /// # Errors
    /// `EEXIST`; `EPERM` for a directory; `EMLINK`; `EXDEV` to another mount.
    pub fn hard_link(&self, original: impl AsPath, link: impl AsPath) -> io::Result<()> {
        self.link(self.path_at(&original), self.path_at(&link))
    }

    /// [`View::hard_link`] to a path from another directory: `linkat(2)`.
    ///
    /// # Errors
    /// As for [`View::hard_link`]; `EXDEV` for a directory of another tree.
    pub fn hard_link_to(&self, original: impl AsPath, to_dir: &Dir, link: impl AsPath) -> io::Result<()> {
        self.link(self.path_at(&original), PathAt::new(to_dir.base(), link.as_path_bytes()))
    }

    /// Gives an open file a further name, or its first one if it has none (`O_TMPFILE`): `linkat(2)` with
    /// `AT_EMPTY_PATH`.
    ///
    /// # Errors
    /// `EEXIST`; `EPERM` for a directory; `ENOENT` for a file whose last name was removed; `EXDEV` to another mount.
    pub fn hard_link_file(&self, file: &File, link: impl AsPath) -> io::Result<()> {
        self.link(PathAt::new(Base::at(file.inner().held()), b""), self.path_at(&link))
    }

    fn link(&self, from: PathAt<'_>, to: PathAt<'_>) -> io::Result<()> {
        self.inner.link(from, to, false).map_err(error)
    }

    /// Renames, replacing a file or empty directory at the new name: `rename(2)`.
    ///
    /// # Errors
    /// `EINVAL` into itself; `ENOTEMPTY`, `EISDIR`, `ENOTDIR`; `EBUSY` for `.`, `..`, `/` and mount points; `EXDEV` to
    /// another mount.
    pub fn rename(&self, from: impl AsPath, to: impl AsPath) -> io::Result<()> {
        self.rename_with(from, to, RenameFlags::default())
    }

    /// [`View::rename`] that replaces nothing, or exchanges two names: `renameat2(2)`.
    ///
    /// # Errors
    /// As for [`View::rename`]; `EEXIST` with `NOREPLACE`; `ENOENT` with `EXCHANGE`; `EINVAL` for both.
    pub fn rename_with(&self, from: impl AsPath, to: impl AsPath, flags: RenameFlags) -> io::Result<()> {
        self.move_name(self.path_at(&from), self.path_at(&to), flags)
    }

    /// [`View::rename_with`] to a path from another directory.
    ///
    /// # Errors
    /// As for [`View::rename_with`]; `EXDEV` for a directory of another tree.
    pub fn rename_to(&self, from: impl AsPath, to_dir: &Dir, to: impl AsPath, flags: RenameFlags) -> io::Result<()> {
        self.move_name(self.path_at(&from), PathAt::new(to_dir.base(), to.as_path_bytes()), flags)
    }

    fn move_name(&self, from: PathAt<'_>, to: PathAt<'_>, flags: RenameFlags) -> io::Result<()> {
        self.inner.rename(from, to, flags).map_err(error)
    }

    /// Removes the name of a file that is not a directory: `unlink(2)`.
    ///
    /// # Errors
    /// `EISDIR` for a directory; `EPERM` in a sticky one; `EBUSY` for a mount point.
    pub fn remove_file(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.unlink(self.base(), path.as_path_bytes()).map_err(error)
    }

    /// Removes an empty directory: `rmdir(2)`.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`; `EINVAL` for `.`; `EBUSY` for a mount point.
    pub fn remove_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.rmdir(self.base(), path.as_path_bytes()).map_err(error)
    }

    /// `to_dir` with the context of this view: for operations with two paths.
    pub(super) fn as_seen_from(&self, to_dir: &Dir) -> View {
        match to_dir.held() {
            Some(held) => self.at(held.clone(), to_dir.limits()),
            None => self.clone(),
        }
    }
}
