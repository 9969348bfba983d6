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
//! A user has at most [`MOST_PER_USER`] locked ranges and open files of this table, in all. Root and
//! the mounting user are trusted and have no limit; all unknown users together have one.
//!
//! # How it is locked
//! A mutex protects the table of open files. No thread holds it during a call of the tree that does
//! more than return a number, or search the locks of one owner. A request looks up a few keys, so its
//! work under the mutex does not grow with the locks of others.
//!
//! # Where it comes from
//! `fcntl_locking(2)`, `flock(2)`; `fuse_setlk` and `fuse_prepare_release` in Linux's `fs/fuse/file.c`.
//!
//! # Limitations
//! The kernel does not report that the last descriptor of a file is closed without an open
//! (`no_open`). With that option the kernel keeps the locks of `flock(2)` by itself, and the locks
//! of `F_OFD_SETLK` stay until they are released or the mount ends.

use super::lock_waits::Waits;
use super::who::Account;
use super::{Caller, Session};
use crate::metrics::Metrics;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use vfs::{Errno, LockCharge, LockInfo, LockKind, LockQuota, LockWait, OpenFile, OpenFlags};

/// The most locked ranges of a user, its open files of the table included. A close of a file with so
/// many takes a few milliseconds under the mutex of a shard of the tree's locks.
const MOST_PER_USER: usize = 8192;

/// When so many users have a quota, the quotas without a lock are removed.
const MANY_USERS: usize = 1024;

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

    /// Sets this lock for `locker`, without waiting.
    fn set(&self, locker: &Locker) -> Result<(), Errno> {
        match self.range() {
            Some(range) => locker.file.lock_range_within(locker.quota.as_ref(), self.kind, range, LockWait::Never),
            None => locker.file.flock(self.kind, LockWait::Never),
        }
    }
}

/// The open file of an owner, and the quota of the user who made it.
pub(super) struct Locker {
    pub(super) file: OpenFile,
    pub(super) quota: Option<Arc<LockQuota>>,
    _charge: Option<LockCharge>,
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

/// An owner in the table.
struct Owned {
    locker: Arc<Locker>,
    /// The number of the kernel's open file through which the owner used `file` last.
    handle: u64,
}

/// Open files by node and owner.
#[derive(Default)]
struct Table {
    owners: BTreeMap<(u64, u64), Owned>,
    /// The nodes, handles and owners of `owners`.
    by_handle: BTreeSet<(u64, u64, u64)>,
    /// The processes that set locks last, by the number of the open file in the tree.
    pids: HashMap<u64, u32>,
}

impl Table {
    /// Returns the open file of an owner, and notes the kernel's open file through which the owner uses it now.
    fn used_by(&mut self, LockOwner { node, owner, handle }: LockOwner) -> Option<Arc<Locker>> {
        let owned = self.owners.get_mut(&(node, owner))?;
        if owned.handle != handle {
            self.by_handle.remove(&(node, owned.handle, owner));
            self.by_handle.insert((node, handle, owner));
            owned.handle = handle;
        }
        Some(owned.locker.clone())
    }

    fn insert(&mut self, LockOwner { node, owner, handle }: LockOwner, locker: Arc<Locker>) {
        self.by_handle.insert((node, handle, owner));
        self.owners.insert((node, owner), Owned { locker, handle });
    }

    fn remove(&mut self, node: u64, owner: u64) -> Option<Arc<Locker>> {
        let Owned { locker, handle } = self.owners.remove(&(node, owner))?;
        self.by_handle.remove(&(node, handle, owner));
        self.pids.remove(&locker.file.lock_number());
        Some(locker)
    }
}

/// The owners of locks, the quotas of users, and the requests that wait.
pub(crate) struct Locks {
    table: Mutex<Table>,
    quotas: Mutex<HashMap<Account, Arc<LockQuota>>>,
    own_uid: u32,
    pub(super) waits: Waits,
}

impl Locks {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        let own_uid = rustix::process::geteuid().as_raw();
        Self { table: Mutex::default(), quotas: Mutex::default(), own_uid, waits: Waits::new(metrics) }
    }

    /// Returns the quota of the caller's locks, or `None` without a limit.
    fn quota(&self, caller: &Caller) -> Option<Arc<LockQuota>> {
        let account = caller.who.account();
        if !account.is_limited(self.own_uid) {
            return None;
        }
        let mut quotas = self.quotas.lock();
        if quotas.len() >= MANY_USERS && !quotas.contains_key(&account) {
            quotas.retain(|_, quota| Arc::strong_count(quota) > 1);
        }
        Some(quotas.entry(account).or_insert_with(|| LockQuota::new(MOST_PER_USER)).clone())
    }

    /// Releases all locks on ranges of `owner` on `node`.
    fn end(&self, node: u64, owner: u64) {
        let locker = {
            let mut table = self.table.lock();
            let Some(owned) = table.owners.get(&(node, owner)) else { return };
            // No other thread can get the open file from the table while this thread holds the
            // mutex. But a request of the owner may wait with it.
            let is_used = Arc::strong_count(&owned.locker) > 1;
            let known = owned.locker.clone();
            if !is_used {
                table.remove(node, owner);
            }
            known
        };
        let _ = locker.file.lock_range(LockKind::Unlock, 0..u64::MAX, LockWait::Never);
    }

    /// Ends the locks set through the kernel's open file `handle`, which has ended, and the locks
    /// of `flock_owner`.
    fn release(&self, node: u64, handle: u64, flock_owner: Option<u64>) {
        let ended: Vec<_> = {
            let mut table = self.table.lock();
            let of_handle = table.by_handle.range((node, handle, 0)..=(node, handle, u64::MAX));
            let owners: Vec<_> = of_handle.map(|&(_, _, owner)| owner).chain(flock_owner).collect();
            owners.into_iter().filter_map(|owner| table.remove(node, owner)).collect()
        };
        drop(ended);
    }

    pub(super) fn clear(&self) {
        self.waits.end();
        let all = core::mem::take(&mut *self.table.lock());
        drop(all);
    }

    /// Returns whether a lock of `other` on the file of `locker` keeps `locker` from `lock`.
    pub(super) fn is_blocked_by(&self, (node, other): (u64, u64), locker: &Locker, lock: &FileLock) -> bool {
        let Some(range) = lock.range() else { return false };
        let number = self.table.lock().owners.get(&(node, other)).map(|owned| owned.locker.file.lock_number());
        number.is_some_and(|number| locker.file.is_blocked_by(number, lock.kind, range))
    }

    /// Notes that `owner` has a lock on `node` by `pid`.
    pub(super) fn note(&self, node: u64, owner: u64, lock: &FileLock) {
        let mut table = self.table.lock();
        if let Some(number) = table.owners.get(&(node, owner)).map(|owned| owned.locker.file.lock_number()) {
            table.pids.insert(number, lock.pid);
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
    /// `EINVAL`, `ESTALE`; `ENOLCK` as for [`setlk`](Self::setlk); `ENOSYS` without
    /// [`locks`](crate::SessionOptions::locks).
    pub fn getlk(&self, caller: &Caller, of: LockOwner, lock: FileLock) -> Result<Option<FileLock>, Errno> {
        let range = lock.range().ok_or(Errno::EINVAL)?;
        let locker = self.locker(caller, of)?;
        let Some((number, found)) = locker.file.first_blocker(lock.kind, range)? else { return Ok(None) };
        let pid = self.locks.table.lock().pids.get(&number).copied().unwrap_or(0);
        let LockInfo { kind, start, end, .. } = found;
        Ok(Some(FileLock { kind, start, end: (end - 1).min(TO_END), pid, ..lock }))
    }

    /// SETLK: takes, changes or releases a lock.
    ///
    /// # Errors
    /// `EAGAIN`, `EINVAL`, `ESTALE`; `ENOLCK` if the caller would have too many locks; `ENOSYS`
    /// without [`locks`](crate::SessionOptions::locks).
    pub fn setlk(&self, caller: &Caller, of: LockOwner, lock: FileLock) -> Result<(), Errno> {
        let locker = self.locker(caller, of)?;
        self.set(&locker, of, &lock)
    }

    pub(super) fn set(&self, locker: &Locker, of: LockOwner, lock: &FileLock) -> Result<(), Errno> {
        lock.set(locker)?;
        if lock.kind != LockKind::Unlock {
            self.locks.note(of.node, of.owner, lock);
            self.locks.end_circles_through(of);
        }
        Ok(())
    }

    /// Returns the open file that the session uses to set the locks of this owner. At the owner's
    /// first lock, opens the node, and charges `caller`.
    pub(super) fn locker(&self, caller: &Caller, of: LockOwner) -> Result<Arc<Locker>, Errno> {
        if !self.options.locks {
            return Err(Errno::ENOSYS);
        }
        if let Some(known) = self.locks.table.lock().used_by(of) {
            return Ok(known);
        }
        let quota = self.locks.quota(caller);
        let charge = quota.as_ref().map(LockCharge::new).transpose()?;
        let held = self.node(of.node)?;
        let opened = |flags| self.callers.everyone().open_held(&held, flags);
        let file = match opened(OpenFlags::RDWR) {
            // On a read-only mount only shared locks are possible.
            Err(Errno::EROFS) => opened(OpenFlags::RDONLY)?,
            file => file?,
        };
        let locker = Arc::new(Locker { file, quota, _charge: charge });
        let mut table = self.locks.table.lock();
        if let Some(known) = table.used_by(of) {
            return Ok(known);
        }
        table.insert(of, locker.clone());
        Ok(locker)
    }
}
