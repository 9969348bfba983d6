//! Memory: advice, which a simulated machine ignores, and how much there is.

/// Asks the system to back `len` bytes at `start` by huge pages where it can (`MADV_HUGEPAGE`). Advice only: a refusal
/// is ignored. Memory that is not page-aligned is trimmed inwards by the kernel's own check (it answers `EINVAL`).
pub fn advise_huge(start: *mut u8, len: usize) {
    // SAFETY: MADV_HUGEPAGE changes how memory is backed, never what it holds.
    let _ = unsafe { rustix::mm::madvise(start.cast(), len, rustix::mm::Advice::LinuxHugepage) };
}

/// Bytes of memory that the machine has (`MemTotal`), whatever is in use.
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)))
}
