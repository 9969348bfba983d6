//! Operations on files that are open: read, write, locks; and on those that need not be.

use super::{Caller, Entry, Session};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;
use vfs::{Allocate, Base, Errno, Held, LockInfo, LockKind, LockWait, MAY_WRITE, OpenFile, OpenFlags, SeekFor};

/// Flags that are handed on to the tree; the kernel sees to the others.
const HANDED_ON: u32 = 3 | OpenFlags::TRUNC.bits() | OpenFlags::APPEND.bits() | OpenFlags::NOATIME.bits();

/// The last byte of a lock that goes to the end, as the kernel has it: `OFFSET_MAX`.
const TO_END: u64 = i64::MAX as u64;

/// A file that is open.
pub(crate) struct Open {
    pub(super) file: OpenFile,
    /// The kernel may write to the host's file without asking.
    is_backed: bool,
}

/// Inodes that the kernel may change without asking, by [identity](Held::identity), and how many handles let it.
#[derive(Default)]
pub(crate) struct Backed(Mutex<HashMap<u64, usize>>);

impl Backed {
    /// Whether what is known of it may be old at any time.
    pub(super) fn has(&self, held: &Held) -> bool {
        self.0.lock().contains_key(&held.identity())
    }

    fn begin(&self, held: &Held) {
        *self.0.lock().entry(held.identity()).or_default() += 1;
    }

    fn end(&self, held: &Held) {
        if let Slot::Occupied(mut handles) = self.0.lock().entry(held.identity()) {
            *handles.get_mut() -= 1;
            if *handles.get() == 0 {
                handles.remove();
            }
        }
        held.doubt();
    }
}

/// What the kernel is told of a file that was opened.
#[derive(Debug)]
pub struct Opened {
    /// By which it is known from now on.
    pub handle: u64,
    /// What the kernel has of its contents is still good.
    pub keep_cache: bool,
    /// The host's file that has the contents, if the kernel may use that.
    pub backing: Option<Arc<OwnedFd>>,
}

/// Locks taken by owners that the kernel names: one open file of our own for each owner and node, which goes, with all its locks,
/// when the owner closes the file; as `fcntl(2)` has it.
#[derive(Default)]
pub(crate) struct Locks(Mutex<HashMap<(u64, u64), Arc<OpenFile>>>);

impl Locks {
    /// Gives up all that `owner` has on `node`.
    fn end(&self, node: u64, owner: u64) {
        let file = self.0.lock().remove(&(node, owner));
        drop(file);
    }

    pub(super) fn clear(&self) {
        let all = core::mem::take(&mut *self.0.lock());
        drop(all);
    }
}

/// A lock as `fcntl(2)` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// What it keeps out.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Last byte; `i64::MAX` or more: to the end, of which `i64::MAX` is told.
    pub end: u64,
}

impl FileLock {
    fn range(&self) -> core::ops::Range<u64> {
        self.start..if self.end >= TO_END { u64::MAX } else { self.end + 1 }
    }
}

impl Session {
    /// OPEN.
    ///
    /// # Errors
    /// Those of [`vfs::Context::open`]; `ESTALE`.
    pub fn open(&self, caller: &Caller, node: u64, flags: u32) -> Result<Opened, Errno> {
        let held = self.node(node)?;
        let file = self.open_as(caller, &held, OpenFlags::from_bits(flags & HANDED_ON))?;
        Ok(self.opened(file))
    }

    /// CREATE: what it made or found, and opened.
    ///
    /// # Errors
    /// Those of [`vfs::Context::open`]; `ESTALE`.
    pub fn create(
        &self,
        caller: &Caller,
        parent: u64,
        name: &[u8],
        (mode, umask): (u32, u32),
        flags: u32,
    ) -> Result<(Entry, Opened), Errno> {
        let dir = self.node(parent)?;
        let exclusive = OpenFlags::from_bits(flags & OpenFlags::EXCL.bits());
        let flags = self.own_flags(flags).union(OpenFlags::CREAT).union(OpenFlags::NOFOLLOW).union(exclusive);
        let file = self.callers.making(caller, umask).open(Base::at(&dir), name, flags, mode)?;
        let entry = self.entry(file.held().clone())?;
        Ok((entry, self.opened(file)))
    }

    fn open_as(&self, caller: &Caller, held: &Held, asked: OpenFlags) -> Result<OpenFile, Errno> {
        let flags = self.own_flags(asked.bits());
        if !flags.can_write() && !flags.has(OpenFlags::TRUNC) {
            return self.callers.looking(caller, |context| context.open_held(held, flags));
        }
        let context = self.callers.making(caller, 0);
        if flags.can_read() && !asked.can_read() {
            // That it is read too is not the caller's doing.
            context.access_held(held, MAY_WRITE)?;
            return self.callers.checked(caller).open_held(held, flags);
        }
        context.open_held(held, flags)
    }

    /// What is opened here for what the kernel opens. Where it collects writes it reads what lies around them, and knows itself where
    /// the end is.
    fn own_flags(&self, flags: u32) -> OpenFlags {
        let mut bits = flags & HANDED_ON;
        if self.options.writeback {
            bits &= !OpenFlags::APPEND.bits();
            if bits & 3 == OpenFlags::WRONLY.bits() {
                bits = bits & !3 | OpenFlags::RDWR.bits();
            }
        }
        OpenFlags::from_bits(bits)
    }

    fn opened(&self, file: OpenFile) -> Opened {
        let backing = if self.options.passthrough { file.backing() } else { None };
        let keep_cache = self.options.ttls.attr > Duration::ZERO;
        let is_backed = backing.is_some();
        if is_backed {
            self.backed.begin(file.held());
        }
        Opened { handle: self.files.insert(Open { file, is_backed }), keep_cache, backing }
    }

    /// Calls `f` with an open file: that of `handle`, or without one (`no_open`) the node's, opened for this call.
    fn with_file<R>(
        &self,
        node: u64,
        handle: u64,
        flags: OpenFlags,
        f: impl FnOnce(&OpenFile) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match self.files.get(handle) {
            Some(open) => f(&open.file),
            None if self.options.no_open && handle == 0 => {
                f(&self.callers.nobody_in_particular().open_held(&*self.node(node)?, flags)?)
            }
            None => Err(Errno::EBADF),
        }
    }

    /// READ: fills `buf` from `offset` on; fewer bytes only at the end.
    ///
    /// # Errors
    /// `EBADF`; the file system's.
    pub fn read(&self, node: u64, handle: u64, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
        self.with_file(node, handle, OpenFlags::RDONLY, |file| {
            let mut done = 0;
            while done < buf.len() {
                match file.read_at(offset + done as u64, &mut buf[done..])? {
                    0 => break,
                    read => done += read,
                }
            }
            Ok(done)
        })
    }

    /// WRITE: how much of `data` was written; all but when room ran out.
    ///
    /// # Errors
    /// `EBADF`; the file system's if nothing was written.
    pub fn write(&self, node: u64, handle: u64, offset: u64, data: &[u8]) -> Result<usize, Errno> {
        self.with_file(node, handle, OpenFlags::WRONLY, |file| {
            let mut done = 0;
            while done < data.len() {
                match file.write_at(offset + done as u64, &data[done..]) {
                    Ok((0, _)) => break,
                    Ok((written, _)) => done += written,
                    Err(_) if done > 0 => break,
                    Err(errno) => return Err(errno),
                }
            }
            Ok(done)
        })
    }

    /// FSYNC.
    ///
    /// # Errors
    /// `EBADF`; the file system's.
    pub fn fsync(&self, node: u64, handle: u64, data_only: bool) -> Result<(), Errno> {
        self.with_file(node, handle, OpenFlags::RDONLY, |file| file.sync(data_only))
    }

    /// FALLOCATE, with the mode bits of `fallocate(2)`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for modes that there are none of here; those of [`OpenFile::allocate`].
    pub fn fallocate(&self, node: u64, handle: u64, mode: u32, offset: u64, len: u64) -> Result<(), Errno> {
        const KEEP_SIZE: u32 = 1;
        const PUNCH_HOLE: u32 = 2;
        const ZERO_RANGE: u32 = 16;
        let how = match mode & !KEEP_SIZE {
            0 => Allocate::Reserve,
            PUNCH_HOLE if mode & KEEP_SIZE != 0 => Allocate::PunchHole,
            ZERO_RANGE => Allocate::Zero,
            _ => return Err(Errno::EOPNOTSUPP),
        };
        let keep_size = mode & KEEP_SIZE != 0;
        self.with_file(node, handle, OpenFlags::WRONLY, |file| file.allocate(how, keep_size, offset, len))
    }

    /// LSEEK: for data (`SEEK_DATA`, 3) or a hole (`SEEK_HOLE`, 4).
    ///
    /// # Errors
    /// `EINVAL` for another `whence`; those of [`OpenFile::seek_for`].
    pub fn lseek(&self, node: u64, handle: u64, offset: u64, whence: u32) -> Result<u64, Errno> {
        let what = match whence {
            3 => SeekFor::Data,
            4 => SeekFor::Hole,
            _ => return Err(Errno::EINVAL),
        };
        self.with_file(node, handle, OpenFlags::RDONLY, |file| file.seek_for(what, offset))
    }

    /// FLUSH: a descriptor of the file was closed by who owns `lock_owner`'s locks.
    ///
    /// # Errors
    /// `ENOSYS` if there are no locks to give up: the kernel need not ask again.
    pub fn flush(&self, node: u64, lock_owner: u64) -> Result<(), Errno> {
        if !self.options.locks {
            return Err(Errno::ENOSYS);
        }
        self.locks.end(node, lock_owner);
        Ok(())
    }

    /// RELEASE: the last descriptor of a handle was closed; `flock_owner`: it had locks of `flock(2)`, which are the owner's own.
    pub fn release(&self, node: u64, handle: u64, flock_owner: Option<u64>) {
        let closed = self.files.remove(handle);
        if let Some(open) = closed.as_ref().filter(|open| open.is_backed) {
            self.backed.end(open.file.held());
        }
        if let Some(owner) = flock_owner {
            self.locks.end(node, owner);
        }
        drop(closed);
    }

    /// GETLK: the first lock that is in the way of `lock`.
    ///
    /// # Errors
    /// `EINVAL`, `ESTALE`; `ENOSYS` if locks are the kernel's own.
    pub fn getlk(&self, _caller: &Caller, node: u64, owner: u64, lock: FileLock) -> Result<Option<FileLock>, Errno> {
        let file = self.locker(node, owner)?;
        let found = file.test_lock(lock.kind, lock.range())?;
        Ok(found.map(|LockInfo { kind, start, end, .. }| FileLock { kind, start, end: (end - 1).min(TO_END) }))
    }

    /// SETLK, SETLKW: takes, changes or gives up a lock. With `wait` it may last, for ever; ask on a thread of its own.
    ///
    /// # Errors
    /// `EAGAIN`, `EINVAL`, `ESTALE`; `ENOSYS` if locks are the kernel's own.
    pub fn setlk(&self, _caller: &Caller, node: u64, owner: u64, lock: FileLock, wait: bool) -> Result<(), Errno> {
        let file = self.locker(node, owner)?;
        file.lock_range(lock.kind, lock.range(), if wait { LockWait::Forever } else { LockWait::Never })
    }

    fn locker(&self, node: u64, owner: u64) -> Result<Arc<OpenFile>, Errno> {
        if !self.options.locks {
            return Err(Errno::ENOSYS);
        }
        if let Some(file) = self.locks.0.lock().get(&(node, owner)) {
            return Ok(file.clone());
        }
        let held = self.node(node)?;
        let opened = |flags| self.callers.everyone().open_held(&held, flags);
        let file = match opened(OpenFlags::RDWR) {
            // On a read-only mount locks to read are left.
            Err(Errno::EROFS) => opened(OpenFlags::RDONLY)?,
            file => file?,
        };
        Ok(self.locks.0.lock().entry((node, owner)).or_insert_with(|| Arc::new(file)).clone())
    }
}
