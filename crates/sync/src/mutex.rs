//! A lock that sleeps: four bytes, one compare-exchange to take, one to release.
//!
//! # What it is
//! [`RawMutex`] is the bare word; [`Mutex`] puts it around its data, which may be `()`. A waiter spins briefly while
//! the lock is held without sleepers, then parks on the word. The third state keeps a release without sleepers free of
//! system calls.
//!
//! A newcomer may pass a woken sleeper, since a lock that always waits for its sleepers is idle while they wake up. But
//! a sleeper that was passed `PASSES` times requests the lock: the next release hands it over, and only a thread that
//! has slept takes it. So a thread that takes the lock again and again does not starve the sleepers.
//!
//! # What it is not
//! First come, first served: of the sleepers, the one that wakes first takes the lock. A panic in a section frees it
//! without a mark (no poisoning).
//!
//! # State
//! | word | meaning                                                         |
//! |------|-----------------------------------------------------------------|
//! | 0    | free                                                            |
//! | 1    | held, no sleepers                                               |
//! | 2    | held, maybe with sleepers: `unlock` wakes one                   |
//! | 3    | free, but lent: `try_lock` refuses                              |
//! | 4    | held, and a sleeper was passed often: `unlock` hands over       |
//! | 5    | handed over: free for a thread that has slept, for no other one |
//!
//! An owner may *lend* the protected data to other threads, which exclude one another in another
//! way: [`LockGuard::lend`] releases the lock so that [`Lock::try_lock`] fails after it.
//! [`Lock::lock`] takes the lock as before the loan, and its caller must then end the loan. (A lock that is handed over
//! refuses `try_lock` as well, so a loan may be a handover.)
//!
//! # Orderings
//! | here                                    | partner                                                       |
//! |-----------------------------------------|---------------------------------------------------------------|
//! | `RawMutex::try_lock`: cmpxchg, Acquire  | `release`: cmpxchg, Release; `release_slow`: swap, Release    |
//! | `RawMutex::try_end`: cmpxchg, Acquire   | the same                                                      |
//! | `RawMutex::lock_slow`: cmpxchg, Acquire | the same                                                      |
//!
//! No wake is lost: a sleeper makes the word 2 or 4 and parks while the word is as it was. Every change of such a word to
//! 0, 3 or 5 is by `release_slow`, which wakes one sleeper. That sleeper makes the word 2 when it takes the lock, and 2 or 4
//! before it parks again, for there may be others.
//!
//! A lock that is handed over is taken: a thread that makes the word 4 leaves `lock_slow` only with the lock. While the
//! word is 4 only the holder changes it. So when it becomes 5, this thread is about to park, which fails as the word is
//! another one, or is awake, or sleeps. In the last case the release wakes it, or another sleeper; each of them takes
//! the lock unless another one has.
//!
//! # Invariants
//! 1. The word leaves 0, 3 and 5 only in `try_lock`, `try_end` and `lock_slow`; the thread that changed it holds the
//!    lock.
//! 2. The word becomes 0, 3 or 5 only in `release`, which only the holder may call.
//!
//! # Source
//! Ulrich Drepper, "Futexes Are Tricky" (2011), mutex 3. The handover: Linux's `MUTEX_FLAG_HANDOFF` (2016), and the
//! starvation mode of Go's `sync.Mutex`.
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
const PASSED: u32 = 4;
const HANDED: u32 = 5;

/// How often other threads pass a sleeper before it requests the lock.
const PASSES: u32 = if cfg!(loom) { 1 } else { 8 };

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
            self.lock_slow(&mut || false);
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
        self.lock_slow(&mut || false);
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
        if let Err(held) = self.0.compare_exchange(HELD, word, Release, Relaxed) {
            self.release_slow(if held == PASSED { HANDED } else { word });
        }
    }

    /// Releases a lock that may have sleepers.
    #[cold]
    fn release_slow(&self, word: u32) {
        // ORDERING: Release pairs with the Acquire in `try_lock`, that in `try_end` and that in `lock_slow`: the next section
        // follows this one.
        self.0.swap(word, Release);
        park::unpark_one(&self.0);
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

    /// Takes a lock that is held. Calls `passed` each time that this thread woke and another one had the lock; if it
    /// returns `true`, requests the lock at once.
    #[cold]
    fn lock_slow(&self, passed: &mut dyn FnMut() -> bool) {
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
        let (mut passes, mut requests) = (0, false);
        loop {
            // Relaxed: a hint, as the exchange decides.
            let word = self.0.load(Relaxed);
            let (takes, next) = match word {
                FREE | LENT => (true, SLEEPERS),
                HANDED if passes != 0 => (true, SLEEPERS),
                HELD | SLEEPERS if requests => (false, PASSED),
                HELD => (false, SLEEPERS),
                word => (false, word),
            };
            // ORDERING: Acquire pairs with the Release in `release` and that in `release_slow`: this section follows the last one.
            if next != word && self.0.compare_exchange(word, next, Acquire, Relaxed).is_err() {
                continue;
            }
            if takes {
                break;
            }
            park::park(&self.0, next);
            passes += 1;
            // Relaxed: a hint.
            if !matches!(self.0.load(Relaxed), FREE | LENT | HANDED) {
                requests |= passed() || passes >= PASSES;
            }
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

    /// Takes the lock after a [`Lock::try_lock`] that failed, waiting if need be. Calls `passed` each time that this
    /// thread has slept and another one had the lock; if it returns `true`, the next release hands the lock over to a
    /// sleeper.
    pub fn lock_noting(&self, mut passed: impl FnMut() -> bool) -> MutexGuard<'_, T> {
        self.raw().lock_slow(&mut passed);
        // SAFETY: taken just now, and this is the one guard.
        unsafe { self.guard_again() }
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

    #[test]
    fn a_sleeper_that_was_passed_often_is_the_next_one() {
        let lock = RawMutex::new();
        let goes_on = std::sync::atomic::AtomicBool::new(false);
        lock.lock();
        std::thread::scope(|s| {
            s.spawn(|| {
                lock.lock();
                while !goes_on.load(std::sync::atomic::Ordering::Acquire) {
                    std::thread::yield_now();
                }
                // SAFETY: taken above.
                unsafe { lock.unlock() };
            });
            // It wakes each time to find that another thread has the lock.
            while lock.0.load(Relaxed) != PASSED {
                park::unpark_one(&lock.0);
                std::thread::yield_now();
            }
            // SAFETY: taken above.
            unsafe { lock.unlock() };
            assert!(!lock.try_lock());
            goes_on.store(true, std::sync::atomic::Ordering::Release);
        });
        assert!(lock.try_lock());
    }
}
