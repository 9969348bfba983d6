//! Lock statistics in Lockmeter's columns, kept outside the locks, whose layout stays as in
//! production.
//!
//! # What it is
//! A class of locks has the name that the lock's user gave, or the name of the lock's type. For
//! each class this counts how often its locks were taken, how often they were not free, and how
//! long threads waited for them and held them. Readers of a reader/writer lock count like writers.
//! Each thread has its own list of the locks that it holds, so several threads may hold one lock.
//!
//! # What it is not
//! For each lock: to count two locks of one type apart, give them names, or types that differ (in
//! the protected data).
//!
//! # Where it comes from
//! Lockmeter (J. Hawkes, SGI, 1999), whose columns the published tables have.

use crate::engine::Engine;
use crate::hash::FastMap;

/// The statistics of one class of locks in the measured time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LockStat {
    /// The name of the locks, or their type as `core::any::type_name` returns it.
    pub class: &'static str,
    /// Acquisitions, of readers too.
    pub acquisitions: u64,
    /// The number of acquisitions that found the lock not free.
    pub contended: u64,
    /// Nanoseconds that these acquisitions waited, in all.
    pub wait_ns: f64,
    /// The longest wait.
    pub wait_max_ns: f64,
    /// Nanoseconds from each acquisition to its release, in all.
    pub hold_ns: f64,
    /// The longest.
    pub hold_max_ns: f64,
    /// Releases that were seen: the divisor of [`hold_ns`](Self::hold_ns) for a mean.
    pub releases: u64,
}

/// All classes of a simulation.
#[derive(Default)]
pub(crate) struct Meter {
    classes: Vec<LockStat>,
    /// Index of a class, by the address of its name.
    by_name: FastMap<usize, usize>,
    /// The callers that spun, and for how long, in picoseconds. The first is all that have no name.
    callers: Vec<(&'static str, u64)>,
}

/// The locks that one thread holds and waits for.
#[derive(Default)]
pub(crate) struct Held {
    /// The lock it waits for, and since when.
    wanted: Option<(usize, u64)>,
    /// The name of the lock that it takes next.
    next: Option<&'static str>,
    /// The locks it holds, their classes, and since when.
    held: Vec<(usize, &'static str, u64)>,
}

impl Meter {
    fn class(&mut self, name: &'static str) -> &mut LockStat {
        let classes = &mut self.classes;
        let index = *self.by_name.entry(name.as_ptr().addr()).or_insert_with(|| {
            // The compiler may keep a name more than once.
            classes.iter().position(|known| known.class == name).unwrap_or_else(|| {
                classes.push(LockStat { class: name, ..LockStat::default() });
                classes.len() - 1
            })
        });
        &mut classes[index]
    }

    /// Returns the place of a caller.
    fn caller(&mut self, name: &'static str) -> usize {
        if self.callers.is_empty() {
            self.callers.push(("", 0));
        }
        self.callers.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
            self.callers.push((name, 0));
            self.callers.len() - 1
        })
    }

    /// Notes that a caller's thread has spun for `time`.
    pub(crate) fn spun(&mut self, caller: usize, time: u64) {
        if let Some((_, sum)) = self.callers.get_mut(caller) {
            *sum += time;
        }
    }

    /// Returns the classes that were taken at least once, and the nanoseconds that callers spun.
    pub(crate) fn into_stats(self) -> (Vec<LockStat>, Vec<(&'static str, f64)>) {
        let taken = self.classes.into_iter().filter(|class| class.acquisitions + class.contended > 0).collect();
        (taken, self.callers.into_iter().map(|(name, sum)| (name, ns(sum))).collect())
    }
}

fn ns(ps: u64) -> f64 {
    ps as f64 / 1e3
}

impl Engine {
    pub(crate) fn lock_contended(&self, lock: usize) {
        self.task().locks.borrow_mut().wanted = Some((lock, self.clock.get()));
    }

    pub(crate) fn lock_acquired(&self, lock: usize, name: &'static str) {
        let _host = crate::arena::outside();
        let now = self.clock.get();
        let mut locks = self.task().locks.borrow_mut();
        let waited = locks.wanted.take_if(|wanted| wanted.0 == lock).map(|(_, since)| now - since);
        let name = locks.next.take().unwrap_or(name);
        locks.held.push((lock, name, now));
        if !self.is_measured() {
            return;
        }
        let mut meter = self.meter.borrow_mut();
        let class = meter.class(name);
        class.acquisitions += 1;
        if let Some(waited) = waited {
            class.contended += 1;
            class.wait_ns += ns(waited);
            class.wait_max_ns = class.wait_max_ns.max(ns(waited));
        }
    }

    pub(crate) fn name_next_lock(&self, name: &'static str) {
        self.task().locks.borrow_mut().next = Some(name);
    }

    pub(crate) fn caller_of(&self, name: &'static str) -> usize {
        let _host = crate::arena::outside();
        self.meter.borrow_mut().caller(name)
    }

    pub(crate) fn lock_released(&self, lock: usize) {
        let _host = crate::arena::outside();
        let mut locks = self.task().locks.borrow_mut();
        // A lock may be handed to another thread, which then did not acquire it here.
        let Some(index) = locks.held.iter().rposition(|held| held.0 == lock) else { return };
        let (_, name, since) = locks.held.remove(index);
        if self.is_measured() {
            let held = ns(self.clock.get() - since);
            let mut meter = self.meter.borrow_mut();
            let class = meter.class(name);
            class.releases += 1;
            class.hold_ns += held;
            class.hold_max_ns = class.hold_max_ns.max(held);
        }
    }
}
