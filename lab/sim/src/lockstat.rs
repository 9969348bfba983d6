//! Hooks for lock statistics; always on in a simulation. The class of a lock is its type.

use crate::engine::current;

fn address<T: ?Sized>(lock: &T) -> usize {
    core::ptr::from_ref(lock).cast::<u8>().addr()
}

/// A thread tried to take the lock at `lock`, which was not free.
#[inline]
pub fn contended<T: ?Sized>(lock: &T) {
    if let Some(engine) = current() {
        engine.lock_contended(address(lock));
    }
}

/// The lock at `lock` was taken.
#[inline]
pub fn acquired<T: ?Sized>(lock: &T) {
    if let Some(engine) = current() {
        engine.lock_acquired(address(lock), core::any::type_name::<T>());
    }
}

/// The lock at `lock` is about to be given back.
#[inline]
pub fn released<T: ?Sized>(lock: &T) {
    if let Some(engine) = current() {
        engine.lock_released(address(lock), core::any::type_name::<T>());
    }
}
