//! New files.
//!
//! # What it is
//! The call that makes a file of the requested type, as the caller ([`crate::caller`]), and a
//! `statx(2)` of the result. A regular file is made by opening it; its descriptor is kept for the
//! open that usually follows. The new file is never given away or changed by its name, which
//! another program may have exchanged.
//!
//! If the directory has a default ACL, the host applies the ACL to the requested mode. Without a
//! default ACL, this file system applies the caller's umask, and the host applies the umask of the
//! process, so a front end sets the umask of the process to 0. If the host removes bits
//! nevertheless, a further call restores them. It does so only if the file is certainly the new
//! one: the file belongs to the caller, and is not older than the request. Where the host keeps no
//! time of birth, a directory or a device node lacks these bits.
//!
//! # How it is locked
//! As [`crate::names`].
//!
//! # Where it comes from
//! `open(2)`, `mknod(2)`, `umask(2)`.

use crate::caller::Acting;
use crate::errno::errno;
use crate::host;
use crate::node::{NameAt, Node, READ, WRITE};
use crate::shared::Shared;
use crate::system;
use crate::table::Sighting;
use rustix::fs::{OFlags, Statx, StatxFlags};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::SystemTime;
use vfs::{Attr, Errno, Inode, Request, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG};

/// Permission bits.
const PERMISSIONS: u32 = 0o7777;

/// A file to make.
struct CreateArgs<'a> {
    dir: BorrowedFd<'a>,
    name: &'a [u8],
    attr: &'a Attr,
    link_body: Option<&'a [u8]>,
    /// The begin of the request, in seconds since the epoch: an older file is not the new one.
    since: i64,
}

impl Shared {
    /// See [`vfs::FileSystem::create`], with a name.
    pub(crate) fn create(
        &self,
        request: &Request,
        dir: &Inode,
        name: &[u8],
        attr: &mut Attr,
        link_body: Option<&[u8]>,
    ) -> Result<u64, Errno> {
        let fd = self.dir_fd(dir, name)?;
        self.apply_umask(request, &fd, attr);
        let making = CreateArgs { dir: fd.as_fd(), name, attr, link_body, since: now() };
        let at = NameAt { dir: dir.node(), name };
        let change = self.begin_change([Some(at), None], [Some(dir), None], [None; 2]);
        let moves = self.table.moves();
        let opened = self.daemon.act(request).and_then(|acting| self.make(&acting, &making).map_err(errno))?;
        let stat = match &opened {
            Some(opened) => host::stat_fd(opened.as_fd()).map_err(errno)?,
            None => self.stat_at(fd.as_fd(), name)?,
        };
        let made = self.identities.attr(&stat);
        let mut made = self.restore_bits(request, &making, opened.as_ref(), made)?;
        let sighting = Sighting { stat: &stat, at, moves };
        let node = self.note_sighting(&sighting);
        match opened {
            None if made.is_dir() => made = self.watch_new(&node, fd.as_fd(), name).unwrap_or(made),
            None => {}
            Some(opened) => drop(self.keep_data(&node, opened, READ | WRITE)),
        }
        *attr = made;
        change.note_result(at, Some(node.id));
        Ok(node.id)
    }

    /// See [`vfs::FileSystem::create`], without a name.
    pub(crate) fn create_unnamed(&self, request: &Request, dir: &Inode, attr: &mut Attr) -> Result<u64, Errno> {
        self.check_writable()?;
        let fd = self.path_fd(self.node(dir)?)?;
        self.apply_umask(request, &fd, attr);
        let making = CreateArgs { dir: fd.as_fd(), name: b".", attr, link_body: None, since: now() };
        let make = |acting: &Acting<'_>| {
            self.with_room(|| acting.make_unnamed(&self.opening, making.dir, making.attr.mode)).map_err(errno)
        };
        let opened = self.daemon.act(request).and_then(|acting| make(&acting))?;
        let stat = host::stat_fd(opened.as_fd()).map_err(errno)?;
        let made = self.restore_bits(request, &making, Some(&opened), self.identities.attr(&stat))?;
        let sighting = Sighting { stat: &stat, at: NameAt { dir: 0, name: b"" }, moves: self.table.moves() };
        let node = self.note_sighting(&sighting);
        node.state().is_pinned = true;
        self.keep_data(&node, opened, READ | WRITE);
        *attr = made;
        Ok(node.id)
    }

    /// Watches a directory that was just made, so that its cached state stays valid; returns its
    /// attributes after the watch began. If the watch fails, the event of the directory's name
    /// expires the cached state.
    fn watch_new(&self, node: &Node, dir: BorrowedFd<'_>, name: &[u8]) -> Option<Attr> {
        self.watches.as_ref()?;
        let fd = self.open_at(dir, name, OFlags::PATH | OFlags::DIRECTORY).ok()?;
        let stat = || host::stat_fd(fd.as_fd()).ok().filter(|stat| self.identities.is(stat, node.id, node.ino));
        stat()?;
        self.watch(node, &fd);
        stat().map(|stat| self.identities.attr(&stat))
    }

    /// Applies the caller's umask to the mode of a new file, unless the directory has a default
    /// ACL, which the host applies. Makes one call to read the ACL, if the umask removes any bit.
    fn apply_umask(&self, request: &Request, dir: &OwnedFd, attr: &mut Attr) {
        let removed = attr.mode & request.umask & 0o777;
        let is_masked = removed != 0 && attr.kind() != S_IFLNK && !(self.has_acls && host::has_default_acl(dir));
        if is_masked {
            attr.mode &= !removed;
        }
    }

    /// Makes a file as the thread acts.
    fn make(&self, acting: &Acting<'_>, making: &CreateArgs<'_>) -> Result<Option<OwnedFd>, HostErrno> {
        let CreateArgs { dir, name, attr, link_body, .. } = making;
        match attr.kind() {
            S_IFREG => return self.with_room(|| acting.make_file(&self.opening, (*dir, name), attr.mode)).map(Some),
            S_IFDIR => acting.make_dir(*dir, name, attr.mode)?,
            S_IFLNK => acting.make_link(*dir, name, link_body.unwrap_or_default())?,
            _ => acting.make_node(*dir, name, attr.mode, attr.rdev)?,
        }
        Ok(None)
    }

    /// Restores the permission bits that the umask of the process removed from a new file, which has the attributes `made`.
    fn restore_bits(
        &self,
        request: &Request,
        making: &CreateArgs<'_>,
        opened: Option<&OwnedFd>,
        made: Attr,
    ) -> Result<Attr, Errno> {
        let missing = making.attr.mode & !made.mode & PERMISSIONS;
        if missing == 0 || made.kind() == S_IFLNK {
            return Ok(made);
        }
        // Not the bits that an ACL or a change of the owner removed. The host applies no umask beside a default ACL.
        let removed = missing & system::umask();
        if removed == 0 || (self.has_acls && host::has_default_acl(making.dir)) {
            return Ok(made);
        }
        let mode = made.mode | removed;
        let acting = self.daemon.act(request)?;
        match opened {
            Some(fd) => acting.chmod(fd, mode).map_err(errno)?,
            None => {
                let fd = self.open_at(making.dir, making.name, OFlags::PATH).map_err(errno)?;
                let found = host::stat_fd(fd.as_fd()).map_err(errno)?;
                // Another program may have put another file at the name: the mode of that file does
                // not change.
                if !making.made(&found, &acting) {
                    return Ok(made);
                }
                acting.chmod(&fd, mode).map_err(errno)?;
            }
        }
        Ok(Attr { mode, ..made })
    }
}

impl CreateArgs<'_> {
    /// Returns whether a file that was found at the name is the one that was made there.
    fn made(&self, found: &Statx, acting: &Acting<'_>) -> bool {
        let is_dir = self.attr.is_dir();
        let is_kind = u32::from(found.stx_mode) & S_IFMT == self.attr.kind();
        let is_new = found.stx_mask & StatxFlags::BTIME.bits() != 0 && found.stx_btime.tv_sec >= self.since;
        is_kind && is_new && (is_dir || found.stx_nlink == 1) && found.stx_uid == acting.uid().as_raw()
    }
}

/// Returns the time, in seconds, of the clock that gives files their times of birth, which may be a
/// moment behind.
fn now() -> i64 {
    vfs::from_system_time(SystemTime::now()).div_euclid(1_000_000_000) - 1
}
