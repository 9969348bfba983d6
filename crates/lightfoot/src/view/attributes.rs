//! Attributes: queries, and changes.

use super::View;
use crate::error::error;
use crate::metadata::{FileTimes, Metadata, Permissions};
use crate::path::AsPath;
use std::io;
use vfs::{Base, Errno, SetAttr, SetTime};

/// # Metadata
///
/// ```
/// use lightfoot::{FileTimes, Permissions, R_OK, Vfs};
/// use std::time::SystemTime;
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/file", "text")?;
/// assert_eq!(ctx.metadata("/file")?.len(), 4);
/// assert!(ctx.is_file("/file") && !ctx.exists("/other"));
///
/// ctx.set_permissions("/file", Permissions::from_mode(0o640))?;
/// ctx.chown("/file", Some(1000), Some(1000))?;
/// ctx.set_times("/file", FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))?;
/// let metadata = ctx.metadata("/file")?;
/// assert_eq!((metadata.mode() & 0o777, metadata.uid(), metadata.mtime()), (0o640, 1000, 0));
/// ctx.access("/file", R_OK)?; // Would a read be allowed?
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Returns the attributes; symbolic links are followed: `stat(2)`. The call writes to no shared
    /// memory if the path is cached.
    ///
    /// # Errors
    /// As for every walk.
    #[inline]
    pub fn metadata(&self, path: impl AsPath) -> io::Result<Metadata> {
        let path = path.as_path_bytes();
        if self.from.is_none() { self.stat(path) } else { self.stat_from(path, true) }
    }

    /// Returns the attributes; a symbolic link at the end is not followed: `lstat(2)`.
    ///
    /// # Errors
    /// As for every walk.
    #[inline]
    pub fn symlink_metadata(&self, path: impl AsPath) -> io::Result<Metadata> {
        self.stat_from(path.as_path_bytes(), false)
    }

    /// Returns the attributes of each path, in the order of `paths`; symbolic links are followed,
    /// as in [`View::metadata`].
    ///
    /// The walks take turns, so that one walk waits for memory while another computes. This is
    /// faster than separate calls if the paths are not in the processor's caches, or if neighbours
    /// in `paths` are in one directory. Each result is right at some moment during the call; the
    /// results are not one snapshot.
    ///
    /// ```
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.write("/a", "one")?;
    /// ctx.write("/b", "three")?;
    /// let lengths = ctx.metadata_many(&["/a", "/b", "/c"]).into_iter().map(|found| found.map(|meta| meta.len()).ok());
    /// assert_eq!(lengths.collect::<Vec<_>>(), [Some(3), Some(5), None]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Each result has the error of the walk of its path.
    #[must_use]
    pub fn metadata_many(&self, paths: &[impl AsPath]) -> Vec<io::Result<Metadata>> {
        let bytes: Vec<&[u8]> = paths.iter().map(AsPath::as_path_bytes).collect();
        // The core reports each path once, in no order.
        let mut found = vec![Err(Errno::ENOENT); bytes.len()];
        self.inner.attr_many(self.base(), &bytes, true, |at, result| {
            found[at] = result.map(|(attr, dev)| Metadata::new(attr, dev));
        });
        found.into_iter().map(|result| result.map_err(error)).collect()
    }

    /// Returns whether the path leads to something; also `false` if that cannot be found out.
    #[must_use]
    pub fn exists(&self, path: impl AsPath) -> bool {
        self.access(path, crate::access::F_OK).is_ok()
    }

    /// Returns whether the path leads to something, or why that cannot be found out.
    ///
    /// # Errors
    /// As for every walk, except `ENOENT`.
    pub fn try_exists(&self, path: impl AsPath) -> io::Result<bool> {
        match self.inner.access(self.base(), path.as_path_bytes(), true, crate::access::F_OK) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(error(errno)),
        }
    }

    /// Returns whether the path leads to a regular file; also `false` if that cannot be found out.
    #[must_use]
    pub fn is_file(&self, path: impl AsPath) -> bool {
        self.metadata(path).is_ok_and(|metadata| metadata.is_file())
    }

    /// Returns whether the path leads to a directory; also `false` if that cannot be found out.
    #[must_use]
    pub fn is_dir(&self, path: impl AsPath) -> bool {
        self.metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Returns whether there is a symbolic link at the path; also `false` if that cannot be found
    /// out.
    #[must_use]
    pub fn is_symlink(&self, path: impl AsPath) -> bool {
        self.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
    }

    /// Checks [`R_OK`](crate::R_OK), [`W_OK`](crate::W_OK), [`X_OK`](crate::X_OK): `faccessat(2)` with `AT_EACCESS`.
    ///
    /// # Errors
    /// `EACCES`; `EROFS` to write on a read-only mount.
    pub fn access(&self, path: impl AsPath, bits: u32) -> io::Result<()> {
        self.inner.access(self.base(), path.as_path_bytes(), true, bits).map_err(error)
    }

    /// Changes permission bits: `chmod(2)`.
    ///
    /// # Errors
    /// `EPERM` if the user is not the owner; `EROFS`.
    pub fn set_permissions(&self, path: impl AsPath, permissions: Permissions) -> io::Result<()> {
        self.set_attr(path, true, &SetAttr { mode: Some(permissions.mode()), ..SetAttr::default() })
    }

    /// As [`View::set_permissions`], of a symbolic link itself: `fchmodat2(2)` with `AT_SYMLINK_NOFOLLOW`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for a symbolic link, which does not have permission bits; else as for [`View::set_permissions`].
    pub fn set_permissions_nofollow(&self, path: impl AsPath, permissions: Permissions) -> io::Result<()> {
        self.set_attr(path, false, &SetAttr { mode: Some(permissions.mode()), ..SetAttr::default() })
    }

    /// Changes owner and group; `None` leaves one as it is: `chown(2)`.
    ///
    /// # Errors
    /// `EPERM`, `EROFS`.
    pub fn chown(&self, path: impl AsPath, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.set_attr(path, true, &SetAttr { uid, gid, ..SetAttr::default() })
    }

    /// As [`View::chown`], of a symbolic link itself: `lchown(2)`.
    ///
    /// # Errors
    /// `EPERM`, `EROFS`.
    pub fn lchown(&self, path: impl AsPath, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.set_attr(path, false, &SetAttr { uid, gid, ..SetAttr::default() })
    }

    /// Truncates a file to `len` bytes, or extends it with a hole: `truncate(2)`.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL`, `EROFS`.
    pub fn truncate(&self, path: impl AsPath, len: u64) -> io::Result<()> {
        self.set_attr(path, true, &SetAttr { size: Some(len), ..SetAttr::default() })
    }

    /// Changes times: `utimensat(2)`.
    ///
    /// # Errors
    /// `EPERM`, `EACCES`, `EROFS`.
    pub fn set_times(&self, path: impl AsPath, times: FileTimes) -> io::Result<()> {
        self.set_times_of(path, true, times)
    }

    /// As [`View::set_times`], of a symbolic link itself: `utimensat(2)` with `AT_SYMLINK_NOFOLLOW`.
    ///
    /// # Errors
    /// `EPERM`, `EACCES`, `EROFS`.
    pub fn set_times_nofollow(&self, path: impl AsPath, times: FileTimes) -> io::Result<()> {
        self.set_times_of(path, false, times)
    }

    /// Changes times to numbers of nanoseconds since the epoch, of a symbolic link itself unless `follow`:
    /// `utimensat(2)`.
    ///
    /// # Errors
    /// `EPERM`, `EACCES`, `EROFS`.
    pub fn set_times_ns(&self, path: impl AsPath, atime: i64, mtime: i64, follow: bool) -> io::Result<()> {
        let set = SetAttr { atime: Some(SetTime::At(atime)), mtime: Some(SetTime::At(mtime)), ..SetAttr::default() };
        self.set_attr(path, follow, &set)
    }
}

impl View {
    /// As [`View::metadata`] of a context, but compiled once. The walk is inlined here, so that it
    /// writes the result once, directly to the caller's memory. The start of the walk is fixed, so
    /// that the walk does not check limits.
    #[inline(never)]
    fn stat(&self, path: &[u8]) -> io::Result<Metadata> {
        self.inner.attr_as(Base::CWD, path, true, Metadata::new)
    }

    /// As [`stat`](Self::stat), from any start.
    #[inline(never)]
    fn stat_from(&self, path: &[u8], follow: bool) -> io::Result<Metadata> {
        self.inner.attr_as(self.base(), path, follow, Metadata::new)
    }

    fn set_times_of(&self, path: impl AsPath, follow: bool, times: FileTimes) -> io::Result<()> {
        // As utimensat(2) with UTIME_OMIT twice, which does not even walk the path.
        if times == FileTimes::new() {
            return Ok(());
        }
        self.set_attr(path, follow, &times.to_set())
    }

    fn set_attr(&self, path: impl AsPath, follow: bool, set: &SetAttr) -> io::Result<()> {
        self.inner.set_attr(self.base(), path.as_path_bytes(), follow, set).map_err(error)
    }
}
