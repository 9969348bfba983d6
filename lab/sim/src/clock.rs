//! Virtual time; outside of a simulation the system's.

use crate::engine::{NS, current};

/// A simulation begins at this time since the epoch: 2020-01-01, so that file times look like file times.
const BEGIN_NS: i64 = 1_577_836_800_000_000_000;

/// Wall-clock time in nanoseconds since the epoch.
#[inline]
#[must_use]
pub fn now_ns() -> i64 {
    virtual_ns().map_or_else(prim::clock::now_ns, |ns| BEGIN_NS + ns)
}

/// Monotonic time in nanoseconds from an arbitrary start.
#[inline]
#[must_use]
pub fn monotonic_ns() -> i64 {
    virtual_ns().unwrap_or_else(prim::clock::monotonic_ns)
}

fn virtual_ns() -> Option<i64> {
    let engine = current()?;
    engine.note_unwatchable();
    Some((engine.clock.get() / NS) as i64)
}
