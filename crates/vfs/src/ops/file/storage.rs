//! Storage and extended attributes of open files: `fallocate(2)`, `SEEK_DATA`, `fsync(2)`, `fgetxattr(2)`.

use crate::base::access::xattr::{XattrUse, check_lengths};
use crate::base::attr::{S_IFDIR, S_IFMT, S_IFREG};
use crate::base::errno::Errno;
use crate::base::flags::{InodeFlags, OpenFlags};
use crate::base::rank::Rank;
use crate::fs::{Allocate, Opens, SeekFor, SetXattr};
use crate::mount::statvfs::StatVfs;
use crate::notify::EventKind;
use crate::ops::attributes::{MAX_SIZE, contents_changed, drop_set_ids_first};
use crate::ops::file::OpenFile;
use crate::ops::{publish, xattrs};
use crate::walk::permission::flags_allow;
use core::num::NonZeroU64;
use prim::shared::PlainArc as Arc;
use std::os::fd::OwnedFd;

impl OpenFile {
    /// Changes the storage of `len` bytes from `offset` on: `fallocate(2)`. A range beyond the end extends
    /// the file, unless `keep_size` is set ([`Allocate::PunchHole`] never extends it).
    ///
    /// # Errors
    /// `EBADF` if not open for writing; `EINVAL` for an empty range, and for an offset or length above `i64::MAX`; `EFBIG` for
    /// an end above it; `ENODEV` for anything but a regular file, `EISDIR`; `EPERM` by the file's flags; `EOPNOTSUPP`, `ENOSPC`,
    /// `EDQUOT`, and the file system's.
    pub fn allocate(&self, how: Allocate, keep_size: bool, offset: u64, len: u64) -> Result<(), Errno> {
        self.check_open()?;
        if len == 0 || len > MAX_SIZE || offset > MAX_SIZE {
            return Err(Errno::EINVAL);
        }
        if !self.flags.can_write() {
            return Err(Errno::EBADF);
        }
        let inode = self.inode()?;
        match inode.mode() & S_IFMT {
            S_IFREG => {}
            S_IFDIR => return Err(Errno::EISDIR),
            _ => return Err(Errno::ENODEV),
        }
        let appends = how == Allocate::Reserve;
        let forbid = if appends { InodeFlags::IMMUTABLE } else { InodeFlags::FIXED };
        flags_allow(self.held.sb(), inode, &self.cred, forbid)?;
        let end = offset.checked_add(len).filter(|&end| end <= MAX_SIZE).ok_or(Errno::EFBIG)?;
        let _held = self.held.sb().ranks.lock(Rank::Data, &inode.data_lock);
        let request = self.request();
        drop_set_ids_first(&self.cred, self.held.sb(), &request, inode)?;
        let blocks = self.held.sb().fs().allocate(&request, &self.open(inode), how, keep_size, offset, len)?;
        let grows = !keep_size && how != Allocate::PunchHole;
        inode.update(|attr| {
            attr.blocks = blocks;
            if grows {
                attr.size = attr.size.max(end);
            }
            (attr.mtime, attr.ctime) = (request.now(), request.now());
            contents_changed(&self.cred, attr);
        });
        publish::touched(self.held.sb(), EventKind::Modified, self.held.dentry());
        Ok(())
    }

    /// Returns the first offset from `offset` on that is data, or a hole: `lseek(2)` with
    /// `SEEK_DATA`, `SEEK_HOLE`.
    ///
    /// # Errors
    /// `ENXIO` at or after the end, or if no data follows; `EBADF` on a place opened with `PATH`; `EINVAL` for a directory.
    pub fn seek_for(&self, what: SeekFor, offset: u64) -> Result<u64, Errno> {
        self.check_open()?;
        let inode = self.inode()?;
        if inode.mode() & S_IFMT == S_IFDIR {
            return Err(Errno::EINVAL);
        }
        if offset >= self.attr()?.size {
            return Err(Errno::ENXIO);
        }
        self.held.sb().fs().seek(&self.request(), &self.open(inode), offset, what)
    }

    /// Writes all data to permanent storage: `fsync(2)`, or `fdatasync(2)` with `data_only`.
    ///
    /// # Errors
    /// `EBADF` on a place opened with `PATH`; the file system's.
    pub fn sync(&self, data_only: bool) -> Result<(), Errno> {
        self.check_open()?;
        self.held.sb().fs().sync(&self.request(), &self.open(self.inode()?), data_only)
    }

    /// Has the file system write its data as when a user closes a descriptor of the file, with the
    /// error of that `close(2)`. The file stays open. For front ends, whose users share it; a drop
    /// cannot report. Without effect on a file that is not open for writing, and in file systems
    /// without [`Opens::Yes`](crate::Opens::Yes) with `flush`.
    ///
    /// # Errors
    /// The errors of [`FileSystem::flush`](crate::FileSystem::flush).
    pub fn flush(&self) -> Result<(), Errno> {
        if !self.wants_flush() {
            return Ok(());
        }
        self.held.sb().fs().flush(&self.request(), &self.open(self.inode()?))
    }

    /// Returns whether [`OpenFile::flush`] calls the file system.
    #[must_use]
    pub fn wants_flush(&self) -> bool {
        self.opened.is_some() && self.held.sb().opens == (Opens::Yes { flush: true }) && self.flags.can_write()
    }

    /// Returns the file of the host that holds the contents:
    /// [`Opened::backing`](crate::Opened::backing).
    #[must_use]
    pub fn backing(&self) -> Option<Arc<OwnedFd>> {
        self.opened.as_ref()?.backing.clone()
    }

    /// Returns whether a kernel may keep the pages that it cached of the file earlier:
    /// [`Opened::keeps_pages`](crate::Opened::keeps_pages).
    #[must_use]
    pub fn keeps_pages(&self) -> bool {
        self.opened.as_ref().is_none_or(|opened| opened.keeps_pages)
    }

    /// Returns the number of the contents at the open: [`Opened::version`](crate::Opened::version).
    #[must_use]
    pub fn version(&self) -> Option<NonZeroU64> {
        self.opened.as_ref()?.version
    }

    /// Returns the value of the extended attribute `name`: `fgetxattr(2)`.
    ///
    /// # Errors
    /// As for [`Context::get_xattr`](crate::Context::get_xattr); `EBADF` on a place opened with `PATH`.
    pub fn get_xattr(&self, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        check_lengths(name, XattrUse::Get)?;
        self.check_open()?;
        xattrs::get(&self.held, &self.cred, &self.request(), name)
    }

    /// Sets the extended attribute `name`: `fsetxattr(2)`.
    ///
    /// # Errors
    /// As for [`Context::set_xattr`](crate::Context::set_xattr); `EBADF` on a place opened with `PATH`.
    pub fn set_xattr(&self, name: &[u8], value: &[u8], how: SetXattr) -> Result<(), Errno> {
        check_lengths(name, XattrUse::Set(value))?;
        self.check_open()?;
        xattrs::set(&self.held, &self.cred, &self.request(), name, value, how)
    }

    /// Removes the extended attribute `name`: `fremovexattr(2)`.
    ///
    /// # Errors
    /// As for [`Context::remove_xattr`](crate::Context::remove_xattr); `EBADF` on a place opened with `PATH`.
    pub fn remove_xattr(&self, name: &[u8]) -> Result<(), Errno> {
        check_lengths(name, XattrUse::Remove)?;
        self.check_open()?;
        xattrs::remove(&self.held, &self.cred, &self.request(), name)
    }

    /// Returns the names of all extended attributes: `flistxattr(2)`.
    ///
    /// # Errors
    /// The file system's; `EBADF` on a place opened with `PATH`.
    pub fn list_xattrs(&self) -> Result<Vec<Box<[u8]>>, Errno> {
        self.check_open()?;
        xattrs::list(&self.held, &self.cred, &self.request())
    }

    /// Storage of its file system, and flags of its mount: `fstatvfs(3)`.
    ///
    /// # Errors
    /// `ENOSYS` if the file system has no such figures.
    pub fn statvfs(&self) -> Result<StatVfs, Errno> {
        self.held.statvfs()
    }

    /// Fails with `EBADF` if it was opened with `PATH`.
    pub(super) fn check_open(&self) -> Result<(), Errno> {
        if self.flags.contains(OpenFlags::PATH) { Err(Errno::EBADF) } else { Ok(()) }
    }
}
