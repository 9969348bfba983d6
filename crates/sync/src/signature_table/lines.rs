//! The memory of the table's lines: from the system, zeroed, on huge pages where it has them.
//!
//! # Invariants
//! 1. `memory` is at least `len` lines long, aligned to a page, and was zeroed; all zeros are a vacant [`Line`], which is made
//!    of atomics.

use super::Line;

pub(super) struct Lines {
    #[cfg(not(loom))]
    memory: prim::mem::Mapping,
    #[cfg(not(loom))]
    len: usize,
    #[cfg(loom)]
    lines: Vec<Line>,
}

impl Lines {
    /// An even number of lines, at most `lines` and at least two.
    #[cfg(not(loom))]
    pub(super) fn new(lines: usize) -> Option<Self> {
        const HUGE: usize = 2 << 20;
        let len = (lines & !1).max(2);
        let bytes = len * size_of::<Line>();
        let align = if bytes >= HUGE { HUGE } else { prim::mem::page_size() };
        let memory = prim::mem::Mapping::new(bytes.next_multiple_of(prim::mem::page_size()), align)?;
        if bytes >= HUGE {
            prim::mem::advise_huge(memory.start().as_ptr(), bytes);
        }
        Some(Self { memory, len })
    }

    /// The same for a model, whose atomics are not their bytes.
    #[cfg(loom)]
    pub(super) fn new(lines: usize) -> Option<Self> {
        Some(Self { lines: (0..(lines & !1).max(2)).map(|_| Line::default()).collect() })
    }

    #[cfg(not(loom))]
    #[inline(always)]
    pub(super) fn get(&self) -> &[Line] {
        // SAFETY: invariant 1; the memory stays while `self` is borrowed.
        unsafe { core::slice::from_raw_parts(self.memory.start().as_ptr().cast(), self.len) }
    }

    #[cfg(loom)]
    pub(super) fn get(&self) -> &[Line] {
        &self.lines
    }
}
