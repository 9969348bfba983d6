//! A lock around its data, for every raw lock of the crate.
//!
//! # What it is
//! A type of lock word implements [`RawLock`], [`Lock`] puts one around a `T`, and [`LockGuard`] is the one guard.
//! [`SpinLock`](crate::SpinLock) and [`Mutex`](crate::Mutex) are names for two of them. The raw locks also implement
//! `lock_api::RawMutex`, so they can replace other crates' locks.
//!
//! # What it is not
//! A choice of policy: the raw lock decides whether a waiter spins or sleeps and which waiter comes next. It does not
//! poison either: a panic in a section only releases the lock.
//!
//! # Why not `lock_api`'s trait alone
//! It needs a constant for the free lock, and loom's atomics have no constant constructor. So the crate implements that
//! trait only outside of loom, and `Lock` is built on [`RawLock`].
//!
//! # Invariants
//! 1. Between a `lock` (or a `try_lock` that returned `true`) and the `unlock` that follows, no other `lock` returns
//!    and no other `try_lock` returns `true`; a section happens before the next one.
//! 2. Only the one guard reaches the data, or the owner of the `Lock` when it unwraps it.
//! 3. The thread that took the lock makes one guard; the guard stays on that thread, and releases the lock when it
//!    ends.
//!
//! ```
//! use lightfoot_sync::{Lock, TasLock};
//!
//! let names: Lock<TasLock, _> = Lock::new(vec!["a"]);
//! names.lock().push("b");
//! assert_eq!(names.into_inner(), ["a", "b"]);
//! ```

use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use prim::cell::UnsafeCell;

/// A lock word without data. Free when new.
///
/// # Safety
/// Implementors keep invariant 1 of this module.
pub unsafe trait RawLock: Send + Sync + Sized {
    /// Returns a free lock.
    #[must_use]
    fn new() -> Self;

    /// Takes the lock, waiting if need be. A thread that already holds it deadlocks.
    fn lock(&self);

    /// Takes the lock if it is free. Returns whether it did.
    #[must_use]
    fn try_lock(&self) -> bool;

    /// Takes the lock after a [`try_lock`](Self::try_lock) that failed, so without another first try.
    fn lock_taken(&self) {
        self.lock();
    }

    /// Releases the lock.
    ///
    /// # Safety
    /// The calling thread took the lock, and has not released it since.
    unsafe fn unlock(&self);
}

/// A lock `R` around a `T`; see the module's description.
pub struct Lock<R, T> {
    raw: R,
    data: UnsafeCell<T>,
}

// SAFETY: by invariants 1 and 2 one thread at a time reaches the data, and it may take the `T` out: `T: Send`.
unsafe impl<R: RawLock, T: Send> Sync for Lock<R, T> {}

impl<R: RawLock, T> Lock<R, T> {
    /// Returns a free lock around `data`.
    #[inline]
    #[must_use]
    pub fn new(data: T) -> Self {
        Self::with_raw(R::new(), data)
    }

    /// Creates a lock around `data` with a given raw lock, which must be free and out of reach of other threads.
    #[inline]
    #[must_use]
    pub fn with_raw(raw: R, data: T) -> Self {
        Self { raw, data: UnsafeCell::new(data) }
    }

    /// Takes the lock, waiting if need be. A thread that already holds it deadlocks.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn lock(&self) -> LockGuard<'_, R, T> {
        self.raw.lock();
        LockGuard { lock: self, not_send: PhantomData }
    }

    /// Takes the lock if it is free.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_lock(&self) -> Option<LockGuard<'_, R, T>> {
        self.raw.try_lock().then(|| LockGuard { lock: self, not_send: PhantomData })
    }

    /// Takes the lock after a [`try_lock`](Self::try_lock) that failed, waiting if need be.
    pub(crate) fn lock_taken(&self) -> LockGuard<'_, R, T> {
        self.raw.lock_taken();
        LockGuard { lock: self, not_send: PhantomData }
    }

    /// Returns a guard for a lock whose guard was [forgotten](core::mem::forget).
    ///
    /// # Safety
    /// The calling thread took the lock and forgot the guard, and makes this one once.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub unsafe fn guard_again(&self) -> LockGuard<'_, R, T> {
        LockGuard { lock: self, not_send: PhantomData }
    }

    pub(crate) fn raw(&self) -> &R {
        &self.raw
    }

    /// Unwraps the data.
    #[inline]
    #[must_use]
    pub fn into_inner(self) -> T {
        self.data.into_inner()
    }
}

impl<R: RawLock, T: Default> Default for Lock<R, T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

/// Does not take the lock, so does not print the data.
impl<R: fmt::Debug, T> fmt::Debug for Lock<R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock").field("raw", &self.raw).finish_non_exhaustive()
    }
}

/// The guard of a locked [`Lock`]; its drop, also during a panic, releases the lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockGuard<'a, R: RawLock, T> {
    lock: &'a Lock<R, T>,
    /// The thread that took a lock releases it: queued locks find their node by thread, and ranks are checked per
    /// thread.
    not_send: PhantomData<*const ()>,
}

impl<R: RawLock, T> LockGuard<'_, R, T> {
    /// Returns the lock of `guard`.
    #[must_use]
    pub fn lock_of(guard: &Self) -> &Lock<R, T> {
        guard.lock
    }

    pub(crate) fn raw(&self) -> &R {
        &self.lock.raw
    }
}

// SAFETY: a shared guard lends `&T` only.
unsafe impl<R: RawLock, T: Sync> Sync for LockGuard<'_, R, T> {}

impl<R: RawLock, T> Deref for LockGuard<'_, R, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariants 1 and 2: no other guard exists, and this one is only shared here.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<R: RawLock, T> DerefMut for LockGuard<'_, R, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariants 1 and 2: no other guard exists, and this one is borrowed alone.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<R: RawLock, T> Drop for LockGuard<'_, R, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: invariant 3: this thread took the lock, and the guard ends here.
        unsafe { self.lock.raw.unlock() };
    }
}

impl<R: RawLock, T: fmt::Debug> fmt::Debug for LockGuard<'_, R, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// Implements `lock_api::RawMutex` for a [`RawLock`] whose free state is the constant `$free`. (Not under loom, whose
/// atomics have no constant constructor.)
macro_rules! through_lock_api {
    ($raw:ty, $free:expr) => {
        #[cfg(not(loom))]
        // SAFETY: a `RawLock` excludes (invariant 1 of `crate::lock`), which is all that this trait requires.
        unsafe impl lock_api::RawMutex for $raw {
            const INIT: Self = $free;

            type GuardMarker = lock_api::GuardNoSend;

            #[inline]
            fn lock(&self) {
                crate::lock::RawLock::lock(self);
            }

            #[inline]
            fn try_lock(&self) -> bool {
                crate::lock::RawLock::try_lock(self)
            }

            /// # Safety
            /// As `RawLock::unlock`.
            #[inline]
            unsafe fn unlock(&self) {
                // SAFETY: the caller holds the lock, in its own context: the guard is `!Send`.
                unsafe { crate::lock::RawLock::unlock(self) };
            }
        }
    };
}
pub(crate) use through_lock_api;

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::{RawMutex, TasLock};

    #[test]
    fn they_stand_where_a_lock_of_lock_api_does() {
        fn check<R: lock_api::RawMutex>() {
            let lock: lock_api::Mutex<R, u32> = lock_api::Mutex::new(1);
            let guard = lock.lock();
            assert!(lock.try_lock().is_none());
            drop(guard);
            *lock.try_lock().expect("free") += 1;
            assert_eq!(lock.into_inner(), 2);
        }
        check::<TasLock>();
        check::<RawMutex>();
    }
}
