//! The counts of a simulation: in the engine, and in its report.

use core::cell::Cell;

/// Defines the counts that a report has, and those that the engine keeps.
macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts of the whole run, warm-up included.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Counters {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            /// Returns each count with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }
        }

        /// The counters while they are counted.
        #[derive(Default)]
        pub(crate) struct Counts {
            $(pub(crate) $name: Cell<u64>,)*
        }

        impl Counts {
            pub(crate) fn counters(&self) -> Counters {
                Counters { $($name: self.$name.get(),)* }
            }
        }
    };
}

counters! {
    /// Charged accesses.
    accesses,
    /// Loads of lines that the CPU had.
    load_hits,
    /// Loads of lines that it had not.
    load_misses,
    /// Stores and read-modify-writes to lines that it owned.
    write_hits,
    /// To lines that it did not.
    write_misses,
    /// Lines that a private cache had no room for.
    evictions,
    /// Misses that waited for others'.
    queued,
    /// Times that the simulator switched to a thread's stack: its speed depends on them.
    resumes,
    /// Wait conditions that the scheduler evaluated.
    conditions,
    /// Spinners that a write woke.
    spinner_wakes,
    /// Changes of a CPU from one thread to another.
    switches,
    /// Threads that lost their CPU at the end of a slice.
    preemptions,
    /// Threads that continued on another CPU.
    migrations,
    /// Calls of `park`.
    parks,
    /// Threads that were woken from it.
    wakes,
}
