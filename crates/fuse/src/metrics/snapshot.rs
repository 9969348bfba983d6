//! A snapshot of the metrics: plain data, that can be sent and subtracted.
//!
//! Not live, and not locked: it is what it was.

use super::Gauge;
use serde::{Deserialize, Serialize};

/// What was recorded in a span of time: since the session began, or [since](Self::since) an earlier snapshot.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The length of that span, in nanoseconds.
    pub span_ns: u64,
    /// The operations that were asked for, in the order of [`Op`](super::Op).
    pub ops: Vec<OpStats>,
    /// By name; see [`Gauge`].
    pub gauges: Vec<(String, u64)>,
    /// What the caches say, by names of the caller's. One that ends in `_total` never falls, others are levels.
    pub cache: Vec<(String, u64)>,
    /// How often the walk left its fast path, by reason.
    pub fallbacks: Vec<(String, u64)>,
}

/// One operation in a snapshot. Times are in nanoseconds; quantiles are upper bounds, at most 1/16 too high.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpStats {
    /// As FUSE calls it.
    pub name: String,
    /// How often it ended.
    pub count: u64,
    /// How often it ended with an error; a name that is not there is one.
    pub errors: u64,
    /// Of all their times.
    pub sum_ns: u64,
    /// Half of them took no longer.
    pub p50_ns: u64,
    /// 9 of 10 took no longer.
    pub p90_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// None took longer. Exact but in differences, where it is an upper bound like the others.
    pub max_ns: u64,
    /// Errors by errno, rising; the first few dozen of each thread.
    #[serde(default)]
    pub errnos: Vec<(i32, u64)>,
    /// How many took how long: the longest time that counts as such, and how many did, rising.
    #[serde(default)]
    pub times: Vec<(u64, u64)>,
}

impl Snapshot {
    /// What was recorded after `earlier`, a snapshot of the same session: counts, sums, times and what never falls are
    /// differences, from which quantiles are found anew; levels are as they are here. Operations that nobody asked for
    /// meanwhile are left out. Of another session's snapshot it makes nonsense, but no negative numbers.
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

    /// As text for Prometheus, with `mount` as a label of every sample; see the format in `metrics.rs`.
    #[must_use]
    pub fn to_prometheus(&self, mount: &str) -> String {
        super::prometheus::write(self, mount)
    }
}

impl OpStats {
    fn since(&self, earlier: &Self) -> Self {
        let times: Vec<_> = minus(&self.times, &earlier.times);
        let errnos = minus(&self.errnos, &earlier.errnos);
        // The longest of all is the longest since if it is longer than it was; otherwise it was one of the last group.
        let last = times.last().map_or(0, |&(ns, _)| ns.min(self.max_ns));
        let mut stats = Self {
            name: self.name.clone(),
            count: self.count.saturating_sub(earlier.count),
            errors: self.errors.saturating_sub(earlier.errors),
            sum_ns: self.sum_ns.saturating_sub(earlier.sum_ns),
            max_ns: if self.max_ns > earlier.max_ns { self.max_ns } else { last },
            errnos,
            times,
            ..Self::default()
        };
        stats.find_quantiles();
        stats
    }

    /// Finds the quantiles in `times`.
    pub(super) fn find_quantiles(&mut self) {
        self.p50_ns = self.at(50);
        self.p90_ns = self.at(90);
        self.p99_ns = self.at(99);
    }

    /// The time that `percent` of the operations did not exceed.
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

/// Counts by key, less those of before; none that are 0.
fn minus<K: Copy + PartialEq>(now: &[(K, u64)], before: &[(K, u64)]) -> Vec<(K, u64)> {
    let left = |&(key, count): &(K, u64)| {
        let earlier = before.iter().find(|(other, _)| *other == key).map_or(0, |&(_, count)| count);
        (key, count.saturating_sub(earlier))
    };
    now.iter().map(left).filter(|&(_, count)| count != 0).collect()
}

/// Named figures; of those that never fall, the difference.
fn subtract(now: &[(String, u64)], before: &[(String, u64)], falls_never: impl Fn(&str) -> bool) -> Vec<(String, u64)> {
    let earlier = |name: &String| before.iter().find(|(other, _)| other == name).map_or(0, |&(_, value)| value);
    let figure = |(name, value): &(String, u64)| {
        let less = if falls_never(name) { earlier(name) } else { 0 };
        (name.clone(), value.saturating_sub(less))
    };
    now.iter().map(figure).collect()
}
