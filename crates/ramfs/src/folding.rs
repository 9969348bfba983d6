//! Case-insensitive names.
//!
//! # What it is
//! Names in UTF-8 are compared by the lower case of each character (Unicode's simple and special mappings, without
//! context), all other names byte by byte.
//!
//! # What it is not
//! Full case folding or normalization, which tmpfs's `casefold` does: `ß` is not `ss`, and a letter with an accent is
//! not the letter and the accent.

use vfs::NameRules;

/// One more than the last character.
const LETTERS: u32 = char::MAX as u32 + 1;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Folding;

impl NameRules for Folding {
    fn hash(&self, key: u64, name: &[u8]) -> u64 {
        let mut hash = Hash { key, state: key };
        match core::str::from_utf8(name) {
            Ok(name) => name.chars().flat_map(char::to_lowercase).for_each(|letter| hash.add(letter.into())),
            // Above all characters, so that no byte hashes as one.
            Err(_) => name.iter().for_each(|&byte| hash.add(LETTERS + u32::from(byte))),
        }
        hash.state
    }

    fn equal(&self, a: &[u8], b: &[u8]) -> bool {
        match (core::str::from_utf8(a), core::str::from_utf8(b)) {
            (Ok(a), Ok(b)) => a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase)),
            _ => a == b,
        }
    }
}

/// A hash by folded multiplication: both halves of a product with a number made of the key (wyhash, and its numbers).
struct Hash {
    key: u64,
    state: u64,
}

impl Hash {
    fn add(&mut self, letter: u32) {
        let factor = (self.key ^ 0xa076_1d64_78bd_642f) | 1;
        let product = u128::from(self.state ^ u64::from(letter) ^ 0xe703_7ed1_a0b4_28db) * u128::from(factor);
        self.state = (product as u64 ^ (product >> 64) as u64).wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_case_are_one() {
        for (a, b, one) in [
            (&b"readme"[..], &b"README"[..], true),
            (b"a", b"a", true),
            (b"a", b"b", false),
            (b"a", b"aa", false),
            (b"", b"", true),
            ("straße".as_bytes(), "STRAßE".as_bytes(), true),
            ("Ärger".as_bytes(), "ärger".as_bytes(), true),
            ("straße".as_bytes(), "STRASSE".as_bytes(), false),
            // The sign for kelvins has the letter for its lower case.
            ("\u{212a}".as_bytes(), b"K", true),
            // Without UTF-8, bytes count.
            (b"\xffA", b"\xffa", false),
            (b"\xffA", b"\xffA", true),
            (b"\xe4", "ä".as_bytes(), false),
        ] {
            assert_eq!(Folding.equal(a, b), one, "{} {}", a.escape_ascii(), b.escape_ascii());
            for key in [0, 1, 0xdead_beef] {
                let same = Folding.hash(key, a) == Folding.hash(key, b);
                assert_eq!(same, one, "{} {}", a.escape_ascii(), b.escape_ascii());
            }
        }
    }

    #[test]
    fn another_key_gives_other_hashes() {
        let hashes = |key| (0..1000).map(|number: u32| Folding.hash(key, number.to_string().as_bytes())).collect();
        let (one, two): (Vec<u64>, Vec<u64>) = (hashes(1), hashes(2));
        assert_eq!(one.iter().zip(&two).filter(|(one, two)| one == two).count(), 0);
        let mut sorted = one.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), one.len());
    }
}
