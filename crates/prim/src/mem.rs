//! Memory advice. A simulated machine ignores it.

/// Asks the system to back `len` bytes at `start` by huge pages where it can (`MADV_HUGEPAGE`). Advice only: a refusal
/// is ignored. Memory that is not page-aligned is trimmed inwards by the kernel's own check (it answers `EINVAL`).
pub fn advise_huge(start: *mut u8, len: usize) {
    // SAFETY: MADV_HUGEPAGE changes how memory is backed, never what it holds.
    let _ = unsafe { rustix::mm::madvise(start.cast(), len, rustix::mm::Advice::LinuxHugepage) };
}
