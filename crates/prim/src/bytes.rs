//! Sixteen bytes at once, with the vector unit where there is one.

/// Returns the 16 bytes of `bytes` from `at` on, lowest first; `None` if `bytes` ends before.
#[inline(always)]
#[must_use]
pub fn load_16(bytes: &[u8], at: usize) -> Option<u128> {
    // One compare, against a bound that a loop computes once.
    if at < bytes.len().saturating_sub(15) {
        let start = bytes.as_ptr().wrapping_add(at).cast::<u128>();
        // SAFETY: `at + 16 <= bytes.len()`.
        Some(u128::from_le(unsafe { start.read_unaligned() }))
    } else {
        None
    }
}

/// Returns one bit for each of the 16 bytes of `bytes` (lowest byte first) that equals `wanted`.
#[inline(always)]
#[must_use]
pub fn matches(bytes: u128, wanted: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: SSE2 is part of every x86-64.
        unsafe { matches_sse2(bytes, wanted) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    matches_plain(bytes, wanted)
}

/// [`matches`] by vector instructions.
///
/// # Safety
/// The CPU has SSE2.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn matches_sse2(bytes: u128, wanted: u8) -> u32 {
    use core::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi64x, _mm_set1_epi8};
    let bytes = _mm_set_epi64x((bytes >> 64) as i64, bytes as i64);
    _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted as i8))) as u32
}

#[cfg(any(test, not(target_arch = "x86_64")))]
fn matches_plain(bytes: u128, wanted: u8) -> u32 {
    bytes.to_le_bytes().iter().rev().fold(0, |mask, &byte| mask << 1 | u32::from(byte == wanted))
}

#[cfg(test)]
mod tests {
    #[test]
    fn sixteen_bytes_are_loaded_only_where_there_are_sixteen() {
        let bytes: Vec<u8> = (0..40).collect();
        for len in 0..=40 {
            for at in 0..=45 {
                let want = bytes[..len].get(at..at + 16).map(|b| u128::from_le_bytes(b.try_into().unwrap()));
                assert_eq!(super::load_16(&bytes[..len], at), want, "{len} {at}");
            }
        }
        assert_eq!(super::load_16(&bytes, usize::MAX), None);
    }

    #[test]
    fn the_vector_form_agrees_with_the_plain_one() {
        let mut random = 1u128;
        for _ in 0..1000 {
            random = random.wrapping_mul(0x2d99_787a_af2c_2a3b_5851_f42d_4c95_7f2d).wrapping_add(1);
            let bytes = (random >> 3) & 0x0f0f_2f2f_0f2f_0f2f_ff2f_2f2f_0f0f_002f;
            for wanted in [0, b'/', 0x0f, 0xff] {
                assert_eq!(super::matches(bytes, wanted), super::matches_plain(bytes, wanted), "{bytes:032x} {wanted}");
            }
        }
    }
}
