//! A whole cache line in four loads.

#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::__m128i;

/// The 64 bytes of a cache line. In registers as they were loaded: a copy of it is four stores, and a load of it after
/// that is as wide as the stores were.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Line(Parts);

#[cfg(target_arch = "x86_64")]
type Parts = [__m128i; 4];
#[cfg(not(target_arch = "x86_64"))]
type Parts = [u64; 8];

impl Line {
    /// Returns the line with these words.
    #[inline(always)]
    #[must_use]
    pub fn from_words(words: [u64; 8]) -> Self {
        // SAFETY: both are 64 bytes of integers, for which all bits are valid.
        Self(unsafe { core::mem::transmute::<[u64; 8], Parts>(words) })
    }

    /// Returns the words of the line, in order.
    #[inline(always)]
    #[must_use]
    pub fn words(&self) -> [u64; 8] {
        // SAFETY: as in `from_words`.
        unsafe { core::mem::transmute::<Parts, [u64; 8]>(self.0) }
    }
}

/// Returns the line at `address`, loaded from its lower to its higher addresses while other threads
/// may store to it: each aligned word of it is one that some thread stored, as by a relaxed load,
/// and a later word is not older than an earlier one, as by Acquire loads. `None` where this
/// machine does not have the load: then the caller must load the words.
///
/// # Safety
/// `address` is aligned to 64 bytes, and behind it are 64 initialized bytes of atomics.
#[inline(always)]
#[must_use]
pub unsafe fn load(address: *const u8) -> Option<Line> {
    #[cfg(all(target_arch = "x86_64", not(loom)))]
    {
        let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
        // SAFETY: the caller's. The loads are of assembly, so the compiler sees no race. x86 keeps loads in their order,
        // and a load of 16 aligned bytes does not tear the aligned words in it.
        unsafe {
            core::arch::asm!(
                "movdqa {a}, xmmword ptr [{at}]",
                "movdqa {b}, xmmword ptr [{at} + 16]",
                "movdqa {c}, xmmword ptr [{at} + 32]",
                "movdqa {d}, xmmword ptr [{at} + 48]",
                at = in(reg) address,
                a = lateout(xmm_reg) a,
                b = lateout(xmm_reg) b,
                c = lateout(xmm_reg) c,
                d = lateout(xmm_reg) d,
                options(nostack, readonly, preserves_flags),
            );
        }
        Some(Line([a, b, c, d]))
    }
    #[cfg(not(all(target_arch = "x86_64", not(loom))))]
    {
        let _ = address;
        None
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_words_that_memory_has() {
        #[repr(align(64))]
        struct Aligned([crate::atomic::AtomicU64; 8]);
        let memory =
            Aligned(core::array::from_fn(|at| crate::atomic::AtomicU64::new(at as u64 * 0x0123_4567_89ab_cdef)));
        let words = core::array::from_fn(|at| at as u64 * 0x0123_4567_89ab_cdef);
        assert_eq!(Line::from_words(words).words(), words);
        // SAFETY: it is aligned and has 64 bytes of atomics.
        let line = unsafe { load(memory.0.as_ptr().cast()) };
        assert_eq!(line.map(|line| line.words()), cfg!(target_arch = "x86_64").then_some(words));
    }
}
