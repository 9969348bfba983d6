//! One line of Lockmeter's table, computed from counts.
//!
//! # What it is not
//! A measurement: the caller passes the time span and the number of CPUs that the counts are for.
//!
//! # Source
//! The columns are from `lockstat(8)`, in R. Bryant and J. Hawkes, "Lockmeter" (Annual Linux
//! Showcase, 2000).

use locks::lockstat::Counts;
use serde::{Deserialize, Serialize};

/// One lock class over one span of time. Shares are in percent; 0 where there is nothing to divide by.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct LockRow {
    /// The class.
    pub name: String,
    /// UTIL: share of the span in which the lock was held. Above 100 for a class of several locks.
    pub utilization_percent: f64,
    /// CON: share of the acquisitions that found it taken.
    pub contention_percent: f64,
    /// Mean hold, in microseconds.
    pub hold_mean_us: f64,
    /// Longest hold, in microseconds.
    pub hold_max_us: f64,
    /// Mean wait of those that waited, in microseconds.
    pub wait_mean_us: f64,
    /// Longest wait, in microseconds.
    pub wait_max_us: f64,
    /// Share of all CPU time that was spent waiting.
    pub wait_cpu_percent: f64,
    /// TOTAL: acquisitions.
    pub acquisitions: u64,
    /// NOWAIT: share of the acquisitions that found it free.
    pub nowait_percent: f64,
    /// SPIN: share of the acquisitions that waited, spinning or asleep. (Equal to CON where no try is refused.)
    pub spin_percent: f64,
}

impl LockRow {
    /// Returns the row for `counts` over `span_ns` nanoseconds on `cpus` CPUs.
    #[must_use]
    pub fn new(name: &str, counts: &Counts, span_ns: u64, cpus: usize) -> Self {
        let percent = |part: u64, whole: f64| ratio(part as f64 * 100.0, whole);
        let us = |ns: u64| ns as f64 / 1000.0;
        let acquisitions = counts.acquisitions as f64;
        let contended = percent(counts.contended, acquisitions);
        Self {
            name: name.into(),
            utilization_percent: percent(counts.hold_ns, span_ns as f64),
            contention_percent: contended,
            hold_mean_us: ratio(us(counts.hold_ns), acquisitions),
            hold_max_us: us(counts.hold_max_ns),
            wait_mean_us: ratio(us(counts.wait_ns), counts.contended as f64),
            wait_max_us: us(counts.wait_max_ns),
            wait_cpu_percent: percent(counts.wait_ns, span_ns as f64 * cpus as f64),
            acquisitions: counts.acquisitions,
            nowait_percent: percent(counts.acquisitions.saturating_sub(counts.contended), acquisitions),
            spin_percent: contended,
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_columns_follow_from_the_counts() {
        let counts = Counts {
            acquisitions: 1000,
            contended: 250,
            hold_ns: 2_100_000,
            hold_max_ns: 31_000,
            wait_ns: 5_750_000,
            wait_max_ns: 90_400,
        };
        let row = LockRow::new("dcache_lock", &counts, 10_000_000, 8);
        let want = LockRow {
            name: "dcache_lock".into(),
            utilization_percent: 21.0,
            contention_percent: 25.0,
            hold_mean_us: 2.1,
            hold_max_us: 31.0,
            wait_mean_us: 23.0,
            wait_max_us: 90.4,
            wait_cpu_percent: 7.1875,
            acquisitions: 1000,
            nowait_percent: 75.0,
            spin_percent: 25.0,
        };
        assert_eq!(row, want);
    }

    #[test]
    fn a_lock_that_was_never_taken_has_zeros() {
        let row = LockRow::new("idle", &Counts::default(), 0, 0);
        let shares = [row.utilization_percent, row.contention_percent, row.wait_cpu_percent, row.nowait_percent];
        assert_eq!((shares, row.hold_mean_us, row.wait_mean_us), ([0.0; 4], 0.0, 0.0));
    }
}
