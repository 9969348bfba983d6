//! A simulated CPU: the thread it runs, those that wait for it, its outstanding request and its accounts.

use super::Kind;
use super::store_buffer::StoreBuffer;
use super::tree::NEVER;
use core::cell::{Cell, RefCell};
use random::Random;
use std::collections::VecDeque;

/// Lines that one wait condition may read.
pub(crate) const WATCHED: usize = 4;

/// A parked spinner's place in the list of one line. Nodes are numbered from 1: CPU times [`WATCHED`] plus the index.
#[derive(Default)]
pub(crate) struct WaitNode {
    /// The line's number + 1; 0: in no list.
    pub(crate) line: Cell<u32>,
    pub(crate) prev: Cell<u32>,
    pub(crate) next: Cell<u32>,
}

/// See the [module documentation](self). Times are picoseconds.
pub(crate) struct Cpu {
    /// The thread that has the CPU, + 1.
    pub(crate) current: Cell<u32>,
    /// The thread that had it last, + 1.
    pub(crate) last: Cell<u32>,
    pub(crate) queue: RefCell<VecDeque<u32>>,
    /// Counts the threads that got the CPU: shows whether a [`SliceEnd`](super::event::Event) is
    /// the present one's.
    pub(crate) switches: Cell<u32>,
    pub(crate) slice_end: Cell<u64>,
    /// Whether an end of the slice is among the events, or put off until `in_access` or the kernel is over.
    pub(crate) is_armed: Cell<bool>,
    pub(crate) is_put_off: Cell<bool>,
    /// A line is on its way: the instruction cannot be interrupted.
    pub(crate) in_access: Cell<bool>,
    pub(crate) request: Cell<Kind>,
    /// When the line that it queued for arrives; set when its turn has come.
    pub(crate) arrival: Cell<u64>,
    /// The next CPU in the queue for the same line: its number + 1.
    pub(crate) next_request: Cell<u16>,
    /// Stores that have not retired, and when the last one does.
    pub(super) stores: StoreBuffer,
    pub(super) retires: Cell<u64>,
    pub(crate) waits: [WaitNode; WATCHED],
    pub(crate) random: Random,
    pub(crate) next_interrupt: Cell<u64>,
    /// Time that an interrupt from another CPU takes, not yet spent.
    pub(crate) stolen: Cell<u64>,
    pub(crate) idle_since: Cell<u64>,
    pub(crate) idle_time: Cell<u64>,
    pub(crate) interrupt_time: Cell<u64>,
    pub(crate) switch_time: Cell<u64>,
    pub(crate) stall_time: Cell<u64>,
}

impl Cpu {
    /// Returns an idle one, with room for so many stores.
    pub(crate) fn new(random: Random, stores: usize) -> Self {
        Self {
            current: Cell::new(0),
            last: Cell::new(0),
            queue: RefCell::default(),
            switches: Cell::new(0),
            slice_end: Cell::new(0),
            is_armed: Cell::new(false),
            is_put_off: Cell::new(false),
            in_access: Cell::new(false),
            request: Cell::new(Kind::Load),
            arrival: Cell::new(0),
            stores: StoreBuffer::new(stores),
            retires: Cell::new(0),
            next_request: Cell::new(0),
            waits: Default::default(),
            random,
            next_interrupt: Cell::new(NEVER),
            stolen: Cell::new(0),
            idle_since: Cell::new(0),
            idle_time: Cell::new(0),
            interrupt_time: Cell::new(0),
            switch_time: Cell::new(0),
            stall_time: Cell::new(0),
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.current.get() == 0
    }

    pub(crate) fn has_queue(&self) -> bool {
        !self.queue.borrow().is_empty()
    }
}

#[inline(always)]
pub(crate) fn add(cell: &Cell<u64>, value: u64) {
    cell.set(cell.get() + value);
}
