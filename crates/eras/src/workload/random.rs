//! Random numbers of a worker: the same seed gives the same sequence, on every machine and in every era.
//!
//! `SplitMix64` (Steele, Lea, Flood: "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014). Not for secrets,
//! and not shared: each worker has its own.

/// A sequence of random numbers.
#[derive(Clone, Debug)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The sequence of worker `index` in the run of `seed`.
    pub(super) fn new(seed: u64, index: usize) -> Self {
        let mut base = Self { state: seed };
        let state = base.next() ^ (index as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03);
        Self { state }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..bound`, each equally likely (to within `bound` in 2^64); 0 for no bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // The high half of the product: cheaper than a remainder, and as even.
        u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// As [`below`](Self::below), for places in a list.
    pub(super) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True `permille` times in a thousand.
    pub(super) fn chance(&mut self, permille: u64) -> bool {
        self.below(1000) < permille
    }

    /// Between half of `mean` and one and a half, each equally likely.
    pub(super) fn around(&mut self, mean: u64) -> u64 {
        mean / 2 + self.below(mean + 1)
    }

    /// Exponentially distributed with this mean: gaps between independent arrivals.
    pub(super) fn exponential(&mut self, mean: u64) -> u64 {
        // 53 bits, and never zero.
        let uniform = ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (-uniform.ln() * mean as f64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: u64 = 20_000;

    /// The mean of many draws, in permille of `expected`.
    fn mean_permille(expected: u64, mut draw: impl FnMut() -> u64) -> u64 {
        (0..DRAWS).map(|_| draw()).sum::<u64>() * 1000 / (DRAWS * expected)
    }

    #[test]
    fn the_same_seed_and_index_give_the_same_sequence_and_others_another() {
        let first = |seed, index| {
            let mut random = Random::new(seed, index);
            (random.below(u64::MAX), random.below(u64::MAX))
        };
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
        assert_ne!(first(0, 0).0, first(0, 0).1);
    }

    #[test]
    fn draws_have_the_mean_that_was_asked_for() {
        let mut random = Random::new(7, 0);
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
    fn draws_stay_within_their_bounds() {
        let mut random = Random::new(7, 0);
        for _ in 0..DRAWS {
            assert!(random.below(3) < 3);
            assert!((50..=150).contains(&random.around(100)));
        }
        assert_eq!((random.below(0), random.below(1), random.around(0), random.exponential(0)), (0, 0, 0, 0));
        assert!(!random.chance(0) && random.chance(1000));
    }
}
