//! A snapshot of the metrics: plain data that can be serialized and subtracted.

use super::Gauge;
use super::op::is_regular_no;
use crate::prometheus::Page;
use serde::{Deserialize, Serialize};

/// The records of a span of time: since the session began, or [since](Self::since) an earlier snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The length of that span, in nanoseconds.
    pub span_ns: u64,
    /// The operations with records, in the order of [`Op`](super::Op).
    pub ops: Vec<OpStats>,
    /// By name; see [`Gauge`].
    pub gauges: Vec<(String, u64)>,
    /// Figures of the caches, by names that the caller chooses. One whose name ends in `_total` never falls.
    pub cache: Vec<(String, u64)>,
    /// How often walks left the fast path, by reason.
    pub fallbacks: Vec<(String, u64)>,
}

/// One operation in a snapshot. Times are in nanoseconds; quantiles are upper bounds, at most 1/16 too high.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpStats {
    /// The name of the operation: see [`Op::name`](super::Op::name).
    pub name: String,
    /// The number of requests that have ended.
    pub count: u64,
    /// The number of these that failed. A regular "no" is not a failure, such as a lookup of a name that does not exist:
    /// [`failures`](Self::failures).
    pub errors: u64,
    /// The sum of all latencies.
    pub sum_ns: u64,
    /// The median latency.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The maximum. Exact, but in a difference of snapshots an upper bound like the percentiles.
    pub max_ns: u64,
    /// Bytes of contents that its requests read or wrote. The kernel makes no request for data that
    /// it serves from its own cache, or passes through.
    #[serde(default)]
    pub bytes: u64,
    /// Results other than success by the errno's name, in the order of names; at most 32 errnos of each thread.
    #[serde(default)]
    pub errnos: Vec<(String, u64)>,
    /// The histogram of latencies: the upper bound of each group, in rising order, and the number of requests in it.
    #[serde(default)]
    pub times: Vec<(u64, u64)>,
}

/// Names that were looked up for the kernel in one file system: each name of a LOOKUP, and each entry of a READDIRPLUS except
/// `.` and `..`. Each is a hit or a miss. The name counts for the file system of its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameStats {
    /// `st_dev` of the file system's files, in the tree.
    pub dev: u64,
    /// Names that the tree answered without the file system, also those that do not exist.
    pub hits: u64,
    /// Names that the thread requested from the file system, or for which it waited while another
    /// thread did.
    pub misses: u64,
}

impl Snapshot {
    /// Returns the records after `earlier`, a snapshot of the same session. Counts, sums,
    /// histograms and counters are differences; quantiles are computed from these; gauges have
    /// their values of `self`. Operations without a record in between are left out. For a snapshot
    /// of another session the result is meaningless, but has no negative numbers.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let is_counter = |name: &str| Gauge::ALL.iter().any(|gauge| gauge.name() == name && gauge.is_counter());
        let op = |op: &OpStats| match earlier.ops.iter().find(|before| before.name == op.name) {
            Some(before) => op.since(before),
            None => op.clone(),
        };
        Self {
            span_ns: self.span_ns.saturating_sub(earlier.span_ns),
            ops: self.ops.iter().map(op).filter(|op| op.count != 0).collect(),
            gauges: subtract(&self.gauges, &earlier.gauges, is_counter),
            cache: subtract(&self.cache, &earlier.cache, |name| name.ends_with("_total")),
            fallbacks: subtract(&self.fallbacks, &earlier.fallbacks, |_| true),
        }
    }

    /// Returns the snapshot as text for Prometheus, with `mount` as a label of every sample.
    #[must_use]
    pub fn to_prometheus(&self, mount: &str) -> String {
        let mut page = Page::new(mount);
        self.write_prometheus(&mut page);
        page.into_text()
    }

    /// Adds its families to `page`, as [`to_prometheus`](Self::to_prometheus) has them.
    pub fn write_prometheus(&self, page: &mut Page) {
        super::exposition::write(self, page);
    }
}

impl OpStats {
    /// Returns the [`errnos`](Self::errnos) that are failures. Leaves out a regular "no". This is
    /// the reply to a question (`ENOENT` of a lookup, `ENODATA` of an extended attribute), or a
    /// reply after which the kernel or the program does without the operation (`ENOSYS`).
    pub fn failures(&self) -> impl Iterator<Item = &(String, u64)> {
        self.errnos.iter().filter(|(errno, _)| !is_regular_no(&self.name, errno))
    }

    fn since(&self, earlier: &Self) -> Self {
        let times: Vec<_> = minus(&self.times, &earlier.times);
        let errnos = minus(&self.errnos, &earlier.errnos);
        // A maximum that has risen is exact. Otherwise the maximum in between is in the last group.
        let last = times.last().map_or(0, |&(ns, _)| ns.min(self.max_ns));
        let mut stats = Self {
            name: self.name.clone(),
            count: self.count.saturating_sub(earlier.count),
            errors: self.errors.saturating_sub(earlier.errors),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            max_ns: if self.max_ns > earlier.max_ns { self.max_ns } else { last },
            errnos,
            times,
            ..Self::default()
        };
        stats.find_quantiles();
        stats
    }

    /// Computes the quantiles from `times`.
    pub(super) fn find_quantiles(&mut self) {
        self.p50_ns = self.at(50);
        self.p90_ns = self.at(90);
        self.p99_ns = self.at(99);
    }

    /// Returns the latency that `percent` of the requests did not exceed.
    fn at(&self, percent: u64) -> u64 {
        let all: u64 = self.times.iter().map(|&(_, count)| count).sum();
        let wanted = u128::from(all) * u128::from(percent);
        let mut below = 0;
        for &(ns, count) in &self.times {
            below += count;
            if u128::from(below) * 100 >= wanted {
                return ns.min(self.max_ns);
            }
        }
        self.max_ns
    }
}

fn count_of<K: PartialEq>(counts: &[(K, u64)], key: &K) -> u64 {
    counts.iter().find(|(other, _)| other == key).map_or(0, |&(_, count)| count)
}

/// Subtracts counts by key; leaves out those that are 0 then.
fn minus<K: Clone + PartialEq>(now: &[(K, u64)], before: &[(K, u64)]) -> Vec<(K, u64)> {
    let left = now.iter().map(|(key, count)| (key.clone(), count.saturating_sub(count_of(before, key))));
    left.filter(|&(_, count)| count != 0).collect()
}

/// Subtracts figures that never fall; keeps the others.
fn subtract(now: &[(String, u64)], before: &[(String, u64)], falls_never: impl Fn(&str) -> bool) -> Vec<(String, u64)> {
    let less = |name: &String| if falls_never(name) { count_of(before, name) } else { 0 };
    now.iter().map(|(name, value)| (name.clone(), value.saturating_sub(less(name)))).collect()
}
