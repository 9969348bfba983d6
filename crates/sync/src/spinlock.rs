//! A spinlock around its data.
//!
//! # What it is
//! Test-and-test-and-set: one compare-exchange takes a free lock; a waiter reads until it looks free, so that it does
//! not take the line away from the holder, then tries again. For sections of tens of instructions: no I/O, no
//! allocation, no callback.
//!
//! # What it is not
//! Fair: waiters are not queued. It does not sleep (a waiter offers its CPU when the wait gets long), and a panic in a
//! section frees it without a mark (no poisoning). Where the word must be small and beside other state, see
//! [`LockRef`](crate::LockRef).
//!
//! # State
//! | byte    | meaning |
//! |---------|---------|
//! | `false` | free    |
//! | `true`  | held    |
//!
//! # Orderings
//! | here                         | partner                               |
//! |------------------------------|---------------------------------------|
//! | `try_lock`: cmpxchg, Acquire | `SpinLockGuard::drop`: store, Release |
//!
//! # Invariants
//! 1. `held` goes from `false` to `true` only in `try_lock`, and whoever did that has the one guard.
//! 2. Only a guard, or a `&mut SpinLock`, reaches the data.
//! 3. Only the guard's drop makes `held` `false` again, and the guard does not reach the data after that.
//!
//! # Source
//! L. Rudolph and Z. Segall, "Dynamic decentralized cache schemes for MIMD parallel processors" (ISCA 1984).
//!
//! ```
//! let total = sync::SpinLock::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use prim::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::hint::spin_until;
use prim::lockstat;

/// A spinlock around a `T`; see the module's description.
#[derive(Debug, Default)]
pub struct SpinLock<T> {
    held: AtomicBool,
    data: UnsafeCell<T>,
}

// SAFETY: by invariants 1 and 2 one thread at a time reaches the data, and it may take the `T` out: `T: Send`.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// A free lock around `data`.
    #[inline]
    #[must_use]
    pub fn new(data: T) -> Self {
        Self { held: AtomicBool::new(false), data: UnsafeCell::new(data) }
    }

    /// Takes the lock, spinning. A thread that holds it already waits for ever.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
    pub fn lock(&self) -> SpinLockGuard<'_, T> {
        loop {
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            lockstat::contended(self);
            // Relaxed: only a hint; the exchange in `try_lock` decides.
            spin_until(|| !self.held.load(Relaxed));
        }
    }

    /// Takes the lock if it is free.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
    pub fn try_lock(&self) -> Option<SpinLockGuard<'_, T>> {
        // ORDERING: Acquire pairs with the Release in `SpinLockGuard::drop`: this section follows the last one.
        self.held.compare_exchange(false, true, Acquire, Relaxed).ok()?;
        lockstat::acquired(self);
        Some(SpinLockGuard { lock: self, not_send: PhantomData })
    }

    /// The data; no lock is needed.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: invariant 2: `&mut self` excludes guards.
        self.data.with_mut(|data| unsafe { &mut *data })
    }

    /// Unwraps the data.
    #[inline]
    #[must_use]
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

/// A [`SpinLock`], held; given back on drop, also when unwinding.
#[must_use = "the lock is given back when the guard is dropped"]
pub struct SpinLockGuard<'a, T> {
    lock: &'a SpinLock<T>,
    /// Whoever took a spinning lock gives it back.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<T: Sync> Sync for SpinLockGuard<'_, T> {}

impl<T> Deref for SpinLockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariants 1 and 2: no other guard exists, and this one is only shared here.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T> DerefMut for SpinLockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariants 1 and 2: no other guard exists, and this one is borrowed alone.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T> Drop for SpinLockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        lockstat::released(self.lock);
        // ORDERING: Release pairs with the Acquire in `try_lock`: the next section follows this one.
        self.lock.held.store(false, Release);
    }
}

impl<T: core::fmt::Debug> core::fmt::Debug for SpinLockGuard<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn one_guard_at_a_time() {
        let mut lock = SpinLock::new(7);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert_eq!(lock.try_lock().map(|guard| *guard), Some(7));
        *lock.get_mut() = 8;
        assert_eq!(lock.into_inner(), 8);
    }

    #[test]
    fn increments_are_not_lost() {
        let lock = SpinLock::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..10_000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!(lock.into_inner(), 40_000);
    }

    #[test]
    fn a_panic_frees_the_lock() {
        let lock = SpinLock::new(0);
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        assert!(lock.try_lock().is_some());
    }
}
