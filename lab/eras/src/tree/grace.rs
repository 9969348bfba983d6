//! When the kernel frees a file that was closed: at once, or after a grace period that it learns of in one of three ways.
//!
//! # What it is
//! A file that is closed joins a backlog, and leaves it after a grace period: each CPU that takes
//! part has been outside of read sections once, which it reports at the end of an open or a close.
//! The eras differ in where callbacks queue and how CPUs report:
//!
//! | rule             | a callback queues                    | a CPU reports                                              |
//! |------------------|--------------------------------------|------------------------------------------------------------|
//! | [`Classic`]      | on one queue, under one lock         | under that lock                                            |
//! | [`Hierarchical`] | on the CPU's own queue               | under the lock of 16 CPUs; the last of them, under the root's |
//! | [`Ours`]         | in Lightfoot's RCU                   | by its own word: see `sync::rcu`                            |
//!
//! # What it is not
//! This rule does not keep entries alive: entries wait for the tree's own grace periods in every
//! era. A file is a number here, so nothing breaks if a rule ends too early; the comparison is of
//! the cost of the rules.
//!
//! # Source
//! P. McKenney and others, "Read-Copy Update" (Ottawa Linux Symposium 2001), for one queue and one lock; P. McKenney,
//! "Hierarchical RCU" (LWN, November 2008; Linux 2.6.29). Files are freed by RCU since 2.6.14.

use locks::TicketLock;
use prim::PerCpu;
use prim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use sync::Lock;
use sync::rcu::RcuDomain;

/// Running one callback: freeing a file.
const FREE_NS: u64 = 60;

/// Bytes of a file.
const FILE: usize = 256;

/// CPUs that report to one leaf.
const FAN_OUT: usize = 16;

/// Leaves: as many CPUs as there can be.
const LEAVES: usize = 64;

/// See the [module documentation](self).
pub(crate) trait Grace: Send + Sync + 'static {
    fn new() -> Self;

    /// Notes that a file was closed. The caller is not in a read section.
    fn closed(&self, _domain: &RcuDomain) {}

    /// Notes that the calling CPU is not in a read section.
    fn quiescent(&self) {}

    /// Calls `visit` with the numbers of grace periods that ended, of files that wait, and of files
    /// that were freed.
    fn visit_counters(&self, _domain: &RcuDomain, _visit: &mut dyn FnMut(&'static str, u64)) {}
}

fn visit_three(visit: &mut dyn FnMut(&'static str, u64), counts: [u64; 3]) {
    ["grace_periods", "backlog", "freed_files"].into_iter().zip(counts).for_each(|(name, count)| visit(name, count));
}

fn free(files: u64) {
    prim::cost(FREE_NS * files);
}

/// Files are freed as they are closed: no figure here depends on that.
pub(crate) struct AtOnce;

impl Grace for AtOnce {
    fn new() -> Self {
        Self
    }
}

/// The number of the last grace period that a CPU has reported to, and its queue.
#[derive(Default)]
#[repr(align(128))]
struct Own {
    /// One more than that; 0: the CPU takes no part yet.
    reported: AtomicU64,
    /// Files that wait for the end of grace period `until`.
    waiting: AtomicU64,
    until: AtomicU64,
    /// Files that wait for those.
    next: AtomicU64,
    freed: AtomicU64,
}

/// One queue and one lock.
pub(crate) struct Classic {
    /// Grace periods that have begun, and that have ended.
    started: AtomicU64,
    global: Lock<TicketLock, Global>,
    own: PerCpu<Own>,
}

#[derive(Default)]
#[repr(align(128))]
struct Global {
    members: u64,
    /// CPUs that have not reported.
    left: u64,
    ended: u64,
    waiting: u64,
    next: u64,
    freed: u64,
}

impl Global {
    /// Begins a grace period if files wait and none runs.
    fn begin(&mut self, started: &AtomicU64) {
        // Relaxed: under the lock; CPUs that see it late report late.
        let last = started.load(Relaxed);
        if self.ended == last && self.next > 0 && self.members > 0 {
            self.waiting = core::mem::take(&mut self.next);
            self.left = self.members;
            started.store(last + 1, Relaxed);
        }
    }
}

impl Grace for Classic {
    fn new() -> Self {
        Self { started: AtomicU64::new(0), global: Lock::new(Global::default()), own: PerCpu::new(Own::default) }
    }

    fn closed(&self, _domain: &RcuDomain) {
        let mut global = self.global.lock();
        global.next += 1;
        global.begin(&self.started);
    }

    fn quiescent(&self) {
        let own = self.own.this();
        // Relaxed, all: the slot is this thread's own, and the lock orders the rest.
        let (started, reported) = (self.started.load(Relaxed), own.reported.load(Relaxed));
        if reported == started + 1 {
            return;
        }
        let mut global = self.global.lock();
        let started = self.started.load(Relaxed);
        own.reported.store(started + 1, Relaxed);
        if reported == 0 {
            global.members += 1;
            return;
        }
        if global.ended == started {
            return;
        }
        global.left -= 1;
        if global.left > 0 {
            return;
        }
        global.ended = started;
        let files = core::mem::take(&mut global.waiting);
        global.freed += files;
        global.begin(&self.started);
        drop(global);
        free(files);
    }

    fn visit_counters(&self, _domain: &RcuDomain, visit: &mut dyn FnMut(&'static str, u64)) {
        let global = self.global.lock();
        visit_three(visit, [global.ended, global.waiting + global.next, global.freed]);
    }
}

/// A tree of locks.
pub(crate) struct Hierarchical {
    started: AtomicU64,
    ended: AtomicU64,
    /// Whether a CPU has files for another grace period.
    is_wanted: AtomicU64,
    root: Lock<TicketLock, Level>,
    leaves: Box<[Leaf]>,
    own: PerCpu<Own>,
}

#[repr(align(128))]
struct Leaf(Lock<TicketLock, Level>);

#[derive(Default)]
struct Level {
    members: u64,
    left: u64,
}

impl Hierarchical {
    fn leaf(&self) -> &Leaf {
        &self.leaves[prim::cpu::id() / FAN_OUT % LEAVES]
    }

    /// Begins a grace period if one is wanted and none runs. Under the root's lock.
    fn begin(&self, root: &mut Level) {
        let last = self.started.load(Relaxed);
        if self.ended.load(Relaxed) != last || self.is_wanted.load(Relaxed) == 0 {
            return;
        }
        self.is_wanted.store(0, Relaxed);
        root.left = 0;
        for leaf in &self.leaves {
            let mut level = leaf.0.lock();
            level.left = level.members;
            root.left += u64::from(level.members > 0);
        }
        // ORDERING: Release pairs with the Acquire in `quiescent`: a CPU that sees the number finds its leaf ready.
        self.started.store(last + 1, Release);
    }

    /// Frees the CPU's own files whose grace period has ended. The files behind them then wait for
    /// the next grace period.
    fn advance(&self, own: &Own) {
        // Relaxed, all: the slot is this thread's own; the numbers only grow.
        let ended = self.ended.load(Relaxed);
        if own.waiting.load(Relaxed) > 0 && own.until.load(Relaxed) <= ended {
            let files = own.waiting.load(Relaxed);
            own.waiting.store(0, Relaxed);
            own.freed.store(own.freed.load(Relaxed) + files, Relaxed);
            free(files);
        }
        if own.waiting.load(Relaxed) == 0 && own.next.load(Relaxed) > 0 {
            own.waiting.store(own.next.load(Relaxed), Relaxed);
            own.next.store(0, Relaxed);
            own.until.store(self.started.load(Relaxed) + 1, Relaxed);
            if self.is_wanted.load(Relaxed) == 0 {
                self.is_wanted.store(1, Relaxed);
                if self.ended.load(Relaxed) == self.started.load(Relaxed) {
                    self.begin(&mut self.root.lock());
                }
            }
        }
    }
}

impl Grace for Hierarchical {
    fn new() -> Self {
        let leaves = (0..LEAVES).map(|_| Leaf(Lock::new(Level::default()))).collect();
        let zero = || AtomicU64::new(0);
        let root = Lock::new(Level::default());
        Self { started: zero(), ended: zero(), is_wanted: zero(), root, leaves, own: PerCpu::new(Own::default) }
    }

    fn closed(&self, _domain: &RcuDomain) {
        // Relaxed: the slot is this thread's own.
        let next = &self.own.this().next;
        next.store(next.load(Relaxed) + 1, Relaxed);
    }

    fn quiescent(&self) {
        let own = self.own.this();
        self.advance(own);
        // ORDERING: Acquire pairs with the Release in `begin`: the leaf is ready for this number.
        let started = self.started.load(Acquire);
        // Relaxed: the slot is this thread's own.
        let reported = own.reported.load(Relaxed);
        if reported == started + 1 {
            return;
        }
        let is_last = {
            let mut level = self.leaf().0.lock();
            // Read again: a grace period may have begun before the lock was taken.
            let started = self.started.load(Relaxed);
            own.reported.store(started + 1, Relaxed);
            if reported == 0 {
                level.members += 1;
                return;
            }
            if self.ended.load(Relaxed) == started || level.left == 0 {
                return;
            }
            level.left -= 1;
            level.left == 0
        };
        if !is_last {
            return;
        }
        let mut root = self.root.lock();
        root.left = root.left.saturating_sub(1);
        if root.left == 0 {
            // Relaxed, both: under the root's lock.
            self.ended.store(self.started.load(Relaxed), Relaxed);
            self.begin(&mut root);
        }
    }

    fn visit_counters(&self, _domain: &RcuDomain, visit: &mut dyn FnMut(&'static str, u64)) {
        let sum = |of: fn(&Own) -> u64| self.own.iter().map(of).sum::<u64>();
        let backlog = sum(|own| own.waiting.load(Relaxed) + own.next.load(Relaxed));
        visit_three(visit, [self.ended.load(Relaxed), backlog, sum(|own| own.freed.load(Relaxed))]);
    }
}

/// Lightfoot's.
pub(crate) struct Ours {
    closed: PerCpu<Closed>,
}

/// Files that one CPU closed.
#[derive(Default)]
#[repr(align(128))]
struct Closed(AtomicU64);

impl Grace for Ours {
    fn new() -> Self {
        Self { closed: PerCpu::new(Closed::default) }
    }

    fn closed(&self, domain: &RcuDomain) {
        // Relaxed, both: the slot is this thread's own.
        let closed = &self.closed.this().0;
        closed.store(closed.load(Relaxed) + 1, Relaxed);
        domain.defer(FILE, || free(1));
    }

    fn visit_counters(&self, domain: &RcuDomain, visit: &mut dyn FnMut(&'static str, u64)) {
        let stats = domain.stats();
        let closed: u64 = self.closed.iter().map(|closed| closed.0.load(Relaxed)).sum();
        let backlog = stats.deferred_callbacks;
        visit_three(visit, [stats.grace_periods, backlog, closed.saturating_sub(backlog)]);
    }
}
