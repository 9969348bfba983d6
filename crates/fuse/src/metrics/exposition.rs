//! A snapshot as families of Prometheus.
//!
//! Times are in seconds. Histograms have bounds at powers of 4 from 1.024 µs to 17 s; these are bounds of the groups that
//! times are kept in, so their counts are exact.

use super::{Gauge, Op, OpStats, Snapshot};
use crate::prometheus::FamilyKind::{self, Counter, Histogram};
use crate::prometheus::Page;

/// Exponents of the histograms' bounds, in nanoseconds.
const BOUNDS: core::ops::RangeInclusive<u32> = 10..=34;

/// The operations that move contents.
const MOVERS: [&str; 3] = [Op::Read.name(), Op::Write.name(), Op::CopyFileRange.name()];

pub(super) fn write(snapshot: &Snapshot, page: &mut Page) {
    write_ops(&snapshot.ops, page);
    for (name, value) in &snapshot.gauges {
        let is_counter = Gauge::ALL.iter().any(|gauge| gauge.name() == name && gauge.is_counter());
        let name = if is_counter { format!("{name}_total") } else { name.clone() };
        write_figure(&name, "A figure of the session", *value, page);
    }
    for (name, value) in &snapshot.cache {
        write_figure(&format!("cache_{name}"), "A figure of the caches", *value, page);
    }
    let mut family = page.family("lightfoot_fuse_fallbacks_total", Counter, "Walks that left the fast path, by reason");
    for (reason, value) in &snapshot.fallbacks {
        family.sample(&[("reason", reason)], value);
    }
}

fn write_ops(ops: &[OpStats], page: &mut Page) {
    let mut family = page.family("lightfoot_fuse_operation_duration_seconds", Histogram, "How long operations took");
    for op in ops {
        let bucket = |bound_ns| {
            let below = op.times.iter().filter(|&&(ns, _)| ns <= bound_ns).map(|&(_, count)| count).sum();
            (seconds(bound_ns), below)
        };
        let buckets = BOUNDS.step_by(2).map(|exponent| bucket(1 << exponent));
        family.histogram(&[("op", &op.name)], buckets, seconds(op.sum_ns), op.count);
    }
    let mut family = page.family(
        "lightfoot_fuse_operation_errors_total",
        Counter,
        "Operations that failed; a regular no is not a failure",
    );
    for op in ops {
        family.sample(&[("op", &op.name)], op.errors);
    }
    let mut family = page.family(
        "lightfoot_fuse_operation_errno_total",
        Counter,
        "Operations that ended with an errno, also with a regular no",
    );
    for op in ops {
        for (errno, count) in &op.errnos {
            family.sample(&[("op", &op.name), ("errno", errno)], count);
        }
    }
    let mut family =
        page.family("lightfoot_fuse_operation_bytes_total", Counter, "Bytes of contents that requests read or wrote");
    for op in ops.iter().filter(|op| MOVERS.contains(&op.name.as_str())) {
        family.sample(&[("op", &op.name)], op.bytes);
    }
}

/// Writes a family with one sample to `page`. The family is a counter if `name` ends in `_total`,
/// otherwise a gauge.
fn write_figure(name: &str, help: &str, value: u64, page: &mut Page) {
    let kind = if name.ends_with("_total") { FamilyKind::Counter } else { FamilyKind::Gauge };
    page.family(&format!("lightfoot_fuse_{name}"), kind, help).sample(&[], value);
}

/// Returns `ns` in seconds, exactly.
fn seconds(ns: u64) -> String {
    let (whole, part) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{whole}.{part:09}")
}
