//! Each operation of the protocol, handed to the session.

use super::Transport;
use super::convert::{answer, caller, file_attr, kind, set_time};
use super::flags::configure;
use super::trace::{Answered, created, escaped, line, node};
use crate::metrics::{Op, Timer};
use crate::session::{Entry, FileLock, Opened};
use fuser::{
    AccessFlags, BsdFileFlags, CopyFileRangeFlags, Errno as Answer, FileAttr, FileHandle, Filesystem, FopenFlags,
    Generation, INodeNo, InitFlags, IoctlFlags, KernelConfig, LockOwner, OpenFlags, PollEvents, PollFlags,
    PollNotifier, RenameFlags, ReplyAttr, ReplyBmap, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite,
    ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::SystemTime;
use vfs::{Errno, LockKind, SetAttr};

thread_local! {
    /// What is read goes through here, so that not each read takes memory anew.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What a reply says when nothing but success is to be said.
macro_rules! reply {
    ($timer:expr, $reply:expr, $result:expr, $value:pat => $done:expr) => {{
        let timer: Timer<'_> = $timer;
        match $result {
            Ok($value) => $done,
            Err(errno) => {
                timer.failed(errno.raw());
                $reply.error(answer(errno));
            }
        }
    }};
}

fn shown(entry: &Entry) -> (FileAttr, Generation) {
    (file_attr(&entry.attr, entry.node), Generation(entry.generation))
}

fn entered(reply: ReplyEntry, entry: &Entry) {
    let (attr, generation) = shown(entry);
    reply.entry_with_ttls(&entry.attr_ttl, &entry.entry_ttl, &attr, generation);
}

/// A `setxattr` of an ACL, and all else, fit: sizes as `getxattr(2)` and `listxattr(2)` have them.
fn sized(reply: ReplyXattr, value: &[u8], size: u32, timer: &Timer<'_>) {
    if size == 0 {
        reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX));
    } else if value.len() <= size as usize {
        reply.data(value);
    } else {
        timer.failed(Errno::ERANGE.raw());
        reply.error(Answer::ERANGE);
    }
}

fn lock(kind: i32, start: u64, end: u64) -> Result<FileLock, Errno> {
    // `F_RDLCK`, `F_WRLCK`, `F_UNLCK` of `fcntl(2)`.
    let kind = match kind {
        0 => LockKind::Shared,
        1 => LockKind::Exclusive,
        2 => LockKind::Unlock,
        _ => return Err(Errno::EINVAL),
    };
    Ok(FileLock { kind, start, end })
}

/// What a file that the kernel reads and writes by itself may be opened with: it has no page cache of its own.
fn without_cache(flags: FopenFlags) -> FopenFlags {
    flags & !FopenFlags::FOPEN_KEEP_CACHE
}

impl Transport {
    fn time(&self, op: Op) -> Timer<'_> {
        self.session.metrics().time(op)
    }

    fn open_flags(&self, opened: &Opened) -> FopenFlags {
        let mut flags = FopenFlags::empty();
        if opened.keep_cache {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if !self.session.options().locks {
            flags |= FopenFlags::FOPEN_NOFLUSH;
        }
        flags
    }
}

impl Filesystem for Transport {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        configure(config, &self.options);
        let has = |flag: InitFlags| config.capabilities().contains(flag);
        tracing::debug!(
            passthrough = has(InitFlags::FUSE_PASSTHROUGH),
            io_uring = has(InitFlags::FUSE_OVER_IO_URING),
            "the kernel is there"
        );
        Ok(())
    }

    fn destroy(&mut self) {
        self.session.end();
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let timer = self.time(Op::Lookup);
        let found = self.session.lookup(&caller(req), parent.0, name.as_bytes());
        line!("LOOKUP\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), node(&found));
        match found {
            Ok(entry) => entered(reply, &entry),
            Err(Errno::ENOENT) if !self.session.negative_ttl().is_zero() => {
                timer.failed(Errno::ENOENT.raw());
                // A node id of 0: there is none, and the kernel may remember that.
                let none = file_attr(&vfs::Attr::default(), 0);
                let ttl = self.session.negative_ttl();
                reply.entry_with_ttls(&ttl, &ttl, &none, Generation(0));
            }
            Err(errno) => {
                timer.failed(errno.raw());
                reply.error(answer(errno));
            }
        }
    }

    fn forget(&self, req: &Request, ino: INodeNo, nlookup: u64) {
        let _timer = self.time(Op::Forget);
        line!("FORGET\t{}\t{ino}\t{nlookup}", req.unique().0);
        self.session.forget(ino.0, nlookup);
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        reply!(self.time(Op::Getattr), reply, self.session.getattr(ino.0), (attr, ttl) => {
            reply.attr(&ttl, &file_attr(&attr, attr.ino));
        });
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
        let done = self.session.setattr(&caller(req), ino.0, &set, fh.map(|fh| fh.0));
        reply!(self.time(Op::Setattr), reply, done, (attr, ttl) => reply.attr(&ttl, &file_attr(&attr, attr.ino)));
    }

    fn readlink(&self, _req: &Request, ino: INodeNo, reply: ReplyData) {
        reply!(self.time(Op::Readlink), reply, self.session.readlink(ino.0), body => reply.data(&body));
    }

    fn mknod(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, rdev: u32, reply: ReplyEntry) {
        let timer = self.time(Op::Mknod);
        let made = self.session.mknod(&caller(req), parent.0, name.as_bytes(), (mode, umask), rdev);
        line!("MKNOD\t{parent}\t{}\t{mode}\t{rdev}\t->\t{}", escaped(name.as_bytes()), node(&made));
        reply!(timer, reply, made, entry => entered(reply, &entry));
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, umask: u32, reply: ReplyEntry) {
        let timer = self.time(Op::Mkdir);
        let made = self.session.mkdir(&caller(req), parent.0, name.as_bytes(), (mode, umask));
        line!("MKDIR\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), node(&made));
        reply!(timer, reply, made, entry => entered(reply, &entry));
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let timer = self.time(Op::Unlink);
        let done = self.session.unlink(&caller(req), parent.0, name.as_bytes());
        line!("UNLINK\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), Answered(done.map(|()| 0)));
        reply!(timer, reply, done, () => reply.ok());
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let timer = self.time(Op::Rmdir);
        let done = self.session.rmdir(&caller(req), parent.0, name.as_bytes());
        line!("RMDIR\t{parent}\t{}\t->\t{}", escaped(name.as_bytes()), Answered(done.map(|()| 0)));
        reply!(timer, reply, done, () => reply.ok());
    }

    fn symlink(&self, req: &Request, parent: INodeNo, link_name: &OsStr, target: &Path, reply: ReplyEntry) {
        let timer = self.time(Op::Symlink);
        let body = target.as_os_str().as_bytes();
        let made = self.session.symlink(&caller(req), parent.0, link_name.as_bytes(), body);
        line!("SYMLINK\t{parent}\t{}\t->\t{}", escaped(link_name.as_bytes()), node(&made));
        reply!(timer, reply, made, entry => entered(reply, &entry));
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
        let timer = self.time(Op::Rename);
        let (from, to) = ((parent.0, name.as_bytes()), (newparent.0, newname.as_bytes()));
        let done = self.session.rename(&caller(req), from, to, flags.bits());
        let (name, new, flags, answer) = (escaped(from.1), escaped(to.1), flags.bits(), Answered(done.map(|()| 0)));
        line!("RENAME\t{parent}\t{name}\t{newparent}\t{new}\t{flags}\t->\t{answer}");
        reply!(timer, reply, done, () => reply.ok());
    }

    fn link(&self, req: &Request, ino: INodeNo, newparent: INodeNo, newname: &OsStr, reply: ReplyEntry) {
        let timer = self.time(Op::Link);
        let made = self.session.link(&caller(req), ino.0, newparent.0, newname.as_bytes());
        line!("LINK\t{ino}\t{newparent}\t{}\t->\t{}", escaped(newname.as_bytes()), node(&made));
        reply!(timer, reply, made, entry => entered(reply, &entry));
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let timer = self.time(Op::Open);
        if self.session.options().no_open {
            timer.failed(Errno::ENOSYS.raw());
            return reply.error(Answer::ENOSYS);
        }
        let opened = self.session.open(&caller(req), ino.0, flags.0 as u32);
        let handle = opened.as_ref().map(|opened| opened.handle).map_err(|errno| *errno);
        line!("OPEN\t{ino}\t{}\t->\t{}", flags.0, Answered(handle));
        reply!(timer, reply, opened, opened => {
            let flags = self.open_flags(&opened);
            let handle = FileHandle(opened.handle);
            let backing = opened.backing.as_ref();
            match backing.and_then(|fd| self.backing(ino.0, opened.handle, || reply.open_backing(fd))) {
                Some(id) => reply.opened_passthrough(handle, without_cache(flags), &id),
                None => reply.opened(handle, flags),
            }
        });
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
        let timer = self.time(Op::Read);
        BUFFER.with_borrow_mut(|buffer| {
            if buffer.len() < size as usize {
                buffer.resize(size as usize, 0);
            }
            let buffer = &mut buffer[..size as usize];
            reply!(timer, reply, self.session.read(ino.0, fh.0, offset, buffer), read => reply.data(&buffer[..read]));
        });
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let timer = self.time(Op::Write);
        reply!(timer, reply, self.session.write(ino.0, fh.0, offset, data), written => reply.written(written as u32));
    }

    fn flush(&self, _req: &Request, ino: INodeNo, _fh: FileHandle, lock_owner: LockOwner, reply: ReplyEmpty) {
        let timer = self.time(Op::Flush);
        reply!(timer, reply, self.session.flush(ino.0, lock_owner.0), () => reply.ok());
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        let _timer = self.time(Op::Release);
        line!("RELEASE\t{ino}\t{fh}");
        self.session.release(ino.0, fh.0, lock_owner.map(|owner| owner.0));
        self.release_backing(ino.0, fh.0);
        reply.ok();
    }

    fn fsync(&self, _req: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        let timer = self.time(Op::Fsync);
        reply!(timer, reply, self.session.fsync(ino.0, fh.0, datasync), () => reply.ok());
    }

    fn opendir(&self, req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let timer = self.time(Op::Opendir);
        let opened = self.session.opendir(&caller(req), ino.0);
        line!("OPENDIR\t{ino}\t->\t{}", Answered(opened));
        reply!(timer, reply, opened, handle => {
            let kept = !self.session.options().ttls.entry.is_zero();
            let cached = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
            reply.opened(FileHandle(handle), if kept { cached } else { FopenFlags::empty() });
        });
    }

    fn readdir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let timer = self.time(Op::Readdir);
        let listed = self.session.readdir(fh.0, offset, &mut |entry| {
            !reply.add(INodeNo(entry.ino), entry.cookie, kind(entry.kind), OsStr::from_bytes(entry.name))
        });
        reply!(timer, reply, listed, () => reply.ok());
    }

    fn readdirplus(&self, req: &Request, _ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let timer = self.time(Op::Readdirplus);
        let caller = caller(req);
        line!("READDIRPLUS\t{fh}\t{offset}");
        let listed = self.session.readdir(fh.0, offset, &mut |entry| {
            let name = OsStr::from_bytes(entry.name);
            let is_dots = entry.name == b"." || entry.name == b"..";
            let found = if is_dots { None } else { self.session.listed_entry(&caller, fh.0, entry) };
            let Some(found) = found else {
                // No node: the kernel takes the name and asks when it needs more.
                let attr = vfs::Attr { ino: entry.ino, mode: entry.kind, ..vfs::Attr::default() };
                let attr = file_attr(&attr, entry.ino);
                let none = std::time::Duration::ZERO;
                return !reply.add(INodeNo(0), entry.cookie, name, &none, &attr, Generation(0));
            };
            let (attr, generation) = shown(&found);
            let is_full = reply.add(INodeNo(found.node), entry.cookie, name, &found.entry_ttl, &attr, generation);
            if is_full {
                // It was not told, so it is no lookup.
                self.session.forget(found.node, 1);
            } else {
                line!("LISTED\t{}\t{}\t->\t{}", escaped(entry.name), entry.cookie, found.node);
            }
            !is_full
        });
        reply!(timer, reply, listed, () => reply.ok());
    }

    fn releasedir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        let _timer = self.time(Op::Releasedir);
        line!("RELEASEDIR\t{fh}");
        self.session.releasedir(fh.0);
        reply.ok();
    }

    fn fsyncdir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        let timer = self.time(Op::Fsyncdir);
        reply!(timer, reply, self.session.fsyncdir(fh.0, datasync), () => reply.ok());
    }

    fn statfs(&self, _req: &Request, ino: INodeNo, reply: ReplyStatfs) {
        reply!(self.time(Op::Statfs), reply, self.session.statfs(ino.0), stat => {
            let fs = stat.fs;
            let free = (fs.blocks_free, fs.blocks_available);
            reply.statfs(
                fs.blocks, free.0, free.1, fs.files, fs.files_free, fs.block_size, fs.name_max, fs.block_size,
            );
        });
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
        let timer = self.time(Op::Setxattr);
        let done = self.session.setxattr(&caller(req), ino.0, name.as_bytes(), value, flags);
        reply!(timer, reply, done, () => reply.ok());
    }

    fn getxattr(&self, req: &Request, ino: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let timer = self.time(Op::Getxattr);
        match self.session.getxattr(&caller(req), ino.0, name.as_bytes()) {
            Ok(value) => sized(reply, &value, size, &timer),
            Err(errno) => {
                timer.failed(errno.raw());
                reply.error(answer(errno));
            }
        }
    }

    fn listxattr(&self, req: &Request, ino: INodeNo, size: u32, reply: ReplyXattr) {
        let timer = self.time(Op::Listxattr);
        match self.session.listxattr(&caller(req), ino.0) {
            Ok(names) => sized(reply, &names, size, &timer),
            Err(errno) => {
                timer.failed(errno.raw());
                reply.error(answer(errno));
            }
        }
    }

    fn removexattr(&self, req: &Request, ino: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let timer = self.time(Op::Removexattr);
        let done = self.session.removexattr(&caller(req), ino.0, name.as_bytes());
        reply!(timer, reply, done, () => reply.ok());
    }

    fn access(&self, req: &Request, ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        let timer = self.time(Op::Access);
        reply!(timer, reply, self.session.access(&caller(req), ino.0, mask.bits() as u32), () => reply.ok());
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
        let timer = self.time(Op::Create);
        let made = self.session.create(&caller(req), parent.0, name.as_bytes(), (mode, umask), flags as u32);
        line!("CREATE\t{parent}\t{}\t{flags}\t->\t{}", escaped(name.as_bytes()), created(&made));
        reply!(timer, reply, made, (entry, opened) => {
            let (attr, generation) = shown(&entry);
            let flags = self.open_flags(&opened);
            let handle = FileHandle(opened.handle);
            let backing = opened.backing.as_ref();
            match backing.and_then(|fd| self.backing(entry.node, opened.handle, || reply.open_backing(fd))) {
                Some(id) => {
                    let flags = without_cache(flags);
                    reply.created_passthrough(&entry.entry_ttl, &attr, generation, handle, flags, &id);
                }
                None => reply.created(&entry.entry_ttl, &attr, generation, handle, flags),
            }
        });
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
        let found = lock(typ, start, end).and_then(|lock| self.session.getlk(&caller(req), ino.0, lock_owner.0, lock));
        reply!(self.time(Op::Getlk), reply, found, found => match found {
            Some(lock) => {
                let kind = if lock.kind == LockKind::Shared { 0 } else { 1 };
                // Who has it is not known to the tree.
                reply.locked(lock.start, lock.end, kind, 0);
            }
            None => reply.locked(0, 0, 2, 0),
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
        let timer = self.time(Op::Setlk);
        let lock = match lock(typ, start, end) {
            Ok(lock) => lock,
            Err(errno) => return reply.error(answer(errno)),
        };
        let caller = caller(req);
        if !sleep {
            let done = self.session.setlk(&caller, ino.0, lock_owner.0, lock, false);
            return reply!(timer, reply, done, () => reply.ok());
        }
        // It may wait for ever: not on a thread that others wait for.
        let session = self.session.clone();
        let work = move || match session.setlk(&caller, ino.0, lock_owner.0, lock, true) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(answer(errno)),
        };
        if let Err(error) = std::thread::Builder::new().name("lightfoot-lock".into()).spawn(work) {
            tracing::warn!(%error, "no thread to wait for a lock on");
        }
    }

    fn bmap(&self, _req: &Request, _ino: INodeNo, _blocksize: u32, _idx: u64, reply: ReplyBmap) {
        self.time(Op::Bmap).failed(Errno::ENOSYS.raw());
        reply.error(Answer::ENOSYS);
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
        self.time(Op::Ioctl).failed(Errno::ENOTTY.raw());
        reply.error(Answer::ENOTTY);
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
        self.time(Op::Poll).failed(Errno::ENOSYS.raw());
        reply.error(Answer::ENOSYS);
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let timer = self.time(Op::Fallocate);
        let done = self.session.fallocate(ino.0, fh.0, mode as u32, offset, length);
        reply!(timer, reply, done, () => reply.ok());
    }

    fn lseek(&self, _req: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let timer = self.time(Op::Lseek);
        let found = u64::try_from(offset)
            .map_err(|_| Errno::EINVAL)
            .and_then(|offset| self.session.lseek(ino.0, fh.0, offset, whence as u32));
        reply!(timer, reply, found, at => reply.offset(at as i64));
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
        // The kernel copies through its page cache then.
        self.time(Op::CopyFileRange).failed(Errno::ENOSYS.raw());
        reply.error(Answer::ENOSYS);
    }
}
