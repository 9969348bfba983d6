//! The only clock. A simulated machine returns virtual time.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// Wall-clock time in nanoseconds since the epoch, to the tick (`CLOCK_REALTIME_COARSE`), as file times have.
#[inline]
#[must_use]
pub fn now_ns() -> i64 {
    nanos(clock_gettime(ClockId::RealtimeCoarse))
}

/// Returns the monotonic time in nanoseconds from an arbitrary start, fine-grained; for intervals.
#[inline]
#[must_use]
pub fn monotonic_ns() -> i64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

#[inline]
fn nanos(t: Timespec) -> i64 {
    t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec)
}
