//! One value for the whole machine, as `prim`'s: each simulation has its own.

use crate::arena;
use crate::engine::current;
use core::any::Any;
use core::cell::OnceCell;
use std::sync::OnceLock;

/// A `T` for each simulation, and one for threads outside of them.
pub struct PerMachine<T: 'static> {
    outside: OnceLock<T>,
    make: fn() -> T,
}

impl<T> PerMachine<T> {
    /// Returns a value that `make` makes at first use.
    #[must_use]
    pub const fn new(make: fn() -> T) -> Self {
        Self { outside: OnceLock::new(), make }
    }

    /// Returns the machine's value. It does not move, and lives as long as the machine: in a
    /// simulation until it ends.
    #[inline]
    pub fn get(&'static self) -> &'static T {
        match current::<'static>() {
            Some(engine) => engine.per_machine.get_or_make((&raw const *self).addr(), self.make),
            None => self.outside.get_or_init(self.make),
        }
    }
}

impl<T> core::fmt::Debug for PerMachine<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PerMachine").finish_non_exhaustive()
    }
}

/// The values of one simulation: a list in the order in which they were made.
#[derive(Default)]
pub(crate) struct Values(OnceCell<Box<Value>>);

struct Value {
    /// The address of the [`PerMachine`].
    key: usize,
    value: Box<dyn Any>,
    next: Values,
}

impl Values {
    /// Returns the value of the `PerMachine` at `key`. The allocations of `make` belong to the
    /// simulated thread; the list does not.
    fn get_or_make<T: 'static>(&self, key: usize, make: fn() -> T) -> &T {
        let entry = self.0.get_or_init(|| {
            let value = make();
            let _host = arena::outside();
            Box::new(Value { key, value: Box::new(value), next: Self::default() })
        });
        if entry.key == key {
            entry.value.downcast_ref().expect("one type at each address")
        } else {
            entry.next.get_or_make(key, make)
        }
    }
}
