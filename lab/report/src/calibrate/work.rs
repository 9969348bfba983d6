//! Private work natively: a chain of operations on registers that touches no memory.
//!
//! # What it is
//! Each turn needs the result of the one before it, so a turn takes the same time in a short chain
//! as in a long one. The chain begins with the value that the section read: on an out-of-order
//! processor, work that needs nothing of the section would run while the CPU waits for the lock's
//! line, and the loop would not be the one that is simulated.
//!
//! # What it is not
//! A sum in memory, as it was before: some processors forward a store to the next load in no time, but not at each
//! place in a program and not for long, so a turn took 0.4 to 2.2 ns.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The length of a [look](Work::is_slow) at the CPU's pace.
const LOOK_NS: u64 = 2000;

/// A CPU is slow if a look takes this much longer than at its best.
const SLOW: f64 = 1.15;

/// How many turns of the chain a nanosecond has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    turns_per_ns: f64,
}

impl Work {
    /// Returns the best of some tries: a disturbed one only looks slower.
    pub(super) fn calibrate() -> Self {
        const TURNS: u64 = 20_000;
        let try_once = |_| {
            let begin = Instant::now();
            black_box(spin(black_box(1), TURNS));
            TURNS as f64 / begin.elapsed().as_nanos() as f64
        };
        Self { turns_per_ns: (0..200).map(try_once).fold(0.0, f64::max) }
    }

    /// Returns the turns that take `ns`.
    pub(super) fn turns(self, ns: u64) -> u64 {
        (ns as f64 * self.turns_per_ns) as u64
    }

    /// Works for a while; whether it took longer than it should: another user of the processor slows this CPU down.
    pub(super) fn is_slow(self) -> bool {
        let begin = Instant::now();
        black_box(spin(black_box(1), self.turns(LOOK_NS)));
        begin.elapsed() > Duration::from_nanos((LOOK_NS as f64 * SLOW) as u64)
    }
}

/// Does that many turns of private work, which begin when `seed` is computed. (xorshift: a turn has
/// three pairs of operations, each pair needs the pair before, and no compiler makes them shorter.)
#[inline]
pub(super) fn spin(seed: u64, turns: u64) -> u64 {
    (0..turns).fold(seed, |mut state, _| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^ (state << 17)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_goes_on_where_another_ended() {
        assert_eq!(spin(spin(7, 10), 90), spin(7, 100));
        assert_eq!(spin(7, 0), 7);
    }
}
