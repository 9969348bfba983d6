//! The lock loop that runs natively and on the simulated machine: one text, compiled against both.
//!
//! # What it is
//! `lock; data += 1; unlock; private work`, for each lock of `sync`, with the data in the lock's
//! line or in a separate line. The private work needs the data's new value, and the next section
//! needs the work's result. Otherwise an out-of-order processor would run the next section in the
//! midst of private work; the simulated processor does not. A separate line is the harder test: a
//! real processor fetches both lines at once and does not wait for its stores, which the simulated
//! machine does not model.

use serde::{Deserialize, Serialize};

/// A lock whose loops are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// `sync::TasLock`
    Tas,
    /// `locks::TicketLock`
    Ticket,
    /// `locks::McsLock`
    Mcs,
    /// `locks::QueuedLock`
    Queued,
}

impl Kind {
    /// In the order of the table.
    pub const ALL: [Self; 4] = [Self::Tas, Self::Ticket, Self::Mcs, Self::Queued];

    /// Returns the type's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tas => "TasLock",
            Self::Ticket => "TicketLock",
            Self::Mcs => "McsLock",
            Self::Queued => "QueuedLock",
        }
    }
}

/// The place of a loop's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DataLine {
    /// In the lock's line: a section moves one.
    Locks,
    /// In another: a section moves two.
    Own,
}

impl DataLine {
    /// In the order of the table.
    pub const ALL: [Self; 2] = [Self::Locks, Self::Own];

    /// Lines that a section moves, but for the queue nodes of locks that have some.
    #[must_use]
    pub fn lines(self) -> usize {
        match self {
            Self::Locks => 1,
            Self::Own => 2,
        }
    }
}

/// The action on a loop's section. `make` makes a lock and its data and returns a closure that
/// takes the result of private work, passes once through the section and returns the value that it
/// wrote: a visitor, so that neither side pays for a call through a pointer.
pub(super) trait Visitor {
    type Output;

    fn visit<S: Fn(u64) -> u64 + Send + Sync + 'static>(
        self,
        make: impl FnOnce() -> S + Send + 'static,
    ) -> Self::Output;
}

macro_rules! sections {
    ($(#[$doc:meta])* $side:ident, $($atomic:ident)::+, $sync:ident, $locks:ident) => {
        $(#[$doc])*
        pub(super) mod $side {
            use super::{DataLine, Kind, Visitor};
            use core::hint::black_box;
            use $($atomic)::+::{AtomicU64, Ordering::Relaxed};
            use $locks::{McsLock, QueuedLock, TicketLock};
            use $sync::{Lock, RawLock, TasLock};

            /// Lines of 128 bytes, as some CPUs fetch them in pairs.
            #[derive(Default)]
            #[repr(align(128))]
            struct Line(AtomicU64);

            /// `near` and `far` are beside the lock, not in the data that it guards: the simulated
            /// machine charges for each access through a guard.
            #[repr(C, align(128))]
            struct Place<R> {
                lock: Lock<R, ()>,
                near: AtomicU64,
                far: Line,
            }

            impl<R: RawLock> Place<R> {
                fn new() -> Self {
                    Self { lock: Lock::new(()), near: AtomicU64::new(0), far: Line::default() }
                }
            }

            /// The place that all sections use, and one that none does.
            struct Places<R> {
                places: Box<[Place<R>; 2]>,
                zero: u64,
            }

            impl<R: RawLock> Places<R> {
                fn new() -> Self {
                    Self { places: Box::new([Place::new(), Place::new()]), zero: black_box(0) }
                }

                /// Returns the place, whose address the CPU has when the work is done, and not
                /// before.
                #[inline(always)]
                fn after(&self, work: u64) -> &Place<R> {
                    &self.places[(work & self.zero) as usize & 1]
                }
            }

            pub(in super::super) fn visit<V: Visitor>(kind: Kind, data: DataLine, visitor: V) -> V::Output {
                match (kind, data) {
                    (Kind::Tas, DataLine::Locks) => visitor.visit(near::<TasLock>),
                    (Kind::Tas, DataLine::Own) => visitor.visit(far::<TasLock>),
                    (Kind::Ticket, DataLine::Locks) => visitor.visit(near::<TicketLock>),
                    (Kind::Ticket, DataLine::Own) => visitor.visit(far::<TicketLock>),
                    (Kind::Mcs, DataLine::Locks) => visitor.visit(near::<McsLock>),
                    (Kind::Mcs, DataLine::Own) => visitor.visit(far::<McsLock>),
                    (Kind::Queued, DataLine::Locks) => visitor.visit(near::<QueuedLock>),
                    (Kind::Queued, DataLine::Own) => visitor.visit(far::<QueuedLock>),
                }
            }

            fn near<R: RawLock + 'static>() -> impl Fn(u64) -> u64 + Send + Sync + 'static {
                let places = Places::<R>::new();
                move |work| {
                    let place = places.after(work);
                    add(&place.lock, &place.near)
                }
            }

            fn far<R: RawLock + 'static>() -> impl Fn(u64) -> u64 + Send + Sync + 'static {
                let places = Places::<R>::new();
                move |work| {
                    let place = places.after(work);
                    add(&place.lock, &place.far.0)
                }
            }

            #[inline(always)]
            fn add<R: RawLock>(lock: &Lock<R, ()>, data: &AtomicU64) -> u64 {
                let _section = lock.lock();
                // Relaxed: the lock orders it; an atomic only so that the simulated machine sees the accesses.
                let value = data.load(Relaxed) + 1;
                data.store(value, Relaxed);
                value
            }
        }
    };
}

sections!(
    /// On this machine.
    native, core::sync::atomic, sync, locks
);
sections!(
    /// On the simulated one.
    simulated, sim::atomic, sync_sim, locks_sim
);
