//! Attributes that change, and extended attributes.

use super::View;
use crate::error::error;
use crate::metadata::{FileTimes, Permissions};
use crate::path::AsPath;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use vfs::{SetAttr, SetTime, SetXattr};

impl View {
    /// Changes permission bits: `chmod(2)`.
    ///
    /// # Errors
    /// `EPERM` if not the owner; `EROFS`.
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

    fn set_times_of(&self, path: impl AsPath, follow: bool, times: FileTimes) -> io::Result<()> {
        // As utimensat(2) with UTIME_OMIT twice: it does not even walk the path.
        if times == FileTimes::new() {
            return Ok(());
        }
        self.set_attr(path, follow, &times.to_set())
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

    fn set_attr(&self, path: impl AsPath, follow: bool, set: &SetAttr) -> io::Result<()> {
        self.inner.set_attr(self.base(), path.as_path_bytes(), follow, set).map_err(error)
    }

    // ---- extended attributes

    /// The value of the extended attribute `name`: `getxattr(2)`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`; `ERANGE` for an empty name or one of more than 255 bytes; `EACCES`.
    pub fn get_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<Vec<u8>> {
        self.xattr(path, true, name.as_ref())
    }

    /// As [`View::get_xattr`], of a symbolic link itself: `lgetxattr(2)`.
    ///
    /// # Errors
    /// As for [`View::get_xattr`].
    pub fn lget_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<Vec<u8>> {
        self.xattr(path, false, name.as_ref())
    }

    fn xattr(&self, path: impl AsPath, follow: bool, name: &[u8]) -> io::Result<Vec<u8>> {
        self.inner.get_xattr(self.base(), path.as_path_bytes(), follow, name).map(Vec::from).map_err(error)
    }

    /// Sets the extended attribute `name`: `setxattr(2)`.
    ///
    /// # Errors
    /// `EEXIST`, `ENODATA` according to `how`; `EOPNOTSUPP`, `ERANGE`, `E2BIG`, `EPERM`, `EACCES`, `EROFS`, `ENOSPC`,
    /// `EDQUOT`.
    pub fn set_xattr(
        &self,
        path: impl AsPath,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        how: SetXattr,
    ) -> io::Result<()> {
        let (path, name, value) = (path.as_path_bytes(), name.as_ref(), value.as_ref());
        self.inner.set_xattr(self.base(), path, true, name, value, how).map_err(error)
    }

    /// As [`View::set_xattr`], of a symbolic link itself: `lsetxattr(2)`.
    ///
    /// # Errors
    /// As for [`View::set_xattr`].
    pub fn lset_xattr(
        &self,
        path: impl AsPath,
        name: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        how: SetXattr,
    ) -> io::Result<()> {
        let (path, name, value) = (path.as_path_bytes(), name.as_ref(), value.as_ref());
        self.inner.set_xattr(self.base(), path, false, name, value, how).map_err(error)
    }

    /// Removes the extended attribute `name`: `removexattr(2)`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`, `ERANGE`, `EPERM`, `EACCES`, `EROFS`.
    pub fn remove_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<()> {
        self.inner.remove_xattr(self.base(), path.as_path_bytes(), true, name.as_ref()).map_err(error)
    }

    /// As [`View::remove_xattr`], of a symbolic link itself: `lremovexattr(2)`.
    ///
    /// # Errors
    /// As for [`View::remove_xattr`].
    pub fn lremove_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<()> {
        self.inner.remove_xattr(self.base(), path.as_path_bytes(), false, name.as_ref()).map_err(error)
    }

    /// The names of all extended attributes that the caller may see: `listxattr(2)`.
    ///
    /// # Errors
    /// The file system's.
    pub fn list_xattrs(&self, path: impl AsPath) -> io::Result<Vec<OsString>> {
        self.xattrs(path, true)
    }

    /// As [`View::list_xattrs`], of a symbolic link itself: `llistxattr(2)`.
    ///
    /// # Errors
    /// The file system's.
    pub fn llist_xattrs(&self, path: impl AsPath) -> io::Result<Vec<OsString>> {
        self.xattrs(path, false)
    }

    fn xattrs(&self, path: impl AsPath, follow: bool) -> io::Result<Vec<OsString>> {
        self.inner.list_xattrs(self.base(), path.as_path_bytes(), follow).map(os_strings).map_err(error)
    }
}

/// The names of `std`.
pub(crate) fn os_strings(names: Vec<Box<[u8]>>) -> Vec<OsString> {
    names.into_iter().map(|name| OsString::from_vec(name.into_vec())).collect()
}
