//! How often, and how long, threads waited for the locks of each rank.
//!
//! # What it is
//! Counters that only a thread that found a lock taken writes, after its wait. A thread that finds the lock free does
//! nothing for them, so they are always on.
//!
//! # What it is not
//! Lockmeter's table: holds and acquisitions without a wait are not counted.
//!
//! # How it is locked
//! Each thread counts in its CPU index's slot, and readers add up the slots.

use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use prim::clock::monotonic_ns;
use prim::uncharged;

/// The most ranks that a crate may have.
pub(super) const RANKS: usize = 16;

/// How threads waited for the locks of one rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct RankWaits {
    /// The name of the rank.
    pub name: &'static str,
    /// Times a thread found the lock taken and waited.
    pub waits: u64,
    /// Nanoseconds of these waits together.
    pub waited_ns: u64,
    /// Nanoseconds of the longest wait.
    pub longest_ns: u64,
}

/// The waits for the locks of one instance.
pub(super) struct Waits(PerCpu<[Slot; RANKS]>);

/// The waits of one CPU index for one rank. Relaxed throughout: only the owner of the index writes, and a sum of
/// counters that move has no order to keep.
#[derive(Debug, Default)]
struct Slot {
    waits: AtomicU64,
    waited_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Waits {
    pub(super) fn new() -> Self {
        Self(uncharged(|| PerCpu::sized(Default::default, true)))
    }

    /// Runs `wait`, which takes a lock of the rank `level`, and counts its time.
    pub(super) fn count<G>(&self, level: usize, wait: impl FnOnce() -> G) -> G {
        let began = uncharged(monotonic_ns);
        let guard = wait();
        uncharged(|| self.0.this()[level].add(monotonic_ns().saturating_sub(began).max(0).unsigned_abs()));
        guard
    }

    /// Returns the sums of the ranks, in the order of `names`.
    pub(super) fn sums<'a>(&'a self, names: &'static [&'static str]) -> impl Iterator<Item = RankWaits> + 'a {
        names.iter().enumerate().map(|(level, &name)| {
            let start = RankWaits { name, ..RankWaits::default() };
            self.0.iter().fold(start, |sum, slots| slots[level].added_to(sum))
        })
    }
}

impl Slot {
    fn add(&self, ns: u64) {
        self.waits.store(self.waits.load(Relaxed) + 1, Relaxed);
        self.waited_ns.store(self.waited_ns.load(Relaxed) + ns, Relaxed);
        self.longest_ns.store(self.longest_ns.load(Relaxed).max(ns), Relaxed);
    }

    fn added_to(&self, sum: RankWaits) -> RankWaits {
        RankWaits {
            name: sum.name,
            waits: sum.waits + self.waits.load(Relaxed),
            waited_ns: sum.waited_ns + self.waited_ns.load(Relaxed),
            longest_ns: sum.longest_ns.max(self.longest_ns.load(Relaxed)),
        }
    }
}
