//! Memory: advice, which a simulated machine ignores, and its size.

/// Requests huge pages for `len` bytes at `start` (`MADV_HUGEPAGE`). Advice only: a refusal is ignored, also the
/// `EINVAL` for a start that is not page-aligned.
pub fn advise_huge(start: *mut u8, len: usize) {
    // SAFETY: MADV_HUGEPAGE changes how memory is backed, never what it holds.
    let _ = unsafe { rustix::mm::madvise(start.cast(), len, rustix::mm::Advice::LinuxHugepage) };
}

/// Bytes of memory of the machine (`MemTotal`), used or not.
#[must_use]
pub fn total_bytes() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)))
}
