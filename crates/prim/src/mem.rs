//! Memory: mappings straight from the system, advice, which a simulated machine ignores, and the size of all.
//!
//! # What it is not
//! An allocator: a mapping is for large memory, or for memory that must be returned to the system
//! when it is no longer used. The program's allocator may keep the memory that it frees.

use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Bytes from the system, zeroed, readable and writable. They go back to it when this is dropped.
///
/// # Invariants
/// 1. The range is mapped, private, and belongs to this value only.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: invariant 1: it owns its bytes, and only gives out their address.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// `len` bytes at a multiple of `align`, both multiples of the system's page size. `None` if the system refuses.
    ///
    /// # Panics
    /// If the two together are more than there are addresses.
    #[must_use]
    pub fn new(len: usize, align: usize) -> Option<Self> {
        // A range with room for an aligned one; then the parts before and behind that are unmapped.
        let room = len.checked_add(align).expect("a size that can be");
        // SAFETY: a new mapping wherever the system has room.
        let first = unsafe { mmap_anonymous(null_mut(), len, PROT, MapFlags::PRIVATE) }.ok()?;
        if first.addr().is_multiple_of(align) {
            return NonNull::new(first.cast()).map(|start| Self { start, len });
        }
        // SAFETY: mapped above, and not used yet.
        let _ = unsafe { munmap(first, len) };
        // SAFETY: as above.
        let wide = unsafe { mmap_anonymous(null_mut(), room, PROT, MapFlags::PRIVATE) }.ok()?;
        let before = wide.addr().next_multiple_of(align) - wide.addr();
        let start = wide.wrapping_byte_add(before);
        for (at, len) in [(wide, before), (start.wrapping_byte_add(len), align - before)] {
            if len != 0 {
                // A refusal costs addresses only: nothing was written there.
                // SAFETY: mapped above, and not used yet.
                let _ = unsafe { munmap(at, len) };
            }
        }
        NonNull::new(start.cast()).map(|start| Self { start, len })
    }

    /// Returns the first byte.
    #[must_use]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the memory of the bytes `range` to the system: after that they read as zeros, and
    /// take memory again when they are written (`MADV_DONTNEED`). Returns whether the system did
    /// so; if not, they are as they were. It refuses a range that does not begin at one of its
    /// pages.
    ///
    /// # Safety
    /// During the call no thread refers to any of these bytes, except to atomics for which zeros
    /// are a value.
    ///
    /// # Panics
    /// If the range is not inside the mapping.
    pub unsafe fn discard(&self, range: Range<usize>) -> bool {
        assert!(range.start <= range.end && range.end <= self.len, "a range of the mapping");
        let start = self.start.as_ptr().wrapping_add(range.start);
        // SAFETY: invariant 1; the caller's promise.
        unsafe { madvise(start.cast(), range.end - range.start, Advice::LinuxDontNeed) }.is_ok()
    }
}

/// How each mapping is used.
const PROT: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: invariant 1, and the value is going.
        if unsafe { munmap(self.start.as_ptr().cast(), self.len) }.is_err() {
            // The process has as many ranges as it may have, and this would divide one. At least
            // the memory is returned.
            // SAFETY: as above.
            let _ = unsafe { self.discard(0..self.len) };
        }
    }
}

/// Requests huge pages for `len` bytes at `start` (`MADV_HUGEPAGE`). Advice only: a refusal is ignored, also the
/// `EINVAL` for a start that is not page-aligned.
pub fn advise_huge(start: *mut u8, len: usize) {
    // SAFETY: MADV_HUGEPAGE changes how memory is backed, never what it holds.
    let _ = unsafe { madvise(start.cast(), len, Advice::LinuxHugepage) };
}

/// Requests pages of the usual size for `len` bytes at `start` (`MADV_NOHUGEPAGE`). Advice only, as
/// above.
pub fn advise_small(start: *mut u8, len: usize) {
    // SAFETY: MADV_NOHUGEPAGE changes how memory is backed, never what it holds.
    let _ = unsafe { madvise(start.cast(), len, Advice::LinuxNoHugepage) };
}

/// Makes the program's allocator return free memory to the system, where the C library is glibc and can
/// (`malloc_trim(3)`). Takes its locks one after the other.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it has no precondition.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Bytes of a page of the system.
#[must_use]
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// Bytes of memory of the machine (`MemTotal`), used or not.
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_is_aligned_zeroed_and_empty_again_when_it_is_discarded() {
        const LEN: usize = 1 << 16;
        for align in [1 << 16, 2 << 20] {
            let mapping = Mapping::new(LEN, align).expect("memory");
            assert_eq!((mapping.start().addr().get() % align, mapping.len()), (0, LEN));
            // SAFETY: inside the mapping, which only this test uses.
            let bytes = || unsafe { core::slice::from_raw_parts_mut(mapping.start().as_ptr(), LEN) };
            assert!(bytes().iter().all(|&byte| byte == 0));
            bytes().fill(7);
            // SAFETY: no slice of it lives.
            assert!(unsafe { mapping.discard(0..LEN) });
            assert!(bytes().iter().all(|&byte| byte == 0));
        }
        assert!(Mapping::new(1 << 60, 1 << 16).is_none());
    }
}
