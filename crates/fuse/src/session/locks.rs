//! Locks of `fcntl(2)` and `flock(2)` in the tree, where they exclude the locks of other users of
//! the tree.
//!
//! # What it is
//! The kernel numbers the owners of locks: for `fcntl(2)` the open files of a process, for
//! `flock(2)` and `F_OFD_SETLK` an open file. Each pair of node and owner has an open file of the
//! tree, which holds the owner's locks. The session closes this open file, which ends the locks,
//! when the owner closes the file (FLUSH), or when the kernel's open file through which the owner
//! set the last lock ends (RELEASE).
//!
//! Locks of `fcntl(2)` do not conflict with locks of `flock(2)`. [`lock_waits`](super::lock_waits)
//! has the requests that wait.
//!
//! # How it is locked
//! A mutex protects the table of open files. No thread holds it during a call of the tree that does
//! more than return a number.
//!
//! # Where it comes from
//! `fcntl_locking(2)`, `flock(2)`; `fuse_setlk` and `fuse_prepare_release` in Linux's `fs/fuse/file.c`.
//!
//! # Limitations
//! The kernel does not report that the last descriptor of a file is closed without an open
//! (`no_open`). With that option the kernel keeps the locks of `flock(2)` by itself, and the locks
//! of `F_OFD_SETLK` stay until they are released or the mount ends.

use super::Session;
use super::lock_waits::Waits;
use crate::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::{Errno, LockInfo, LockKind, LockWait, OpenFile, OpenFlags};

/// The last byte of a lock to the end of the file: `OFFSET_MAX` in Linux.
const TO_END: u64 = i64::MAX as u64;

/// The call that sets a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockFamily {
    /// `fcntl(2)`: a range of bytes.
    Ranges,
    /// `flock(2)`: the file as a whole.
    Whole,
}

/// A lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// Shared, exclusive, or unlock.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Last byte. `i64::MAX` or more: to the end of the file, which replies show as `i64::MAX`.
    pub end: u64,
    /// The call that sets the lock. With [`LockFamily::Whole`], `start` and `end` have no meaning.
    pub family: LockFamily,
    /// The process; 0 if unknown.
    pub pid: u32,
}

impl FileLock {
    /// Returns the range of bytes; `None` for a lock of the whole file.
    pub(super) fn range(&self) -> Option<core::ops::Range<u64>> {
        let range = self.start..if self.end >= TO_END { u64::MAX } else { self.end + 1 };
        (self.family == LockFamily::Ranges).then_some(range)
    }

    /// Sets this lock for `file`, without waiting.
    fn set(&self, file: &OpenFile) -> Result<(), Errno> {
        match self.range() {
            Some(range) => file.lock_range(self.kind, range, LockWait::Never),
            None => file.flock(self.kind, LockWait::Never),
        }
    }
}

/// Whose lock a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockOwner {
    /// Node of the file.
    pub node: u64,
    /// The kernel's number of the owner.
    pub owner: u64,
    /// The number of the kernel's open file through which the owner requests the lock; 0 with
    /// [`SessionOptions::no_open`](crate::SessionOptions::no_open).
    pub handle: u64,
}

/// The open file of an owner.
struct Owned {
    file: Arc<OpenFile>,
    /// The number of the kernel's open file through which the owner used `file` last.
    handle: u64,
    /// The process that set a lock last.
    pid: u32,
}

/// Open files by node and owner, and the requests that wait.
pub(crate) struct Locks {
    files: Mutex<BTreeMap<(u64, u64), Owned>>,
    pub(super) waits: Waits,
}

impl Locks {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self { files: Mutex::default(), waits: Waits::new(metrics) }
    }

    /// Releases all locks on ranges of `owner` on `node`.
    fn end(&self, node: u64, owner: u64) {
        let file = {
            let mut files = self.files.lock();
            let Some(owned) = files.get(&(node, owner)) else { return };
            // No other thread can get the open file from the table while this thread holds the
            // mutex. But a request of the owner may wait with it.
            if Arc::strong_count(&owned.file) > 1 {
                owned.file.clone()
            } else if let Some(owned) = files.remove(&(node, owner)) {
                owned.file
            } else {
                return;
            }
        };
        let _ = file.lock_range(LockKind::Unlock, 0..u64::MAX, LockWait::Never);
    }

    /// Ends the locks set through the kernel's open file `handle`, which has ended, and the locks
    /// of `flock_owner`.
    fn release(&self, node: u64, handle: u64, flock_owner: Option<u64>) {
        let ended: Vec<_> = {
            let mut files = self.files.lock();
            let of_node = files.range((node, 0)..=(node, u64::MAX));
            let is_over = |owner: u64, owned: &Owned| owned.handle == handle || Some(owner) == flock_owner;
            let keys: Vec<_> =
                of_node.filter(|((_, owner), owned)| is_over(*owner, owned)).map(|(key, _)| *key).collect();
            keys.iter().filter_map(|key| files.remove(key)).collect()
        };
        drop(ended);
    }

    pub(super) fn clear(&self) {
        self.waits.end();
        let all = core::mem::take(&mut *self.files.lock());
        drop(all);
    }

    /// Returns the owners whose locks on `node` keep `file` from `lock`, with the processes that
    /// set locks last.
    pub(super) fn blockers(&self, node: u64, file: &OpenFile, lock: &FileLock) -> Vec<(u64, u32)> {
        let numbers = lock.range().map_or(Vec::new(), |range| file.lock_blockers(lock.kind, range));
        let files = self.files.lock();
        let owners = files.range((node, 0)..=(node, u64::MAX));
        let blocking = owners.filter(|(_, owned)| numbers.contains(&owned.file.lock_number()));
        blocking.map(|(&(_, owner), owned)| (owner, owned.pid)).collect()
    }

    /// Notes that `owner` has a lock on `node` by `pid`.
    pub(super) fn note(&self, node: u64, owner: u64, lock: &FileLock) {
        if let Some(owned) = self.files.lock().get_mut(&(node, owner)) {
            owned.pid = lock.pid;
        }
    }
}

impl Session {
    /// FLUSH: `lock_owner` has closed a descriptor of the open file `handle`, which ends the locks
    /// of `lock_owner` on the node.
    ///
    /// # Errors
    /// As for [`OpenFile::flush`], which `close(2)` returns; `ENOSYS` without
    /// [`locks`](crate::SessionOptions::locks) if no file system of the tree can fail here
    /// ([`Vfs::wants_flushes`](vfs::Vfs::wants_flushes)): the kernel then sends no more FLUSH.
    pub fn flush(&self, node: u64, handle: u64, lock_owner: u64) -> Result<(), Errno> {
        if self.options.locks {
            self.locks.end(node, lock_owner);
        } else if !self.vfs.wants_flushes() {
            return Err(Errno::ENOSYS);
        }
        self.files.get(handle).map_or(Ok(()), |open| open.file.flush())
    }

    /// Returns whether FLUSH of the open file `handle` has an effect. (With writeback the kernel
    /// sends FLUSH even without an effect.)
    pub(crate) fn wants_flush(&self, handle: u64) -> bool {
        self.options.locks || self.files.get(handle).is_some_and(|open| open.file.wants_flush())
    }

    /// RELEASE: ends the locks that the open file `handle` has set, and the locks of `flock_owner`.
    pub fn release_locks(&self, node: u64, handle: u64, flock_owner: Option<u64>) {
        if self.options.locks {
            self.locks.release(node, handle, flock_owner);
        }
    }

    /// GETLK: returns the first lock that conflicts with `lock`.
    ///
    /// # Errors
    /// `EINVAL`, `ESTALE`; `ENOSYS` without [`locks`](crate::SessionOptions::locks).
    pub fn getlk(&self, of: LockOwner, lock: FileLock) -> Result<Option<FileLock>, Errno> {
        let range = lock.range().ok_or(Errno::EINVAL)?;
        let file = self.locker(of)?;
        let Some(LockInfo { kind, start, end, .. }) = file.test_lock(lock.kind, range)? else { return Ok(None) };
        let found = FileLock { kind, start, end: (end - 1).min(TO_END), ..lock };
        let any = FileLock { kind: LockKind::Exclusive, ..found };
        let pid = self.locks.blockers(of.node, &file, &any).first().map_or(0, |(_, pid)| *pid);
        Ok(Some(FileLock { pid, ..found }))
    }

    /// SETLK: takes, changes or releases a lock.
    ///
    /// # Errors
    /// `EAGAIN`, `EINVAL`, `ESTALE`; `ENOSYS` without [`locks`](crate::SessionOptions::locks).
    pub fn setlk(&self, of: LockOwner, lock: FileLock) -> Result<(), Errno> {
        let file = self.locker(of)?;
        self.set(&file, of, &lock)
    }

    pub(super) fn set(&self, file: &OpenFile, of: LockOwner, lock: &FileLock) -> Result<(), Errno> {
        lock.set(file)?;
        if lock.kind != LockKind::Unlock {
            self.locks.note(of.node, of.owner, lock);
            self.locks.end_circles_through(of);
        }
        Ok(())
    }

    /// Returns the open file that the session uses to set the locks of this owner. At the owner's
    /// first lock, opens the node.
    pub(super) fn locker(&self, LockOwner { node, owner, handle }: LockOwner) -> Result<Arc<OpenFile>, Errno> {
        if !self.options.locks {
            return Err(Errno::ENOSYS);
        }
        if let Some(owned) = self.locks.files.lock().get_mut(&(node, owner)) {
            owned.handle = handle;
            return Ok(owned.file.clone());
        }
        let held = self.node(node)?;
        let opened = |flags| self.callers.everyone().open_held(&held, flags);
        let file = match opened(OpenFlags::RDWR) {
            // On a read-only mount only shared locks are possible.
            Err(Errno::EROFS) => opened(OpenFlags::RDONLY)?,
            file => file?,
        };
        let file = Arc::new(file);
        let mut files = self.locks.files.lock();
        let owned = files.entry((node, owner)).or_insert_with(|| Owned { file: file.clone(), handle, pid: 0 });
        Ok(owned.file.clone())
    }
}
