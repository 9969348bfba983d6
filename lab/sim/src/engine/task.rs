//! A simulated thread: its coroutine, its state, the condition it spins on, its accounts.

use super::virtual_cpu::WATCHED;
use crate::footprint::Record;
use crate::lockmeter::Held;
use crate::profile::Tag;
use crate::stack::FixedStack;
use core::cell::{Cell, RefCell};
use corosensei::{Coroutine, Yielder};
use random::Random;

/// The coroutine that a thread runs on.
pub(crate) type Fiber = Coroutine<(), (), (), FixedStack>;

/// A condition that a spinner waits for, somewhere on its stack.
pub(crate) type Condition = *mut (dyn FnMut() -> bool + 'static);

/// Where a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Has a CPU (and may wait for a line).
    Running,
    /// Has a CPU and waits for a write to the lines of its condition.
    Spinning,
    /// Waits for a CPU.
    Queued,
    /// Is going to sleep on the word at this address, still on its CPU.
    Parking(usize),
    /// Sleeps on the word at this address.
    Parked(usize),
    /// Sleeps for a time.
    Sleeping,
    /// Sleeps until that thread ends.
    Joining(u32),
    /// Has been woken, or was just made, and will want a CPU soon.
    Waking,
    /// Waits although it unwinds from a panic: nothing can go on.
    Stuck,
    /// Has ended.
    Done,
}

/// How many operations of a body can be counted apart.
pub(crate) const SLOTS: usize = 8;

/// See the [module documentation](self). Times are picoseconds.
pub(crate) struct Task {
    pub(crate) name: String,
    /// The value of [`crate::cpu::id`].
    pub(crate) id: usize,
    pub(crate) fiber: RefCell<Option<Fiber>>,
    pub(crate) yielder: Cell<*const Yielder<(), ()>>,
    pub(crate) state: Cell<State>,
    /// The CPU it has or had last.
    pub(crate) cpu: Cell<usize>,
    /// The rest of the current work when the CPU was taken away.
    pub(crate) remaining: Cell<u64>,
    /// Counts sleeps and wakes, to detect a wake for an earlier sleep.
    pub(crate) epoch: Cell<u32>,
    pub(crate) timed_out: Cell<bool>,
    /// Sections that keep the CPU, nested.
    pub(crate) keeps_cpu: Cell<u32>,
    /// The phase of the run ends with it.
    pub(crate) is_awaited: Cell<bool>,
    pub(crate) joiners: RefCell<Vec<u32>>,
    /// The value that [`crate::thread::carry`] set.
    pub(crate) carried: RefCell<Option<prim::thread::Carried>>,
    /// The bits of `super::mode` that are this thread's.
    pub(crate) mode: Cell<u32>,
    // The wait condition: lines it read, with their versions.
    pub(crate) watched: [Cell<(u32, u32)>; WATCHED],
    pub(crate) watching: Cell<usize>,
    /// It read something whose change needs no write to those lines.
    pub(crate) is_unwatchable: Cell<bool>,
    pub(crate) condition: Cell<Option<Condition>>,
    pub(crate) came_true: Cell<bool>,
    /// The changed line has been requested.
    pub(crate) has_fetched: Cell<bool>,
    pub(crate) woken_line: Cell<u32>,
    pub(crate) spins_since: Cell<u64>,
    pub(crate) parked_at: Cell<u64>,
    // Accounts.
    pub(crate) tag: Cell<Tag>,
    pub(crate) tag_since: Cell<u64>,
    /// The caller that its spinning is counted for; see `Meter`.
    pub(crate) caller: Cell<usize>,
    pub(crate) tag_time: [Cell<u64>; Tag::COUNT],
    pub(crate) operations: [Cell<u64>; SLOTS],
    pub(crate) locks: RefCell<Held>,
    pub(crate) footprint: RefCell<Option<Record>>,
    pub(crate) random: Random,
}

impl Task {
    pub(crate) fn new(name: String, id: usize, cpu: usize, random: Random) -> Self {
        Self {
            name,
            id,
            fiber: RefCell::new(None),
            yielder: Cell::new(core::ptr::null()),
            state: Cell::new(State::Waking),
            cpu: Cell::new(cpu),
            remaining: Cell::new(0),
            epoch: Cell::new(0),
            timed_out: Cell::new(false),
            keeps_cpu: Cell::new(0),
            is_awaited: Cell::new(false),
            joiners: RefCell::default(),
            carried: RefCell::default(),
            mode: Cell::new(0),
            watched: Default::default(),
            watching: Cell::new(0),
            is_unwatchable: Cell::new(false),
            condition: Cell::new(None),
            came_true: Cell::new(false),
            has_fetched: Cell::new(false),
            woken_line: Cell::new(0),
            spins_since: Cell::new(0),
            parked_at: Cell::new(0),
            tag: Cell::new(Tag::Other),
            caller: Cell::new(0),
            tag_since: Cell::new(0),
            tag_time: Default::default(),
            operations: Default::default(),
            locks: RefCell::default(),
            footprint: RefCell::new(None),
            random,
        }
    }

    /// Returns the lines that the condition has read so far, with the versions that the condition
    /// saw.
    pub(crate) fn watched(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.watched[..self.watching.get()].iter().map(Cell::get)
    }

    /// Begins a new evaluation of the condition.
    pub(crate) fn watch_nothing(&self) {
        self.watching.set(0);
        self.is_unwatchable.set(false);
    }

    /// Notes that the condition has read a line.
    pub(crate) fn watch(&self, line: usize, version: u32) {
        let known = self.watching.get();
        if known < WATCHED {
            self.watched[known].set((line as u32, version));
            self.watching.set(known + 1);
        } else {
            self.is_unwatchable.set(true);
        }
    }
}
