//! Hints of the simulated code: how long private work and waits take, and accesses that are not
//! charged.

use crate::engine::{NS, current, mode};

/// Charges `ns` nanoseconds of private work.
#[inline]
pub fn cost(ns: u64) {
    if let Some(engine) = current() {
        engine.cost(ns.saturating_mul(NS));
    }
}

/// Calls `f`, and charges nothing inside. This is for bookkeeping that the measured code would not
/// have.
#[inline]
pub fn uncharged<R>(f: impl FnOnce() -> R) -> R {
    match current() {
        Some(engine) => engine.with_mode(mode::UNCHARGED, f),
        None => f(),
    }
}

/// Leaves the CPU for `ns` nanoseconds, as a process that waits for something outside does.
pub fn idle(ns: u64) {
    if let Some(engine) = current() {
        engine.idle(ns.saturating_mul(NS));
    }
}
