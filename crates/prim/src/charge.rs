//! Hints for a simulated machine: how long private work takes, and accesses that it must not
//! charge. Nothing in production.

/// Charges `ns` nanoseconds of private work, in virtual time, on a simulated machine. Does nothing
/// in production.
#[inline(always)]
pub fn cost(_ns: u64) {}

/// Calls `f`. For bookkeeping (lock statistics, rank checks) that the measured code would not have: a simulated machine
/// charges no time for it.
#[inline(always)]
pub fn uncharged<R>(f: impl FnOnce() -> R) -> R {
    f()
}

/// Makes the thread idle for `ns` nanoseconds of virtual time, with its CPU free for others. Does
/// nothing in production.
#[inline(always)]
pub fn idle(_ns: u64) {}
