//! Memory: advice, which a simulated machine ignores, and how much there is.

/// Nothing.
pub fn advise_huge(_start: *mut u8, _len: usize) {}

/// What every simulated machine has: 64 GiB, so that a run does not depend on where it runs.
#[must_use]
pub fn total_bytes() -> u64 {
    64 << 30
}
