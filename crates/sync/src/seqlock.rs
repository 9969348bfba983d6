//! A sequence lock: a [`SeqCount`] whose odd value is also the writers' lock.
//!
//! # What it is
//! One 32-bit word. A writer changes the word from even to odd by a compare-exchange, so writers
//! exclude one another; readers store nothing and validate, as with a sequence count. `rename_lock`
//! and `mount_lock` have this shape.
//!
//! # What it is not
//! A lock for readers: they never exclude a writer and may have to read again for ever under a
//! stream of writers. It holds no data (there is no `SeqLock<T>`): the caller's data is Relaxed
//! atomics or is behind RCU, because a plain `T` read while it is written would be a data race.
//! Writers spin: do not sleep in a write section.
//!
//! # State
//! | bits 31..1      | bit 0                   |
//! |-----------------|-------------------------|
//! | finished writes | 1: a writer holds it    |
//!
//! # Orderings
//! As in [`SeqCount`]: its `try_write_begin` is the writers' lock.
//!
//! # Source
//! Linux's `seqlock_t`, `Documentation/locking/seqlock.rst`; fences as in [`SeqCount`].
//!
//! # Limitations
//! As for the sequence count: exactly 2^31 writes between sample and check are not noticed. Writers
//! are not queued.
//!
//! ```
//! use prim::atomic::{AtomicU32, Ordering::Relaxed};
//! use lightfoot_sync::SeqLock;
//!
//! let (lock, a, b) = (SeqLock::new(), AtomicU32::new(0), AtomicU32::new(0));
//! {
//!     let _writer = lock.write_lock();
//!     a.store(1, Relaxed);
//!     b.store(1, Relaxed);
//! }
//! assert_eq!(lock.read(|| (a.load(Relaxed), b.load(Relaxed))), (1, 1));
//! ```

use crate::seqcount::SeqCount;
use core::marker::PhantomData;
use prim::lockstat;
use prim::profile::{Tag, scope};

/// A sequence lock; see the module's description. 4 bytes.
///
/// Source: Linux's `seqlock_t`, which keeps a spinlock beside the count; here the odd count is the lock.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SeqLock(SeqCount);

impl SeqLock {
    /// Returns a free lock.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self(SeqCount::new())
    }

    /// Samples the count without waiting. While a writer is at work the sample is the count before it, so that
    /// [`read_retry`](Self::read_retry) returns `true`.
    #[inline(always)]
    #[must_use]
    pub fn raw_begin(&self) -> u32 {
        self.0.raw_begin()
    }

    /// Returns whether the values read since the sample `start` must be thrown away: a writer was
    /// at work then, or has come since.
    #[inline(always)]
    #[must_use]
    pub fn read_retry(&self, start: u32) -> bool {
        self.0.retry(start)
    }

    /// Calls `f` until no writer came while it ran, and returns its last result. `f` may see torn data, so it must only
    /// read.
    #[inline(always)]
    pub fn read<R>(&self, mut f: impl FnMut() -> R) -> R {
        loop {
            let start = self.0.begin();
            let value = f();
            if !self.read_retry(start) {
                return value;
            }
        }
    }

    /// Takes the writers' lock, spinning.
    #[must_use = "the lock is released when the guard is dropped"]
    #[inline(always)]
    pub fn write_lock(&self) -> SeqLockGuard<'_> {
        let _scope = scope(Tag::SeqLock);
        loop {
            if let Some(guard) = self.try_write_lock() {
                return guard;
            }
            lockstat::contended(self);
            self.0.await_even();
        }
    }

    /// Takes the writers' lock if it is free.
    #[inline]
    fn try_write_lock(&self) -> Option<SeqLockGuard<'_>> {
        let _scope = scope(Tag::SeqLock);
        self.0.try_write_begin().then(|| {
            lockstat::acquired(self);
            SeqLockGuard { lock: self, not_send: PhantomData }
        })
    }
}

/// The guard of the writers' lock of a [`SeqLock`]; its drop, also during a panic, releases the
/// lock.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct SeqLockGuard<'a> {
    lock: &'a SeqLock,
    /// The thread that took a spinning lock releases it.
    not_send: PhantomData<*const ()>,
}

impl Drop for SeqLockGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        lockstat::released(self.lock);
        self.lock.0.write_end();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use prim::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn it_is_four_bytes() {
        assert_eq!(size_of::<SeqLock>(), 4);
    }

    #[test]
    fn a_writer_excludes_writers_and_makes_readers_retry() {
        let lock = SeqLock::new();
        let start = lock.0.begin();
        let guard = lock.write_lock();
        assert!(lock.try_write_lock().is_none());
        assert!(lock.read_retry(start));
        assert!(lock.read_retry(lock.raw_begin()), "a sample taken during a write is never good");
        drop(guard);
        assert!(lock.read_retry(start));
        assert_eq!(lock.0.begin(), 2);
        assert!(lock.try_write_lock().is_some());
    }

    #[test]
    fn the_count_wraps() {
        let lock = SeqLock(SeqCount::at(u32::MAX - 1));
        drop(lock.write_lock());
        assert_eq!(lock.0.begin(), 0);
    }

    #[test]
    fn readers_never_see_a_torn_pair() {
        let (lock, a, b) = (SeqLock::new(), AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..5_000 {
                        let _writer = lock.write_lock();
                        let next = a.load(Relaxed) + 1;
                        a.store(next, Relaxed);
                        b.store(next, Relaxed);
                    }
                });
            }
            let mut last = 0;
            while last < 10_000 {
                let (x, y) = lock.read(|| (a.load(Relaxed), b.load(Relaxed)));
                assert_eq!(x, y);
                assert!(x >= last);
                last = x;
            }
        });
    }
}
