//! Memory advice, which a simulated machine ignores.

/// Nothing.
pub fn advise_huge(_start: *mut u8, _len: usize) {}
