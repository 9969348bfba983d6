//! The operations of the protocol, each handed to the session.

use super::Transport;
use super::convert::{UNLCK, caller, file_lock, kind, lock_type, set_time};
use super::flags::configure;
use super::reply::{self, ErrorReply, LookupReply, attributes, entry, fits, ok, statfs, xattr};
use super::trace::{Replied, created, escaped, line, node};
use crate::metrics::Op;
use crate::panics::contained;
use crate::session::{NameIn, NewMode};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, FileHandle, Filesystem, FopenFlags, INodeNo, InitFlags, IoctlFlags,
    KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags, PollNotifier, RenameFlags, ReplyAttr, ReplyBmap,
    ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLock,
    ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;
use vfs::{Errno, SetAttr};

thread_local! {
    /// Data that is read goes through this buffer, so that a read does not allocate.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Transport {
    /// See [`reply::reply`].
    fn reply<R: ErrorReply, T>(
        &self,
        op: Op,
        reply: R,
        work: impl FnOnce() -> Result<T, Errno>,
        send: impl FnOnce(R, T),
    ) {
        reply::reply(self.session.metrics(), op, reply, work, send);
    }

    /// Replies with an error to an operation that is not served.
    pub(super) fn refuse<R: ErrorReply>(&self, op: Op, reply: R, errno: Errno) {
        self.reply(op, reply, || Err(errno), |_, ()| {});
    }
}

impl Filesystem for Transport {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        configure(config, &self.options);
        let has = |flag: InitFlags| config.capabilities().contains(flag);
        self.session.note_expiry(has(InitFlags::FUSE_HAS_EXPIRE_ONLY));
        tracing::debug!(
            passthrough = has(InitFlags::FUSE_PASSTHROUGH),
            io_uring = has(InitFlags::FUSE_OVER_IO_URING),
            "connected to the kernel"
        );
        Ok(())
    }

    fn destroy(&mut self) {
        let _ = contained(self.session.metrics(), "destroy", || self.session.end());
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let work = || {
            let found = self.session.lookup(&caller(req), parent.0, name.as_bytes());
            line!("LOOKUP\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), node(&found));
            found
        };
        let reply = LookupReply { reply, session: &self.session, parent: parent.0 };
        self.reply(Op::Lookup, reply, work, |reply, found| entry(reply.reply, found));
    }

    fn forget(&self, req: &Request, ino: INodeNo, nlookup: u64) {
        let _timer = self.session.metrics().time(Op::Forget);
        line!("FORGET\t{}\t{ino}\t{nlookup}", req.unique().0);
        let _ = contained(self.session.metrics(), "forget", || self.session.forget(ino.0, nlookup));
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        self.reply(Op::Getattr, reply, || self.session.getattr(ino.0), attributes);
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mode = mode.map(|mode| mode & 0o7777);
        let (atime, mtime) = (atime.map(set_time), mtime.map(set_time));
        let set = SetAttr { mode, uid, gid, size, atime, mtime };
        let work = || self.session.setattr(&caller(req), ino.0, &set, fh.map(|fh| fh.0));
        self.reply(Op::Setattr, reply, work, attributes);
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        self.reply(Op::Readlink, reply, || self.session.readlink(ino.0), |reply, body| reply.data(&body));
    }

    fn mknod(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, rdev: u32, reply: ReplyEntry) {
        let work = || {
            let made = self.session.mknod(&caller(req), parent.0, name.as_bytes(), NewMode::new(mode, umask), rdev);
            line!("MKNOD\t{parent}\t{}\t{mode}\t{rdev}\t->\t{}", escaped(name.as_bytes()), node(&made));
            made
        };
        self.reply(Op::Mknod, reply, work, entry);
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let work = || {
            let made = self.session.mkdir(&caller(req), parent.0, name.as_bytes(), NewMode::new(mode, umask));
            line!("MKDIR\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), node(&made));
            made
        };
        self.reply(Op::Mkdir, reply, work, entry);
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let work = || {
            let done = self.session.unlink(&caller(req), parent.0, name.as_bytes());
            line!("UNLINK\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), Replied(done.map(|()| 0)));
            done
        };
        self.reply(Op::Unlink, reply, work, ok);
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let work = || {
            let done = self.session.rmdir(&caller(req), parent.0, name.as_bytes());
            line!("RMDIR\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), Replied(done.map(|()| 0)));
            done
        };
        self.reply(Op::Rmdir, reply, work, ok);
    }

    fn symlink(&self, req: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        let work = || {
            let (name, body) = (link_name.as_bytes(), target.as_os_str().as_bytes());
            let made = self.session.symlink(&caller(req), parent.0, name, body);
            line!("SYMLINK\t{parent}\t{}\t->\t{}", escaped(name), node(&made));
            made
        };
        self.reply(Op::Symlink, reply, work, entry);
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let work = || {
            let (from, to) = (NameIn::new(parent.0, name.as_bytes()), NameIn::new(newparent.0, newname.as_bytes()));
            let done = self.session.rename(&caller(req), from, to, flags.bits());
            let (name, new, flags, replied) =
                (escaped(from.name), escaped(to.name), flags.bits(), Replied(done.map(|()| 0)));
            line!("RENAME\t{parent}\t{name}\t{newparent}\t{new}\t{flags}\t->\t{replied}");
            done
        };
        self.reply(Op::Rename, reply, work, ok);
    }

    fn link(&self, req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let work = || {
            let made = self.session.link(&caller(req), ino.0, newparent.0, newname.as_bytes());
            line!("LINK\t{ino}\t{newparent}\t{}\t->\t{}", escaped(newname.as_bytes()), node(&made));
            made
        };
        self.reply(Op::Link, reply, work, entry);
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        if self.session.options().no_open {
            return self.refuse(Op::Open, reply, Errno::ENOSYS);
        }
        let work = || {
            let opened = self.session.open(&caller(req), ino.0, flags.0 as u32);
            let handle = opened.as_ref().map(|opened| opened.handle).map_err(|errno| *errno);
            line!("OPEN\t{ino}\t{}\t->\t{}", flags.0, Replied(handle));
            opened
        };
        self.reply(Op::Open, reply, work, |reply, opened| self.send_opened(reply, ino.0, &opened));
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        BUFFER.with_borrow_mut(|buffer| {
            self.reply(
                Op::Read,
                reply,
                || {
                    if buffer.len() < size as usize {
                        buffer.resize(size as usize, 0);
                    }
                    let read = self.session.read(ino.0, fh.0, offset, &mut buffer[..size as usize])?;
                    Ok(&buffer[..read])
                },
                |reply, data| reply.data(data),
            );
        });
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // The callers of cached writes are unknown.
        let clears = write_flags.intersects(WriteFlags::FUSE_WRITE_KILL_SUIDGID | WriteFlags::FUSE_WRITE_CACHE);
        let work = || {
            if clears {
                self.session.write_clearing(ino.0, fh.0, offset, data)
            } else {
                self.session.write(ino.0, fh.0, offset, data)
            }
        };
        self.reply(Op::Write, reply, work, |reply, written| reply.written(written as u32));
    }

    fn flush(&self, _req: &Request, ino: INodeNo, fh: FileHandle, lock_owner: LockOwner, reply: ReplyEmpty) {
        self.reply(Op::Flush, reply, || self.session.flush(ino.0, fh.0, lock_owner.0), ok);
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let work = || {
            line!("RELEASE\t{ino}\t{fh}");
            self.session.release(fh.0);
            self.backings.release(ino.0, fh.0);
            Ok(())
        };
        self.reply(Op::Release, reply, work, ok);
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        self.reply(Op::Fsync, reply, || self.session.fsync(ino.0, fh.0, datasync), ok);
    }

    fn opendir(&self, req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let work = || {
            let opened = self.session.opendir(&caller(req), ino.0);
            line!("OPENDIR\t{ino}\t->\t{}", Replied(opened));
            opened
        };
        self.reply(Op::Opendir, reply, work, |reply, handle| {
            let mut flags = FopenFlags::empty();
            flags.set(FopenFlags::FOPEN_CACHE_DIR, !self.session.options().ttls.entry.is_zero());
            flags.set(FopenFlags::FOPEN_KEEP_CACHE, self.session.keeps_listing(handle));
            reply.opened(FileHandle(handle), flags);
        });
    }

    fn readdir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, offset: u64, reply: ReplyDirectory) {
        let work = |reply: &mut ReplyDirectory| {
            self.session.readdir(fh.0, offset, &mut |entry| {
                !reply.add(INodeNo(entry.ino), entry.cookie, kind(entry.kind), OsStr::from_bytes(entry.name))
            })
        };
        reply::fill(self.session.metrics(), Op::Readdir, reply, work, |reply, ()| reply.ok());
    }

    fn readdirplus(&self, req: &Request, _ino: INodeNo, fh: FileHandle, offset: u64, reply: ReplyDirectoryPlus) {
        let work = |reply: &mut ReplyDirectoryPlus| self.list_entries(req, fh, offset, reply);
        reply::fill(self.session.metrics(), Op::Readdirplus, reply, work, |reply, ()| reply.ok());
    }

    fn releasedir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        let work = || {
            line!("RELEASEDIR\t{fh}");
            self.session.releasedir(fh.0);
            Ok(())
        };
        self.reply(Op::Releasedir, reply, work, ok);
    }

    fn fsyncdir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        self.reply(Op::Fsyncdir, reply, || self.session.fsyncdir(fh.0, datasync), ok);
    }

    fn statfs(&self, _req: &Request, ino: INodeNo, reply: ReplyStatfs) {
        self.reply(Op::Statfs, reply, || self.session.statfs(ino.0), statfs);
    }

    fn setxattr(
        &self,
        req: &Request,
        ino: INodeNo,
        name: &OsStr,
        value: &[u8],
        flags: i32,
        _position: u32,
        reply: ReplyEmpty,
    ) {
        let work = || self.session.setxattr(&caller(req), ino.0, name.as_bytes(), value, flags);
        self.reply(Op::Setxattr, reply, work, ok);
    }

    fn getxattr(&self, req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let work = || fits(self.session.getxattr(&caller(req), ino.0, name.as_bytes())?, size);
        self.reply(Op::Getxattr, reply, work, |reply, value| xattr(reply, &value, size));
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let work = || fits(self.session.listxattr(&caller(req), ino.0)?, size);
        self.reply(Op::Listxattr, reply, work, |reply, names| xattr(reply, &names, size));
    }

    fn removexattr(&self, req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.reply(Op::Removexattr, reply, || self.session.removexattr(&caller(req), ino.0, name.as_bytes()), ok);
    }

    fn access(&self, req: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        self.reply(Op::Access, reply, || self.session.access(&caller(req), ino.0, mask.bits() as u32), ok);
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let work = || {
            let made =
                self.session.create(&caller(req), parent.0, name.as_bytes(), NewMode::new(mode, umask), flags as u32);
            line!("CREATE\t{parent}\t{}\t{flags}\t->\t{}", escaped(name.as_bytes()), created(&made));
            made
        };
        self.reply(Op::Create, reply, work, |reply, (entry, opened)| self.send_created(reply, &entry, &opened));
    }

    fn getlk(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        _pid: u32,
        reply: ReplyLock,
    ) {
        let work = || self.session.getlk(&caller(req), ino.0, lock_owner.0, file_lock(typ, start, end)?);
        self.reply(Op::Getlk, reply, work, |reply, found| match found {
            // 0: the tree does not know the process that holds the lock.
            Some(lock) => reply.locked(lock.start, lock.end, lock_type(lock.kind), 0),
            None => reply.locked(0, 0, UNLCK, 0),
        });
    }

    fn setlk(
        &self,
        req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        _pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let (caller, session) = (caller(req), self.session.clone());
        if !sleep {
            let work = || session.setlk(&caller, ino.0, lock_owner.0, file_lock(typ, start, end)?);
            return self.reply(Op::Setlk, reply, work, ok);
        }
        let waiter = match session.lock_waiter(&caller) {
            Ok(waiter) => waiter,
            Err(errno) => return self.refuse(Op::Setlk, reply, errno),
        };
        // It may wait for ever, so it must not block a thread that serves other requests.
        let serve = move || {
            let owner = (ino.0, lock_owner.0);
            let work = || session.setlk_waiting(&caller, owner, file_lock(typ, start, end)?, &waiter);
            reply::reply(session.metrics(), Op::Setlk, reply, work, ok);
        };
        if let Err(error) = std::thread::Builder::new().name("lightfoot-lock".into()).spawn(serve) {
            tracing::warn!(%error, "lock request failed with EIO: no thread to wait on");
        }
    }

    fn bmap(&self, _req: &Request, _ino: INodeNo, _blocksize: u32, _idx: u64, reply: ReplyBmap) {
        self.refuse(Op::Bmap, reply, Errno::ENOSYS);
    }

    fn ioctl(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _flags: IoctlFlags,
        _cmd: u32,
        _in_data: &[u8],
        _out_size: u32,
        reply: ReplyIoctl,
    ) {
        self.refuse(Op::Ioctl, reply, Errno::ENOTTY);
    }

    fn poll(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _ph: PollNotifier,
        _events: PollEvents,
        _flags: PollFlags,
        reply: ReplyPoll,
    ) {
        self.refuse(Op::Poll, reply, Errno::ENOSYS);
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let work = || self.session.fallocate(&caller(req), ino.0, fh.0, mode as u32, (offset, length));
        self.reply(Op::Fallocate, reply, work, ok);
    }

    fn lseek(&self, _req: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        self.seek(ino.0, fh.0, offset, whence as u32, reply);
    }

    fn copy_file_range(
        &self,
        _req: &Request,
        _ino_in: INodeNo,
        _fh_in: FileHandle,
        _offset_in: u64,
        _ino_out: INodeNo,
        _fh_out: FileHandle,
        _offset_out: u64,
        _len: u64,
        _flags: CopyFileRangeFlags,
        reply: ReplyWrite,
    ) {
        // The kernel then copies through its page cache.
        self.refuse(Op::CopyFileRange, reply, Errno::ENOSYS);
    }
}
