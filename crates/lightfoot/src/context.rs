//! The context, and every operation on paths.

use crate::error;
use crate::file::{File, OpenOptions};
use crate::metadata::{FileTimes, Metadata, Permissions};
use crate::path::AsPath;
use crate::read_dir::ReadDir;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use vfs::{Base, Credentials, Errno, OpenFile, OpenFlags, RenameFlags, SetAttr, SetTime};

/// Through whose eyes a tree is seen: root and working directory, credentials, umask. See the [crate documentation](crate).
///
/// Errors are those of the system calls named at each method; those of every walk (`path_resolution(7)`) are not
/// repeated: `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, and `EINVAL` for a NUL byte.
#[derive(Debug)]
pub struct Context {
    inner: vfs::Context,
}

impl Context {
    pub(crate) fn new(inner: vfs::Context) -> Self {
        Self { inner }
    }

    // ---- who and where

    /// A context that shares nothing with this one but the tree, with other credentials.
    #[must_use]
    pub fn with_credentials(&self, credentials: Credentials) -> Context {
        let context = self.fork();
        context.set_credentials(credentials);
        context
    }

    /// A copy that shares nothing with this one but the tree.
    #[must_use]
    pub fn fork(&self) -> Context {
        Self::new(self.inner.fork())
    }

    /// The credentials.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        self.inner.credentials()
    }

    /// Replaces the credentials.
    pub fn set_credentials(&self, credentials: Credentials) {
        self.inner.set_credentials(credentials);
    }

    /// Replaces the mask of creation modes and gives the old one: `umask(2)`.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.inner.set_umask(mask)
    }

    /// Changes the working directory: `chdir(2)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`.
    pub fn set_current_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.set_current_dir(path.as_path_bytes()).map_err(error)
    }

    /// The working directory's path: `getcwd(2)`.
    ///
    /// # Errors
    /// `ENOENT` if it was removed.
    pub fn current_dir(&self) -> io::Result<PathBuf> {
        self.inner.current_dir().map(path_buf).map_err(error)
    }

    /// Changes the root directory, not the working directory: `chroot(2)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`.
    pub fn chroot(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.set_root(path.as_path_bytes()).map_err(error)
    }

    // ---- questions

    /// Attributes; symbolic links are followed: `stat(2)`. Writes to no shared memory if the path is cached.
    ///
    /// # Errors
    /// Those of every walk.
    #[inline]
    pub fn metadata(&self, path: impl AsPath) -> io::Result<Metadata> {
        self.stat(path.as_path_bytes())
    }

    /// [`Context::metadata`], compiled once. The walk is inlined here, so that the result is written once, to its place.
    #[inline(never)]
    fn stat(&self, path: &[u8]) -> io::Result<Metadata> {
        self.inner.attr_as(Base::CWD, path, true, Metadata::new)
    }

    /// Attributes; a symbolic link at the end is not followed: `lstat(2)`.
    ///
    /// # Errors
    /// Those of every walk.
    #[inline]
    pub fn symlink_metadata(&self, path: impl AsPath) -> io::Result<Metadata> {
        self.inner.attr_as(Base::CWD, path.as_path_bytes(), false, Metadata::new)
    }

    /// Whether the path leads to something; also `false` if that cannot be found out.
    #[must_use]
    pub fn exists(&self, path: impl AsPath) -> bool {
        self.inner.access(Base::CWD, path.as_path_bytes(), true, 0).is_ok()
    }

    /// Whether the path leads to something, or why that cannot be found out.
    ///
    /// # Errors
    /// Those of every walk but `ENOENT`.
    pub fn try_exists(&self, path: impl AsPath) -> io::Result<bool> {
        match self.inner.access(Base::CWD, path.as_path_bytes(), true, 0) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(error(errno)),
        }
    }

    /// Checks [`R_OK`](crate::R_OK), [`W_OK`](crate::W_OK), [`X_OK`](crate::X_OK): `faccessat(2)` with `AT_EACCESS`.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn access(&self, path: impl AsPath, bits: u32) -> io::Result<()> {
        self.inner.access(Base::CWD, path.as_path_bytes(), true, bits).map_err(error)
    }

    /// What a symbolic link says: `readlink(2)`.
    ///
    /// # Errors
    /// `EINVAL` if it is no symbolic link.
    pub fn read_link(&self, path: impl AsPath) -> io::Result<PathBuf> {
        self.inner.read_link(Base::CWD, path.as_path_bytes()).map(path_buf).map_err(error)
    }

    /// The absolute path without symbolic links, `.` and `..`: `realpath(3)`.
    ///
    /// # Errors
    /// Those of every walk.
    pub fn canonicalize(&self, path: impl AsPath) -> io::Result<PathBuf> {
        self.inner.canonical(Base::CWD, path.as_path_bytes()).map(path_buf).map_err(error)
    }

    /// The entries of a directory: `readdir(3)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`.
    pub fn read_dir(&self, path: impl AsPath) -> io::Result<ReadDir> {
        let bytes = path.as_path_bytes();
        let dir = self.inner.open(Base::CWD, bytes, OpenFlags::DIRECTORY, 0).map_err(error)?;
        Ok(ReadDir::new(dir, path_buf(bytes.to_vec())))
    }

    // ---- files

    /// Opens a file with the flags of `open(2)`.
    pub(crate) fn open_flags(&self, path: impl AsPath, flags: OpenFlags, mode: u32) -> io::Result<File> {
        self.inner.open(Base::CWD, path.as_path_bytes(), flags, mode).map(File::new).map_err(error)
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    /// Those of `open(2)`; see [`OpenOptions`] for other ways.
    pub fn open(&self, path: impl AsPath) -> io::Result<File> {
        self.open_flags(path, OpenFlags::RDONLY, 0)
    }

    /// The contents of a file.
    ///
    /// # Errors
    /// Those of `open(2)`, `EISDIR`.
    pub fn read(&self, path: impl AsPath) -> io::Result<Vec<u8>> {
        let mut file = self.open(path)?;
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(0);
        let mut contents = Vec::new();
        contents.try_reserve_exact(len).map_err(|_| error(Errno::ENOMEM))?;
        file.read_to_end(&mut contents)?;
        Ok(contents)
    }

    /// The contents of a file that is UTF-8.
    ///
    /// # Errors
    /// As for [`Context::read`]; `InvalidData` if it is not UTF-8.
    pub fn read_to_string(&self, path: impl AsPath) -> io::Result<String> {
        let mut text = String::new();
        self.open(path)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Makes a file of these contents, in place of any it had.
    ///
    /// # Errors
    /// Those of `open(2)` and `write(2)`.
    pub fn write(&self, path: impl AsPath, contents: impl AsRef<[u8]>) -> io::Result<()> {
        File::create(self, path)?.write_all(contents.as_ref())
    }

    /// Copies contents and permission bits; gives the number of bytes.
    ///
    /// # Errors
    /// Those of `open(2)`; `EINVAL` if `from` is no regular file.
    pub fn copy(&self, from: impl AsPath, to: impl AsPath) -> io::Result<u64> {
        let mut source = self.open(from)?;
        let metadata = source.metadata()?;
        if !metadata.is_file() {
            return Err(error(Errno::EINVAL));
        }
        let mode = metadata.mode() & 0o7777;
        let mut target = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(self, to)?;
        target.set_permissions(Permissions::from_mode(mode))?;
        io::copy(&mut source, &mut target)
    }

    // ---- names

    /// Makes a directory of mode 0777 less the umask: `mkdir(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `EMLINK`.
    pub fn create_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.mkdir(path, 0o777)
    }

    /// Makes a directory of `mode` less the umask: `mkdir(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `EMLINK`.
    pub fn mkdir(&self, path: impl AsPath, mode: u32) -> io::Result<()> {
        self.inner.mkdir(Base::CWD, path.as_path_bytes(), mode).map_err(error)
    }

    /// Makes a directory and those above it that are missing. One that is there already is right.
    ///
    /// # Errors
    /// `EEXIST` if something else is there; those of `mkdir(2)`.
    pub fn create_dir_all(&self, path: impl AsPath) -> io::Result<()> {
        let path = path.as_path_bytes();
        let ends = (1..=path.len()).filter(|&end| end == path.len() || path[end] == b'/');
        for end in ends {
            match self.inner.mkdir(Base::CWD, &path[..end], 0o777) {
                Ok(()) => {}
                Err(errno) => match self.inner.attr(Base::CWD, &path[..end], true) {
                    Ok(attr) if attr.is_dir() => {}
                    _ => return Err(error(errno)),
                },
            }
        }
        Ok(())
    }

    /// Makes a FIFO, socket, device node or regular file: `mknod(2)`. `mode` has type and permission bits.
    ///
    /// # Errors
    /// `EEXIST`; `EINVAL`, `EPERM` for a type that cannot be made so; `EINVAL` for a device number of more than 32 bits.
    pub fn mknod(&self, path: impl AsPath, mode: u32, rdev: u64) -> io::Result<()> {
        let rdev = u32::try_from(rdev).map_err(|_| error(Errno::EINVAL))?;
        self.inner.mknod(Base::CWD, path.as_path_bytes(), mode, rdev).map_err(error)
    }

    /// Makes a symbolic link at `path` that says `target`: `symlink(2)`.
    ///
    /// # Errors
    /// `EEXIST`; `ENOENT` for an empty target.
    pub fn symlink(&self, target: impl AsPath, path: impl AsPath) -> io::Result<()> {
        self.inner.symlink(target.as_path_bytes(), Base::CWD, path.as_path_bytes()).map_err(error)
    }

    /// Gives the file at `original` the further name `link`: `link(2)`. A symbolic link is not followed.
    ///
    /// # Errors
    /// `EEXIST`; `EPERM` for a directory; `EMLINK`.
    pub fn hard_link(&self, original: impl AsPath, link: impl AsPath) -> io::Result<()> {
        self.inner.link((Base::CWD, original.as_path_bytes(), false), (Base::CWD, link.as_path_bytes())).map_err(error)
    }

    /// Moves a name, over a file or empty directory that is there: `rename(2)`.
    ///
    /// # Errors
    /// `EINVAL` into itself; `ENOTEMPTY`, `EISDIR`, `ENOTDIR`; `EBUSY` for `.`, `..` and `/`.
    pub fn rename(&self, from: impl AsPath, to: impl AsPath) -> io::Result<()> {
        self.inner
            .rename((Base::CWD, from.as_path_bytes()), (Base::CWD, to.as_path_bytes()), RenameFlags::default())
            .map_err(error)
    }

    /// Removes a name that is no directory's: `unlink(2)`.
    ///
    /// # Errors
    /// `EISDIR` for a directory; `EPERM` in a sticky one.
    pub fn remove_file(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.unlink(Base::CWD, path.as_path_bytes()).map_err(error)
    }

    /// Removes an empty directory: `rmdir(2)`.
    ///
    /// # Errors
    /// `ENOTEMPTY`, `ENOTDIR`; `EINVAL` for `.`.
    pub fn remove_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.rmdir(Base::CWD, path.as_path_bytes()).map_err(error)
    }

    /// Removes a directory and all below it. Symbolic links are removed, not followed.
    ///
    /// # Errors
    /// Those of `rmdir(2)` and `unlink(2)`; what could be removed before has gone.
    pub fn remove_dir_all(&self, path: impl AsPath) -> io::Result<()> {
        let path = path.as_path_bytes();
        if !self.symlink_metadata(path)?.is_dir() {
            return self.remove_file(path);
        }
        self.remove_below(path)?;
        self.remove_dir(path)
    }

    fn remove_below(&self, path: &[u8]) -> io::Result<()> {
        // By handle and name would be safer against others who rename meanwhile; handles come with the `Dir` type.
        for entry in self.read_dir(path)? {
            let entry = entry?;
            let below = entry.path();
            let removed =
                if entry.file_type()?.is_dir() { self.remove_dir_all(&below) } else { self.remove_file(&below) };
            match removed {
                Err(gone) if gone.raw_os_error() == Some(Errno::ENOENT.raw()) => {}
                other => other?,
            }
        }
        Ok(())
    }

    // ---- attributes

    /// Changes permission bits: `chmod(2)`.
    ///
    /// # Errors
    /// `EPERM` if not the owner.
    pub fn set_permissions(&self, path: impl AsPath, permissions: Permissions) -> io::Result<()> {
        self.set_attr(path, true, &SetAttr { mode: Some(permissions.mode()), ..SetAttr::default() })
    }

    /// Changes owner and group; `None` leaves one as it is: `chown(2)`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn chown(&self, path: impl AsPath, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.set_attr(path, true, &SetAttr { uid, gid, ..SetAttr::default() })
    }

    /// As [`Context::chown`], of a symbolic link itself: `lchown(2)`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn lchown(&self, path: impl AsPath, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.set_attr(path, false, &SetAttr { uid, gid, ..SetAttr::default() })
    }

    /// Cuts a file to `len` bytes or lets a hole follow its contents: `truncate(2)`.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL`.
    pub fn truncate(&self, path: impl AsPath, len: u64) -> io::Result<()> {
        self.set_attr(path, true, &SetAttr { size: Some(len), ..SetAttr::default() })
    }

    /// Changes times: `utimensat(2)`.
    ///
    /// # Errors
    /// `EPERM`, `EACCES`.
    pub fn set_times(&self, path: impl AsPath, times: FileTimes) -> io::Result<()> {
        // As utimensat(2) with UTIME_OMIT twice: not even the path is looked at.
        if times == FileTimes::new() {
            return Ok(());
        }
        self.set_attr(path, true, &SetAttr { atime: times.atime, mtime: times.mtime, ..SetAttr::default() })
    }

    /// Changes times to numbers of nanoseconds since the epoch, of a symbolic link itself unless `follow`: `utimensat(2)`.
    ///
    /// # Errors
    /// `EPERM`, `EACCES`.
    pub fn set_times_ns(&self, path: impl AsPath, atime: i64, mtime: i64, follow: bool) -> io::Result<()> {
        let set = SetAttr { atime: Some(SetTime::At(atime)), mtime: Some(SetTime::At(mtime)), ..SetAttr::default() };
        self.set_attr(path, follow, &set)
    }

    fn set_attr(&self, path: impl AsPath, follow: bool, set: &SetAttr) -> io::Result<()> {
        self.inner.set_attr(Base::CWD, path.as_path_bytes(), follow, set).map_err(error)
    }

    pub(crate) fn path_of(&self, file: &OpenFile) -> PathBuf {
        path_buf(self.inner.path_of_file(file))
    }
}

fn path_buf(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
