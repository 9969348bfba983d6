//! A test-and-test-and-set lock: the simplest spinlock.
//!
//! # What it is
//! One byte. One compare-exchange takes a free lock. A waiter reads the byte until the lock looks
//! free, so that it does not take the cache line away from the holder; then it tries again. For
//! sections of tens of instructions: no I/O, no allocation, no callback.
//!
//! # What it is not
//! Fair: waiters are not queued, and the thread nearest to the holder's cache wins. It does not sleep (a waiter yields
//! its CPU when the wait gets long). Where the word must be small and beside other state, see
//! [`LockRef`](crate::LockRef).
//!
//! # State
//! | byte    | meaning |
//! |---------|---------|
//! | `false` | free    |
//! | `true`  | held    |
//!
//! # Orderings
//! | here                         | partner                  |
//! |------------------------------|--------------------------|
//! | `try_take`: cmpxchg, Acquire | `unlock`: store, Release |
//!
//! # Invariants
//! 1. `held` changes from `false` to `true` only in `try_take`, and the thread that changed it has
//!    the lock.
//! 2. Only the holder makes it `false` again.
//!
//! # Source
//! L. Rudolph and Z. Segall, "Dynamic decentralized cache schemes for MIMD parallel processors" (ISCA 1984).
//!
//! ```
//! let total = lightfoot_sync::SpinLock::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use crate::lock::{Lock, LockGuard, RawLock, through_lock_api};
use prim::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};

/// The lock byte alone; see the module's description.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct TasLock {
    held: AtomicBool,
}

/// A spinning lock around a `T`: the crate's choice where sections are short and contention is rare.
pub type SpinLock<T> = Lock<TasLock, T>;

/// A [`SpinLock`], held.
pub type SpinLockGuard<'a, T> = LockGuard<'a, TasLock, T>;

// SAFETY: invariants 1 and 2 exclude, and the orderings of the module's table make a section follow the last one.
unsafe impl RawLock for TasLock {
    #[inline]
    fn new() -> Self {
        Self { held: AtomicBool::new(false) }
    }

    #[inline]
    fn lock(&self) {
        let _scope = scope(Tag::SpinLock);
        while !self.try_take() {
            lockstat::contended(self);
            // Relaxed: only a hint; the exchange in `try_take` decides.
            spin_until(|| !self.held.load(Relaxed));
        }
        lockstat::acquired(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let _scope = scope(Tag::SpinLock);
        let taken = self.try_take();
        if taken {
            lockstat::acquired(self);
        }
        taken
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        lockstat::released(self);
        // ORDERING: Release pairs with the Acquire in `try_take`: the next section follows this one.
        self.held.store(false, Release);
    }
}

impl TasLock {
    #[inline]
    fn try_take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        self.held.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }
}

through_lock_api!(TasLock, Self { held: AtomicBool::new(false) });
