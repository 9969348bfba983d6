//! Hooks for lock statistics (Lockmeter's columns). Every lock calls them; in production they compile to nothing.

/// Reports that a thread wants the lock at `lock`, which is not free.
#[inline(always)]
pub fn contended<T: ?Sized>(_lock: &T) {}

/// Reports that the lock at `lock` was taken.
#[inline(always)]
pub fn acquired<T: ?Sized>(_lock: &T) {}

/// Gives the next lock that the calling thread takes this name in the statistics, in place of its type.
#[inline(always)]
pub fn named(_name: impl FnOnce() -> &'static str) {}

/// Counts the thread's spinning for a caller until it is dropped.
#[derive(Debug)]
#[must_use = "a caller lasts as long as this"]
pub struct Caller {
    /// The caller belongs to the thread that set it.
    not_send: core::marker::PhantomData<*const ()>,
}

impl Drop for Caller {
    /// Restores the previous caller.
    #[inline(always)]
    fn drop(&mut self) {}
}

/// Until the result is dropped, the calling thread's spinning counts for `_name`, as for a function
/// in a profile by callers. Such scopes nest, and end in the reverse order.
#[inline(always)]
pub fn caller(_name: &'static str) -> Caller {
    Caller { not_send: core::marker::PhantomData }
}

/// Reports that the lock at `lock` is about to be released.
#[inline(always)]
pub fn released<T: ?Sized>(_lock: &T) {}
