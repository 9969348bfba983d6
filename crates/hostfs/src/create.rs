//! New files.
//!
//! # What it is
//! The call that makes a file of the requested type, as the caller if the options say so, and a `statx(2)` of the
//! result. A regular file is made by opening it; its descriptor is kept for the open that usually follows.
//!
//! The VFS has applied the caller's umask. The host applies that of the process once more (unless the directory has a
//! default ACL), so a front end sets it to 0. Otherwise a further call restores the bits that it removed.
//!
//! # How it is locked
//! As [`crate::names`].
//!
//! # Where it comes from
//! `open(2)`, `mknod(2)`, `umask(2)`; own code.

use crate::errno::errno;
use crate::host::{self, ProcPath};
use crate::node::{NameAt, READ, WRITE};
use crate::shared::Shared;
use crate::table::Sighting;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use vfs::{Attr, Errno, Inode, Request, S_IFDIR, S_IFLNK, S_IFREG};

/// Permission bits.
const PERMISSIONS: u32 = 0o7777;

/// A file to make.
struct Making<'a> {
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    attr: &'a Attr,
    link_body: Option<&'a [u8]>,
}

impl Shared {
    /// See [`vfs::FileSystem::create`].
    pub(crate) fn create(
        &self,
        request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        let fd = self.dir_fd(dir, name)?;
        let making = Making { dir: fd.as_fd(), name, attr, link_body };
        let at = NameAt { dir: dir.node(), name };
        let change = self.begin_change([Some(at), None], [Some(dir), None, None, None]);
        let moves = self.table.moves();
        let opened = self.make_as_caller(request, &making)?;
        let stat = match &opened {
            Some(opened) => host::stat_fd(opened.as_fd()).map_err(errno)?,
            None => self.stat_at(fd.as_fd(), name)?,
        };
        let made = self.identities.attr(&stat);
        let made = self.restore_bits(&making, opened.as_ref(), made)?;
        let sighting = Sighting { stat: &stat, at, moves };
        let node = match opened {
            None => self.note_sighting(&sighting),
            Some(opened) => {
                let node = self.table.add_created(&self.identities, &sighting).ok_or(Errno::EIO)?;
                self.keep_data(&node, opened, READ | WRITE);
                node.id
            }
        };
        *attr = made;
        change.note_result(at, Some(node));
        Ok(node)
    }

    /// See [`vfs::FileSystem::create_unnamed`].
    pub(crate) fn create_unnamed(&self, request: &Request, dir: &Inode, attr: &mut Attr) -> Result<u64, Errno> {
        self.check_writable()?;
        let fd = self.path_fd(self.node(dir)?)?;
        let making = Making { dir: fd.as_fd(), name: b".", attr, link_body: None };
        let make = |making: &Making<'_>| {
            let flags = OFlags::TMPFILE | OFlags::RDWR;
            self.open_at(making.dir, making.name, flags, making.attr.mode & PERMISSIONS).map(Some)
        };
        let opened = self.as_caller(request, &making, make)?.ok_or(Errno::EIO)?;
        let stat = host::stat_fd(opened.as_fd()).map_err(errno)?;
        let made = self.restore_bits(&making, Some(&opened), self.identities.attr(&stat))?;
        let sighting = Sighting { stat: &stat, at: NameAt { dir: 0, name: b"" }, moves: self.table.moves() };
        let node = self.table.add_created(&self.identities, &sighting).ok_or(Errno::EIO)?;
        node.state().is_pinned = true;
        self.keep_data(&node, opened, READ | WRITE);
        *attr = made;
        Ok(node.id)
    }

    fn make_as_caller(&self, request: &Request, making: &Making<'_>) -> Result<Option<OwnedFd>, Errno> {
        self.as_caller(request, making, |making| self.make(making))
    }

    /// Makes a file as the caller.
    fn as_caller(
        &self,
        request: &Request,
        making: &Making<'_>,
        make: impl Fn(&Making<'_>) -> Result<Option<OwnedFd>, HostErrno>,
    ) -> Result<Option<OwnedFd>, Errno> {
        let Some(switched) = self.daemon.switch(request.uid, request.gid) else {
            return make(making).map_err(errno);
        };
        let made = make(making);
        drop(switched);
        match made {
            // The VFS has allowed it: by a supplementary group or a capability.
            Err(HostErrno::ACCESS | HostErrno::PERM) => {
                let made = make(making).map_err(errno)?;
                self.give_to_caller(making, made.as_ref())?;
                Ok(made)
            }
            made => made.map_err(errno),
        }
    }

    /// Makes a file as the thread's user and group.
    fn make(&self, making: &Making<'_>) -> Result<Option<OwnedFd>, HostErrno> {
        let Making { dir, name, attr, link_body } = making;
        let mode = Mode::from_raw_mode(attr.mode & PERMISSIONS);
        match attr.kind() {
            S_IFREG => {
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOCTTY;
                return self.open_at(*dir, name, flags, attr.mode & PERMISSIONS).map(Some);
            }
            S_IFDIR => rustix::fs::mkdirat(dir, *name, mode)?,
            S_IFLNK => rustix::fs::symlinkat(link_body.unwrap_or_default(), dir, *name)?,
            kind => {
                let kind = FileType::from_raw_mode(kind);
                rustix::fs::mknodat(dir, *name, kind, mode, attr.rdev.into())?;
            }
        }
        Ok(None)
    }

    /// Gives a file that the process made to the caller.
    fn give_to_caller(&self, making: &Making<'_>, made: Option<&OwnedFd>) -> Result<(), Errno> {
        let attr = making.attr;
        let (uid, gid) = (Uid::from_raw(attr.uid), Gid::from_raw(attr.gid));
        let given = match made {
            Some(fd) => rustix::fs::fchown(fd, Some(uid), Some(gid)),
            None => rustix::fs::chownat(making.dir, making.name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW),
        };
        given.map_err(errno)
    }

    /// Restores the permission bits that the umask of the process removed from a new file with the attributes `made`.
    fn restore_bits(&self, making: &Making<'_>, opened: Option<&OwnedFd>, made: Attr) -> Result<Attr, Errno> {
        let missing = making.attr.mode & !made.mode & PERMISSIONS;
        if missing == 0 || made.kind() == S_IFLNK {
            return Ok(made);
        }
        // Not the bits that an ACL or a change of the owner removed.
        let removed = missing & host::umask();
        if removed == 0 {
            return Ok(made);
        }
        let mode = made.mode | removed;
        let bits = Mode::from_raw_mode(mode & PERMISSIONS);
        match opened {
            Some(fd) => rustix::fs::fchmod(fd, bits).map_err(errno)?,
            None => {
                let fd = self.open_at(making.dir, making.name, OFlags::PATH, 0).map_err(errno)?;
                rustix::fs::chmod(ProcPath::new(&fd).bytes(), bits).map_err(errno)?;
            }
        }
        Ok(Attr { mode, ..made })
    }
}
