//! Lock statistics: how often a lock is taken, how long it is held, and how long threads wait for it.
//!
//! # What it is
//! A [`Class`] counts for all locks that share it, and [`Measured`] is a raw lock that reports to a class. A class is off at
//! first: taking one of its locks then costs one relaxed load of a word that no thread writes, releasing it one relaxed
//! load of a word beside the lock. Locks that are not wrapped cost nothing more.
//!
//! # What it is not
//! Exact at its edges: a hold that begins before [`Class::reset`] and ends after it is counted whole, and a table is a
//! sum over threads that keep running. A class that is on also costs time: two readings of the clock for each section,
//! and each waiter tries the lock once more.
//!
//! # How it is locked
//! A thread counts in its CPU index's slot, and readers add up the slots.
//!
//! # State of a class
//! | bits 31..1                                   | bit 0  |
//! |----------------------------------------------|--------|
//! | period: steps with each [`Class::reset`]     | 1: on  |
//!
//! A slot belongs to one period. Its owner empties it before it counts for another, and readers
//! skip slots of past periods: so a reset needs no write to other threads' slots.
//!
//! # Orderings
//! | here                             | partner                            |
//! |----------------------------------|------------------------------------|
//! | `Slot::enter`: store, Release    | `Class::counts`: load, Acquire     |
//!
//! # Source
//! R. Bryant and J. Hawkes, "Lockmeter: Highly-Informative Instrumentation for Spin Locks in the Linux Kernel" (Annual
//! Linux Showcase, 2000).
//!
//! # Limitations
//! Lockmeter's column of failed tries is missing: only acquisitions are counted.
//!
//! ```
//! use lightfoot_locks::lockstat::{Class, Measured};
//! use sync::{Lock, TasLock};
//!
//! let class = Class::new("counter");
//! let lock: Lock<Measured<TasLock>, _> = Lock::with_raw(Measured::of(&class), 0);
//! class.enable();
//! *lock.lock() += 1;
//! let counts = class.counts();
//! assert_eq!((counts.acquisitions, counts.contended), (1, 0));
//! ```

use prim::PerCpu;
use prim::atomic::{
    AtomicI64, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::clock::monotonic_ns;
use prim::shared::Arc;
use prim::uncharged;
use sync::RawLock;

const ON: u32 = 1;
const PERIOD: u32 = 2;

/// The counts of one class of locks. Sums over threads; durations in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times a lock was taken.
    pub acquisitions: u64,
    /// Of those, times it was not free.
    pub contended: u64,
    /// Time held, of holds that have ended.
    pub hold_ns: u64,
    /// The longest hold.
    pub hold_max_ns: u64,
    /// Time waited, of the contended.
    pub wait_ns: u64,
    /// The longest wait.
    pub wait_max_ns: u64,
}

/// A class of locks; see the module's description.
#[repr(align(128))]
pub struct Class {
    /// On its own cache line, thanks to the alignment: clones of the handle do not write to it either.
    state: AtomicU32,
    name: &'static str,
    slots: PerCpu<Slot>,
}

impl Class {
    /// Returns a class that is off, with all counts zero.
    #[must_use]
    pub fn new(name: &'static str) -> Arc<Self> {
        uncharged(|| Arc::new(Self { state: AtomicU32::new(0), name, slots: PerCpu::new(Slot::default) }))
    }

    /// Returns the name of the class.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Starts to count, on top of the counts so far.
    pub fn enable(&self) {
        // Relaxed: the flag orders nothing.
        uncharged(|| self.state.fetch_or(ON, Relaxed));
    }

    /// Stops the count of holds and waits that begin after this call.
    pub fn disable(&self) {
        // Relaxed: the flag orders nothing.
        uncharged(|| self.state.fetch_and(!ON, Relaxed));
    }

    /// Sets all counts to zero.
    pub fn reset(&self) {
        // Relaxed: counts in the old period by a thread that has not seen this are dropped too.
        uncharged(|| self.state.fetch_add(PERIOD, Relaxed));
    }

    /// Returns the sums now.
    #[must_use]
    pub fn counts(&self) -> Counts {
        uncharged(|| {
            // Relaxed: a period is a number.
            let period = self.state.load(Relaxed) & !ON;
            // ORDERING: Acquire pairs with the Release in `Slot::enter`: a slot of this period shows no older counts.
            let of_now = self.slots.iter().filter(|slot| slot.period.load(Acquire) == period);
            of_now.fold(Counts::default(), |mut sum, slot| {
                sum.acquisitions += slot.acquisitions.load(Relaxed);
                sum.contended += slot.contended.load(Relaxed);
                sum.hold_ns += slot.hold_ns.load(Relaxed);
                sum.hold_max_ns = sum.hold_max_ns.max(slot.hold_max_ns.load(Relaxed));
                sum.wait_ns += slot.wait_ns.load(Relaxed);
                sum.wait_max_ns = sum.wait_max_ns.max(slot.wait_max_ns.load(Relaxed));
                sum
            })
        })
    }

    fn is_on(&self) -> bool {
        // Relaxed: the flag orders nothing.
        self.state.load(Relaxed) & ON != 0
    }

    /// Returns the calling thread's slot, ready to count in.
    fn slot(&self) -> &Slot {
        let slot = self.slots.this();
        // Relaxed: a period is a number.
        slot.enter(self.state.load(Relaxed) & !ON);
        slot
    }
}

impl core::fmt::Debug for Class {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Class").field("name", &self.name).field("is_on", &self.is_on()).finish_non_exhaustive()
    }
}

/// The counts of one CPU index. Only the thread that owns the index writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot {
    period: AtomicU32,
    acquisitions: AtomicU64,
    contended: AtomicU64,
    hold_ns: AtomicU64,
    hold_max_ns: AtomicU64,
    wait_ns: AtomicU64,
    wait_max_ns: AtomicU64,
}

impl Slot {
    /// Empties the slot if its counts are of another period.
    fn enter(&self, period: u32) {
        if self.period.load(Relaxed) == period {
            return;
        }
        for counter in [&self.acquisitions, &self.contended, &self.hold_ns, &self.hold_max_ns] {
            counter.store(0, Relaxed);
        }
        for counter in [&self.wait_ns, &self.wait_max_ns] {
            counter.store(0, Relaxed);
        }
        // ORDERING: Release pairs with the Acquire in `Class::counts`: a thread that sees the period sees the zeros.
        self.period.store(period, Release);
    }

    fn acquired(&self, waited_ns: Option<u64>) {
        add(&self.acquisitions, 1);
        if let Some(ns) = waited_ns {
            add(&self.contended, 1);
            add(&self.wait_ns, ns);
            raise(&self.wait_max_ns, ns);
        }
    }

    fn released(&self, held_ns: u64) {
        add(&self.hold_ns, held_ns);
        raise(&self.hold_max_ns, held_ns);
    }
}

/// Adds to a counter that only this thread writes.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Relaxed) + n, Relaxed);
}

/// Raises a maximum that only this thread writes.
fn raise(max: &AtomicU64, n: u64) {
    max.store(max.load(Relaxed).max(n), Relaxed);
}

/// A raw lock that reports to a [`Class`]; one made by [`RawLock::new`] reports to none.
#[derive(Debug)]
pub struct Measured<R> {
    raw: R,
    /// When the measured hold began, or [`UNMEASURED`]. Only the holder writes it.
    held_since_ns: AtomicI64,
    class: Option<Arc<Class>>,
}

/// This lock section is not being measured.
const UNMEASURED: i64 = i64::MIN;

impl<R: RawLock> Measured<R> {
    /// Returns a free lock of `class`.
    #[must_use]
    pub fn of(class: &Arc<Class>) -> Self {
        Self { class: Some(class.clone()), ..Self::new() }
    }

    /// Returns the class, if it is on.
    #[inline]
    fn class(&self) -> Option<&Class> {
        self.class.as_deref().filter(|class| uncharged(|| class.is_on()))
    }

    #[cold]
    fn lock_measured(&self, class: &Class) {
        if self.raw.try_lock() {
            return self.taken(class, None);
        }
        let asked = uncharged(monotonic_ns);
        self.raw.lock();
        self.taken(class, Some(asked));
    }

    /// Counts an acquisition: at once, or after a wait that began at `asked`.
    #[cold]
    fn taken(&self, class: &Class, asked: Option<i64>) {
        uncharged(|| {
            let now = monotonic_ns();
            // Relaxed: the lock is held.
            self.held_since_ns.store(now, Relaxed);
            class.slot().acquired(asked.map(|asked| between(asked, now)));
        });
    }

    /// Counts the end of a hold that began at `since`.
    #[cold]
    fn give_back(&self, since: i64) {
        uncharged(|| {
            // Relaxed: the lock is held.
            self.held_since_ns.store(UNMEASURED, Relaxed);
            if let Some(class) = &self.class {
                class.slot().released(between(since, monotonic_ns()));
            }
        });
    }
}

fn between(start_ns: i64, end_ns: i64) -> u64 {
    u64::try_from(end_ns.saturating_sub(start_ns)).unwrap_or(0)
}

// SAFETY: a section is one of `raw`, from the same call to the same call.
unsafe impl<R: RawLock> RawLock for Measured<R> {
    fn new() -> Self {
        Self { raw: R::new(), held_since_ns: AtomicI64::new(UNMEASURED), class: None }
    }

    #[inline]
    fn lock(&self) {
        match self.class() {
            None => self.raw.lock(),
            Some(class) => self.lock_measured(class),
        }
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let taken = self.raw.try_lock();
        if taken && let Some(class) = self.class() {
            self.taken(class, None);
        }
        taken
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        // Relaxed: written by the holder, which is this thread. (Not the class's flag: it may have changed since.)
        let since = uncharged(|| self.held_since_ns.load(Relaxed));
        if since != UNMEASURED {
            self.give_back(since);
        }
        // SAFETY: the caller took this lock, so `raw`.
        unsafe { self.raw.unlock() };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use sync::{Lock, Mutex, RawMutex, SpinLock, TasLock};

    /// A lock that is not free at the first try.
    struct Reluctant(TasLock, AtomicU32);

    // SAFETY: as for the lock inside; `try_lock` only fails more often.
    unsafe impl RawLock for Reluctant {
        fn new() -> Self {
            Self(TasLock::new(), AtomicU32::new(0))
        }

        fn lock(&self) {
            self.0.lock();
        }

        fn try_lock(&self) -> bool {
            self.1.fetch_add(1, Relaxed) > 0 && self.0.try_lock()
        }

        /// # Safety
        /// As [`RawLock::unlock`].
        unsafe fn unlock(&self) {
            // SAFETY: the caller's.
            unsafe { self.0.unlock() };
        }
    }

    fn lock_of<R: RawLock>(class: &Arc<Class>) -> Lock<Measured<R>, u32> {
        Lock::with_raw(Measured::of(class), 0)
    }

    #[test]
    fn a_class_counts_only_while_it_is_on() {
        let class = Class::new("test");
        let (one, other) = (lock_of::<TasLock>(&class), lock_of::<TasLock>(&class));
        *one.lock() += 1;
        assert_eq!(class.counts(), Counts::default());
        class.enable();
        (0..3).for_each(|_| *one.lock() += 1);
        (0..2).for_each(|_| *other.try_lock().expect("free") += 1);
        let counts = class.counts();
        assert_eq!((counts.acquisitions, counts.contended, counts.wait_ns), (5, 0, 0));
        assert!(counts.hold_max_ns <= counts.hold_ns);
        class.disable();
        *one.lock() += 1;
        assert_eq!(class.counts(), counts);
        class.reset();
        assert_eq!(class.counts(), Counts::default());
        class.enable();
        *one.lock() += 1;
        assert_eq!(class.counts().acquisitions, 1);
        assert_eq!((one.into_inner(), other.into_inner()), (6, 2));
    }

    #[test]
    fn a_thread_that_found_the_lock_taken_has_waited() {
        let class = Class::new("test");
        let lock = lock_of::<Reluctant>(&class);
        class.enable();
        (0..4).for_each(|_| *lock.lock() += 1);
        let counts = class.counts();
        assert_eq!((counts.acquisitions, counts.contended), (4, 1));
        assert_eq!(counts.wait_ns, counts.wait_max_ns);
    }

    #[test]
    fn a_hold_is_measured_if_it_was_when_it_began() {
        let class = Class::new("test");
        let lock = lock_of::<TasLock>(&class);
        let held = lock.lock();
        class.enable();
        drop(held);
        assert_eq!(class.counts(), Counts::default());
        let held = lock.lock();
        class.disable();
        let start = monotonic_ns();
        while monotonic_ns() == start {}
        drop(held);
        let counts = class.counts();
        assert!(counts.acquisitions == 1 && counts.hold_ns > 0 && counts.hold_ns == counts.hold_max_ns);
    }

    #[test]
    fn threads_are_added_up() {
        let class = Class::new("test");
        let lock = lock_of::<RawMutex>(&class);
        class.enable();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..1000).for_each(|_| *lock.lock() += 1));
            }
        });
        assert_eq!((lock.into_inner(), class.counts().acquisitions), (4000, 4000));
        assert!(class.counts().contended <= 4000);
    }

    #[test]
    fn a_lock_of_no_class_and_one_not_wrapped_work_the_same() {
        let plain = Lock::<Measured<TasLock>, u32>::new(1);
        *plain.lock() += 1;
        assert_eq!(plain.into_inner(), 2);
        assert_eq!((size_of::<SpinLock<()>>(), size_of::<Mutex<()>>()), (1, 4));
    }
}
