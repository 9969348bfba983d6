//! A lock that sleeps: four bytes, one compare-exchange to take, one swap to release.
//!
//! # What it is
//! [`RawMutex`] is the bare word; [`Mutex`] puts it around its data, which may be `()`. A waiter spins briefly while
//! the lock is held without sleepers, then parks on the word. The third state keeps a release without sleepers free of
//! system calls.
//!
//! # What it is not
//! Fair: a newcomer may overtake a woken sleeper. A panic in a section frees it without a mark (no poisoning).
//!
//! # State
//! | word | meaning                                          |
//! |------|--------------------------------------------------|
//! | 0    | free                                             |
//! | 1    | held, no sleepers                                |
//! | 2    | held, maybe with sleepers: `unlock` wakes one    |
//! | 3    | free, but lent: `try_lock` refuses               |
//!
//! An owner may *lend* the protected data to other threads, which exclude one another in another
//! way: [`LockGuard::lend`] releases the lock so that [`Lock::try_lock`] fails after it.
//! [`Lock::lock`] takes the lock as before the loan, and its caller must then end the loan.
//!
//! # Orderings
//! | here                                      | partner                    |
//! |-------------------------------------------|----------------------------|
//! | `RawMutex::try_lock`: cmpxchg, Acquire    | `release`: swap, Release   |
//! | `RawMutex::try_end`: cmpxchg, Acquire     | `release`: swap, Release   |
//! | `RawMutex::lock_slow`: swap, Acquire      | `release`: swap, Release   |
//!
//! No wake is lost: a sleeper swaps in 2 and parks while the word is 2. Every change away from 2 is by `release`, which
//! sees the 2 that it took out and wakes one sleeper. That sleeper swaps in 2 again, for there may be others.
//!
//! # Invariants
//! 1. The word leaves 0 and 3 only in `try_lock`, `try_end` and `lock_slow`; the thread that changed it holds the lock.
//! 2. The word becomes 0 or 3 only in `release`, which only the holder may call.
//!
//! # Source
//! Ulrich Drepper, "Futexes Are Tricky" (2011), mutex 3.
//!
//! # Limitations
//! `unlock` may wake a sleeper on the word's address after the next holder freed its memory: a spurious wake, which
//! every parking loop must allow for anyway.
//!
//! ```
//! let names = lightfoot_sync::Mutex::new(vec!["a"]);
//! names.lock().push("b");
//! assert_eq!(names.into_inner(), ["a", "b"]);
//! ```

use crate::lock::{Lock, LockGuard, RawLock, through_lock_api};
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until_bounded;
use prim::profile::{Tag, scope};
use prim::{lockstat, park};

const FREE: u32 = 0;
const HELD: u32 = 1;
const SLEEPERS: u32 = 2;
const LENT: u32 = 3;

/// Pauses a waiter spends before it parks: about what a park and a wake cost. (None under loom: each is a branch.)
const TURNS: u32 = if cfg!(loom) { 0 } else { 100 };

/// The lock word alone; see the module's description. 4 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RawMutex(AtomicU32);

/// A sleeping lock around a `T`.
pub type Mutex<T> = Lock<RawMutex, T>;

/// A [`Mutex`], held.
pub type MutexGuard<'a, T> = LockGuard<'a, RawMutex, T>;

// SAFETY: invariants 1 and 2 exclude, and the orderings of the module's table make a section follow the last one.
unsafe impl RawLock for RawMutex {
    #[inline]
    fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    #[inline]
    fn lock(&self) {
        if !self.try_lock() {
            self.lock_slow();
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `release`: this section follows the last one.
        let taken = self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok();
        if taken {
            lockstat::acquired(self);
        }
        taken
    }

    fn lock_taken(&self) {
        self.lock_slow();
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        self.release(FREE);
    }
}

impl RawMutex {
    #[inline]
    fn release(&self, word: u32) {
        lockstat::released(self);
        // ORDERING: Release pairs with the Acquire in `try_lock`, that in `try_end` and that in `lock_slow`: the next section
        // follows this one.
        if self.0.swap(word, Release) == SLEEPERS {
            park::unpark_one(&self.0);
        }
    }

    /// Takes the lock if it is lent.
    fn try_end(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `release`: this section follows the last one.
        let taken = self.0.compare_exchange(LENT, HELD, Acquire, Relaxed).is_ok();
        if taken {
            lockstat::acquired(self);
        }
        taken
    }

    #[cold]
    fn lock_slow(&self) {
        if self.try_end() {
            return;
        }
        let _scope = scope(Tag::Mutex);
        lockstat::contended(self);
        // Relaxed: only a hint; the exchanges below decide. Where others sleep already, spinning gains nothing.
        spin_until_bounded(TURNS, || self.0.load(Relaxed) != HELD);
        if self.try_lock() || self.try_end() {
            return;
        }
        // ORDERING: Acquire pairs with the Release in `release`: this section follows the last one.
        while !matches!(self.0.swap(SLEEPERS, Acquire), FREE | LENT) {
            park::park(&self.0, SLEEPERS);
        }
        lockstat::acquired(self);
    }
}

impl<T> Mutex<T> {
    /// Returns whether the lock is free and not lent: a look without a store to its line, which a
    /// failed [`Lock::try_lock`] makes.
    #[inline(always)]
    #[must_use]
    pub fn is_free(&self) -> bool {
        // Relaxed: a hint.
        self.raw().0.load(Relaxed) == FREE
    }

    /// Takes the lock if it is free and lent.
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_end(&self) -> Option<MutexGuard<'_, T>> {
        // SAFETY: taken just now, and this is the one guard.
        self.raw().try_end().then(|| unsafe { self.guard_again() })
    }
}

impl<T> MutexGuard<'_, T> {
    /// Releases the lock, and lends the data: [`Lock::try_lock`] refuses until a thread took the
    /// lock by [`Lock::lock`] or [`Mutex::try_end`] and released it by dropping the guard.
    pub fn lend(guard: Self) {
        core::mem::ManuallyDrop::new(guard).raw().release(LENT);
    }
}

through_lock_api!(RawMutex, Self(AtomicU32::new(FREE)));

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_four_bytes() {
        assert_eq!(size_of::<RawMutex>(), 4);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let lock = RawMutex::new();
        lock.lock();
        std::thread::scope(|s| {
            s.spawn(|| {
                lock.lock();
                // SAFETY: taken above.
                unsafe { lock.unlock() };
            });
            while lock.0.load(Relaxed) != SLEEPERS {
                std::thread::yield_now();
            }
            // SAFETY: taken above.
            unsafe { lock.unlock() };
        });
        assert!(lock.try_lock());
    }
}
