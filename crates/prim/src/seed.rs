//! Random seeds, for hash keys. A simulated machine derives them from its own seed, so that a run replays;
//! under loom they are constant.

use rustix::rand::{GetRandomFlags, getrandom};

/// 64 random bits (`getrandom(2)`; the clock and an address where the call is refused).
#[must_use]
pub fn random_u64() -> u64 {
    if cfg!(loom) {
        // Each execution of a model must be like the others.
        return 0x9E37_79B9_7F4A_7C15;
    }
    let mut bytes = [0u8; 8];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => (crate::clock::monotonic_ns() as u64 ^ (&raw const bytes as u64)).wrapping_mul(0x9E37_79B9_7F4A_7C15),
    }
}
