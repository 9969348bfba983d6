//! Panics: contained where they happen, so that only one request, notice or observation fails and
//! the mount continues.
//!
//! # What it is
//! [`contained`] runs a part of the server. A panic in it is counted ([`Gauge::Panics`]) and logged; the panic hook has
//! written where it came from.
//!
//! # What it is not
//! A repair: locks of the panicking code are released, and half-done work stays so.

use crate::metrics::{Gauge, Metrics};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the result of `f`, or `None` if it panicked.
pub(crate) fn contained<T>(metrics: &Metrics, what: &str, f: impl FnOnce() -> T) -> Option<T> {
    // Each part leaves its shared state behind locks, which a panic releases.
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(value) => Some(value),
        Err(payload) => {
            // Its drop could panic again.
            core::mem::forget(payload);
            metrics.add(Gauge::Panics, 1);
            tracing::error!(what, "a panic was contained: this is a defect of Lightfoot or of a file system");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_counted_and_its_payload_is_not_dropped() {
        struct PanicsAgain;
        impl Drop for PanicsAgain {
            fn drop(&mut self) {
                panic!("in the drop of a payload");
            }
        }
        let metrics = Metrics::new();
        assert_eq!(contained(&metrics, "a test", || 7), Some(7));
        let panicked: Option<()> = contained(&metrics, "a test", || std::panic::panic_any(PanicsAgain));
        assert_eq!((panicked, metrics.get(Gauge::Panics)), (None, 1));
    }
}
