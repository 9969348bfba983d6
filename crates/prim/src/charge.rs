//! Hints for a simulated machine: how long private work takes, and accesses that it must not
//! charge. Nothing in production.

/// A cost hint: `ns` nanoseconds of private work. Nothing in production; virtual time on a simulated machine.
#[inline(always)]
pub fn cost(_ns: u64) {}

/// Calls `f`. For bookkeeping (lock statistics, rank checks) that the measured code would not have: a simulated machine
/// charges no time for it.
#[inline(always)]
pub fn uncharged<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// The thread is idle for `ns` nanoseconds and frees its CPU. Nothing in production; virtual time on a simulated
/// machine.
#[inline(always)]
pub fn idle(_ns: u64) {}
