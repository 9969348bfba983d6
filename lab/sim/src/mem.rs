//! Memory: mappings, which come from the arena so that their addresses replay; advice, which a simulated machine
//! ignores, and how much there is.

use core::ops::Range;
use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// As `prim::mem::Mapping`: zeroed bytes, free of charge.
///
/// # Invariants
/// 1. `start` came from the allocator with `layout`, and belongs to this value only.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: invariant 1: it owns its bytes, and only gives out their address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Returns `len` bytes at a multiple of `align`.
    ///
    /// # Panics
    /// If `align` is not a power of two, or `len` is 0.
    #[must_use]
    pub fn new(len: usize, align: usize) -> Option<Self> {
        assert_ne!(len, 0, "a mapping has bytes");
        let layout = Layout::from_size_align(len, align).expect("a power of two");
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc_zeroed(layout) };
        NonNull::new(start).map(|start| Self { start, layout })
    }

    /// Returns the first byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length of the mapping in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// Returns whether the mapping has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes the bytes `range` zeros.
    ///
    /// # Safety
    /// No thread refers to these bytes, or to a part of them, during the call, except to atomics for which zeros are a
    /// value.
    ///
    /// # Panics
    /// If the range is not inside the mapping.
    pub unsafe fn discard(&self, range: Range<usize>) -> bool {
        assert!(range.start <= range.end && range.end <= self.len(), "a range of the mapping");
        // SAFETY: invariant 1, inside the range; the caller's promise.
        unsafe { self.start.as_ptr().wrapping_add(range.start).write_bytes(0, range.end - range.start) };
        true
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: invariant 1.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Nothing.
pub fn advise_huge(_start: *mut u8, _len: usize) {}

/// Nothing.
pub fn advise_small(_start: *mut u8, _len: usize) {}

/// Returns the page size of every simulated machine: 4 KiB.
#[must_use]
pub fn page_size() -> usize {
    4096
}

/// Returns the memory of every simulated machine: 64 GiB, so that a run does not depend on its
/// host.
#[must_use]
pub fn total_bytes() -> u64 {
    64 << 30
}
