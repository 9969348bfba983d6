//! The engine: simulated threads are coroutines on one host thread, and the CPU with the least virtual clock runs.
//!
//! # What it is
//! All state of one simulation, in cells: a thread may be suspended inside any call here, and the next one finds the
//! engine through the same shared reference. Nothing borrowed from a `RefCell` lives over a call that may suspend.
//!
//! # How it is locked
//! One simulation at a time in a process (`crate::run`), on the host thread that began it.
//!
//! # Invariants
//! 1. `CURRENT` points at a living engine or is null; it is set by [`Entered`] alone.

mod access;
mod account;
mod cache;
mod coherence;
mod costs;
mod event;
mod line;
mod queue;
mod schedule;
mod sleep;
mod store_buffer;
mod task;
mod tree;
mod virtual_cpu;
mod wait;

pub(crate) use access::access;
pub(crate) use costs::NS;
pub(crate) use task::SLOTS;

use crate::arena::Heap;
use crate::config::{Config, Schedule};
use crate::counters::Counts;
use crate::hash::FastMap;
use crate::lockmeter::Meter;
use crate::memory::{Region, STACKS};
use crate::per_machine::Values;
use crate::stall::Stalls;
use core::cell::{Cell, OnceCell, RefCell};
use costs::{Costs, Places};
use event::{Event, Events};
use line::Lines;
use random::Random;
use std::collections::{BTreeSet, VecDeque};
use task::{State, Task};
use tree::Tree;
use virtual_cpu::Cpu;

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Reads.
    Load,
    /// Writes.
    Store,
    /// Reads and writes as one, with a lock.
    Rmw,
}

/// Why an access is not an ordinary one; bits.
pub(crate) mod mode {
    /// The scheduler evaluates a wait condition.
    pub(crate) const SCHEDULER: u32 = 1;
    /// A thread evaluates its wait condition.
    pub(crate) const WATCHING: u32 = 2;
    /// Nothing is charged.
    pub(crate) const UNCHARGED: u32 = 4;
    /// Lines are written down.
    pub(crate) const FOOTPRINT: u32 = 8;
    /// Clocks are disturbed.
    pub(crate) const SHUFFLED: u32 = 16;
}

/// Why a simulation ended early.
pub(crate) enum Failure {
    /// A thread panicked, with this, at this time (picoseconds).
    Panic { thread: String, time: u64, payload: Box<dyn core::any::Any + Send> },
    /// The simulation cannot go on.
    Stop(String),
}

/// See the [module documentation](self). Times are picoseconds.
pub(crate) struct Engine {
    // State that each access reads.
    pub(crate) clock: Cell<u64>,
    /// The running thread needs no check up to this time.
    horizon: Cell<u64>,
    pub(crate) mode: Cell<u32>,
    cpu: Cell<usize>,
    /// When the last store of the CPU that runs retires.
    retires: Cell<u64>,
    thread: Cell<usize>,
    lines: Lines,
    costs: Costs,
    places: Places,
    // State that misses and switches use.
    tree: Tree,
    events: Events,
    cpus: Box<[Cpu]>,
    caches: Option<cache::Caches>,
    /// By node and line number modulo 64: until when the node's shared cache is busy with which line.
    shared: Box<[Cell<(u32, u64)>]>,
    tasks: Box<[OnceCell<Box<Task>>]>,
    made: Cell<usize>,
    ids: RefCell<(BTreeSet<usize>, usize)>,
    idle: Box<[Cell<u64>]>,
    idle_count: Cell<usize>,
    queued_threads: Cell<usize>,
    sleepers: RefCell<FastMap<usize, VecDeque<u32>>>,
    // The run.
    pub(crate) counts: Counts,
    pub(crate) meter: RefCell<Meter>,
    pub(crate) stalls: RefCell<Stalls>,
    base_mode: Cell<u32>,
    config: Config,
    slack: u64,
    /// The measured time; see [`Engine::within`].
    pub(crate) warm: Cell<u64>,
    pub(crate) deadline: Cell<u64>,
    hash: Cell<u64>,
    random: Random,
    failure: RefCell<Option<Failure>>,
    has_failed: Cell<bool>,
    /// When the run counts as endless.
    limit: Cell<u64>,
    /// Threads that the phase still waits for.
    awaited: Cell<usize>,
    region: Region,
    heap: Heap,
    pub(crate) per_machine: Values,
}

impl Engine {
    pub(crate) fn new(config: Config) -> Self {
        assert!((1..=4096).contains(&config.threads), "{} threads, of 1 to 4096", config.threads);
        let (machine, cpus) = (&config.machine, config.cpus);
        let places = Places::new(machine, cpus, config.placement);
        let region = Region::get();
        let heap = Heap::new(region);
        let words = cpus.div_ceil(64);
        let engine = Self {
            clock: Cell::new(0),
            horizon: Cell::new(0),
            mode: Cell::new(0),
            cpu: Cell::new(0),
            retires: Cell::new(0),
            thread: Cell::new(0),
            lines: Lines::new(machine.line_bytes, &places),
            costs: Costs::new(machine),
            tree: Tree::new(cpus),
            events: Events::new(),
            cpus: (0..cpus).map(|cpu| Cpu::new(Random::new(config.seed, cpu as u64), machine.window.stores)).collect(),
            caches: config.finite_caches.then(|| cache::Caches::new(machine, cpus)),
            shared: vec![Cell::new((0, 0)); places.nodes * 64].into(),
            places,
            tasks: (0..(config.threads + 512).min(STACKS)).map(|_| OnceCell::new()).collect(),
            made: Cell::new(0),
            ids: RefCell::default(),
            idle: vec![Cell::new(0); words].into(),
            idle_count: Cell::new(0),
            queued_threads: Cell::new(0),
            sleepers: RefCell::default(),
            counts: Counts::default(),
            meter: RefCell::default(),
            stalls: RefCell::default(),
            base_mode: Cell::new(mode::UNCHARGED),
            slack: config.slack_ns * NS,
            warm: Cell::new(u64::MAX),
            deadline: Cell::new(u64::MAX),
            hash: Cell::new(0xCBF2_9CE4_8422_2325),
            random: Random::new(config.seed, 1 << 32),
            failure: RefCell::new(None),
            has_failed: Cell::new(false),
            limit: Cell::new(u64::MAX),
            awaited: Cell::new(0),
            region,
            heap,
            per_machine: Values::default(),
            config,
        };
        (0..cpus).for_each(|cpu| engine.set_idle(cpu, true));
        if engine.config.schedule == Schedule::Shuffled {
            let ties = (cpus.next_power_of_two().max(2) - 1) as u64;
            engine.tree.tie.set(engine.random.draw() & ties);
        }
        engine
    }

    /// Returns the thread that runs, or the thread whose condition is evaluated.
    #[inline]
    pub(crate) fn task(&self) -> &Task {
        self.task_of(self.thread.get() as u32)
    }

    #[inline]
    fn task_of(&self, thread: u32) -> &Task {
        self.tasks[thread as usize].get().expect("a thread that was made")
    }

    /// Returns all threads made so far.
    fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.iter().filter_map(|task| task.get().map(|task| &**task))
    }

    /// Returns whether the thread that runs is unwinding. Such a thread must not be suspended,
    /// because the host thread would then go on with another coroutine while the host thread counts
    /// as panicking.
    fn is_unwinding() -> bool {
        std::thread::panicking()
    }

    /// Schedules an event.
    fn at(&self, time: u64, event: Event) {
        self.events.push(time, event);
        self.horizon.set(self.horizon.get().min(time.saturating_sub(1).saturating_add(self.slack)));
    }

    /// Lets a CPU go on at a time.
    fn set_clock(&self, cpu: usize, time: u64) {
        // In the middle of an instruction it is not interrupted.
        let stolen = if self.cpus[cpu].in_access.get() { 0 } else { self.cpus[cpu].stolen.take() };
        self.tree.set(cpu, time + stolen);
        self.horizon.set(self.horizon.get().min((time + stolen).saturating_add(self.slack)));
    }

    /// Up to when the running thread need not check.
    fn set_horizon(&self) {
        let others = self.tree.time().min(self.events.time().saturating_sub(1)).saturating_add(self.slack);
        let interrupt = self.cpus[self.cpu.get()].next_interrupt.get().saturating_sub(1);
        self.horizon.set(others.min(interrupt).min(self.limit.get()));
    }

    /// Returns a random number of the running simulation, as random as the simulation's seed.
    pub(crate) fn random_u64(&self) -> u64 {
        self.task().random.draw()
    }

    /// Returns one more than the highest index given out so far.
    pub(crate) fn id_count(&self) -> usize {
        self.ids.borrow().1
    }

    /// Returns the current moment's place in the run, for messages.
    fn describe_time(&self) -> String {
        format!("{:.3} us", self.clock.get() as f64 / 1e6)
    }

    fn fail(&self, failure: Failure) {
        let _host = crate::arena::outside();
        self.failure.borrow_mut().get_or_insert(failure);
        self.has_failed.set(true);
    }

    /// Returns whether a thread waits for good.
    fn is_blocked(state: State) -> bool {
        !matches!(state, State::Done)
    }
}

thread_local! {
    static CURRENT: Cell<*const Engine> = const { Cell::new(core::ptr::null()) };
}

/// Returns the simulation that the calling host thread is in, if any.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Engine> {
    let engine = CURRENT.get();
    // SAFETY: invariant 1. The reference does not outlive the simulation: its callers are simulated
    // code, or the scheduler, and neither runs after it.
    unsafe { engine.as_ref() }
}

/// While it lives, the calling host thread is in a simulation.
pub(crate) struct Entered<'e>(&'e Engine);

impl<'e> Entered<'e> {
    pub(crate) fn new(engine: &'e Engine) -> Self {
        assert!(current().is_none(), "a simulation inside a simulation");
        CURRENT.set(engine);
        Self(engine)
    }

    pub(crate) fn engine(&self) -> &'e Engine {
        self.0
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        CURRENT.set(core::ptr::null());
    }
}
