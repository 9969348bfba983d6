//! The lock loop that runs natively and on the simulated machine: one text, compiled against both.
//!
//! # What it is
//! `lock; data += 1; unlock; private work`, for each lock of `sync`, with the data in the lock's line or in a separate
//! line. The second kind is the harder test: a processor fetches both lines at once and does not wait for its stores,
//! which the simulated machine does not model.

use serde::Serialize;

/// A lock whose loops are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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

    /// The type's name.
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

/// Where a loop's data lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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

/// What is done with a loop's section. `make` makes a lock and its data and answers with a closure that goes once
/// through the section: a visitor, so that neither side pays for a call through a pointer.
pub(super) trait Visitor {
    type Output;

    fn visit<S: Fn() + Send + Sync + 'static>(self, make: impl FnOnce() -> S + Send + 'static) -> Self::Output;
}

macro_rules! sections {
    ($(#[$doc:meta])* $side:ident, $($atomic:ident)::+, $sync:ident, $locks:ident) => {
        $(#[$doc])*
        pub(super) mod $side {
            use super::{DataLine, Kind, Visitor};
            use $($atomic)::+::{AtomicU64, Ordering::Relaxed};
            use $locks::{McsLock, QueuedLock, TicketLock};
            use $sync::{Lock, RawLock, TasLock};

            /// Lines of 128 bytes, as some CPUs fetch them in pairs.
            #[derive(Default)]
            #[repr(align(128))]
            struct Line(AtomicU64);

            /// The data lies beside the lock's data, not in it: the simulated machine charges for each look through a
            /// guard.
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

            fn near<R: RawLock + 'static>() -> impl Fn() + Send + Sync + 'static {
                let place = Box::new(Place::<R>::new());
                move || add(&place.lock, &place.near)
            }

            fn far<R: RawLock + 'static>() -> impl Fn() + Send + Sync + 'static {
                let place = Box::new(Place::<R>::new());
                move || add(&place.lock, &place.far.0)
            }

            #[inline(always)]
            fn add<R: RawLock>(lock: &Lock<R, ()>, data: &AtomicU64) {
                let _section = lock.lock();
                // Relaxed: the lock orders it; an atomic only so that the simulated machine sees the accesses.
                data.store(data.load(Relaxed) + 1, Relaxed);
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
