//! Directories: making, listing, opening and emptying them.

use super::{DirBuilder, View};
use crate::dir::Dir;
use crate::error::error;
use crate::path::{AsPath, path_buf};
use crate::read_dir::ReadDir;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use vfs::{Errno, OpenFile, OpenFlags};

/// Permission bits of a new directory, before the umask.
const DIR_MODE: u32 = 0o777;

/// # Directories
///
/// ```
/// use lightfoot::Vfs;
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/photos/2024/summer")?;
/// ctx.write("/photos/2024/sea.jpg", "")?;
/// for entry in ctx.read_dir("/photos/2024")? {
///     let entry = entry?;
///     println!("{} {:?}", entry.path().display(), entry.file_type()?);
/// }
/// let year = ctx.open_dir("/photos/2024")?; // A handle: paths can start from it.
/// assert!(year.exists("sea.jpg"));
/// ctx.remove_dir_all("/photos")?;
/// assert!(!ctx.exists("/photos"));
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Makes a directory of mode 0777 less the umask: `mkdir(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `EMLINK`.
    pub fn create_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.mkdir(path, DIR_MODE)
    }

    /// Makes a directory and its missing parents. It may exist already.
    ///
    /// # Errors
    /// `EEXIST` if the name exists and is not a directory; as for `mkdir(2)`.
    pub fn create_dir_all(&self, path: impl AsPath) -> io::Result<()> {
        self.mkdir_all(path.as_path_bytes(), DIR_MODE)
    }

    /// Makes a directory with the options of `builder`.
    ///
    /// # Errors
    /// As for [`DirBuilder::create`].
    pub fn create_dir_with(&self, path: impl AsPath, builder: &DirBuilder) -> io::Result<()> {
        builder.create(self, path)
    }

    /// Makes a directory of `mode` less the umask: `mkdir(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `EMLINK`.
    pub fn mkdir(&self, path: impl AsPath, mode: u32) -> io::Result<()> {
        self.inner.mkdir(self.base(), path.as_path_bytes(), mode).map_err(error)
    }

    /// Returns the entries of a directory: `readdir(3)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`.
    pub fn read_dir(&self, path: impl AsPath) -> io::Result<ReadDir> {
        let path = path.as_path_bytes();
        let dir = self.open_raw(path, OpenFlags::DIRECTORY)?;
        let view = self.at(dir.held().clone(), self.limits());
        Ok(ReadDir::new(view, dir, path_buf(path.to_vec())))
    }

    /// Returns a handle of the directory at `path`, from which paths can start: `openat(2)` with
    /// `O_PATH` and `O_DIRECTORY`. The call needs no permission on the directory itself; operations
    /// on the handle do. The handle has the limits of this view, which apply to its own directory.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn open_dir(&self, path: impl AsPath) -> io::Result<Dir> {
        let place = self.open_raw(path.as_path_bytes(), OpenFlags::PATH.union(OpenFlags::DIRECTORY))?;
        Ok(Dir::new(self.at(place.held().clone(), self.limits())))
    }

    /// Removes an empty directory: `rmdir(2)`.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`; `EINVAL` for `.`; `EBUSY` for a mount point.
    pub fn remove_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.rmdir(self.base(), path.as_path_bytes()).map_err(error)
    }

    /// Removes a directory and all below it. Symbolic links are removed, not followed. Safe against
    /// concurrent renames, since it works by handles of directories.
    ///
    /// # Errors
    /// `ENOTDIR` for a file; as for `rmdir(2)`, `unlink(2)` and `open(2)`; entries removed before
    /// the error stay removed.
    pub fn remove_dir_all(&self, path: impl AsPath) -> io::Result<()> {
        let path = path.as_path_bytes();
        match self.open_to_empty(self.base(), path) {
            Ok(dir) => {
                self.empty(dir).map_err(error)?;
                self.remove_dir(path)
            }
            // As in std: a symbolic link is removed, a file is an error.
            Err(Errno::ENOTDIR | Errno::ELOOP) if self.is_symlink(path) => self.remove_file(path),
            Err(errno) => Err(error(errno)),
        }
    }
}

impl View {
    /// [`View::create_dir_all`] with a mode. Tries from the last component upwards until a parent
    /// exists, as `std` does. If several errors apply, this order decides which one is returned.
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

    fn open_raw(&self, path: &[u8], flags: OpenFlags) -> io::Result<OpenFile> {
        self.inner.open(self.base(), path, flags, 0).map_err(error)
    }
}
