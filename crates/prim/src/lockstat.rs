//! Hooks for lock statistics (Lockmeter's columns). Every lock calls them; in production they compile to nothing.

/// A thread wants the lock at `lock`, which is not free.
#[inline(always)]
pub fn contended<T: ?Sized>(_lock: &T) {}

/// The lock at `lock` was taken.
#[inline(always)]
pub fn acquired<T: ?Sized>(_lock: &T) {}

/// The lock at `lock` is about to be released.
#[inline(always)]
pub fn released<T: ?Sized>(_lock: &T) {}
