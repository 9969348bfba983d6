//! Private work natively: a loop that touches no shared line.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The length of a [look](Work::is_slow) at the CPU's pace.
const LOOK_NS: u64 = 2000;

/// A CPU is slow if a look takes this much longer than at its best.
const SLOW: f64 = 1.15;

/// How many turns of the loop a nanosecond has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    turns_per_ns: f64,
}

impl Work {
    /// The best of some tries: a disturbed one only looks slower.
    pub(super) fn calibrate() -> Self {
        const TURNS: u64 = 200_000;
        let try_once = |_| {
            let begin = Instant::now();
            spin(TURNS);
            TURNS as f64 / begin.elapsed().as_nanos() as f64
        };
        Self { turns_per_ns: (0..50).map(try_once).fold(0.0, f64::max) }
    }

    /// The turns that take `ns`.
    pub(super) fn turns(self, ns: u64) -> u64 {
        (ns as f64 * self.turns_per_ns) as u64
    }

    /// Works for a while; whether it took longer than it should: another user of the processor slows this CPU down.
    pub(super) fn is_slow(self) -> bool {
        let begin = Instant::now();
        spin(self.turns(LOOK_NS));
        begin.elapsed() > Duration::from_nanos((LOOK_NS as f64 * SLOW) as u64)
    }
}

/// That many turns of private work.
#[inline]
pub(super) fn spin(turns: u64) {
    let mut sum = 0_u64;
    for turn in 0..turns {
        sum = black_box(sum.wrapping_add(turn));
    }
}
