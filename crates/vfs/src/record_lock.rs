//! Advisory locks on files: byte ranges and whole files, owned by an open file description.
//!
//! # What it is
//! The locks of `fcntl(2)`'s `F_OFD_SETLK`, `F_OFD_SETLKW` and `F_OFD_GETLK`, and the locks of
//! `flock(2)`. A file's locks are a [`table`] of owners, with their [`ranges`], and of waiting
//! requests. A tree of the [`intervals`] of all owners finds conflicts. Tables are found by the file's
//! key, in shards. A file without locks has no table and needs no memory. As on Linux, the two
//! families do not see each other. A [`quota`] limits the ranges of several owners.
//!
//! # What it is not
//! Mandatory: reads and writes ignore these locks. POSIX's per-process locks (`F_SETLK`), which are
//! released when the process closes any descriptor of the file, are missing. There is no deadlock
//! detection (`EDEADLK`), as on Linux for open file descriptions. No signal interrupts a thread
//! that waits (`EINTR`): the wait has a deadline.
//!
//! # Parked requests
//! A request can wait without a thread ([`RecordLocks::park`]): the thread that grants it calls a
//! closure. Its owner can withdraw it ([`RecordLocks::unpark`]). Grants and withdrawals happen
//! under the shard's mutex, so exactly one of them happens.
//!
//! # Fairness
//! A thread that releases a lock grants the bytes to the waiting requests, in order of arrival,
//! before another thread can request them; a woken thread has its lock. A request that conflicts
//! with no lock never waits, not even behind an older waiting request: the older request could wait
//! for the owner of the new request, and Linux does not make the new request wait. So readers in
//! close succession can starve a writer, and narrow requests a wide one.
//!
//! # How it is locked
//! Each shard has a mutex, a leaf: no other lock is taken under it, no two shards are locked at
//! once, and threads are woken, and closures called, after its release. Since a request can wait,
//! callers must hold no lock that the owner of a conflicting lock may need. Writes of an owner
//! before it releases a lock happen before the writes of the next owner: both took the shard's
//! mutex, a woken waiter too.
//!
//! # Keys and owners
//! The key is the address of the file's inode, which an open file pins. The owner is the address of
//! an open file description. Its last close calls [`RecordLocks::release_owner`]. None of its
//! requests has a thread then, since a waiting thread uses the file; its parked requests are
//! withdrawn.
//!
//! # Where it comes from
//! `fcntl(2)`, `fcntl_locking(2)`, `flock(2)`; Linux's `fs/locks.c` for the rest.
//!
//! # Limitations
//! Without a quota the number of locks has no limit. A request visits all ranges of
//! the same owner that it overlaps.

mod intervals;
mod quota;
mod ranges;
mod table;
#[cfg(test)]
mod tests;

use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use core::ops::Range;
use core::time::Duration;
use prim::shared::PlainArc as Arc;
pub use quota::{LockCharge, LockQuota};
use std::collections::BTreeMap;
use sync::Mutex;
pub(crate) use table::Granted;
use table::{LockRequest, LockTable, Sleeper, Waiter};

/// Shards of one tree; a power of two.
const SHARDS: usize = 32;

/// All bytes of a file, present and future.
const WHOLE: Range<u64> = 0..u64::MAX;

/// The kind of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// Shared with other owners: `F_RDLCK`, `LOCK_SH`.
    Shared,
    /// Alone: `F_WRLCK`, `LOCK_EX`.
    Exclusive,
    /// No lock: `F_UNLCK`, `LOCK_UN`. Never conflicts, never waits.
    Unlock,
}

/// A lock that is held.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct LockInfo {
    /// `Shared` or `Exclusive`.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// The first byte after the range. `u64::MAX`: the end of the file, even if the file grows.
    pub end: u64,
}

/// How long a conflicting request waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockWait {
    /// Fail with `EAGAIN`: `F_OFD_SETLK`, `LOCK_NB`.
    Never,
    /// Wait, and fail with `ETIMEDOUT` after this time.
    AtMost(Duration),
    /// Wait: `F_OFD_SETLKW`.
    Forever,
}

/// The families of locks; only locks of one family conflict.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Family {
    /// `fcntl(2)`.
    Ranges,
    /// `flock(2)`: a lock is one of all bytes.
    Whole,
}

/// A request that waits without a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParkedLock {
    family: Family,
    number: u64,
}

/// A table of locks: a file's key, and the family of its locks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TableId {
    key: u64,
    family: Family,
}

type Tables = BTreeMap<TableId, LockTable>;

#[derive(Default)]
struct Shard {
    tables: Mutex<Tables>,
}

/// The advisory locks of one tree's files.
pub(crate) struct RecordLocks {
    shards: [Shard; SHARDS],
    /// See [`LockTable::new`].
    seed: u64,
}

impl Default for RecordLocks {
    fn default() -> Self {
        Self { shards: Default::default(), seed: prim::seed::random_u64() }
    }
}

impl RecordLocks {
    /// Makes `kind` the owner's lock on all bytes of `range`, in place of its earlier locks there, or changes
    /// nothing. `u64::MAX` as the end means all bytes to come.
    ///
    /// # Errors
    /// `EINVAL` for an empty range; if another owner's lock conflicts, `EAGAIN`, or `ETIMEDOUT` after the
    /// time to wait; `ENOLCK` if `quota` has no room.
    pub(crate) fn set(
        &self,
        (key, owner): (u64, u64),
        kind: LockKind,
        range: Range<u64>,
        wait: LockWait,
        quota: Option<&Arc<LockQuota>>,
    ) -> Result<(), Errno> {
        if range.is_empty() {
            return Err(Errno::EINVAL);
        }
        let request = LockRequest { owner, kind, range, quota: quota.cloned() };
        self.acquire(TableId { key, family: Family::Ranges }, request, wait)
    }

    /// Returns the first lock of another owner that conflicts with `kind` on `range`, with its owner.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, or for `Unlock`, which conflicts with nothing.
    pub(crate) fn test(
        &self,
        key: u64,
        owner: u64,
        kind: LockKind,
        range: Range<u64>,
    ) -> Result<Option<(u64, LockInfo)>, Errno> {
        if range.is_empty() || kind == LockKind::Unlock {
            return Err(Errno::EINVAL);
        }
        let tables = self.shard(key).tables.lock();
        let table = tables.get(&TableId { key, family: Family::Ranges });
        Ok(table.and_then(|table| table.first_conflict(&LockRequest { owner, kind, range, quota: None })))
    }

    /// Returns whether a lock of `other` conflicts with `kind` of `owner` on `range`.
    pub(crate) fn is_blocked_by(
        &self,
        key: u64,
        (owner, other): (u64, u64),
        kind: LockKind,
        range: Range<u64>,
    ) -> bool {
        let tables = self.shard(key).tables.lock();
        let table = tables.get(&TableId { key, family: Family::Ranges });
        table.is_some_and(|table| table.is_blocked_by(other, &LockRequest { owner, kind, range, quota: None }))
    }

    /// Makes `kind` the owner's lock on the file as a whole.
    ///
    /// A conversion that must wait, or fails, releases the owner's earlier lock: `flock(2)` does not promise
    /// atomicity. A conversion without a conflict is atomic.
    ///
    /// # Errors
    /// If another owner's lock conflicts, `EAGAIN`, or `ETIMEDOUT` after the time to wait.
    pub(crate) fn flock(&self, key: u64, owner: u64, kind: LockKind, wait: LockWait) -> Result<(), Errno> {
        self.acquire(
            TableId { key, family: Family::Whole },
            LockRequest { owner, kind, range: WHOLE, quota: None },
            wait,
        )
    }

    /// Queues the request `number` of `owner` for `range`, or for the whole file (`None`), if the
    /// request conflicts; `granted` is called once the request is granted. Returns `None` if the
    /// request does not conflict: nothing was done.
    ///
    /// # Errors
    /// `EINVAL` for an empty range.
    pub(crate) fn park(
        &self,
        (key, owner, number): (u64, u64, u64),
        kind: LockKind,
        range: Option<Range<u64>>,
        quota: Option<&Arc<LockQuota>>,
        granted: Granted,
    ) -> Result<Option<ParkedLock>, Errno> {
        let family = if range.is_some() { Family::Ranges } else { Family::Whole };
        let range = range.unwrap_or(WHOLE);
        if range.is_empty() {
            return Err(Errno::EINVAL);
        }
        let request = LockRequest { owner, kind, range, quota: quota.cloned() };
        let mut granted = Some(granted);
        let is_parked = self.with(TableId { key, family }, |table| {
            let conflicting = granted.take_if(|_| table.has_conflict(&request));
            conflicting.map(|granted| table.park(request, number, granted)).is_some()
        });
        // A closure that was not parked is dropped without the lock.
        drop(granted);
        Ok(is_parked.then_some(ParkedLock { family, number }))
    }

    /// Withdraws a request that is parked on the file. `false`: it was granted, or withdrawn.
    pub(crate) fn unpark(&self, key: u64, parked: ParkedLock) -> bool {
        let id = TableId { key, family: parked.family };
        let waiter = self.with(id, |table| table.unpark(parked.number));
        waiter.is_some()
    }

    /// Releases all locks of `owner` on the file: its last close.
    #[cold]
    pub(crate) fn release_owner(&self, key: u64, owner: u64) {
        for family in [Family::Ranges, Family::Whole] {
            let release = |table: &mut LockTable| (table.withdraw_owner(owner), table.give_up(owner));
            let (withdrawn, granted) = self.with(TableId { key, family }, release);
            drop(withdrawn);
            granted.into_iter().for_each(Waiter::wake);
        }
    }

    fn acquire(&self, id: TableId, request: LockRequest, wait: LockWait) -> Result<(), Errno> {
        let deadline = match wait {
            LockWait::Never => None,
            LockWait::AtMost(timeout) => Some(Deadline::after(Some(timeout))),
            LockWait::Forever => Some(Deadline::after(None)),
        };
        let (answer, granted) = self.with(id, |table| {
            if let Err(errno) = table.check_quota(&request) {
                return (Err(errno), Vec::new());
            }
            if !table.has_conflict(&request) {
                return (Ok(None), table.grant(&request));
            }
            let granted = if id.family == Family::Whole { table.give_up(request.owner) } else { Vec::new() };
            (deadline.map(|deadline| Some((table.queue(request), deadline))).ok_or(Errno::EAGAIN), granted)
        });
        granted.into_iter().for_each(Waiter::wake);
        match answer? {
            None => Ok(()),
            Some((sleeper, deadline)) => self.sleep(id, &sleeper, deadline),
        }
    }

    #[inline]
    fn shard(&self, key: u64) -> &Shard {
        // Keys are addresses: their low bits hardly differ.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(hash >> (u64::BITS - SHARDS.ilog2())) as usize]
    }

    /// Calls `f` with the table `id` under the shard's lock. Removes the table if `f` left it empty.
    fn with<R>(&self, id: TableId, f: impl FnOnce(&mut LockTable) -> R) -> R {
        let mut tables = self.shard(id.key).tables.lock();
        let table = tables.entry(id).or_insert_with(|| LockTable::new(self.seed ^ id.key));
        let result = f(table);
        if table.is_empty() {
            tables.remove(&id);
        }
        result
    }

    /// Waits until the request was granted.
    #[cold]
    fn sleep(&self, id: TableId, sleeper: &Arc<Sleeper>, deadline: Deadline) -> Result<(), Errno> {
        while !sleeper.is_granted() && deadline.park(&sleeper.word, Sleeper::WAITING) {}
        // Under the shard's lock: the last owner's writes come before, and no thread grants a withdrawn
        // request.
        self.with(id, |table| {
            if sleeper.is_granted() {
                return Ok(());
            }
            table.withdraw(sleeper);
            Err(Errno::ETIMEDOUT)
        })
    }
}
