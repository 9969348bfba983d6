//! Stacks of simulated threads, at fixed addresses: queue nodes and other shared data on a stack then have the same
//! lines in every run.
//!
//! # Limitations
//! A stack has 252 KiB above its guard page. A thread that runs over it ends the process by SIGSEGV.

use crate::memory::{Region, stack};
use corosensei::stack::{Stack, StackPointer};

/// The stack of one simulated thread.
pub(crate) struct FixedStack {
    base: StackPointer,
    limit: StackPointer,
}

impl FixedStack {
    /// Stack number `index` of the region.
    pub(crate) fn new(_region: Region, index: usize) -> Self {
        let (base, limit) = stack(index);
        let pointer = |address| StackPointer::new(address).expect("the region does not begin at zero");
        Self { base: pointer(base), limit: pointer(limit) }
    }
}

// SAFETY: `Region` is mapped for good; the lowest page of each stack is its guard, and far more
// than the least size is above it; `base` is page-aligned.
unsafe impl Stack for FixedStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
