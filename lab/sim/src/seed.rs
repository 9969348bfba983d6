//! Random seeds, from the run's seed, so that a run replays.

use crate::engine::{Engine, current};

/// 64 random bits.
#[must_use]
pub fn random_u64() -> u64 {
    current().map_or_else(prim::seed::random_u64, Engine::random_u64)
}
