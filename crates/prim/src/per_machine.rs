//! One value for the whole machine, made at its first use.
//!
//! # What it is
//! A static for state that belongs to the CPU indexes and not to an instance: the queue nodes of the lab's spinlocks,
//! whose lock words have no room for a pointer to them. It is one value for each process; on a simulated machine one
//! for each simulation, under loom one for each execution of a model, so that runs do not share state.
//!
//! # What it is not
//! A place for state that an instance could own. The product has no value of this kind.
//!
//! # Source
//! `std::sync::LazyLock`, `loom::lazy_static`.

/// A `T` for each machine; see the module's description.
pub struct PerMachine<T: 'static>(imp::Lazy<T>);

impl<T> PerMachine<T> {
    /// Returns a value that `make` makes at first use.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self(imp::new(make))
    }

    /// Returns the machine's value. It does not move, and lives as long as the machine.
    #[inline(always)]
    pub fn get(&'static self) -> &'static T {
        imp::get(&self.0)
    }
}

impl<T> core::fmt::Debug for PerMachine<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PerMachine").finish_non_exhaustive()
    }
}

#[cfg(not(loom))]
mod imp {
    pub(super) type Lazy<T> = std::sync::LazyLock<T>;

    pub(super) const fn new<T>(make: fn() -> T) -> Lazy<T> {
        Lazy::new(make)
    }

    #[inline(always)]
    pub(super) fn get<T>(lazy: &'static Lazy<T>) -> &'static T {
        lazy
    }
}

#[cfg(loom)]
mod imp {
    pub(super) type Lazy<T> = loom::lazy_static::Lazy<T>;

    pub(super) const fn new<T>(make: fn() -> T) -> Lazy<T> {
        Lazy { init: make, _p: core::marker::PhantomData }
    }

    pub(super) fn get<T>(lazy: &'static Lazy<T>) -> &'static T {
        lazy.get()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn all_threads_get_one_value() {
        static ONE: PerMachine<String> = PerMachine::new(|| "one".into());
        let other = std::thread::spawn(|| ONE.get()).join().expect("no panic");
        assert!(core::ptr::eq(ONE.get(), other));
        assert_eq!(other, "one");
    }
}
