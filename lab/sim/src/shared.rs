//! Shared ownership: `std`'s `Arc`, whose counts are charged.

use crate::engine::{Kind, access};
use core::fmt;
use core::ops::Deref;
use core::panic::Location;

// As in `prim`, where loom follows only one of the two.
pub use self::Arc as PlainArc;

/// See `prim`'s. Not charged: only `std`'s type becomes one with a trait object.
pub type DynArc<T> = std::sync::Arc<T>;

/// See `prim`'s.
pub type AnyArc = DynArc<dyn core::any::Any + Send + Sync>;

/// See `std`'s.
pub struct Arc<T: ?Sized>(std::sync::Arc<T>);

impl<T> Arc<T> {
    /// See `std`'s.
    pub fn new(value: T) -> Self {
        Self(std::sync::Arc::new(value))
    }
}

impl<T: ?Sized> Arc<T> {
    /// Charges a change of the count, which is in front of the value.
    #[track_caller]
    fn charge(&self) {
        let value = std::sync::Arc::as_ptr(&self.0).cast::<u8>().addr();
        access(value - align_of_val(&*self.0).max(16), Kind::Rmw, Location::caller());
    }

    /// See `std`'s.
    pub fn as_ptr(this: &Self) -> *const T {
        std::sync::Arc::as_ptr(&this.0)
    }

    /// See `std`'s.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::sync::Arc::ptr_eq(&this.0, &other.0)
    }

    /// See `std`'s.
    pub fn strong_count(this: &Self) -> usize {
        std::sync::Arc::strong_count(&this.0)
    }

    /// See `std`'s.
    pub fn get_mut(this: &mut Self) -> Option<&mut T> {
        std::sync::Arc::get_mut(&mut this.0)
    }
}

impl<T: ?Sized> Arc<T> {
    /// See `std`'s. Not charged.
    pub fn downgrade(this: &Self) -> Weak<T> {
        Weak(std::sync::Arc::downgrade(&this.0))
    }
}

/// See `std`'s. Its own count is not charged.
#[derive(Debug)]
pub struct Weak<T: ?Sized>(std::sync::Weak<T>);

impl<T: ?Sized> Weak<T> {
    /// See `std`'s.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        let strong = Arc(self.0.upgrade()?);
        strong.charge();
        Some(strong)
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        &self.0
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Self {
        self.charge();
        Self(std::sync::Arc::clone(&self.0))
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        self.charge();
    }
}

impl<T: ?Sized, U> From<U> for Arc<T>
where
    std::sync::Arc<T>: From<U>,
{
    fn from(value: U) -> Self {
        Self(value.into())
    }
}

impl<T> FromIterator<T> for Arc<[T]> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl<T: Default> Default for Arc<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}
