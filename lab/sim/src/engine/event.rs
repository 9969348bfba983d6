//! Events at a time that no CPU causes: arbitrations, ends of time slices, wakes.

use super::tree::NEVER;
use core::cell::{Cell, RefCell};
use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event. Events at one time happen in the order of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Event {
    /// A line can serve the next request.
    Arbitrate(u32),
    /// A thread that was woken, or whose time has come, wants a CPU. The event has no effect once
    /// its epoch is over.
    Wake { thread: u32, epoch: u32 },
    /// A thread has had its CPU for long enough; likewise by the count of the CPU's switches.
    SliceEnd { cpu: u32, switches: u32 },
}

/// Events by time.
#[derive(Default)]
pub(crate) struct Events {
    heap: RefCell<BinaryHeap<Reverse<(u64, Event)>>>,
    next: Cell<u64>,
}

impl Events {
    pub(crate) fn new() -> Self {
        Self { heap: RefCell::default(), next: Cell::new(NEVER) }
    }

    /// Returns the time at which the next event is due.
    #[inline]
    pub(crate) fn time(&self) -> u64 {
        self.next.get()
    }

    pub(crate) fn push(&self, time: u64, event: Event) {
        let _host = crate::arena::outside();
        self.heap.borrow_mut().push(Reverse((time, event)));
        self.next.set(self.next.get().min(time));
    }

    pub(crate) fn pop(&self) -> Option<(u64, Event)> {
        let mut heap = self.heap.borrow_mut();
        let Reverse(first) = heap.pop()?;
        self.next.set(heap.peek().map_or(NEVER, |Reverse((time, _))| *time));
        Some(first)
    }
}
