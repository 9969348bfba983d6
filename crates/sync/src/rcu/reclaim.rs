//! The state that a domain shares with its reclaimer: a callback's path from `defer` to its call.
//!
//! ```text
//! defer: own CPU's Pending --full or flush--> handed (stack) --grace period--> run by the thread with the baton:
//!        the reclaimer thread, or a deferring thread (`poll`), or `barrier`, where there is no thread
//! ```
//!
//! One consumer at a time takes the handed batches of callbacks, waits for a grace period, runs the
//! batches, oldest first, and then looks for more. So when a marker batch is run, every batch
//! handed before the marker has been run.
//!
//! If no grace period can begin ([`Refused`]), batches stay where they are, their markers inform
//! the threads in `barrier`, and the next call of the consumer tries again. In the child of a fork
//! nothing is run: the domain and everything that was deferred are leaked.

use super::batch::{Batch, Callback, DONE, Handed, Pending, REFUSED, TryLock};
use super::readers::{Readers, Refused};
use core::time::Duration;
use prim::atomic::{
    AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::shared::Arc;
use prim::thread::JoinHandle;

/// `Inner::reclaimer`: no thread, and none is being started.
const ABSENT: u32 = 0;
/// `Inner::reclaimer`: a thread starts it.
const STARTING: u32 = 1;
/// `Inner::reclaimer`: it runs until the domain is dropped.
const RUNNING: u32 = 2;

/// `Inner::consumer`: no thread runs callbacks.
const NOBODY: usize = usize::MAX;

/// Rounds of a wait for readers that only yield, before it naps.
const ROUNDS_BEFORE_NAP: u32 = 64;

/// A grace period that waits so long for readers counts as a stall.
const STALL_NS: u64 = 1_000_000_000;

/// Readers first, at the address that a guard keeps anyway.
#[repr(C)]
pub(super) struct Inner {
    pub(super) readers: Readers<TryLock<Pending>>,
    pub(super) reclaim: Reclaim,
}

/// Apart from the cache lines that readers use.
#[repr(align(128))]
pub(super) struct Reclaim {
    handed: Handed,
    /// The right to consume handed batches.
    baton: TryLock<Waiting>,
    /// The index of the thread that runs callbacks, or `NOBODY`.
    consumer: AtomicUsize,
    /// Raised after each hand-over, so that the reclaimer does not park over it.
    wake: AtomicU32,
    reclaimer: AtomicU32,
    threadless: bool,
    handle: TryLock<Option<JoinHandle<()>>>,
    /// The domain is being dropped: it has no readers, so no wait for one is needed.
    stop: AtomicBool,
    /// One of the domain's own callbacks dropped it; the reclaimer runs the remaining ones.
    orphaned: AtomicBool,
    pub(super) counters: Counters,
}

/// All but `stalled_now` only grow.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) grace_periods: AtomicU64,
    pub(super) longest_grace_period_ns: AtomicU64,
    pub(super) stalls: AtomicU64,
    pub(super) stalled_now: AtomicU64,
    pub(super) freed_callbacks: AtomicU64,
    pub(super) freed_bytes: AtomicU64,
    pub(super) panics: AtomicU64,
    pub(super) refusals: AtomicU64,
}

/// Batches, and the epoch that ends their grace period. None: it could not begin yet.
#[derive(Default)]
struct Waiting {
    batches: Vec<Batch>,
    target: Option<u64>,
}

impl Inner {
    pub(super) fn new(fences: bool, threadless: bool) -> Self {
        let reclaim = Reclaim {
            handed: Handed::new(),
            baton: TryLock::default(),
            consumer: AtomicUsize::new(NOBODY),
            wake: AtomicU32::new(0),
            reclaimer: AtomicU32::new(ABSENT),
            threadless,
            handle: TryLock::new(None),
            stop: AtomicBool::new(false),
            orphaned: AtomicBool::new(false),
            counters: Counters::default(),
        };
        Self { readers: Readers::new(fences, false), reclaim }
    }

    /// Returns whether the calling thread runs a callback of this domain.
    pub(super) fn is_in_callback(&self) -> bool {
        // Relaxed: only this thread itself can have stored its own index.
        prim::cpu::is(self.reclaim.consumer.load(Relaxed))
    }

    /// Waits for the end of a grace period. `false`: it gave up, because the domain is being dropped.
    pub(super) fn wait_for_readers(&self, target: u64) -> bool {
        let counters = &self.reclaim.counters;
        let begin = prim::clock::monotonic_ns();
        let waited_ns = || prim::clock::monotonic_ns().saturating_sub(begin) as u64;
        let (mut rounds, mut stalled) = (0, false);
        let ended = self.readers.wait(target, || {
            // Relaxed (here and below): counters.
            if !stalled && waited_ns() >= STALL_NS {
                stalled = true;
                counters.stalls.fetch_add(1, Relaxed);
                counters.stalled_now.fetch_add(1, Relaxed);
            }
            rounds += 1;
            pause(rounds);
            // Relaxed: a thread that stops trying only leaves; the thread that stops it joins it.
            !self.reclaim.stop.load(Relaxed)
        });
        if stalled {
            counters.stalled_now.fetch_sub(1, Relaxed);
        }
        if ended {
            counters.grace_periods.fetch_add(1, Relaxed);
            counters.longest_grace_period_ns.fetch_max(waited_ns(), Relaxed);
        }
        ended
    }

    /// Puts a callback into the calling CPU's batch. `true`: the batch was full and has been handed over.
    #[inline]
    pub(super) fn defer(&self, bytes: usize, callback: Callback) -> bool {
        let mut callback = Some(callback);
        let pending = self.readers.this();
        loop {
            match pending.with(|pending| pending.push(bytes, &mut callback, &self.reclaim.handed)) {
                Some(was_full) => return was_full,
                None => make_room(pending),
            }
        }
    }

    /// Hands over every CPU's batch, full or not.
    fn collect(&self) -> bool {
        self.readers.iter().fold(false, |any, pending| any | pending.with(|p| p.hand_over(&self.reclaim.handed)))
    }

    fn wake(&self) {
        // ORDERING: Release pairs with the Acquire in `run_reclaimer`: the batch that was handed over, `stop`.
        self.reclaim.wake.fetch_add(1, Release);
        prim::park::unpark_one(&self.reclaim.wake);
    }

    /// Consumes as far as possible without waiting.
    fn consume_now(&self) {
        let passed = |target| {
            let passed = self.readers.has_passed(target);
            // Relaxed: a counter.
            self.reclaim.counters.grace_periods.fetch_add(passed.into(), Relaxed);
            passed
        };
        let _ = self.reclaim.baton.try_with(|waiting| self.consume(waiting, passed));
    }

    /// Runs handed batches while `passed` returns that the grace period of an epoch has ended.
    fn consume(&self, waiting: &mut Waiting, passed: impl Fn(u64) -> bool) -> bool {
        let mut any = false;
        loop {
            let target = match waiting.target {
                Some(target) => target,
                None => {
                    waiting.batches.append(&mut self.reclaim.handed.take_all());
                    if waiting.batches.is_empty() {
                        return any;
                    }
                    let Ok(target) = self.readers.start() else {
                        self.refuse(waiting);
                        return any;
                    };
                    *waiting.target.insert(target)
                }
            };
            if !passed(target) {
                return any;
            }
            any = true;
            waiting.target = None;
            self.run(core::mem::take(&mut waiting.batches));
        }
    }

    /// Reports that no grace period can begin to the threads that wait in `barrier`.
    #[cold]
    fn refuse(&self, waiting: &mut Waiting) {
        // Relaxed: a counter.
        self.reclaim.counters.refusals.fetch_add(1, Relaxed);
        waiting.batches.iter_mut().for_each(|batch| batch.notify(REFUSED));
    }

    fn run(&self, batches: Vec<Batch>) {
        // Relaxed: see `is_in_callback`.
        self.reclaim.consumer.store(prim::cpu::id(), Relaxed);
        for batch in batches {
            let (callbacks, bytes) = (batch.callbacks.len(), batch.bytes);
            let panics = batch.run();
            // Relaxed: counters.
            self.reclaim.counters.panics.fetch_add(panics, Relaxed);
            self.reclaim.counters.freed_callbacks.fetch_add(callbacks as u64, Relaxed);
            self.reclaim.counters.freed_bytes.fetch_add(bytes as u64, Relaxed);
        }
        self.reclaim.consumer.store(NOBODY, Relaxed);
    }

    /// Consumes, waiting for readers. `None`: another thread does.
    fn try_consume(&self) -> Option<bool> {
        self.reclaim.baton.try_with(|waiting| self.consume(waiting, |target| self.wait_for_readers(target)))
    }

    /// Runs the remaining callbacks without a grace period: there are no readers any more.
    fn run_everything(&self) {
        let mut any = true;
        while any {
            any = self.collect();
            self.reclaim.baton.with(|waiting| {
                waiting.target = None;
                let mut batches = core::mem::take(&mut waiting.batches);
                batches.append(&mut self.reclaim.handed.take_all());
                any |= !batches.is_empty();
                self.run(batches);
            });
        }
    }
}

/// Allocates a batch, outside the lock.
#[cold]
fn make_room(pending: &TryLock<Pending>) {
    let room = Batch::with_room();
    pending.with(|pending| {
        if pending.batch.is_none() {
            pending.batch = Some(room);
        }
    });
}

/// Spends a moment of a long wait: first yields the CPU, later sleeps.
fn pause(round: u32) {
    if cfg!(loom) || round < ROUNDS_BEFORE_NAP {
        return prim::thread::yield_now();
    }
    // No thread wakes it: readers do not see the wait.
    prim::park::park_timeout(&AtomicU32::new(0), 0, Duration::from_micros(100));
}

/// Hands over every CPU's batch, full or not.
pub(super) fn flush(inner: &Arc<Inner>) {
    if inner.collect() {
        call_reclaimer(inner);
    }
}

/// Wakes the reclaimer, or does its work as far as possible without waiting.
#[cold]
pub(super) fn call_reclaimer(inner: &Arc<Inner>) {
    if inner.readers.check_era().is_err() {
        return;
    }
    match start_reclaimer(inner) {
        // The thread that starts it consumes itself if the start fails.
        STARTING | RUNNING => inner.wake(),
        _ => inner.consume_now(),
    }
}

/// Returns when all callbacks deferred before have run.
pub(super) fn barrier(inner: &Arc<Inner>) -> Result<(), Refused> {
    inner.readers.check_era()?;
    inner.collect();
    let done = Arc::new(AtomicU32::new(0));
    inner.reclaim.handed.push(Batch::marker(done.clone()));
    while start_reclaimer(inner) == STARTING {
        prim::thread::yield_now();
    }
    // Relaxed: RUNNING means only that the thread runs until the domain is dropped.
    let is_running = inner.reclaim.reclaimer.load(Relaxed) == RUNNING;
    inner.wake();
    loop {
        // ORDERING: Acquire pairs with the Release in `Batch::notify` (batch.rs): what the callbacks did.
        match done.load(Acquire) {
            DONE => return Ok(()),
            REFUSED => return Err(Refused::Membarrier),
            _ if is_running => prim::park::park(&done, 0),
            _ if inner.try_consume().is_none() => prim::thread::yield_now(),
            _ => {}
        }
    }
}

/// Starts the reclaimer unless it runs, another thread is starting it, the domain has none, or the system has no room
/// for a thread (tried again next time). Returns its state afterwards.
fn start_reclaimer(inner: &Arc<Inner>) -> u32 {
    let reclaim = &inner.reclaim;
    if reclaim.threadless {
        return ABSENT;
    }
    // Relaxed (also below): no data passes through this word.
    let state = reclaim.reclaimer.load(Relaxed);
    if state != ABSENT {
        return state;
    }
    if let Err(state) = reclaim.reclaimer.compare_exchange(ABSENT, STARTING, Relaxed, Relaxed) {
        return state;
    }
    let shared = inner.clone();
    let handle = prim::thread::spawn("rcu-reclaimer", move || run_reclaimer(&shared));
    let state = if handle.is_some() { RUNNING } else { ABSENT };
    reclaim.handle.with(|slot| *slot = handle);
    reclaim.reclaimer.store(state, Relaxed);
    state
}

fn run_reclaimer(inner: &Inner) {
    let reclaim = &inner.reclaim;
    loop {
        // ORDERING: Acquire pairs with the Release in `Inner::wake`: a raised value comes with the batch or the `stop`
        // it was raised for; one that is raised later keeps this thread from parking.
        let seen = reclaim.wake.load(Acquire);
        let any = reclaim.baton.with(|waiting| inner.consume(waiting, |target| inner.wait_for_readers(target)));
        // Relaxed: comes with `wake`; the join orders the accesses that follow.
        if reclaim.stop.load(Relaxed) {
            break;
        }
        if !any {
            prim::park::park(&reclaim.wake, seen);
        }
    }
    // Relaxed: set by a callback, so by this thread.
    if reclaim.orphaned.load(Relaxed) {
        inner.run_everything();
    }
}

/// Ends the reclaimer and runs all remaining callbacks. The domain is being dropped, so no guard is alive (a leaked one
/// protects nothing any more: values loaded under it borrow it).
pub(super) fn shut_down(inner: &Inner) {
    let reclaim = &inner.reclaim;
    if inner.readers.check_era().is_err() {
        // Locks and slots may be as threads of the parent left them, and the reclaimer does not exist here.
        return;
    }
    if inner.is_in_callback() {
        // The last owner of the domain was one of its own callbacks: a thread cannot join itself.
        // Relaxed (both): read by this thread.
        reclaim.orphaned.store(true, Relaxed);
        return reclaim.stop.store(true, Relaxed);
    }
    // Relaxed: `wake` publishes it.
    reclaim.stop.store(true, Relaxed);
    inner.wake();
    if let Some(handle) = reclaim.handle.with(Option::take) {
        // It catches the panics of callbacks and does not panic itself.
        let _ = handle.join();
    }
    inner.run_everything();
}
