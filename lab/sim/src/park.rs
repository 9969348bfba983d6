//! Parking on a word, with futex semantics and the system's charges for it.

use crate::atomic::AtomicU32;
use crate::engine::{NS, current};
use core::panic::Location;
use core::time::Duration;

/// Sleeps while `word` holds `expected`; returns when woken, when the word differs, or for no reason.
#[track_caller]
pub fn park(word: &AtomicU32, expected: u32) {
    match current() {
        Some(engine) => {
            engine.park(&word.0, expected, None, Location::caller());
        }
        None => prim::park::park(&word.0, expected),
    }
}

/// As [`park`], for `timeout` at most. `false` if the time ran out.
#[track_caller]
pub fn park_timeout(word: &AtomicU32, expected: u32, timeout: Duration) -> bool {
    let ps = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX).saturating_mul(NS);
    match current() {
        Some(engine) => engine.park(&word.0, expected, Some(ps), Location::caller()),
        None => prim::park::park_timeout(&word.0, expected, timeout),
    }
}

/// Wakes one thread parked on `word`.
pub fn unpark_one(word: &AtomicU32) {
    match current() {
        Some(engine) => engine.unpark(&word.0, 1),
        None => prim::park::unpark_one(&word.0),
    }
}

/// Wakes every thread parked on `word`.
pub fn unpark_all(word: &AtomicU32) {
    match current() {
        Some(engine) => engine.unpark(&word.0, usize::MAX),
        None => prim::park::unpark_all(&word.0),
    }
}
