//! Hooks for lock statistics (Lockmeter's columns). Every lock calls them; in production they compile to nothing.

/// The lock at `lock` was asked for and was not free.
#[inline(always)]
pub fn contended<T: ?Sized>(_lock: &T) {}

/// The lock at `lock` was taken.
#[inline(always)]
pub fn acquired<T: ?Sized>(_lock: &T) {}

/// The lock at `lock` is about to be given back.
#[inline(always)]
pub fn released<T: ?Sized>(_lock: &T) {}
