//! Operations on held places, without a path: as the kernel does with a file that it has already found.
//!
//! For front ends whose protocol identifies files by handles (FUSE, 9P, NFS). Permissions are checked as for
//! the operation on a path, except for searching the directories of the path.

use crate::base::access::credentials::{MAY_EXEC, MAY_WRITE};
use crate::base::attr::{Attr, S_IFLNK, S_IFMT, SetAttr};
use crate::base::errno::Errno;
use crate::base::flags::OpenFlags;
use crate::dcache::fs::SetXattr;
use crate::mount::context::Context;
use crate::mount::place::OwnedPlace;
use crate::ops::file::OpenFile;
use crate::ops::open::check_open;
use crate::ops::xattrs;
use crate::walk::permission::{may_block, mount_allows};

impl Context {
    /// Opens `held`: `open(2)` of `/proc/self/fd/N`. Ignores `CREAT` and `EXCL`.
    ///
    /// # Errors
    /// As for [`Context::open`] of an existing file.
    pub fn open_held(&self, held: &OwnedPlace, flags: OpenFlags) -> Result<OpenFile, Errno> {
        let cred = self.credentials();
        if !flags.contains(OpenFlags::PATH) {
            let attr = held.attr()?;
            let inode = held.inode()?;
            let granted = || may_block(held.sb(), inode, attr.rights(), &cred, flags.mask());
            check_open(held.mount(), &attr, &cred, flags, granted)?;
        }
        self.opened(held.clone(), flags, cred)
    }

    /// [`Context::access`] of `held`.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`.
    pub fn access_held(&self, held: &OwnedPlace, mask: u32) -> Result<(), Errno> {
        let attr = held.attr()?;
        mount_allows(held.mount(), &attr, mask & MAY_EXEC)?;
        may_block(held.sb(), held.inode()?, attr.rights(), &self.credentials(), mask & 7)?;
        mount_allows(held.mount(), &attr, mask & MAY_WRITE)
    }

    /// [`Context::set_attr`] of `held`; returns the new attributes.
    ///
    /// # Errors
    /// As for [`Context::set_attr`].
    pub fn set_attr_held(&self, held: &OwnedPlace, set: &SetAttr) -> Result<Attr, Errno> {
        self.change_attr(held, set)?;
        held.attr()
    }

    /// [`Context::read_link`] of `held`.
    ///
    /// # Errors
    /// `EINVAL` if it is not a symbolic link; the file system's.
    pub fn read_link_held(&self, held: &OwnedPlace) -> Result<Vec<u8>, Errno> {
        if held.inode()?.mode() & S_IFMT != S_IFLNK {
            return Err(Errno::EINVAL);
        }
        held.sb().link_body(held.dentry(), &self.request())
    }

    /// [`Context::get_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::get_xattr`].
    pub fn get_xattr_held(&self, held: &OwnedPlace, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        xattrs::get(held, &self.credentials(), &self.request(), name)
    }

    /// [`Context::set_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::set_xattr`].
    pub fn set_xattr_held(&self, held: &OwnedPlace, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        xattrs::set(held, &self.credentials(), &self.request(), name, value, how)
    }

    /// [`Context::remove_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::remove_xattr`].
    pub fn remove_xattr_held(&self, held: &OwnedPlace, name: &[u8]) -> Result<(), Errno> {
        xattrs::remove(held, &self.credentials(), &self.request(), name)
    }

    /// [`Context::list_xattrs`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::list_xattrs`].
    pub fn list_xattrs_held(&self, held: &OwnedPlace) -> Result<Vec<Box<[u8]>>, Errno> {
        xattrs::list(held, &self.credentials(), &self.request())
    }
}
