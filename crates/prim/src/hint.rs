//! Spin hints. A wait takes its condition as a closure, so that a simulated machine can evaluate it when a line
//! changes.

/// Pauses once in a spin loop.
#[inline(always)]
pub fn spin_loop() {
    #[cfg(not(loom))]
    core::hint::spin_loop();
    #[cfg(loom)]
    loom::thread::yield_now();
}

/// Pauses before a waiter yields its CPU: a preempted lock holder needs one to continue.
#[cfg(not(loom))]
const TURNS_BEFORE_YIELD: u32 = 256;

/// Waits until `condition` (loads only) holds.
#[inline]
pub fn spin_until(mut condition: impl FnMut() -> bool) {
    #[cfg(not(loom))]
    while !spin_until_bounded(TURNS_BEFORE_YIELD, &mut condition) {
        std::thread::yield_now();
    }
    #[cfg(loom)]
    while !condition() {
        spin_loop();
    }
}

/// Waits at most `turns` pauses until `condition` (loads only) holds; returns whether it held.
#[inline]
pub fn spin_until_bounded(turns: u32, mut condition: impl FnMut() -> bool) -> bool {
    for _ in 0..turns {
        if condition() {
            return true;
        }
        spin_loop();
    }
    condition()
}

/// Prefetches the cache line at `target`. The address need not be valid: a prefetch never faults.
#[inline(always)]
pub fn prefetch<T>(target: *const T) {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    // SAFETY: PREFETCHT0 is part of SSE, which every x86-64 has, and never faults.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(target.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    let _ = target;
}

/// Requests the cache line at `target` for a write: it comes once, and not a second time when the
/// store follows a load. The address need not be valid: a prefetch never faults.
#[inline(always)]
pub fn prefetch_to_write<T>(target: *const T) {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    // SAFETY: PREFETCHW reads and writes nothing that the program sees, and never faults. A CPU that does not have it does nothing.
    // (The intrinsic is a prefetch to read unless the whole program is compiled for such CPUs.)
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) target.addr(), options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    let _ = target;
}
