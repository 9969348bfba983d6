//! Plain data that a lock protects, charged as accesses to its lines.

use crate::engine::{Kind, current};
use core::panic::Location;

/// `prim::cell::UnsafeCell`, charged: one access for each line of the value, four at most, before the closure runs.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct UnsafeCell<T: ?Sized>(core::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Unwraps the value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    #[inline(always)]
    #[track_caller]
    fn charge(&self, kind: Kind) {
        if let Some(engine) = current() {
            let bytes = size_of_val(self);
            if bytes > 0 {
                engine.touch(self.0.get().cast::<u8>().addr(), bytes, kind, Location::caller());
            }
        }
    }

    /// Calls `f` with a pointer for reading.
    #[inline(always)]
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.charge(Kind::Load);
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing.
    #[inline(always)]
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.charge(Kind::Store);
        f(self.0.get())
    }
}
