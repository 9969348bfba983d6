//! Signatures: NH over words of 64 bits, with a secret key.
//!
//! # What it is
//! The bytes are cut into blocks of 16; the last block ends with the bytes and overlaps the one before. Each block is
//! two words; a key word is added to each, the two are multiplied, and the products are added up modulo 2^128. The length
//! and the number beside the bytes are one more block. A product does not wait for another one, and nothing behind the
//! bytes is read.
//!
//! # How likely two keys collide
//! Two different inputs have the same signature with a probability of at most 2^-64 over the secret key, if they have the
//! same number of blocks. With different numbers of blocks too: the block of the length differs, and its key words are
//! always the same two.
//!
//! # Source
//! Black, Halevi, Krawczyk, Krovetz, Rogaway, "UMAC: Fast and Secure Message Authentication" (CRYPTO '99).

/// Longest input, in bytes.
pub(super) const MAX: usize = 256;

/// Blocks of the longest input.
const BLOCKS: usize = MAX / 16;

/// The signature of a key. Two keys of one table have the same by a chance of 2^-64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature {
    pub(super) low: u64,
    pub(super) high: u64,
}

impl Signature {
    /// Returns the signature of the same key in the group that has this secret: a random number of
    /// the group. Two keys, of one group or of two, have the same signature by a chance of 2^-128
    /// if their groups differ.
    #[must_use]
    pub fn of_group(self, secret: u128) -> Self {
        let sum = (u128::from(self.high) << 64 | u128::from(self.low)).wrapping_add(secret);
        Self { low: sum as u64, high: (sum >> 64) as u64 }
    }

    /// Returns the two words of the signature.
    #[must_use]
    pub fn words(self) -> [u64; 2] {
        [self.low, self.high]
    }

    /// Returns the signature's bits, mixed, for a choice among lines.
    #[inline(always)]
    pub(super) fn spread(self) -> u64 {
        // The high word of a sum of products is spread well except for its top bits; the low one has the rest.
        (self.low ^ self.high.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// 16 bits of it, for a small filter: none of those that choose a line.
    #[must_use]
    pub fn tag(self) -> u16 {
        self.low as u16
    }

    /// Where a filter of `len` tags has its tag.
    #[must_use]
    pub fn slot(self, len: usize) -> usize {
        // The high bits of the sum hardly differ where only a small number beside the bytes does.
        ((self.low ^ self.high).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 32) as usize % len
    }
}

/// The secret of one table.
pub(super) struct Key {
    /// For the length and the number beside.
    first: [u64; 2],
    blocks: [[u64; 2]; BLOCKS],
}

impl Key {
    pub(super) fn random() -> Self {
        let pair = || [prim::seed::random_u64(), prim::seed::random_u64()];
        Self { first: pair(), blocks: core::array::from_fn(|_| pair()) }
    }

    #[inline(always)]
    pub(super) fn sign(&self, beside: u64, bytes: &[u8]) -> Option<Signature> {
        if bytes.len() > MAX {
            return None;
        }
        let mut sum = product([beside, bytes.len() as u64], self.first);
        let mut keys = self.blocks.iter();
        let mut at = 0;
        // Whole blocks that do not end the bytes.
        while let Some(block) = prim::bytes::load_16(bytes, at)
            && let Some(key) = keys.next()
        {
            sum = sum.wrapping_add(product([block as u64, (block >> 64) as u64], *key));
            at += 16;
        }
        if at != bytes.len()
            && let Some(key) = keys.next()
        {
            sum = sum.wrapping_add(product(last_block(bytes), *key));
        }
        Some(Signature { low: sum as u64, high: (sum >> 64) as u64 })
    }
}

/// Returns the last 16 bytes, or all of fewer, in a way that no two strings of one length share.
#[inline(always)]
fn last_block(bytes: &[u8]) -> [u64; 2] {
    if let Some(last) = bytes.last_chunk::<16>() {
        let block = u128::from_le_bytes(*last);
        return [block as u64, (block >> 64) as u64];
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        return [u64::from_le_bytes(*first), u64::from_le_bytes(*last)];
    }
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return [u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()];
    }
    match *bytes {
        [] => [0, 0],
        [a] => [a.into(), 0],
        [a, b] => [a.into(), b.into()],
        [a, b, c, ..] => [u64::from(a) << 8 | u64::from(b), c.into()],
    }
}

#[inline(always)]
fn product(words: [u64; 2], key: [u64; 2]) -> u128 {
    u128::from(words[0].wrapping_add(key[0])) * u128::from(words[1].wrapping_add(key[1]))
}
