//! The result of a simulation.

use crate::counters::Counters;
use crate::engine::SLOTS;
use crate::lockmeter::LockStat;
use crate::profile::Tag;
use crate::stall::Stall;

/// The result of a run. Times are virtual nanoseconds of the measured time, summed over CPUs,
/// unless noted otherwise.
#[derive(Clone, Debug)]
pub struct Report {
    /// CPUs used.
    pub cpus: usize,
    /// Threads that ran the body.
    pub threads: usize,
    /// The measured time: from the end of the warm-up to the deadline, or to the end of the last body.
    pub span_ns: f64,
    /// Operations counted, by slot.
    pub operations: [u64; SLOTS],
    /// Likewise for each thread that ran the body.
    pub operations_per_thread: Vec<[u64; SLOTS]>,
    /// Time by tag; index by `Tag as usize`.
    pub tag_ns: [f64; Tag::COUNT],
    /// Time in which a CPU had no thread.
    pub idle_ns: f64,
    /// Time that interrupts took.
    pub interrupt_ns: f64,
    /// Time that switches between threads took.
    pub switch_ns: f64,
    /// Time that threads waited for lines; part of the tags'.
    pub stall_ns: f64,
    /// Counts.
    pub counters: Counters,
    /// Lock statistics by class.
    pub locks: Vec<LockStat>,
    /// Time that threads spun, by the caller that they named; the first has none. Empty if no caller was named.
    pub callers: Vec<(&'static str, f64)>,
    /// Time that threads waited for lines, by the line and the place in the source, the longest first. Empty unless
    /// [`Config::stalls`](crate::Config::stalls) is set.
    pub stalls: Vec<Stall>,
    /// Bytes of the arena that were carved.
    pub arena_bytes: usize,
    /// A hash of the times of all misses: two runs with the same hash were the same.
    pub hash: u64,
    /// How long the simulation took, in seconds of its host thread's CPU.
    pub host_seconds: f64,
}

impl Report {
    /// Operations of a slot in a second, of all threads.
    #[must_use]
    pub fn rate(&self, slot: usize) -> f64 {
        self.operations[slot] as f64 / (self.span_ns * 1e-9)
    }

    /// Returns the share of all CPU time under a tag.
    #[must_use]
    pub fn share(&self, tag: Tag) -> f64 {
        self.tag_ns[tag as usize] / (self.span_ns * self.cpus as f64)
    }

    /// Returns the statistics of the first class whose name contains `part`.
    #[must_use]
    pub fn lock(&self, part: &str) -> Option<&LockStat> {
        self.locks.iter().find(|lock| lock.class.contains(part))
    }
}
