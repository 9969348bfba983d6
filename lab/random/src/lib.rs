//! Seeded pseudo-random numbers for the simulator, the workloads and the benchmark: the same seed gives the same sequence,
//! on every machine and in every era.
//!
//! `SplitMix64` (Steele, Lea, Flood: "Fast Shardable Pseudorandom Number Generators", OOPSLA 2014). The sequences are part
//! of the lab's published figures, so they must not change with the version of a dependency. Not for secrets. A generator
//! belongs to one thread.

#![forbid(unsafe_code)]

use std::cell::Cell;

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    state: Cell<u64>,
}

impl Random {
    /// Sequence number `stream` of `seed`.
    #[must_use]
    pub fn new(seed: u64, stream: u64) -> Self {
        let random = Self { state: Cell::new(seed) };
        random.state.set(random.draw() ^ stream.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03));
        random
    }

    /// Returns the next 64 bits.
    pub fn draw(&self) -> u64 {
        self.state.set(self.state.get().wrapping_add(0x9E37_79B9_7F4A_7C15));
        let mut mixed = self.state.get();
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number of `0..bound`, each equally likely to within `bound` in 2^64; 0 for a bound
    /// of 0.
    pub fn below(&self, bound: u64) -> u64 {
        // The high half of the product is cheaper than a remainder, and as even.
        u64::try_from((u128::from(self.draw()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// As [`below`](Self::below), for places in a list.
    pub fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True `permille` times in a thousand.
    pub fn chance(&self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// Between half of `mean` and one and a half, each equally likely.
    pub fn around(&self, mean: u64) -> u64 {
        mean / 2 + self.below(mean + 1)
    }

    /// Exponentially distributed with this mean: gaps between independent arrivals.
    pub fn exponential(&self, mean: u64) -> u64 {
        // 53 bits, and never zero.
        let uniform = ((self.draw() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (-uniform.ln() * mean as f64) as u64
    }

    /// Puts `items` into random order.
    pub fn shuffle<T>(&self, items: &mut [T]) {
        for end in (2..=items.len()).rev() {
            items.swap(end - 1, self.index(end));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 20_000;

    fn mean_permille(expected: u64, mut draw: impl FnMut() -> u64) -> u64 {
        (0..DRAWS).map(|_| draw()).sum::<u64>() * 1000 / (DRAWS * expected)
    }

    #[test]
    fn the_same_seed_and_index_give_the_same_sequence_and_others_another() {
        let first = |seed, index| {
            let random = Random::new(seed, index);
            (random.below(u64::MAX), random.below(u64::MAX))
        };
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(0, 0).0, first(0, 0).1);
    }

    #[test]
    fn draws_have_the_mean_that_was_asked_for() {
        let random = Random::new(7, 0);
        for (what, mean) in [
            ("exponential", mean_permille(5000, || random.exponential(5000))),
            ("around", mean_permille(5000, || random.around(5000))),
            ("below", mean_permille(5000, || random.below(10_001))),
            ("chance", mean_permille(1, || 4 * u64::from(random.chance(250)))),
        ] {
            assert!((950..=1050).contains(&mean), "{what}: {mean} permille of what was asked for");
        }
    }

    #[test]
    fn a_shuffle_keeps_every_item_and_repeats_with_its_seed() {
        let shuffled = |seed| {
            let mut items: Vec<usize> = (0..100).collect();
            Random::new(seed, 0).shuffle(&mut items);
            items
        };
        let mut sorted = shuffled(1);
        assert_ne!(sorted, shuffled(2));
        assert_eq!(sorted, shuffled(1));
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..100));
    }

    #[test]
    fn draws_stay_within_their_bounds() {
        let random = Random::new(7, 0);
        for _ in 0..DRAWS {
            assert!(random.below(3) < 3);
            assert!((50..=150).contains(&random.around(100)));
        }
        assert_eq!((random.below(0), random.below(1), random.around(0), random.exponential(0)), (0, 0, 0, 0));
        assert!(!random.chance(0) && random.chance(1000));
    }
}
