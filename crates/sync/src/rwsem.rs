//! A reader/writer lock that sleeps: Linux's rwsem of the years before and after July 2018.
//!
//! # What it is
//! [`RwSem`] holds a `T`; [`RawRwSem`] is the lock alone, for use inside other objects. Readers come in by one
//! fetch-add on a count that all share. A thread that cannot come in queues and sleeps, first come first served; the
//! last holder to leave hands the lock to the first writer, or to all readers in front of the first writer. Before it
//! queues, a writer spins for a moment while another writer is in. There are timeouts, and a writer can become a reader
//! ([`downgrade`](RwSemWriteGuard::downgrade)).
//!
//! # The slow path of readers
//! While a thread queues, a mark in the count sends each new reader to the queue, so that writers
//! do not starve. A reader may get there in vain: when it has the wait lock, the writer that was in
//! its way has left and the queue is empty. Until 2018 such a reader queued all the same and raised
//! the mark. The mark sent later readers to the queue, and each of them kept the mark up for
//! others. With many readers and an occasional writer the queue never emptied. Since 2018 such a
//! reader comes in at once: its share is in the count already. [`EarlyExit`] does that;
//! [`AlwaysQueue`] is the old way, kept for comparison. [`RawRwSem::stats`] counts both cases.
//!
//! # What it is not
//! Recursive: a thread that is in as a reader and comes again deadlocks if a writer queued in between. Scalable for
//! readers: all add to one count; where that hurts, see [`PerCpuRwLock`](crate::PerCpuRwLock) or [`rcu`](crate::rcu).
//! Poisoning: a panic in a section only releases the lock.
//!
//! # Fairness
//! Newcomers do not come in before queued threads, with one exception: a spinning writer may take a lock that was just
//! released before the head of the queue, which must first be woken, has it. That can happen to the head of the queue
//! once; then `HANDOFF` is set, and only the head comes in.
//!
//! # State, orderings, invariants
//! `rwsem/raw.rs` has the count and `rwsem/queue.rs` the waiters, each with its tables. Of this file:
//! 1. The data is reached through read guards, or through one write guard, or through `&mut RwSem`.
//!    A guard exists exactly while its share of [`RawRwSem`] is held.
//!
//! # Source
//! Linux 4.17's `rwsem-xadd.c`: count word by Andi Kleen, David Howells and others; spinning and
//! stealing by Tim Chen, Davidlohr Bueso, Waiman Long (2014); the early exit is Waiman Long,
//! "locking/rwsem: Exit read lock slowpath if queue empty & no writer" (July 2018). Two
//! differences: a queued writer is handed the lock instead of being woken to compete for it, and
//! the lock is handed off after one theft, which Linux has in another form since 2019. No code was
//! taken.
//!
//! # Limitations
//! A spinning writer cannot find out whether the holder runs, so it spins for a fixed number of
//! pauses, and it does not queue behind other spinners. A timeout is checked only before each
//! sleep: it does not bound the wait lock and the wait for a granter's last access to the waiter's
//! node.
//!
//! ```
//! use core::time::Duration;
//!
//! let table = lightfoot_sync::RwSem::new(vec![1]);
//! let mut writer = table.write();
//! writer.push(2);
//! let reader = writer.downgrade();
//! assert_eq!(table.read().len(), 2);
//! assert!(table.try_write_for(Duration::from_micros(1)).is_none());
//! drop(reader);
//! assert_eq!(table.into_inner(), [1, 2]);
//! ```

mod queue;
mod raw;

pub use raw::RawRwSem;

use crate::lock::RawLock;
use crate::tas::TasLock;
use core::fmt;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::time::Duration;
use prim::cell::UnsafeCell;

/// The actions of a semaphore off the fast path.
pub trait SlowPath {
    /// Whether a reader that finds no writer and an empty queue comes in at once, without raising the waiting mark.
    const EARLY_EXIT: bool;
    /// The lock around the queue.
    type WaitLock: RawLock;
}

/// A reader that nothing keeps out any more comes in at once. Source: Waiman Long, July 2018.
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlyExit;

/// A reader that reaches the slow path always queues, as Linux did until 4.18. For comparison.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysQueue;

impl SlowPath for EarlyExit {
    const EARLY_EXIT: bool = true;
    type WaitLock = TasLock;
}

impl SlowPath for AlwaysQueue {
    const EARLY_EXIT: bool = false;
    type WaitLock = TasLock;
}

/// Counts of events on the slow paths of a [`RawRwSem`] since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RwSemStats {
    /// Readers that took the wait lock.
    pub read_slow: u64,
    /// Of them: readers that nothing kept out any more and that came in at once ([`EarlyExit`]
    /// only).
    pub early_exits: u64,
    /// Writers that came in by spinning, without the wait lock.
    pub spun: u64,
    /// Writers that queued.
    pub write_slow: u64,
    /// Times that readers were let in from the queue.
    pub read_batches: u64,
    /// Readers let in from the queue.
    pub reads_granted: u64,
    /// Writers let in from the queue.
    pub writes_granted: u64,
    /// Readers and writers that gave up waiting.
    pub timed_out: u64,
}

/// A sleeping reader/writer lock around a `T`; see the module's description.
pub struct RwSem<T, P: SlowPath = EarlyExit> {
    raw: RawRwSem<P>,
    data: UnsafeCell<T>,
}

// SAFETY: by invariant 1 the data is shared by readers (`T: Sync`) or reached by one writer, which may take the `T` out
// (`T: Send`).
unsafe impl<T: Send + Sync, P: SlowPath> Sync for RwSem<T, P> {}

impl<T> RwSem<T> {
    /// Returns a free lock around `data`.
    #[must_use]
    pub fn new(data: T) -> Self {
        Self::with_slow_path(data)
    }
}

impl<T, P: SlowPath> RwSem<T, P> {
    /// Returns a free lock around `data` with a chosen slow path: `RwSem::<_,
    /// AlwaysQueue>::with_slow_path(data)`.
    #[must_use]
    pub fn with_slow_path(data: T) -> Self {
        Self { raw: RawRwSem::default(), data: UnsafeCell::new(data) }
    }

    /// Comes in as a reader, sleeping if need be. Not recursive.
    ///
    /// # Panics
    /// As [`RawRwSem::read_lock`].
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn read(&self) -> RwSemReadGuard<'_, T, P> {
        self.raw.read_lock();
        self.reader()
    }

    /// As [`read`](Self::read), if that needs no waiting.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_read(&self) -> Option<RwSemReadGuard<'_, T, P>> {
        self.raw.try_read_lock().then(|| self.reader())
    }

    /// As [`read`](Self::read), for about `timeout` at most.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_read_for(&self, timeout: Duration) -> Option<RwSemReadGuard<'_, T, P>> {
        self.raw.try_read_lock_for(timeout).then(|| self.reader())
    }

    /// Comes in as the writer, sleeping if need be.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn write(&self) -> RwSemWriteGuard<'_, T, P> {
        self.raw.write_lock();
        self.writer()
    }

    /// As [`write`](Self::write), if no thread is in or queued.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_write(&self) -> Option<RwSemWriteGuard<'_, T, P>> {
        self.raw.try_write_lock().then(|| self.writer())
    }

    /// As [`write`](Self::write), for about `timeout` at most.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_write_for(&self, timeout: Duration) -> Option<RwSemWriteGuard<'_, T, P>> {
        self.raw.try_write_lock_for(timeout).then(|| self.writer())
    }

    /// Counts of events on the slow paths so far.
    #[must_use]
    pub fn stats(&self) -> RwSemStats {
        self.raw.stats()
    }

    /// Returns the data; no lock is needed.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: invariant 1: `&mut self` excludes guards.
        self.data.with_mut(|data| unsafe { &mut *data })
    }

    /// Unwraps the data.
    #[inline]
    #[must_use]
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }

    /// Returns the guard of a thread that just came in as a reader.
    #[inline]
    fn reader(&self) -> RwSemReadGuard<'_, T, P> {
        RwSemReadGuard { sem: self, not_send: PhantomData }
    }

    /// Returns the guard of a thread that just came in as the writer.
    #[inline]
    fn writer(&self) -> RwSemWriteGuard<'_, T, P> {
        RwSemWriteGuard { sem: self, not_send: PhantomData }
    }
}

impl<T: Default, P: SlowPath> Default for RwSem<T, P> {
    fn default() -> Self {
        Self::with_slow_path(T::default())
    }
}

/// The guard of a [`RwSem`] held for reading; its drop, also during a panic, releases the lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwSemReadGuard<'a, T, P: SlowPath = EarlyExit> {
    sem: &'a RwSem<T, P>,
    /// The thread that took the lock releases it, so that lock ranks can be checked per thread.
    not_send: PhantomData<*const ()>,
}

/// The guard of a [`RwSem`] held for writing; its drop, also during a panic, releases the lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct RwSemWriteGuard<'a, T, P: SlowPath = EarlyExit> {
    sem: &'a RwSem<T, P>,
    /// As in [`RwSemReadGuard`].
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard lends `&T` only.
unsafe impl<T: Sync, P: SlowPath> Sync for RwSemReadGuard<'_, T, P> {}
// SAFETY: a shared guard lends `&T` only.
unsafe impl<T: Sync, P: SlowPath> Sync for RwSemWriteGuard<'_, T, P> {}

impl<'a, T, P: SlowPath> RwSemWriteGuard<'a, T, P> {
    /// Becomes a reader. No other writer comes in between, and readers at the head of the queue come in.
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn downgrade(self) -> RwSemReadGuard<'a, T, P> {
        let sem = ManuallyDrop::new(self).sem;
        // SAFETY: invariant 1: the guard was a writer's, and ends here without releasing the lock.
        unsafe { sem.raw.downgrade() };
        sem.reader()
    }
}

impl<T, P: SlowPath> Deref for RwSemReadGuard<'_, T, P> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 1: there are read guards only.
        self.sem.data.with(|data| unsafe { &*data })
    }
}

impl<T, P: SlowPath> Deref for RwSemWriteGuard<'_, T, P> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 1: no other guard exists, and this one is only shared here.
        self.sem.data.with(|data| unsafe { &*data })
    }
}

impl<T, P: SlowPath> DerefMut for RwSemWriteGuard<'_, T, P> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariant 1: no other guard exists, and this one is borrowed alone.
        self.sem.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T, P: SlowPath> Drop for RwSemReadGuard<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariant 1: the guard was made by a thread that came in as a reader, and ends here.
        unsafe { self.sem.raw.read_unlock() };
    }
}

impl<T, P: SlowPath> Drop for RwSemWriteGuard<'_, T, P> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariant 1: the guard was made by a thread that came in as the writer, and ends here.
        unsafe { self.sem.raw.write_unlock() };
    }
}

impl<T: fmt::Debug, P: SlowPath> fmt::Debug for RwSemReadGuard<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug, P: SlowPath> fmt::Debug for RwSemWriteGuard<'_, T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Does not take the lock, so does not print the data.
impl<T, P: SlowPath> fmt::Debug for RwSem<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwSem").field("raw", &self.raw).finish_non_exhaustive()
    }
}
