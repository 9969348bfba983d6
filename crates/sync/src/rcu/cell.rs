//! Cells whose value readers load and writers replace.
//!
//! # Which domain a cell belongs to
//! A value replaced through one domain while it is read under a guard of another would be freed under the reader. A
//! type cannot tell two domains apart, so either the cell remembers its domain or the caller guarantees it:
//!
//! - [`Rcu`] and [`RcuOption`] hold the domain's address in a second word, in the cache line of the pointer. A load
//!   compares it with the guard's (no measurable cost, see `benches/rcu.rs`) and panics if they differ. An address is
//!   enough: a domain cannot be dropped while its guards live, so all live guards with that address are of one domain.
//! - [`RawRcu`] is one word; loading and replacing are `unsafe`. For objects where eight bytes count.
//!
//! # Invariants
//! 1. The pointer of a [`RawRcu`] is null or came from `Box::into_raw`. The cell owns the value
//!    until the pointer is swapped out; the value is freed after a grace period of the cell's
//!    domain.
//! 2. An [`Rcu`] or [`RcuOption`] uses only guards and domains of address `domain`; the pointer of an [`Rcu`] is never
//!    null.

use super::{RcuDomain, ReadGuard};
use core::marker::PhantomData;
use core::ptr;
use prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// An owned, nullable pointer that is read under a [`ReadGuard`] and replaced through an
/// [`RcuDomain`], one word wide. The caller guarantees that guard and cell are of one domain;
/// [`RcuOption`] checks it.
pub struct RawRcu<T: Send + Sync + 'static> {
    pointer: AtomicPtr<T>,
    owned: PhantomData<Box<T>>,
}

fn into_raw<T>(value: Option<Box<T>>) -> *mut T {
    value.map_or(ptr::null_mut(), Box::into_raw)
}

impl<T: Send + Sync + 'static> RawRcu<T> {
    /// Returns a cell that holds `value`.
    #[must_use]
    pub fn new(value: Option<Box<T>>) -> Self {
        Self { pointer: AtomicPtr::new(into_raw(value)), owned: PhantomData }
    }

    /// Returns true if the cell is empty. The caller excludes writers.
    #[must_use]
    pub fn is_none(&self) -> bool {
        // Relaxed: nothing is read through it.
        self.pointer.load(Relaxed).is_null()
    }

    /// Returns the value now, for as long as the guard lives.
    ///
    /// # Safety
    /// Each [`RawRcu::replace`] of this cell during the life of the guard gets the domain of the guard.
    #[inline(always)]
    pub unsafe fn load<'g>(&'g self, _guard: &'g ReadGuard<'_>) -> Option<&'g T> {
        // ORDERING: Acquire pairs with the AcqRel in `replace`: the content of the value.
        let pointer = self.pointer.load(Acquire);
        // SAFETY: invariant 1, and the caller's promise: no grace period that began after it was swapped out ends
        // before the guard does.
        unsafe { pointer.as_ref() }
    }

    /// Replaces the value and drops the old one after a grace period of `domain`. `heap_bytes` returns the bytes that
    /// the old one owns besides its own size.
    ///
    /// # Safety
    /// The guards under which this cell is loaded are guards of `domain`.
    pub unsafe fn replace(&self, domain: &RcuDomain, value: Option<Box<T>>, heap_bytes: impl FnOnce(&T) -> usize) {
        // ORDERING: AcqRel. Release pairs with the Acquire in `load`; Acquire pairs with the Release of the swap that
        // put the old value in, which is dropped without ever being loaded.
        let old = self.pointer.swap(into_raw(value), AcqRel);
        if !old.is_null() {
            // SAFETY: invariant 1: out of the cell, so owned here. Readers share it until the grace period ends, and
            // `Box` would claim it alone: hence the raw callback below.
            let bytes = size_of::<T>() + heap_bytes(unsafe { &*old });
            // SAFETY: `free` takes over what `Box::into_raw` gave; `T: Send`.
            unsafe { domain.defer_raw(bytes, free::<T>, old.cast()) };
        }
    }

    /// Returns the value, to change in place.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        // Relaxed: the synchronisation that made this thread the only user also ordered the stores to the pointer.
        let pointer = self.pointer.load(Relaxed);
        // SAFETY: invariant 1; `&mut self` means that no loaded reference exists.
        unsafe { pointer.as_mut() }
    }
}

/// # Safety
/// `data` came from `Box::<T>::into_raw` and has no other user.
unsafe fn free<T>(data: *mut ()) {
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(data.cast::<T>()) });
}

impl<T: Send + Sync + 'static> Drop for RawRcu<T> {
    fn drop(&mut self) {
        // Relaxed: as in `get_mut`.
        let pointer = self.pointer.load(Relaxed);
        if !pointer.is_null() {
            // SAFETY: invariant 1; references from `load` borrow the cell, so none is left.
            drop(unsafe { Box::from_raw(pointer) });
        }
    }
}

impl<T: Send + Sync + 'static> core::fmt::Debug for RawRcu<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("RawRcu").finish_non_exhaustive()
    }
}

#[cold]
#[inline(never)]
pub(crate) fn wrong_domain() -> ! {
    panic!("an RCU cell or table was used with a guard or domain that is not its own")
}

/// A value that readers load under a [`ReadGuard`] and writers replace; the old one is dropped after a grace period.
///
/// ```
/// use lightfoot_sync::rcu::{Rcu, RcuDomain};
/// let domain = RcuDomain::new();
/// let cell = Rcu::new(&domain, String::from("old"));
/// let guard = domain.read();
/// let seen = cell.load(&guard);
/// cell.replace(&domain, String::from("new"));
/// assert_eq!(seen, "old");
/// assert_eq!(cell.load(&guard), "new");
/// ```
#[derive(Debug)]
pub struct Rcu<T: Send + Sync + 'static> {
    inner: RcuOption<T>,
}

impl<T: Send + Sync + 'static> Rcu<T> {
    /// Creates a cell of `domain` that holds `value`.
    #[must_use]
    pub fn new(domain: &RcuDomain, value: T) -> Self {
        Self { inner: RcuOption::some(domain, value) }
    }

    /// Returns the value now, for as long as the guard lives.
    ///
    /// # Panics
    /// If the guard is of another domain.
    #[inline(always)]
    pub fn load<'g>(&'g self, guard: &'g ReadGuard<'_>) -> &'g T {
        let value = self.inner.load(guard);
        // SAFETY: invariant 2: never null.
        unsafe { value.unwrap_unchecked() }
    }

    /// Replaces the value; the old one is dropped after a grace period.
    ///
    /// # Panics
    /// If `domain` is not the cell's.
    pub fn replace(&self, domain: &RcuDomain, value: T) {
        self.inner.replace(domain, Some(Box::new(value)), |_| 0);
    }
}

/// As [`Rcu`], but may hold no value.
///
/// ```
/// use lightfoot_sync::rcu::{RcuDomain, RcuOption};
/// let domain = RcuDomain::new();
/// let cell = RcuOption::none(&domain);
/// assert_eq!(cell.load(&domain.read()), None);
/// cell.set(&domain, Some(7));
/// assert_eq!(cell.load(&domain.read()), Some(&7));
/// ```
#[derive(Debug)]
pub struct RcuOption<T: Send + Sync + 'static> {
    raw: RawRcu<T>,
    domain: usize,
}

impl<T: Send + Sync + 'static> RcuOption<T> {
    /// Creates a cell of `domain` that holds nothing.
    #[must_use]
    pub fn none(domain: &RcuDomain) -> Self {
        Self { raw: RawRcu::new(None), domain: domain.address() }
    }

    /// Creates a cell of `domain` that holds `value`.
    #[must_use]
    pub fn some(domain: &RcuDomain, value: T) -> Self {
        Self { raw: RawRcu::new(Some(Box::new(value))), domain: domain.address() }
    }

    /// Returns the value now, if any, for as long as the guard lives.
    ///
    /// # Panics
    /// If the guard is of another domain.
    #[inline(always)]
    pub fn load<'g>(&'g self, guard: &'g ReadGuard<'_>) -> Option<&'g T> {
        if guard.address() != self.domain {
            wrong_domain();
        }
        // SAFETY: invariant 2, just checked; `replace` checks its domain likewise.
        unsafe { self.raw.load(guard) }
    }

    /// Replaces the value; the old one, if any, is dropped after a grace period.
    ///
    /// # Panics
    /// If `domain` is not the cell's.
    pub fn set(&self, domain: &RcuDomain, value: Option<T>) {
        self.replace(domain, value.map(Box::new), |_| 0);
    }

    /// As [`RcuOption::set`], for values that own memory: `heap_bytes` returns the bytes of the old one besides its own
    /// size.
    pub fn set_sized(&self, domain: &RcuDomain, value: Option<T>, heap_bytes: impl FnOnce(&T) -> usize) {
        self.replace(domain, value.map(Box::new), heap_bytes);
    }

    fn replace(&self, domain: &RcuDomain, value: Option<Box<T>>, heap_bytes: impl FnOnce(&T) -> usize) {
        if domain.address() != self.domain {
            wrong_domain();
        }
        // SAFETY: invariant 2, just checked; `load` checks its guard likewise.
        unsafe { self.raw.replace(domain, value, heap_bytes) };
    }

    /// Returns the value, if any, to change in place.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        self.raw.get_mut()
    }
}
