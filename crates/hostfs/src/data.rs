//! Contents: open, read, write, storage.
//!
//! # What it is
//! Each open of a file has its own descriptor ([`HostOpen`]). The record has one as well, for calls
//! that come from no open: the descriptor of an open file, if there is one. After the release, a
//! descriptor for reading stays in the record as long as the budget allows, and the next open takes
//! it. A descriptor for writing is closed, since other programs may want to execute the file,
//! unless only this file system changes the directory.
//!
//! Appended data are written at the end that the file has on the host at that moment, so two
//! programs that append to one file lose nothing.
//!
//! Network file systems write when a descriptor is closed, and report errors of the write at that
//! close (`EDQUOT`, `EIO`). The descriptor of an open stays open until the release. So when a user
//! closes the file, this file system closes a duplicate of the descriptor ([`Shared::flush`]).
//!
//! # How it is locked
//! No lock is held during a call to the host; the VFS orders the writes of one file.
//!
//! # Where it comes from
//! `pread(2)`, `fallocate(2)`, `lseek(2)`.

use crate::errno::errno;
use crate::host;
use crate::identity::time_of_change;
use crate::listing::HostDir;
use crate::node::{LENT, Node, READ, SPECIAL, WRITE};
use crate::opens::HostOpen;
use crate::options::{MountPoints, Revalidate};
use crate::shared::Shared;
use crate::{system, version};
use prim::clock;
use rustix::fs::{FallocateFlags, OFlags, SeekFrom, Statx};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use vfs::{
    After, Allocate, Copying, Errno, Inode, InodeFlags, Open, OpenFlags, OpenState, Opened, Position, Request, S_IFDIR,
    S_IFMT, S_IFREG, SeekFor, Written,
};

/// The unit of `st_blocks`, in bytes.
const BLOCK: u64 = 512;

/// The unit in which most file systems allocate storage, in bytes.
const PAGE: u64 = 4096;

impl Shared {
    /// See [`vfs::FileSystem::open`].
    pub(crate) fn open(&self, request: &Request, inode: &Inode, flags: OpenFlags) -> Result<Opened, Errno> {
        if flags.can_write() || flags.contains(OpenFlags::TRUNC) {
            self.check_writable()?;
        }
        let node = self.node(inode)?;
        let uid = request.uid;
        self.opens.begin(uid)?;
        if inode.mode() & S_IFMT == S_IFDIR {
            let seen = self.seen(|| self.stat(node)).inspect_err(|_| self.opens.end(uid))?;
            return Ok(Opened { state: OpenState::Shared(Arc::new(HostDir::new(uid))), ..seen });
        }
        // Counts the open first, so that the budget does not close the new descriptor.
        node.state().opens += 1;
        let opened = self.own_fd(node, flags);
        let (fd, writes_through) = opened.inspect_err(|_| {
            self.end_open(node, None);
            self.opens.end(uid);
        })?;
        let seen = self.seen(|| host::stat_fd(fd.as_fd()).map_err(errno)).inspect_err(|_| {
            self.end_open(node, Some(&fd));
            self.opens.end(uid);
        })?;
        Ok(Opened {
            backing: Some(fd.clone()),
            state: OpenState::Shared(Arc::new(HostOpen { fd, uid })),
            writes_through,
            ..seen
        })
    }

    /// Returns what a kernel may keep of a file that is opened, whose attributes `stat` requests.
    fn seen(&self, stat: impl FnOnce() -> Result<Statx, Errno>) -> Result<Opened, Errno> {
        if self.options.policy == Revalidate::Exclusive {
            return Ok(Opened::default());
        }
        let version = version::of(time_of_change(&stat()?), clock::now_ns());
        Ok(Opened { keeps_pages: version.is_some(), version, ..Opened::default() })
    }

    /// See [`vfs::FileSystem::release`].
    pub(crate) fn release(&self, file: &Open<'_>) {
        if let Some(directory) = file.state.get::<HostDir>() {
            self.opens.end(directory.uid);
        }
        let Some(open) = file.state.get::<HostOpen>() else { return };
        if let Ok(node) = self.node(file.inode) {
            self.end_open(node, Some(&open.fd));
        }
        self.opens.end(open.uid);
    }

    /// Ends one open of a file, whose descriptor is `fd`. The VFS closes `fd` after this call,
    /// unless the record keeps it.
    fn end_open(&self, node: &Arc<Node>, fd: Option<&Arc<OwnedFd>>) {
        let (closing, is_kept) = {
            let mut state = node.state();
            state.opens = state.opens.saturating_sub(1);
            let may_go = state.opens == 0
                && (state.access & SPECIAL != 0
                    || state.access & WRITE != 0 && self.options.policy != Revalidate::Exclusive);
            // If the file has no name, this may be its only descriptor.
            let is_last = state.is_pinned && state.path.is_none();
            let is_own =
                state.access & LENT != 0 && fd.zip(state.data.as_ref()).is_some_and(|(fd, data)| Arc::ptr_eq(fd, data));
            if may_go && !is_last {
                (state.take_data(), false)
            } else {
                // The record keeps the descriptor: for the calls that do not come from an open
                // file, and for the next open.
                state.access &= if is_own { !LENT } else { u8::MAX };
                (None, is_own)
            }
        };
        self.budget.count(usize::from(is_kept), usize::from(closing.is_some()));
        drop(closing);
        self.budget.queue(node);
    }

    /// Returns the descriptor of an open file; without the state of its open, one with at least
    /// this access.
    fn fd_of(&self, file: &Open<'_>, access: u8) -> Result<Arc<OwnedFd>, Errno> {
        match file.state.get::<HostOpen>() {
            Some(open) => Ok(open.fd.clone()),
            None => self.data_fd(self.node(file.inode)?, access),
        }
    }

    /// See [`vfs::FileSystem::read`].
    pub(crate) fn read(&self, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        let fd = self.fd_of(file, READ)?;
        // A short read means the end of a regular file.
        system::pread(&fd, buf, offset).map_err(errno)
    }

    /// See [`vfs::FileSystem::write`].
    pub(crate) fn write(
        &self,
        request: &Request,
        file: &Open<'_>,
        at: Position,
        data: &[u8],
    ) -> Result<Written, Errno> {
        match at {
            Position::At(offset) => self.write_at(request, file, offset, data),
            Position::End(end) => self.append(request, file, end, data),
        }
    }

    fn write_at(&self, request: &Request, file: &Open<'_>, offset: u64, data: &[u8]) -> Result<Written, Errno> {
        let inode = file.inode;
        self.check_writable()?;
        let fd = self.fd_of(file, WRITE)?;
        // The exact storage is read with the attributes, when they are requested.
        let _change = self.begin_change_of(inode);
        let len = self.daemon.act(request)?.write(&fd, data, offset).map_err(errno)?;
        let blocks = (len as u64).div_ceil(PAGE) * (PAGE / BLOCK);
        Ok(Written::new(len, inode.attr().blocks.max(blocks)))
    }

    /// Appends `data` to the file, whose end was at `before` for the VFS. If another program
    /// appends at this moment as well, the reported end may be the end of its data.
    fn append(&self, request: &Request, file: &Open<'_>, before: u64, data: &[u8]) -> Result<Written, Errno> {
        let inode = file.inode;
        self.check_writable()?;
        let fd = self.fd_of(file, WRITE)?;
        let _change = self.begin_change_of(inode);
        let len = self.daemon.act(request)?.append(&fd, data).map_err(errno)?;
        // The data are written: if the host reports no size now, it is requested with the
        // attributes.
        let (end, blocks) = match host::stat_fd(fd.as_fd()) {
            Ok(stat) => (stat.stx_size, stat.stx_blocks),
            Err(_) => (before + len as u64, inode.attr().blocks),
        };
        // Between `before` and the end are other contents than in the caches.
        if end != before + len as u64
            && let Some(invalidator) = self.invalidator.get()
        {
            invalidator.inode(inode.node());
        }
        Ok(Written { end: Some(end), ..Written::new(len, blocks) })
    }

    /// See [`vfs::FileSystem::copy_range`]. The host shares the storage where it can.
    pub(crate) fn copy_range(
        &self,
        request: &Request,
        (from, offset): (&Open<'_>, u64),
        (to, at): (&Open<'_>, u64),
        len: u64,
        how: Copying,
    ) -> Result<Written, Errno> {
        self.check_writable()?;
        let source = self.fd_of(from, READ)?;
        let fd = self.fd_of(to, WRITE)?;
        let _change = self.begin_change_of(to.inode);
        let most = usize::try_from(len).unwrap_or(usize::MAX);
        let acting = self.daemon.act(request)?;
        let copied = match how {
            Copying::Share => acting.clone((&source, offset), (&fd, at), len).map(|()| most),
            Copying::Any => acting.copy((&source, offset), (&fd, at), most),
        };
        drop(acting);
        let len = copied.map_err(|error| match error {
            // The host cannot copy between these two files: it lacks the call, or they are on two file systems.
            HostErrno::NOSYS | HostErrno::NOTTY | HostErrno::OPNOTSUPP => Errno::EOPNOTSUPP,
            HostErrno::XDEV | HostErrno::INVAL if how == Copying::Any => Errno::EOPNOTSUPP,
            error => errno(error),
        })?;
        // As for a write. Storage that is shared counts in both files.
        let blocks = (len as u64).div_ceil(PAGE) * (PAGE / BLOCK);
        Ok(Written::new(len, to.inode.attr().blocks.max(blocks)))
    }

    /// See [`vfs::FileSystem::set_len`].
    pub(crate) fn set_len(&self, request: &Request, inode: &Inode, len: u64) -> Result<(u64, After), Errno> {
        self.check_writable()?;
        let fd = self.data_fd(self.node(inode)?, WRITE)?;
        let _change = self.begin_change_of(inode);
        self.daemon.act(request)?.truncate(&fd, len).map_err(errno)?;
        Ok((blocks(&fd)?, After::NONE))
    }

    /// See [`vfs::FileSystem::allocate`].
    pub(crate) fn allocate(
        &self,
        request: &Request,
        file: &Open<'_>,
        how: Allocate,
        keep_size: bool,
        offset: u64,
        len: u64,
    ) -> Result<u64, Errno> {
        let inode = file.inode;
        self.check_writable()?;
        let fd = self.fd_of(file, WRITE)?;
        let _change = self.begin_change_of(inode);
        let kept = if keep_size { FallocateFlags::KEEP_SIZE } else { FallocateFlags::empty() };
        let flags = match how {
            Allocate::Reserve => kept,
            Allocate::PunchHole => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
            Allocate::Zero => FallocateFlags::ZERO_RANGE | kept,
        };
        let acting = self.daemon.act(request)?;
        let mut done = acting.allocate(&fd, flags, offset, len);
        if how == Allocate::Zero && done == Err(HostErrno::OPNOTSUPP) {
            // A slower way with the same result: makes a hole, then allocates storage for it.
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            done = acting.allocate(&fd, hole, offset, len).and_then(|()| acting.allocate(&fd, kept, offset, len));
        }
        drop(acting);
        done.map_err(errno)?;
        blocks(&fd)
    }

    /// See [`vfs::FileSystem::seek`].
    pub(crate) fn seek(&self, file: &Open<'_>, offset: u64, what: SeekFor) -> Result<u64, Errno> {
        let fd = self.fd_of(file, READ)?;
        // No other call uses the descriptor's position.
        let to = match what {
            SeekFor::Data => SeekFrom::Data(offset),
            SeekFor::Hole => SeekFrom::Hole(offset),
        };
        system::seek(&fd, to).map_err(errno)
    }

    /// See [`vfs::FileSystem::sync`].
    pub(crate) fn sync(&self, file: &Open<'_>, data_only: bool) -> Result<(), Errno> {
        let own = file.state.get::<HostOpen>().map(|open| open.fd.clone());
        let Some(fd) = own.map_or_else(|| self.opened_fd(file.inode), |fd| Ok(Some(fd)))? else { return Ok(()) };
        let done = if data_only { system::fdatasync(&fd) } else { system::fsync(&fd) };
        done.map_err(errno)
    }

    /// See [`vfs::FileSystem::inode_flags`].
    pub(crate) fn inode_flags(&self, inode: &Inode) -> Result<InodeFlags, Errno> {
        let fd = self.opened_fd(inode)?.ok_or(Errno::ENOTTY)?;
        system::inode_flags(&fd).map(InodeFlags::from_bits_retain).map_err(errno)
    }

    /// See [`vfs::FileSystem::set_inode_flags`]. The host checks that the caller may set the flags,
    /// and obeys the flags.
    pub(crate) fn set_inode_flags(&self, request: &Request, inode: &Inode, flags: InodeFlags) -> Result<(), Errno> {
        self.check_writable()?;
        let fd = self.opened_fd(inode)?.ok_or(Errno::ENOTTY)?;
        let _change = self.begin_change_of(inode);
        self.daemon.act(request)?.set_inode_flags(&fd, flags.bits()).map_err(errno)
    }

    /// Returns a descriptor of a regular file or directory that is more than a path. `None` for
    /// other files.
    fn opened_fd(&self, inode: &Inode) -> Result<Option<Arc<OwnedFd>>, Errno> {
        let node = self.node(inode)?;
        match inode.mode() & S_IFMT {
            S_IFREG => {
                let open = node.state().data.clone();
                open.map_or_else(|| self.data_fd(node, READ), Ok).map(Some)
            }
            S_IFDIR => {
                let dir = self.path_fd(node)?;
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                Ok(Some(Arc::new(self.open_at(dir.as_fd(), b".", flags).map_err(errno)?)))
            }
            _ => Ok(None),
        }
    }

    /// Returns whether the host may report errors of a file when it is closed. File systems on this
    /// machine write later.
    pub(crate) fn wants_flushes(&self) -> bool {
        !self.is_local || self.options.mount_points == MountPoints::Cross
    }

    /// See [`vfs::FileSystem::flush`].
    pub(crate) fn flush(&self, file: &Open<'_>) -> Result<(), Errno> {
        let fd = self.fd_of(file, WRITE)?;
        loop {
            let done = match system::dup(&fd) {
                Ok(twin) => system::close(twin),
                // Writes more than a close does, but reports the same errors.
                Err(HostErrno::MFILE | HostErrno::NFILE) => system::fdatasync(&fd),
                Err(error) => Err(error),
            };
            // A call that a signal interrupted is repeated, by another duplicate.
            if done != Err(HostErrno::INTR) {
                return done.map_err(errno);
            }
        }
    }
}

/// Returns the storage that a file takes, in units of 512 bytes.
fn blocks(fd: &OwnedFd) -> Result<u64, Errno> {
    host::stat_fd(fd.as_fd()).map(|stat| stat.stx_blocks).map_err(errno)
}
