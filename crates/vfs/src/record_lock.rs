//! Advisory locks on files: byte ranges and whole files, owned by an open file description.
//!
//! # What it is
//! The locks of `fcntl(2)`'s `F_OFD_SETLK`, `F_OFD_SETLKW` and `F_OFD_GETLK`, and those of `flock(2)`. A file's locks
//! are a table (`record_lock/table.rs`) of owners and of requests that wait; tables are found by the file's key, in
//! shards. A file without locks has no table, so it costs no memory, and [`RecordLocks::is_idle`] is one load. The two
//! families do not see each other, as on Linux.
//!
//! # What it is not
//! Mandatory, or known to reads and writes. Nor POSIX's per-process locks (`F_SETLK`), which go when the process closes
//! any descriptor of the file. No deadlock is found (`EDEADLK`): Linux does not look for one among owners that are open
//! file descriptions either. A wait has no signal to end it (`EINTR`): it has a deadline.
//!
//! # Fairness
//! Whoever gives up a lock hands the bytes over to those who wait, in the order in which they came, before anyone else
//! can ask; who wakes has its lock. A request that conflicts with no lock is never made to wait, not even behind an
//! older one that does: it could belong to a thread that the older one waits for, and Linux does not make it wait. So
//! readers that follow each other closely can keep a writer waiting for ever, and narrow requests a wide one.
//!
//! # How it is locked
//! Each shard has a mutex, a leaf: no other lock is taken under it, no two shards are locked at once, and threads are
//! woken after it was given back. Callers must hold no lock that the owner of a conflicting lock may need, for a
//! request can wait. What an owner did before it gave up a lock happens before what the next one does: both took the
//! shard's mutex, a woken waiter too.
//!
//! # Keys and owners
//! The key is the file's: the address of its inode, which an open file pins. The owner is an open file description: its
//! address. [`RecordLocks::release_owner`] comes when it is closed for the last time; none of its requests waits then,
//! for a thread that waits uses the file.
//!
//! # Where it comes from
//! `fcntl(2)`, `fcntl_locking(2)`, `flock(2)`; the file lock code of Linux, `fs/locks.c`, for what they leave open.
//!
//! # Limitations
//! The number of locks has no bound (`ENOLCK`).

mod ranges;
mod table;
#[cfg(test)]
mod tests;

use crate::deadline::Deadline;
use crate::errno::Errno;
use core::ops::Range;
use core::time::Duration;
use prim::atomic::{AtomicUsize, Ordering::Relaxed};
use prim::shared::Arc;
use std::collections::BTreeMap;
use sync::Mutex;
use table::{Request, Sleeper, Table};

/// Shards of one tree; a power of two.
const SHARDS: usize = 32;

/// Every byte that a file can have, and all that it may get.
const WHOLE: Range<u64> = 0..u64::MAX;

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockKind {
    /// With others that share: `F_RDLCK`, `LOCK_SH`.
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
    /// First byte after it; `u64::MAX`: however long the file becomes.
    pub end: u64,
}

/// What to do about a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LockWait {
    /// Answer `EAGAIN`: `F_OFD_SETLK`, `LOCK_NB`.
    Never,
    /// Wait, and answer `ETIMEDOUT` after this time.
    AtMost(Duration),
    /// Wait: `F_OFD_SETLKW`.
    Forever,
}

/// Which locks see each other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Family {
    /// `fcntl(2)`.
    Ranges,
    /// `flock(2)`: a lock is one of all bytes.
    Whole,
}

type Tables = BTreeMap<(u64, Family), Table>;

#[derive(Debug, Default)]
struct Shard {
    /// How many tables there are.
    count: AtomicUsize,
    tables: Mutex<Tables>,
}

/// The advisory locks of one tree's files.
#[derive(Debug)]
pub(crate) struct RecordLocks {
    shards: [Shard; SHARDS],
}

impl RecordLocks {
    pub(crate) fn new() -> Self {
        Self { shards: core::array::from_fn(|_| Shard::default()) }
    }

    /// Whether no file in the shard of the file `key` has a lock. Sure for whoever asks about locks of its own.
    #[inline]
    pub(crate) fn is_idle(&self, key: u64) -> bool {
        // Relaxed: an owner's locks are counted before its last close begins, and until it gives them up.
        self.shard(key).count.load(Relaxed) == 0
    }

    /// Makes `kind` the owner's lock on the bytes of `range`, whatever it had on them; all of it or nothing.
    /// `u64::MAX` as the end means all bytes to come.
    ///
    /// # Errors
    /// `EINVAL` for an empty range; where another owner's lock conflicts, `EAGAIN`, or `ETIMEDOUT` after the time to
    /// wait.
    pub(crate) fn set(
        &self,
        key: u64,
        owner: u64,
        kind: LockKind,
        range: Range<u64>,
        wait: LockWait,
    ) -> Result<(), Errno> {
        if range.is_empty() {
            return Err(Errno::EINVAL);
        }
        self.ask((key, Family::Ranges), Request { owner, kind, range }, wait)
    }

    /// The lock of another owner that keeps `owner` from `kind` on `range`: of several the one that begins first.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, or for `Unlock`, which nothing keeps from.
    pub(crate) fn test(
        &self,
        key: u64,
        owner: u64,
        kind: LockKind,
        range: Range<u64>,
    ) -> Result<Option<LockInfo>, Errno> {
        if range.is_empty() || kind == LockKind::Unlock {
            return Err(Errno::EINVAL);
        }
        let tables = self.shard(key).tables.lock();
        let table = tables.get(&(key, Family::Ranges));
        Ok(table.and_then(|table| table.first_conflict(&Request { owner, kind, range })))
    }

    /// Makes `kind` the owner's lock on the file as a whole.
    ///
    /// A conversion that must wait, or fails, gives up the lock that the owner had: `flock(2)` does not promise that it
    /// is one step. One that meets no conflict is.
    ///
    /// # Errors
    /// Where another owner's lock conflicts, `EAGAIN`, or `ETIMEDOUT` after the time to wait.
    pub(crate) fn flock(&self, key: u64, owner: u64, kind: LockKind, wait: LockWait) -> Result<(), Errno> {
        self.ask((key, Family::Whole), Request { owner, kind, range: WHOLE }, wait)
    }

    /// Gives up all locks that `owner` has on the file: its last close.
    #[inline]
    pub(crate) fn release_owner(&self, key: u64, owner: u64) {
        if !self.is_idle(key) {
            self.release(key, owner);
        }
    }

    #[cold]
    fn release(&self, key: u64, owner: u64) {
        let shard = self.shard(key);
        let mut granted = Vec::new();
        let mut tables = shard.tables.lock();
        for id in [(key, Family::Ranges), (key, Family::Whole)] {
            if let Some(table) = tables.get_mut(&id) {
                granted.extend(table.give_up(owner));
                shard.settle(&mut tables, id);
            }
        }
        drop(tables);
        granted.iter().for_each(|sleeper| sleeper.wake());
    }

    fn ask(&self, id: (u64, Family), request: Request, wait: LockWait) -> Result<(), Errno> {
        let deadline = match wait {
            LockWait::Never => None,
            LockWait::AtMost(timeout) => Some(Deadline::after(Some(timeout))),
            LockWait::Forever => Some(Deadline::after(None)),
        };
        let shard = self.shard(id.0);
        let (answer, granted) = shard.with(id, |table| {
            if !table.has_conflict(&request) {
                return (Ok(None), table.grant(&request));
            }
            let granted = if id.1 == Family::Whole { table.give_up(request.owner) } else { Vec::new() };
            (deadline.map(|deadline| Some((table.queue(request), deadline))).ok_or(Errno::EAGAIN), granted)
        });
        granted.iter().for_each(|sleeper| sleeper.wake());
        match answer? {
            None => Ok(()),
            Some((sleeper, deadline)) => shard.sleep(id, &sleeper, deadline),
        }
    }

    #[inline]
    fn shard(&self, key: u64) -> &Shard {
        // Keys are addresses: their low bits say little.
        let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.shards[(hash >> (u64::BITS - SHARDS.ilog2())) as usize]
    }
}

impl Shard {
    /// Calls `f` with the table `id` under the shard's lock.
    fn with<R>(&self, id: (u64, Family), f: impl FnOnce(&mut Table) -> R) -> R {
        let mut tables = self.tables.lock();
        let result = f(tables.entry(id).or_default());
        self.settle(&mut tables, id);
        result
    }

    /// After a change to the table `id`: an empty one does not stay.
    fn settle(&self, tables: &mut Tables, id: (u64, Family)) {
        if tables.get(&id).is_some_and(Table::is_empty) {
            tables.remove(&id);
        }
        // Relaxed: written under the lock; `RecordLocks::is_idle` says why its load may be.
        self.count.store(tables.len(), Relaxed);
    }

    /// Waits until the request was granted.
    #[cold]
    fn sleep(&self, id: (u64, Family), sleeper: &Arc<Sleeper>, deadline: Deadline) -> Result<(), Errno> {
        while !sleeper.is_granted() && deadline.park(&sleeper.word, Sleeper::WAITING) {}
        // Under the shard's lock: what the last owner did comes before, and nobody grants what is taken back.
        self.with(id, |table| {
            if sleeper.is_granted() {
                return Ok(());
            }
            table.leave(sleeper);
            Err(Errno::ETIMEDOUT)
        })
    }
}
