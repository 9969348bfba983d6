//! A snapshot as Prometheus reads it.
//!
//! Text, not a server. Times are in seconds; histograms have bounds at powers of 4 from 1.024 µs to 17 s, which are
//! bounds of the groups that times are kept in, so their counts are exact.
//!
//! Source: "Exposition formats", version 0.0.4, and "Metric and label naming", both at prometheus.io.

use super::{Gauge, OpStats, Snapshot};
use core::fmt::Write;

/// Exponents of the histograms' bounds, in nanoseconds.
const BOUNDS: core::ops::RangeInclusive<u32> = 10..=34;

/// What every name begins with.
const PREFIX: &str = "lightfoot_fuse";

pub(super) fn write(snapshot: &Snapshot, mount: &str) -> String {
    let mut page = Page { text: String::new(), mount: escaped(mount) };
    page.ops(&snapshot.ops);
    for (name, value) in &snapshot.gauges {
        let is_counter = Gauge::ALL.iter().any(|gauge| gauge.name() == name && gauge.is_counter());
        let name = if is_counter { format!("{name}_total") } else { name.clone() };
        page.figure(&name, "Kept by the session", *value);
    }
    for (name, value) in &snapshot.cache {
        page.figure(&format!("cache_{name}"), "Kept by the caches", *value);
    }
    let name = format!("{PREFIX}_fallbacks_total");
    page.head(&name, "counter", "Walks that left the fast path, by reason");
    for (reason, value) in &snapshot.fallbacks {
        page.sample(&name, &[("reason", reason)], value);
    }
    page.text
}

struct Page {
    text: String,
    /// Escaped.
    mount: String,
}

impl Page {
    fn ops(&mut self, ops: &[OpStats]) {
        let name = format!("{PREFIX}_operation_duration_seconds");
        self.head(&name, "histogram", "How long operations took");
        ops.iter().for_each(|op| self.histogram(&name, op));
        let name = format!("{PREFIX}_operation_errors_total");
        self.head(&name, "counter", "Operations that ended with an error");
        for op in ops {
            self.sample(&name, &[("op", &op.name)], op.errors);
        }
        let name = format!("{PREFIX}_operation_errno_total");
        self.head(&name, "counter", "Operations that ended with an error, by errno");
        for op in ops {
            for (errno, count) in &op.errnos {
                self.sample(&name, &[("op", &op.name), ("errno", &errno.to_string())], count);
            }
        }
    }

    fn histogram(&mut self, name: &str, op: &OpStats) {
        let bucket = format!("{name}_bucket");
        for bound_ns in BOUNDS.step_by(2).map(|exponent| 1_u64 << exponent) {
            let below: u64 = op.times.iter().filter(|&&(ns, _)| ns <= bound_ns).map(|&(_, count)| count).sum();
            self.sample(&bucket, &[("op", &op.name), ("le", &seconds(bound_ns))], below);
        }
        self.sample(&bucket, &[("op", &op.name), ("le", "+Inf")], op.count);
        self.sample(&format!("{name}_sum"), &[("op", &op.name)], seconds(op.sum_ns));
        self.sample(&format!("{name}_count"), &[("op", &op.name)], op.count);
    }

    /// A figure of its own: a counter if its name ends in `_total`.
    fn figure(&mut self, name: &str, help: &str, value: u64) {
        let kind = if name.ends_with("_total") { "counter" } else { "gauge" };
        let is_fit = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let fit: String = name.chars().map(|c| if is_fit(c) { c } else { '_' }).collect();
        let name = format!("{PREFIX}_{fit}");
        self.head(&name, kind, help);
        self.sample(&name, &[], value);
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.line(format_args!("# HELP {name} {help}."));
        self.line(format_args!("# TYPE {name} {kind}"));
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl core::fmt::Display) {
        let labels: String = labels.iter().map(|(label, text)| format!(",{label}=\"{}\"", escaped(text))).collect();
        let mount = self.mount.clone();
        self.line(format_args!("{name}{{mount=\"{mount}\"{labels}}} {value}"));
    }

    fn line(&mut self, line: core::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// Nanoseconds in seconds, exactly.
fn seconds(ns: u64) -> String {
    let (whole, part) = (ns / 1_000_000_000, ns % 1_000_000_000);
    format!("{whole}.{part:09}")
}

/// As a label's value may have it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
