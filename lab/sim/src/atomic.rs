//! Atomics whose accesses are charged to the simulated CPU.
//!
//! # What it is
//! The types of `core::sync::atomic`, of the same size, each access charged to its cache line first. The operation then
//! happens at once: simulated threads share one host thread, so a load and a store are a read-modify-write. Outside of
//! a simulation they are plain atomics.
//!
//! # What it is not
//! Weaker than sequentially consistent in a simulation: orderings are ignored there.

pub use core::sync::atomic::{Ordering, compiler_fence};

use crate::engine::{Kind, access, current};
use Ordering::Relaxed;
use core::fmt;
use core::panic::Location;
use core::sync::atomic as plain;

/// Executes a fence. A simulation charges the fence.
#[inline]
pub fn fence(order: Ordering) {
    match current() {
        Some(engine) => engine.fence(),
        None => plain::fence(order),
    }
}

/// The common methods of all types: `$type` wraps `$plain`, which holds a `$value`.
macro_rules! common {
    ($type:ty, $plain:ty, $value:ty, [$($generics:tt)*]) => {
        impl<$($generics)*> $type {
            /// Makes an atomic that holds `value`.
            #[inline]
            #[must_use]
            pub const fn new(value: $value) -> Self {
                Self(<$plain>::new(value))
            }

            /// Charges an access. Returns whether a simulation runs.
            #[inline(always)]
            #[track_caller]
            fn charge(&self, kind: Kind) -> bool {
                access(core::ptr::from_ref(self).addr(), kind, Location::caller())
            }

            /// See `core`'s.
            #[inline(always)]
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $value {
                if self.charge(Kind::Load) { self.0.load(Relaxed) } else { self.0.load(order) }
            }

            /// See `core`'s.
            #[inline(always)]
            #[track_caller]
            pub fn store(&self, value: $value, order: Ordering) {
                if self.charge(Kind::Store) { self.0.store(value, Relaxed) } else { self.0.store(value, order) }
            }

            /// Replaces the value in a simulation; `None` outside.
            #[inline(always)]
            #[track_caller]
            fn modify(&self, f: impl FnOnce($value) -> $value) -> Option<$value> {
                if !self.charge(Kind::Rmw) {
                    return None;
                }
                let old = self.0.load(Relaxed);
                self.0.store(f(old), Relaxed);
                Some(old)
            }

            /// See `core`'s.
            #[inline(always)]
            #[track_caller]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.modify(|_| value).unwrap_or_else(|| self.0.swap(value, order))
            }

            /// See `core`'s.
            ///
            /// # Errors
            /// With the value if it was not `current`.
            #[inline(always)]
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if !self.charge(Kind::Rmw) {
                    return self.0.compare_exchange(current, new, success, failure);
                }
                let old = self.0.load(Relaxed);
                if old != current {
                    return Err(old);
                }
                self.0.store(new, Relaxed);
                Ok(old)
            }

            /// See `core`'s. Never fails without a cause in a simulation.
            ///
            /// # Errors
            /// With the value if it was not `current`.
            #[inline(always)]
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// See `core`'s.
            ///
            /// # Errors
            /// With the value if `f` returns `None`.
            #[inline]
            #[track_caller]
            pub fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(fetch_order);
                while let Some(new) = f(old) {
                    match self.compare_exchange_weak(old, new, set_order, fetch_order) {
                        Ok(old) => return Ok(old),
                        Err(now) => old = now,
                    }
                }
                Err(old)
            }

            /// See `core`'s.
            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// See `core`'s.
            #[inline]
            #[must_use]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            /// See `core`'s. Accesses through the pointer are not charged.
            #[inline]
            #[must_use]
            pub const fn as_ptr(&self) -> *mut $value {
                self.0.as_ptr()
            }
        }

        impl<$($generics)*> Default for $type {
            fn default() -> Self {
                Self(<$plain>::default())
            }
        }

        impl<$($generics)*> From<$value> for $type {
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }

        impl<$($generics)*> fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

/// A method that changes the value by a function of it and another value.
macro_rules! fetch {
    ($value:ty, $($name:ident: $f:expr;)*) => {
        $(
            /// See `core`'s.
            #[inline(always)]
            #[track_caller]
            pub fn $name(&self, value: $value, order: Ordering) -> $value {
                let f: fn($value, $value) -> $value = $f;
                self.modify(|old| f(old, value)).unwrap_or_else(|| self.0.$name(value, order))
            }
        )*
    };
}

macro_rules! integers {
    ($($name:ident: $value:ident;)*) => {
        $(
            /// An integer; see the [module documentation](self).
            #[repr(transparent)]
            pub struct $name(pub(crate) plain::$name);

            common!($name, plain::$name, $value, []);

            impl $name {
                fetch! { $value,
                    fetch_add: |old, value| old.wrapping_add(value);
                    fetch_sub: |old, value| old.wrapping_sub(value);
                    fetch_and: |old, value| old & value;
                    fetch_nand: |old, value| !(old & value);
                    fetch_or: |old, value| old | value;
                    fetch_xor: |old, value| old ^ value;
                    fetch_max: |old, value| old.max(value);
                    fetch_min: |old, value| old.min(value);
                }
            }
        )*
    };
}

integers! {
    AtomicU8: u8;
    AtomicU16: u16;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicUsize: usize;
    AtomicI8: i8;
    AtomicI16: i16;
    AtomicI32: i32;
    AtomicI64: i64;
    AtomicIsize: isize;
}

/// A flag; see the [module documentation](self).
#[repr(transparent)]
pub struct AtomicBool(plain::AtomicBool);

common!(AtomicBool, plain::AtomicBool, bool, []);

impl AtomicBool {
    fetch! { bool,
        fetch_and: |old, value| old & value;
        fetch_nand: |old, value| !(old & value);
        fetch_or: |old, value| old | value;
        fetch_xor: |old, value| old ^ value;
    }
}

/// A pointer; see the [module documentation](self).
#[repr(transparent)]
pub struct AtomicPtr<T>(plain::AtomicPtr<T>);

common!(AtomicPtr<T>, plain::AtomicPtr<T>, *mut T, [T]);

impl<T> AtomicPtr<T> {
    /// See `core`'s.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_or(&self, bits: usize, order: Ordering) -> *mut T {
        self.modify(|old| old.map_addr(|address| address | bits)).unwrap_or_else(|| self.0.fetch_or(bits, order))
    }

    /// See `core`'s.
    #[inline(always)]
    #[track_caller]
    pub fn fetch_and(&self, bits: usize, order: Ordering) -> *mut T {
        self.modify(|old| old.map_addr(|address| address & bits)).unwrap_or_else(|| self.0.fetch_and(bits, order))
    }
}
