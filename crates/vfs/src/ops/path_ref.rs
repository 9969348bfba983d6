//! Operations on held places, without a path: as the kernel does with a file that it has already found.
//!
//! For front ends whose protocol identifies files by handles (FUSE, 9P, NFS). Permissions are checked as for
//! the operation on a path, except for searching the directories of the path.

use crate::base::access::credentials::{Capabilities, MAY_EXEC, MAY_WRITE};
use crate::base::attr::{Attr, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, SetAttr};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::base::rank::Rank;
use crate::fs::SetXattr;
use crate::mount::context::Context;
use crate::mount::place::PathRef;
use crate::ops::file::OpenFile;
use crate::ops::open::check_open;
use crate::ops::{attributes, xattrs};
use crate::walk::permission::{may_block, mount_allows};

impl Context {
    /// Opens `held`: `open(2)` of `/proc/self/fd/N`. Ignores `CREAT` and `EXCL`.
    ///
    /// # Errors
    /// As for [`Context::open`] of an existing file.
    pub fn open_held(&self, held: &PathRef, flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.open_held_as(held, flags, flags)
    }

    /// [`Context::open_held`] for a front end that appends by itself, as a kernel does that
    /// collects writes. `flags` are without `APPEND`, but a file that may only grow
    /// ([`InodeFlags::APPEND`]) is allowed.
    ///
    /// # Errors
    /// As for [`Context::open_held`].
    pub fn open_held_to_append(&self, held: &PathRef, flags: OpenFlags) -> Result<OpenFile, Errno> {
        self.open_held_as(held, flags, flags.union(OpenFlags::APPEND))
    }

    /// Opens `held` with `flags`, if it may be opened with the flags of `checked`.
    fn open_held_as(&self, held: &PathRef, flags: OpenFlags, checked: OpenFlags) -> Result<OpenFile, Errno> {
        let (cred, timeout) = self.cred_and_timeout();
        if !flags.contains(OpenFlags::PATH) {
            let attr = held.attr()?;
            let inode = held.inode()?;
            let granted = || may_block(held.sb(), inode, attr.rights(), &cred, checked.mask());
            check_open(held.mount(), &attr, &cred, checked, granted)?;
        }
        OpenFile::existing(held.clone(), flags, cred, timeout)
    }

    /// [`Context::access`] of `held`.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`.
    pub fn access_held(&self, held: &PathRef, mask: u32) -> Result<(), Errno> {
        let attr = held.attr()?;
        mount_allows(held.mount(), &attr, mask & MAY_EXEC)?;
        may_block(held.sb(), held.inode()?, attr.rights(), &self.credentials(), mask & 7)?;
        mount_allows(held.mount(), &attr, mask & MAY_WRITE)
    }

    /// [`Context::set_attr`] of `held`; returns the new attributes. As with `ftruncate(2)`, a length
    /// changes the times, also a length that the file has.
    ///
    /// # Errors
    /// As for [`Context::set_attr`].
    pub fn set_attr_held(&self, held: &PathRef, set: &SetAttr) -> Result<Attr, Errno> {
        self.check_length(held, set)?;
        attributes::set_attr_held(&self.credentials(), &self.request(), held, set)?;
        held.attr()
    }

    /// [`Context::read_link`] of `held`.
    ///
    /// # Errors
    /// `EINVAL` if it is not a symbolic link; the file system's.
    pub fn read_link_held(&self, held: &PathRef) -> Result<Vec<u8>, Errno> {
        if held.inode()?.mode() & S_IFMT != S_IFLNK {
            return Err(Errno::EINVAL);
        }
        held.sb().link_body(held.dentry(), &self.request())
    }

    /// [`Context::get_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::get_xattr`].
    pub fn get_xattr_held(&self, held: &PathRef, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        xattrs::get(held, &self.credentials(), &self.request(), name)
    }

    /// [`Context::set_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::set_xattr`].
    pub fn set_xattr_held(&self, held: &PathRef, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        xattrs::set(held, &self.credentials(), &self.request(), name, value, how)
    }

    /// [`Context::remove_xattr`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::remove_xattr`].
    pub fn remove_xattr_held(&self, held: &PathRef, name: &[u8]) -> Result<(), Errno> {
        xattrs::remove(held, &self.credentials(), &self.request(), name)
    }

    /// [`Context::list_xattrs`] of `held`.
    ///
    /// # Errors
    /// As for [`Context::list_xattrs`].
    pub fn list_xattrs_held(&self, held: &PathRef) -> Result<Vec<Box<[u8]>>, Errno> {
        xattrs::list(held, &self.credentials(), &self.request())
    }

    /// Returns the flags of `held`, which only regular files and directories have: `ioctl(2)` with
    /// `FS_IOC_GETFLAGS`. Needs no permission.
    ///
    /// # Errors
    /// `ENOTTY` if its file system has none; the file system's.
    pub fn inode_flags_held(&self, held: &PathRef) -> Result<InodeFlags, Errno> {
        let inode = held.inode()?;
        if !has_flags(inode.mode()) {
            return Err(Errno::ENOTTY);
        }
        held.sb().fs().inode_flags(&self.request(), inode)
    }

    /// Sets all flags of `held`: `FS_IOC_SETFLAGS`.
    ///
    /// # Errors
    /// `ENOTTY` if its file system has none, `EOPNOTSUPP` for one that it does not have; `EROFS`; `EPERM` unless the caller owns the
    /// file, and to change [`IMMUTABLE`](InodeFlags::IMMUTABLE) or [`APPEND`](InodeFlags::APPEND) without
    /// [`LINUX_IMMUTABLE`](Capabilities::LINUX_IMMUTABLE); the file system's.
    pub fn set_inode_flags_held(&self, held: &PathRef, flags: InodeFlags) -> Result<(), Errno> {
        let (sb, inode, request) = (held.sb(), held.inode()?, self.request());
        if !has_flags(inode.mode()) {
            return Err(Errno::ENOTTY);
        }
        held.mount().check_writable()?;
        let cred = self.credentials();
        if !cred.owns(&held.attr()?) {
            return Err(Errno::EPERM);
        }
        let _whole = sb.lock_if_sharded(held.dentry());
        let _held = sb.ranks.lock(Rank::Data, &inode.data_lock);
        let before = sb.fs().inode_flags(&request, inode)?;
        if before.symmetric_difference(flags).intersects(InodeFlags::FIXED)
            && !cred.capabilities.contains(Capabilities::LINUX_IMMUTABLE)
        {
            return Err(Errno::EPERM);
        }
        sb.fs().set_inode_flags(&request, inode, flags)?;
        inode.note_flags(flags);
        xattrs::changed(held, inode, &request);
        Ok(())
    }
}

/// Returns whether files of this type have flags.
fn has_flags(mode: u32) -> bool {
    matches!(mode & S_IFMT, S_IFREG | S_IFDIR)
}
