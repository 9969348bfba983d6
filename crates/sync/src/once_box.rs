//! A value that is made at its first use.
//!
//! # What it is
//! A word: null, or the address of the value in its own box. Threads that use it first at the same time each make a
//! value, and one of these values stays. It is for parts of objects of which a process may have thousands, where most
//! objects never need the part.
//!
//! # What it is not
//! `std`'s `OnceLock`: no thread waits for another, so a simulated thread may be suspended inside. All zeros are an
//! empty one.
//!
//! # How it is locked
//! Without a lock: one compare-exchange decides.
//!
//! # Where it comes from
//! `once_cell::race::OnceBox`.
//!
//! # Invariants
//! 1. The pointer is null, or came from `Box::into_raw` and is the only owner of the value. It changes from null to the value
//!    once, and back by [`OnceBox::clear`] and drop alone.

use core::ptr::null_mut;
use prim::atomic::AtomicPtr;
use prim::atomic::Ordering::{Acquire, Relaxed, Release};

/// See the [module documentation](self).
///
/// ```
/// let table = lightfoot_sync::OnceBox::<Vec<u32>>::none();
/// assert!(table.get().is_none());
/// assert_eq!(table.get_or_make(|| vec![1, 2]).len(), 2);
/// assert_eq!(table.get_or_make(Vec::new).len(), 2);
/// ```
#[derive(Debug)]
pub struct OnceBox<T: Send + Sync>(AtomicPtr<T>);

impl<T: Send + Sync> OnceBox<T> {
    /// Returns one without a value.
    #[must_use]
    pub fn none() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    /// Returns the value, if it was made.
    #[inline(always)]
    pub fn get(&self) -> Option<&T> {
        // ORDERING: Acquire, pairs with the Release in `get_or_make`: the value is seen.
        let value = self.0.load(Acquire);
        // SAFETY: invariant 1.
        unsafe { value.as_ref() }
    }

    /// Returns the value, made by `make` at the first use. A thread that makes it while another one does may get the
    /// other's value.
    #[inline]
    pub fn get_or_make(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        let own = Box::into_raw(Box::new(make()));
        // ORDERING: Release pairs with the Acquire in `get` and with the Acquire of a failure here: the value is seen.
        let first = self.0.compare_exchange(null_mut(), own, Release, Acquire).err();
        // SAFETY: made above, and no other thread has seen it, if another one was first.
        first.inspect(|_| drop(unsafe { Box::from_raw(own) }));
        // SAFETY: invariant 1.
        unsafe { &*first.unwrap_or(own) }
    }

    /// Frees the value, if it was made.
    ///
    /// # Safety
    /// No reference to the value exists, and no other thread uses this during the call.
    #[inline]
    pub unsafe fn clear(&self) {
        // Relaxed, here and below: the caller's promise.
        let value = self.0.load(Relaxed);
        if !value.is_null() {
            self.0.store(null_mut(), Relaxed);
            // SAFETY: invariant 1.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

impl<T: Send + Sync> Drop for OnceBox<T> {
    fn drop(&mut self) {
        // SAFETY: `&mut self`.
        unsafe { self.clear() };
    }
}
