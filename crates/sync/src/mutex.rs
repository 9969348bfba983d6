//! A lock that sleeps: four bytes, one compare-exchange to take, one swap to give back.
//!
//! # What it is
//! [`RawMutex`] is the bare word, to sit inside a dentry; [`Mutex`] puts it around its data. A waiter spins for a
//! moment while the holder looks as if it were about to finish, then parks on the word. The third state keeps a
//! release without sleepers free of system calls.
//!
//! # What it is not
//! Fair: a newcomer may overtake a woken sleeper. A panic in a section frees it without a mark (no poisoning).
//!
//! # State
//! | word | meaning                                          |
//! |------|--------------------------------------------------|
//! | 0    | free                                             |
//! | 1    | held, nobody sleeps                              |
//! | 2    | held, somebody may sleep: who gives back wakes   |
//!
//! # Orderings
//! | here                                      | partner                    |
//! |-------------------------------------------|----------------------------|
//! | `RawMutex::try_lock`: cmpxchg, Acquire    | `unlock`: swap, Release    |
//! | `RawMutex::lock_slow`: swap, Acquire      | `unlock`: swap, Release    |
//!
//! No wake is lost: a sleeper swaps in 2 and parks while the word is 2; every change away from 2 is by `unlock`, which
//! sees the 2 it took out and wakes one. The one it wakes swaps in 2 again, for it cannot know whether others sleep.
//!
//! # Invariants
//! 1. The word leaves 0 only in `try_lock` and `lock_slow`; whoever did that holds the lock.
//! 2. The word becomes 0 only in `unlock`, which only the holder may call.
//! 3. The data of a [`Mutex`] is reached by its one guard, or through `&mut Mutex`, only.
//!
//! # Source
//! Ulrich Drepper, "Futexes Are Tricky" (2011), mutex 3.
//!
//! # Limitations
//! `unlock` may wake a sleeper on the word's address after the next holder freed its memory: a wake without a cause,
//! which every parking loop must allow for anyway.
//!
//! ```
//! let names = sync::Mutex::new(vec!["a"]);
//! names.lock().push("b");
//! assert_eq!(names.into_inner(), ["a", "b"]);
//!
//! let raw = sync::RawMutex::new();
//! let guard = raw.guard();
//! assert!(!raw.try_lock());
//! drop(guard);
//! assert!(raw.try_guard().is_some());
//! ```

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::hint::spin_until_bounded;
use prim::{lockstat, park};

const FREE: u32 = 0;
const HELD: u32 = 1;
const SLEEPERS: u32 = 2;

/// Pauses a waiter spends before it parks: about what a park and a wake cost. (None under loom: each is a branch.)
const TURNS: u32 = if cfg!(loom) { 0 } else { 100 };

/// The lock word alone; see the module's description. 4 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct RawMutex(AtomicU32);

impl RawMutex {
    /// A free lock.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    /// Takes the lock, sleeping if need be. A thread that holds it already sleeps for ever.
    #[inline]
    pub fn lock(&self) {
        if !self.try_lock() {
            self.lock_slow();
        }
    }

    /// Takes the lock if it is free; says whether it did.
    #[inline]
    #[must_use]
    pub fn try_lock(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        let taken = self.0.compare_exchange(FREE, HELD, Acquire, Relaxed).is_ok();
        if taken {
            lockstat::acquired(self);
        }
        taken
    }

    #[cold]
    fn lock_slow(&self) {
        lockstat::contended(self);
        // Relaxed: only a hint; the exchanges below decide. With sleepers there is no point in waiting for the holder.
        spin_until_bounded(TURNS, || self.0.load(Relaxed) != HELD);
        if self.try_lock() {
            return;
        }
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        while self.0.swap(SLEEPERS, Acquire) != FREE {
            park::park(&self.0, SLEEPERS);
        }
        lockstat::acquired(self);
    }

    /// Gives the lock back and wakes a sleeper.
    ///
    /// # Safety
    /// The caller holds the lock, and no guard of it will be dropped.
    #[inline]
    pub unsafe fn unlock(&self) {
        lockstat::released(self);
        // ORDERING: Release pairs with the Acquire in `try_lock` and that in `lock_slow`: the next section follows
        // this one.
        if self.0.swap(FREE, Release) == SLEEPERS {
            park::unpark_one(&self.0);
        }
    }

    /// Takes the lock, sleeping if need be; it is given back when the guard is dropped.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
    pub fn guard(&self) -> RawMutexGuard<'_> {
        self.lock();
        RawMutexGuard { lock: self, not_send: PhantomData }
    }

    /// As [`guard`](Self::guard), if the lock is free.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
    pub fn try_guard(&self) -> Option<RawMutexGuard<'_>> {
        self.try_lock().then(|| RawMutexGuard { lock: self, not_send: PhantomData })
    }
}

/// A [`RawMutex`], held; given back on drop, also when unwinding.
#[derive(Debug)]
#[must_use = "the lock is given back when the guard is dropped"]
pub struct RawMutexGuard<'a> {
    lock: &'a RawMutex,
    /// Whoever took the lock gives it back, so that lock ranks can be checked per thread.
    not_send: PhantomData<*const ()>,
}

impl Drop for RawMutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariants 1 and 2: a guard is made by whoever took the lock, once, and ends here.
        unsafe { self.lock.unlock() };
    }
}

/// A sleeping lock around a `T`; see the module's description.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    raw: RawMutex,
    data: UnsafeCell<T>,
}

// SAFETY: by invariants 1 and 3 one thread at a time reaches the data, and it may take the `T` out: `T: Send`.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// A free lock around `data`.
    #[inline]
    #[must_use]
    pub fn new(data: T) -> Self {
        Self { raw: RawMutex::new(), data: UnsafeCell::new(data) }
    }

    /// Takes the lock, sleeping if need be. A thread that holds it already sleeps for ever.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { _raw: self.raw.guard(), data: &self.data }
    }

    /// Takes the lock if it is free.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.raw.try_guard().map(|raw| MutexGuard { _raw: raw, data: &self.data })
    }

    /// The data; no lock is needed.
    #[inline]
    #[must_use]
    pub fn get_mut(&mut self) -> &mut T {
        // SAFETY: invariant 3: `&mut self` excludes guards.
        self.data.with_mut(|data| unsafe { &mut *data })
    }

    /// Unwraps the data.
    #[inline]
    #[must_use]
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

/// A [`Mutex`], held; given back on drop, also when unwinding.
#[must_use = "the lock is given back when the guard is dropped"]
pub struct MutexGuard<'a, T> {
    /// Held as long as this exists; makes the guard `!Send`.
    _raw: RawMutexGuard<'a>,
    data: &'a UnsafeCell<T>,
}

// SAFETY: a shared guard gives out `&T` only.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariants 1 and 3: no other guard exists, and this one is only shared here.
        self.data.with(|data| unsafe { &*data })
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariants 1 and 3: no other guard exists, and this one is borrowed alone.
        self.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T: core::fmt::Debug> core::fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_word_is_four_bytes() {
        assert_eq!(size_of::<RawMutex>(), 4);
    }

    #[test]
    fn one_holder_at_a_time() {
        let mut lock = Mutex::new(7);
        let guard = lock.lock();
        assert!(lock.try_lock().is_none());
        drop(guard);
        assert_eq!(lock.try_lock().map(|guard| *guard), Some(7));
        *lock.get_mut() = 8;
        assert_eq!(lock.into_inner(), 8);
    }

    #[test]
    fn increments_are_not_lost_and_nobody_sleeps_for_ever() {
        let lock = Mutex::new(0);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for turn in 0..5_000 {
                        let mut guard = lock.lock();
                        *guard += 1;
                        if turn % 64 == 0 {
                            std::thread::yield_now(); // lets the others find the lock held, and park
                        }
                    }
                });
            }
        });
        assert_eq!(lock.into_inner(), 20_000);
    }

    #[test]
    fn a_sleeper_is_woken() {
        let lock = RawMutex::new();
        std::thread::scope(|s| {
            let guard = lock.guard();
            s.spawn(|| drop(lock.guard()));
            while lock.0.load(Relaxed) != SLEEPERS {
                std::thread::yield_now();
            }
            drop(guard);
        });
        assert!(lock.try_guard().is_some());
    }

    #[test]
    fn a_panic_frees_the_lock() {
        let lock = Mutex::new(0);
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = lock.lock();
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        assert!(lock.try_lock().is_some());
    }
}
