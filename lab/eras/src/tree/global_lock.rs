//! A lock of which there is one, on its own cache line, with its statistics.

use locks::lockstat::{Class, Measured};
use prim::shared::Arc;
use sync::{Lock, LockGuard, RawLock};

/// `dcache_lock` and its like: `__cacheline_aligned_in_smp`, and in Lockmeter's table.
#[repr(align(128))]
pub(crate) struct GlobalLock<R: RawLock> {
    lock: Lock<Measured<R>, ()>,
    class: Arc<Class>,
}

/// A [`GlobalLock`], held.
pub(crate) type GlobalGuard<'a, R> = LockGuard<'a, Measured<R>, ()>;

impl<R: RawLock> GlobalLock<R> {
    pub(crate) fn new(name: &'static str) -> Self {
        let class = Class::new(name);
        Self { lock: Lock::with_raw(Measured::of(&class), ()), class }
    }

    pub(crate) fn lock(&self) -> GlobalGuard<'_, R> {
        prim::lockstat::named(|| self.class.name());
        self.lock.lock()
    }

    pub(crate) fn class(&self) -> &Class {
        &self.class
    }
}
