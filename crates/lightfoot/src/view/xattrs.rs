//! Extended attributes of paths.

use super::View;
use crate::error::error;
use crate::path::AsPath;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use vfs::SetXattr;

/// # Extended attributes and ACLs
///
/// An access control list is the attribute `system.posix_acl_access`; a directory's list for its
/// new files is `system.posix_acl_default`, as on Linux. [`Acl`](crate::fs::Acl) converts them.
///
/// ```
/// use lightfoot::{Credentials, Permissions, SetXattr, Vfs};
/// use lightfoot::fs::{Acl, AclEntry, AclTag};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/report", "text")?;
/// ctx.set_xattr("/report", "user.author", "ann", SetXattr::Any)?;
/// assert_eq!(ctx.get_xattr("/report", "user.author")?, b"ann");
///
/// // The user 1000 may read it, too.
/// ctx.set_permissions("/report", Permissions::from_mode(0o600))?;
/// let entry = |tag, perm| AclEntry { tag, perm };
/// let acl = Acl::new(&[
///     entry(AclTag::UserObj, 6),
///     entry(AclTag::User(1000), 4),
///     entry(AclTag::GroupObj, 0),
///     entry(AclTag::Mask, 4),
///     entry(AclTag::Other, 0),
/// ])?;
/// ctx.set_xattr("/report", "system.posix_acl_access", acl.to_xattr(), SetXattr::Any)?;
/// let ann = ctx.with_credentials(Credentials::user(1000, 1000, &[]));
/// assert_eq!(ann.read("/report")?, b"text");
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Returns the value of the extended attribute `name`: `getxattr(2)`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`; `ERANGE` for an empty name or one of more than 255 bytes; `EACCES`.
    pub fn get_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<Vec<u8>> {
        self.xattr(path, true, name.as_ref())
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

    /// Removes the extended attribute `name`: `removexattr(2)`.
    ///
    /// # Errors
    /// `ENODATA`, `EOPNOTSUPP`, `ERANGE`, `EPERM`, `EACCES`, `EROFS`.
    pub fn remove_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<()> {
        self.inner.remove_xattr(self.base(), path.as_path_bytes(), true, name.as_ref()).map_err(error)
    }

    /// Returns the names of all extended attributes that the caller may see: `listxattr(2)`.
    ///
    /// # Errors
    /// The file system's.
    pub fn list_xattrs(&self, path: impl AsPath) -> io::Result<Vec<OsString>> {
        self.xattrs(path, true)
    }

    /// As [`View::get_xattr`], of a symbolic link itself: `lgetxattr(2)`.
    ///
    /// # Errors
    /// As for [`View::get_xattr`].
    pub fn lget_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<Vec<u8>> {
        self.xattr(path, false, name.as_ref())
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

    /// As [`View::remove_xattr`], of a symbolic link itself: `lremovexattr(2)`.
    ///
    /// # Errors
    /// As for [`View::remove_xattr`].
    pub fn lremove_xattr(&self, path: impl AsPath, name: impl AsRef<[u8]>) -> io::Result<()> {
        self.inner.remove_xattr(self.base(), path.as_path_bytes(), false, name.as_ref()).map_err(error)
    }

    /// As [`View::list_xattrs`], of a symbolic link itself: `llistxattr(2)`.
    ///
    /// # Errors
    /// The file system's.
    pub fn llist_xattrs(&self, path: impl AsPath) -> io::Result<Vec<OsString>> {
        self.xattrs(path, false)
    }
}

impl View {
    fn xattr(&self, path: impl AsPath, follow: bool, name: &[u8]) -> io::Result<Vec<u8>> {
        self.inner.get_xattr(self.base(), path.as_path_bytes(), follow, name).map(Vec::from).map_err(error)
    }

    fn xattrs(&self, path: impl AsPath, follow: bool) -> io::Result<Vec<OsString>> {
        self.inner.list_xattrs(self.base(), path.as_path_bytes(), follow).map(os_strings).map_err(error)
    }
}

/// Returns the names of `std`.
pub(crate) fn os_strings(names: Vec<Box<[u8]>>) -> Vec<OsString> {
    names.into_iter().map(|name| OsString::from_vec(name.into_vec())).collect()
}
