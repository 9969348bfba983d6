//! Deadlines: parking on a word until it changes or a moment has come.
//!
//! # What it is
//! A moment of the monotonic clock, or none, and the parking step of a wait loop.
//!
//! # What it is not
//! A timer: it calls nothing when the moment comes.
//!
//! # Where it comes from
//! The absolute timeouts of `futex(2)` and `mq_timedreceive(3)`: a repeated wait does not take
//! longer.

use core::num::NonZeroU64;
use core::time::Duration;
use prim::atomic::AtomicU32;

/// The most that a call may take, in nanoseconds; `None`: without a limit. One word, since each open file gets a copy.
pub(crate) type Timeout = Option<NonZeroU64>;

/// Returns the timeout of `ns` nanoseconds; 0 becomes 1.
pub(crate) fn timeout_of(ns: Option<u64>) -> Timeout {
    ns.map(|ns| NonZeroU64::MIN.saturating_add(ns.saturating_sub(1)))
}

/// Returns the moment `ns` nanoseconds after the call, on the monotonic clock.
pub(crate) fn moment_in(ns: u64) -> i64 {
    prim::clock::monotonic_ns().saturating_add_unsigned(ns)
}

/// When a wait ends without success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// On the monotonic clock; `None`: never.
    at_ns: Option<i64>,
}

impl Deadline {
    /// Returns the moment `at_ns` on the monotonic clock; `None`: never.
    pub(crate) fn at(at_ns: Option<i64>) -> Self {
        Self { at_ns }
    }

    /// Returns the moment `timeout` after the call; `None`: never.
    pub(crate) fn after(timeout: Option<Duration>) -> Self {
        let from_now = |timeout: Duration| moment_in(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX));
        Self { at_ns: timeout.map(from_now) }
    }

    /// Sleeps while `word` is `expected`, at most until the deadline; may wake spuriously. `false`: the
    /// deadline has passed, without a sleep.
    pub(crate) fn park(self, word: &AtomicU32, expected: u32) -> bool {
        let Some(at_ns) = self.at_ns else {
            prim::park::park(word, expected);
            return true;
        };
        match u64::try_from(at_ns.saturating_sub(prim::clock::monotonic_ns())) {
            Err(_) | Ok(0) => false,
            Ok(left_ns) => {
                prim::park::park_timeout(word, expected, Duration::from_nanos(left_ns));
                true
            }
        }
    }
}
