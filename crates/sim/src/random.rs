//! Pseudo-random numbers of the machine (jitter, interrupts), each from the run's seed.

use core::cell::Cell;

/// Marsaglia's xorshift64*.
pub(crate) struct Random(Cell<u64>);

impl Random {
    /// A sequence of its own for each `stream` of a seed.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut state =
            seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stream.wrapping_add(1).wrapping_mul(0xD1B5_4A32_D192_ED03);
        // SplitMix64's last steps: close seeds and streams lead to states far apart.
        state = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ state >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        Self(Cell::new((state ^ state >> 31) | 1))
    }

    /// 64 bits.
    pub(crate) fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Below `bound`; 0 for a bound of 0.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Exponentially distributed.
    pub(crate) fn exponential(&self, mean: u64) -> u64 {
        let unit = ((self.next() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        (-unit.ln() * mean as f64) as u64
    }
}
