//! Hooks for lock statistics; always on in a simulation. The class of a lock is the name that it was given, or its type.

use crate::engine::current;
use core::marker::PhantomData;

fn address<T: ?Sized>(lock: &T) -> usize {
    core::ptr::from_ref(lock).cast::<u8>().addr()
}

/// Notes that a thread tried to take the lock at `lock`, which was not free.
#[inline]
pub fn contended<T: ?Sized>(lock: &T) {
    if let Some(engine) = current() {
        engine.lock_contended(address(lock));
    }
}

/// Notes that the lock at `lock` was taken.
#[inline]
pub fn acquired<T: ?Sized>(lock: &T) {
    if let Some(engine) = current() {
        engine.lock_acquired(address(lock), core::any::type_name::<T>());
    }
}

/// Notes that the lock at `lock` is about to be released.
#[inline]
pub fn released<T: ?Sized>(lock: &T) {
    if let Some(engine) = current() {
        engine.lock_released(address(lock));
    }
}

/// Names the next lock that the calling thread takes. The statistics show this name in place of the
/// lock's type.
#[inline]
pub fn named(name: impl FnOnce() -> &'static str) {
    if let Some(engine) = current() {
        engine.name_next_lock(name());
    }
}

/// Counts the thread's spinning for a caller until the value is dropped.
#[derive(Debug)]
#[must_use = "a caller lasts as long as this"]
pub struct Caller {
    before: Option<usize>,
    /// The caller belongs to the thread that set it.
    not_send: PhantomData<*const ()>,
}

impl Drop for Caller {
    /// Restores the previous caller.
    #[inline]
    fn drop(&mut self) {
        if let (Some(before), Some(engine)) = (self.before, current()) {
            engine.set_caller(before);
        }
    }
}

/// Counts the calling thread's spinning for `name` until the result is dropped, as for a function
/// in a profile by callers. Such scopes nest, and end in the reverse order.
#[inline]
pub fn caller(name: &'static str) -> Caller {
    let before = current().map(|engine| engine.set_caller(engine.caller_of(name)));
    Caller { before, not_send: PhantomData }
}
