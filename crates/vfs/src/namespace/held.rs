//! Operations on what is held, without a path: what the kernel does with a file that it has found already.
//!
//! For front ends whose protocol names files by handles (FUSE, 9P, NFS). Permissions are checked as for the operation on a path,
//! but for searching the directories on the way, which was done by who found the file.

use super::open::{check_cut, check_kind, check_opened};
use super::xattr;
use crate::attr::{Attr, S_IFLNK, S_IFMT, SetAttr};
use crate::context::{Context, Held};
use crate::cred::{MAY_EXEC, MAY_WRITE};
use crate::errno::Errno;
use crate::file::OpenFile;
use crate::fs::SetXattr;
use crate::namespace::OpenFlags;
use crate::permission::{may_block, mount_allows};

impl Context {
    /// Opens `held` once more: `open(2)` of `/proc/self/fd/N`. `CREAT` and `EXCL` mean nothing.
    ///
    /// # Errors
    /// As for [`Context::open`] of a file that is there.
    pub fn open_held(&self, held: &Held, flags: OpenFlags) -> Result<OpenFile, Errno> {
        let cred = self.credentials();
        if !flags.has(OpenFlags::PATH) {
            let attr = held.attr()?;
            check_kind(attr.mode, flags)?;
            check_cut(held.mount(), &attr, flags)?;
            may_block(held.sb(), (held.inode()?, &attr), &cred, flags.mask())?;
            check_opened(held.mount(), &attr, &cred, flags)?;
        }
        self.opened(held.clone(), flags, cred)
    }

    /// [`Context::access`] of `held`.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`.
    pub fn access_held(&self, held: &Held, mask: u32) -> Result<(), Errno> {
        let attr = held.attr()?;
        mount_allows(held.mount(), &attr, mask & MAY_EXEC)?;
        may_block(held.sb(), (held.inode()?, &attr), &self.credentials(), mask & 7)?;
        mount_allows(held.mount(), &attr, mask & MAY_WRITE)
    }

    /// [`Context::set_attr`] of `held`; gives the attributes after.
    ///
    /// # Errors
    /// As for [`Context::set_attr`].
    pub fn set_attr_held(&self, held: &Held, set: &SetAttr) -> Result<Attr, Errno> {
        self.change_attr(held, set)?;
        held.attr()
    }

    /// [`Context::read_link`] of `held`.
    ///
    /// # Errors
    /// `EINVAL` if it is no symbolic link; the file system's.
    pub fn read_link_held(&self, held: &Held) -> Result<Vec<u8>, Errno> {
        if held.inode()?.mode() & S_IFMT != S_IFLNK {
            return Err(Errno::EINVAL);
        }
        held.sb().link_body(held.dentry(), &self.request())
    }

    /// [`Context::get_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::get_xattr`].
    pub fn get_xattr_held(&self, held: &Held, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        xattr::get(held, &self.credentials(), name)
    }

    /// [`Context::set_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::set_xattr`].
    pub fn set_xattr_held(&self, held: &Held, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        xattr::set(held, &self.credentials(), &self.request(), name, value, how)
    }

    /// [`Context::remove_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::remove_xattr`].
    pub fn remove_xattr_held(&self, held: &Held, name: &[u8]) -> Result<(), Errno> {
        xattr::remove(held, &self.credentials(), &self.request(), name)
    }

    /// [`Context::list_xattrs`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::list_xattrs`].
    pub fn list_xattrs_held(&self, held: &Held) -> Result<Vec<Box<[u8]>>, Errno> {
        xattr::list(held, &self.credentials())
    }
}
