//! File times: nanoseconds since the epoch, and the standard library's type.
//!
//! Conversions only: the time of day comes from `prim::clock`.

#![allow(clippy::disallowed_types, reason = "converts times; reads no clock")]

use core::time::Duration;
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the time `ns` nanoseconds after the epoch; negative: before it.
#[must_use]
pub fn to_system_time(ns: i64) -> SystemTime {
    let distance = Duration::from_nanos(ns.unsigned_abs());
    if ns >= 0 { UNIX_EPOCH + distance } else { UNIX_EPOCH - distance }
}

/// Nanoseconds from the epoch to `time`. Times out of range become the first or the last one (in 1677 and 2262).
#[must_use]
pub fn from_system_time(time: SystemTime) -> i64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |ns| -ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_survive_the_way_there_and_back() {
        for ns in [0, 1, -1, 1_700_000_000_123_456_789, -5_000_000_001, -86_400_000_000_000, i64::MAX, i64::MIN + 1] {
            assert_eq!(from_system_time(to_system_time(ns)), ns);
        }
    }

    #[test]
    fn times_out_of_range_become_the_first_or_the_last() {
        let far = Duration::from_secs(1 << 40);
        assert_eq!(from_system_time(UNIX_EPOCH + far), i64::MAX);
        assert_eq!(from_system_time(UNIX_EPOCH - far), i64::MIN);
    }
}
