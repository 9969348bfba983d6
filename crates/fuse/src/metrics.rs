//! Metrics: count, result and latency of each operation.
//!
//! # What it is
//! [`Metrics::time`] returns a guard that records its operation on drop. Each thread records into its own shard, so that
//! threads share no cache lines; [`Metrics::snapshot`] adds the shards up. A snapshot can be serialized, subtracted from a
//! later one, and written as text for Prometheus.
//!
//! # What it is not
//! A trace: it does not keep single operations. Latencies are exact to 1/16; counts and sums are exact.
//!
//! # How it is locked
//! A [`Mutex`] for each of 32 shards, chosen by the thread's index and held for one record, so
//! threads hardly ever wait. A snapshot locks one shard after the other, so it may lack records
//! made during the snapshot. Each shard counts requests in flight without its lock: the thread that
//! begins a request adds 1 to the count of its shard, and the thread that ends the request takes 1
//! off its own shard's count. So one count may be below zero, but the sum is right.
//!
//! # Memory
//! About 4 KiB for each operation in each shard that has recorded it.
//!
//! # Source
//! Gil Tene's HdrHistogram; the text exposition format 0.0.4 of Prometheus.

mod exposition;
mod op;
mod snapshot;

pub(crate) use op::named;
pub use op::{Gauge, Op};
pub use snapshot::{NameStats, OpStats, Snapshot};

use crate::cures::Cures;
use core::cell::Cell;
use core::fmt;
use hdrhistogram::Histogram;
use parking_lot::Mutex;
use prim::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use prim::{clock, cpu};
use std::collections::BTreeMap;
use vfs::Errno;

const SHARDS: usize = 32;

/// The longest latency that is recorded as such, 68 seconds; longer ones count as this.
const LONGEST_NS: u64 = 1 << 36;

/// Significant decimal digits of a recorded latency.
const DIGITS: u8 = 1;

/// The number of errnos that are counted one by one for each operation and shard. Others only count as errors.
const ERRNOS: usize = 32;

/// Counters of one session; see the module's description.
pub struct Metrics {
    shards: Box<[MetricShard]>,
    gauges: [AtomicU64; Gauge::ALL.len()],
    began_ns: i64,
    cures: Cures,
}

/// Two cache lines, since the prefetcher fetches pairs.
#[repr(align(128))]
struct MetricShard {
    recorded: Mutex<Recorded>,
    /// Requests that threads of this shard began, less those that they ended.
    in_flight: AtomicI64,
}

/// The records of one shard.
struct Recorded {
    /// By operation.
    ops: Box<[Option<Box<Record>>]>,
    /// One for each file system.
    names: Vec<NameStats>,
}

/// One operation in one shard.
struct Record {
    times: Histogram<u64>,
    sum_ns: u64,
    max_ns: u64,
    bytes: u64,
    errors: u64,
    errnos: Vec<(i32, u64)>,
}

impl Metrics {
    /// Returns metrics that are all zero.
    #[must_use]
    pub fn new() -> Self {
        let shard = |_| MetricShard {
            recorded: Mutex::new(Recorded { ops: Op::ALL.iter().map(|_| None).collect(), names: Vec::new() }),
            in_flight: AtomicI64::new(0),
        };
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            gauges: [const { AtomicU64::new(0) }; Gauge::ALL.len()],
            began_ns: clock::monotonic_ns(),
            cures: Cures::default(),
        }
    }

    /// Logs, once, an error that the administrator must hear of.
    pub(crate) fn note_error(&self, op: Op, errno: Errno) {
        self.cures.note(op.name(), errno);
    }

    /// Starts the timer of an operation, which the guard records on drop.
    #[inline]
    #[must_use = "a timer that is dropped at once measures nothing"]
    pub fn time(&self, op: Op) -> Timer<'_> {
        self.time_since(op, self.begin())
    }

    /// Counts a request that is in flight until its [timer](Self::time_since) ends. Returns the time.
    #[inline]
    pub(crate) fn begin(&self) -> i64 {
        // Relaxed, here and below: a count, which orders nothing.
        self.shard().in_flight.fetch_add(1, Relaxed);
        clock::monotonic_ns()
    }

    /// As [`time`](Self::time), for an operation that [began](Self::begin) at `began_ns`.
    #[inline]
    pub(crate) fn time_since(&self, op: Op, began_ns: i64) -> Timer<'_> {
        Timer { metrics: self, op, began_ns, errno: Cell::new(0), bytes: Cell::new(0) }
    }

    /// Returns the shard of the calling thread.
    #[inline]
    fn shard(&self) -> &MetricShard {
        &self.shards[cpu::id() % SHARDS]
    }

    /// Records an operation that took `ns` nanoseconds and ended with `errno`, 0 for success.
    pub fn record(&self, op: Op, ns: u64, errno: i32) {
        self.record_bytes(op, ns, errno, 0);
    }

    fn record_bytes(&self, op: Op, ns: u64, errno: i32, bytes: u64) {
        let mut held = self.shard().recorded.lock();
        let slot = &mut held.ops[op as usize];
        if slot.is_none() {
            *slot = Record::new().map(Box::new);
        }
        if let Some(record) = slot {
            record.add(ns, errno, bytes);
        }
    }

    /// Records a name that was looked up for the kernel in a directory of the file system `dev`: a hit, or a miss.
    pub(crate) fn record_name(&self, dev: u64, is_hit: bool) {
        let mut held = self.shard().recorded.lock();
        let index = held.names.iter().position(|names| names.dev == dev).unwrap_or_else(|| {
            held.names.push(NameStats { dev, ..NameStats::default() });
            held.names.len() - 1
        });
        let names = &mut held.names[index];
        *(if is_hit { &mut names.hits } else { &mut names.misses }) += 1;
    }

    /// Returns the names that were looked up, by file system, in the order of their numbers.
    #[must_use]
    pub fn names(&self) -> Vec<NameStats> {
        let mut all: BTreeMap<u64, NameStats> = BTreeMap::new();
        for shard in &self.shards {
            for names in &shard.recorded.lock().names {
                let sum = all.entry(names.dev).or_insert(NameStats { dev: names.dev, ..NameStats::default() });
                (sum.hits, sum.misses) = (sum.hits + names.hits, sum.misses + names.misses);
            }
        }
        all.into_values().collect()
    }

    /// Sets a gauge.
    pub fn set(&self, gauge: Gauge, value: u64) {
        // Relaxed, here and below: figures, which order nothing.
        self.gauges[gauge as usize].store(value, Relaxed);
    }

    /// Raises a gauge.
    pub fn add(&self, gauge: Gauge, by: u64) {
        self.gauges[gauge as usize].fetch_add(by, Relaxed);
    }

    /// Returns the value of a gauge.
    #[must_use]
    pub fn get(&self, gauge: Gauge) -> u64 {
        match gauge {
            Gauge::InFlight => self.in_flight(),
            gauge => self.gauges[gauge as usize].load(Relaxed),
        }
    }

    /// Returns the number of requests that began and have not ended. A request that ends while the
    /// shards are added up may be missed in one and counted in another, so the sum may be below
    /// zero, which means none.
    fn in_flight(&self) -> u64 {
        let sum: i64 = self.shards.iter().map(|shard| shard.in_flight.load(Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }

    /// Returns all that was recorded so far; operations without a record are left out. The caller
    /// fills in `cache` and `fallbacks`.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let ops = Op::ALL.iter().filter_map(|&op| self.op(op)).collect();
        let gauges = Gauge::ALL.iter().map(|&gauge| (gauge.name().into(), self.get(gauge))).collect();
        let span_ns = u64::try_from(clock::monotonic_ns() - self.began_ns).unwrap_or(0);
        Snapshot { span_ns, ops, gauges, cache: Vec::new(), fallbacks: Vec::new() }
    }

    /// Returns the sum of one operation over all shards.
    fn op(&self, op: Op) -> Option<OpStats> {
        let mut stats = OpStats { name: op.name().into(), ..OpStats::default() };
        let (mut times, mut errnos) = (BTreeMap::new(), BTreeMap::new());
        for shard in &self.shards {
            let held = shard.recorded.lock();
            let Some(record) = &held.ops[op as usize] else { continue };
            stats.count += record.times.len();
            stats.errors += record.errors;
            stats.bytes += record.bytes;
            stats.sum_ns = stats.sum_ns.saturating_add(record.sum_ns);
            stats.max_ns = stats.max_ns.max(record.max_ns);
            for step in record.times.iter_recorded() {
                *times.entry(step.value_iterated_to()).or_insert(0) += step.count_at_value();
            }
            record.errnos.iter().for_each(|&(errno, count)| *errnos.entry(name_of(errno)).or_insert(0) += count);
        }
        stats.times = times.into_iter().collect();
        stats.errnos = errnos.into_iter().collect();
        let noes = stats.errnos.iter().filter(|(errno, _)| op::is_regular_no(&stats.name, errno));
        stats.errors -= noes.map(|(_, count)| count).sum::<u64>();
        stats.find_quantiles();
        (stats.count != 0).then_some(stats)
    }
}

impl Record {
    /// Returns an empty record; `None` only if the histogram refuses the bounds, which it does not.
    fn new() -> Option<Self> {
        let times = Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok()?;
        Some(Self { times, sum_ns: 0, max_ns: 0, bytes: 0, errors: 0, errnos: Vec::new() })
    }

    fn add(&mut self, ns: u64, errno: i32, bytes: u64) {
        self.times.saturating_record(ns);
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.bytes += bytes;
        if errno == 0 {
            return;
        }
        self.errors += 1;
        if let Some((_, count)) = self.errnos.iter_mut().find(|(known, _)| *known == errno) {
            *count += 1;
        } else if self.errnos.len() < ERRNOS {
            self.errnos.push((errno, 1));
        }
    }
}

/// Returns the name of an errno; its number, if it has none here.
fn name_of(errno: i32) -> String {
    match Errno::from_raw(errno).name() {
        "E?" => errno.to_string(),
        name => name.into(),
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").field("gauges", &self.gauges).finish_non_exhaustive()
    }
}

/// An operation under way, recorded on drop, also during a panic. See [`Metrics::time`].
#[derive(Debug)]
pub struct Timer<'a> {
    metrics: &'a Metrics,
    op: Op,
    began_ns: i64,
    errno: Cell<i32>,
    bytes: Cell<u64>,
}

impl Timer<'_> {
    /// Sets the errno that the operation ends with; 0 for success.
    pub fn failed(&self, errno: i32) {
        self.errno.set(errno);
    }

    /// Sets how many bytes of contents the operation has read or written.
    pub fn moved(&self, bytes: u64) {
        self.bytes.set(bytes);
    }
}

impl Drop for Timer<'_> {
    #[inline]
    fn drop(&mut self) {
        let ns = u64::try_from(clock::monotonic_ns() - self.began_ns).unwrap_or(0);
        self.metrics.record_bytes(self.op, ns, self.errno.get(), self.bytes.get());
        self.metrics.shard().in_flight.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
#[path = "metrics/tests.rs"]
mod tests;
