//! Names: hashing, and finding the components of a path without copying it.
//!
//! # How
//! Four 16-byte compares find the delimiters of 64 path bytes at once. A name of at most 16 bytes is two
//! words, cut out of the path without a branch on its length, and hashed by one multiplication. The path is
//! read in place, and no byte beyond its end: the last loads overlap those before them. (Copying the path
//! into a padded buffer cost 17 ns hot and 330 ns cold, measured on a prototype.)
//!
//! # Limits
//! A path has at most [`PATH_MAX`] bytes and a name at most [`NAME_MAX`]. A name may contain any byte except
//! NUL and `/`.

/// Longest path, in bytes (Linux's 4096 counts the NUL).
pub const PATH_MAX: usize = 4095;

/// Longest name, in bytes.
pub const NAME_MAX: usize = 255;

/// Returns whether `name` can be the name of an entry.
pub(crate) fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && name.len() <= NAME_MAX && !name.iter().any(|byte| matches!(byte, 0 | b'/'))
}

/// A name of at most 16 bytes: its bytes in two little-endian words, padded with zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ShortName {
    pub(crate) words: [u64; 2],
    pub(crate) len: usize,
}

impl ShortName {
    /// Longest short name.
    pub(crate) const MAX: usize = 16;

    /// Returns the name's bytes.
    pub(crate) fn bytes(self) -> NameBytes {
        let mut bytes = [0; Self::MAX];
        bytes[..8].copy_from_slice(&self.words[0].to_le_bytes());
        bytes[8..].copy_from_slice(&self.words[1].to_le_bytes());
        NameBytes { bytes, len: self.len }
    }

    /// Returns whether the name is `.` or `..`.
    #[inline(always)]
    pub(crate) fn is_dots(self) -> bool {
        matches!((self.words[0], self.len), (0x2e, 1) | (0x2e2e, 2))
    }

    /// Returns whether it has a NUL byte, which no name of an entry has.
    #[inline(always)]
    pub(crate) fn has_nul(self) -> bool {
        let [low, high] = self.words.map(u128::from);
        // The zeros behind the name come after any in it. (A set bit ends a name of 16 bytes.)
        let nuls = prim::bytes::matches(low | high << 64, 0) | 1 << Self::MAX;
        (nuls.trailing_zeros() as usize) < self.len
    }
}

/// A short name's bytes, as a slice.
pub(crate) struct NameBytes {
    bytes: [u8; ShortName::MAX],
    len: usize,
}

impl core::ops::Deref for NameBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Masks that keep the first `n` bytes of two words.
const KEEP: [[u64; 2]; 17] = {
    let mut masks = [[0; 2]; 17];
    let mut n = 1;
    while n <= 16 {
        let low = if n >= 8 { u64::MAX } else { (1 << (8 * n)) - 1 };
        let high = match n {
            0..=8 => 0,
            16 => u64::MAX,
            _ => (1 << (8 * (n - 8))) - 1,
        };
        masks[n] = [low, high];
        n += 1;
    }
    masks
};

/// A name of a directory's entry, with its hash in the table of dentries.
#[derive(Clone, Copy)]
pub(crate) struct Named<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) hash: u64,
    /// The name again, if it is short.
    pub(crate) short: Option<ShortName>,
}

impl<'a> Named<'a> {
    /// `name`, which has the hash `hash`.
    pub(crate) fn new(name: &'a [u8], hash: u64) -> Self {
        Self { name, hash, short: short(name) }
    }
}

/// The secret of one instance's name hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameKey([u64; 2]);

impl NameKey {
    /// Returns a key from the system's random numbers.
    pub(crate) fn random() -> Self {
        Self([prim::seed::random_u64() | 1, prim::seed::random_u64() | 1])
    }

    /// Returns one word of the secret, for a file system's own hash.
    pub(crate) fn word(self) -> u64 {
        self.0[0]
    }

    /// Hash of a short name: one multiplication folded onto itself. A name has no NUL, so its words determine
    /// its length.
    #[inline(always)]
    pub(crate) fn hash_short(self, name: ShortName) -> u64 {
        fold(name.words[0] ^ self.0[0], name.words[1] ^ self.0[1])
    }

    /// Hash of any name; equals [`NameKey::hash_short`] for a short one.
    pub(crate) fn hash(self, name: &[u8]) -> u64 {
        match short(name) {
            Some(name) => self.hash_short(name),
            None => self.hash_long(name),
        }
    }

    #[cold]
    fn hash_long(self, name: &[u8]) -> u64 {
        let mut hash = name.len() as u64;
        for chunk in name.chunks(ShortName::MAX) {
            let words = words_of(chunk);
            hash = fold(hash ^ words[0] ^ self.0[0], words[1] ^ self.0[1]);
        }
        fold(hash ^ self.0[1], self.0[0])
    }
}

#[inline(always)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// `name` as a short name, if it is one.
#[inline(always)]
pub(crate) fn short(name: &[u8]) -> Option<ShortName> {
    (name.len() <= ShortName::MAX).then(|| ShortName { words: words_of(name), len: name.len() })
}

/// Returns the first 16 bytes of `bytes`, padded with zeros, as two words.
#[inline(always)]
pub(crate) fn words_of(bytes: &[u8]) -> [u64; 2] {
    let bytes = &bytes[..bytes.len().min(ShortName::MAX)];
    let len = bytes.len();
    // Overlapping loads, so that no byte beyond `bytes` is read.
    if let (Some(first), Some(last)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        let high = u64::from_le_bytes(*last).unbounded_shr(8 * (16 - len as u32));
        return [u64::from_le_bytes(*first), high];
    }
    [under_8(bytes), 0]
}

/// Fewer than 8 bytes as a number.
#[inline(always)]
fn under_8(bytes: &[u8]) -> u64 {
    let len = bytes.len();
    if let (Some(first), Some(last)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>()) {
        return u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4));
    }
    bytes.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte))
}

/// A path, and how to split it into components.
#[derive(Clone, Copy)]
pub(crate) struct Components<'p> {
    path: &'p [u8],
}

impl<'p> Components<'p> {
    #[inline(always)]
    pub(crate) fn new(path: &'p [u8]) -> Self {
        Self { path }
    }

    #[inline(always)]
    pub(crate) fn path(&self) -> &'p [u8] {
        self.path
    }

    /// Returns the positions of `/` among the 64 bytes from `from` on, as bits; the end of the path
    /// counts as one.
    #[inline(always)]
    pub(crate) fn delimiters(&self, from: usize) -> u64 {
        // One compare for all four loads.
        if let Some(block) = self.path.get(from..).and_then(<[u8]>::first_chunk::<64>) {
            let parts = block.as_chunks::<16>().0.iter().enumerate();
            return parts.fold(0, |mask, (k, part)| mask | slashes(u128::from_le_bytes(*part)) << (16 * k));
        }
        let rest = self.path.len() - from;
        let mask = if rest >= 16 {
            // The last load ends with the path; overlapping loads agree.
            (0..4).fold(0, |mask, k| {
                let at = (16 * k).min(rest - 16);
                mask | slashes_at(self.path, from + at) << at
            })
        } else if self.path.len() >= 16 {
            slashes_at(self.path, self.path.len() - 16) >> (16 - rest)
        } else {
            slashes_under_16(self.path) >> from
        };
        mask | 1 << rest
    }

    /// [`Components::delimiters`] of a later block: a call, so that the compiler computes nothing for it
    /// before the first block.
    #[inline(never)]
    pub(crate) fn later_delimiters(&self, from: usize) -> u64 {
        self.delimiters(from)
    }

    /// Returns the component of `len` bytes (at most 16) at `start`.
    #[inline(always)]
    pub(crate) fn short_at(&self, start: usize, len: usize) -> ShortName {
        let words = match prim::bytes::load_16(self.path, start) {
            Some(all) => {
                let keep = &KEEP[len];
                [all as u64 & keep[0], (all >> 64) as u64 & keep[1]]
            }
            None => words_of(&self.path[start..start + len]),
        };
        ShortName { words, len }
    }
}

#[inline(always)]
fn slashes_at(path: &[u8], at: usize) -> u64 {
    prim::bytes::load_16(path, at).map_or(0, slashes)
}

/// Returns the last slash of a path, if it is among the last 16 bytes, and what is behind it,
/// perhaps nothing.
#[inline(always)]
pub(crate) fn last_name(path: &[u8]) -> Option<(usize, ShortName)> {
    let Some(from) = path.len().checked_sub(16) else {
        let slash = slashes_under_16(path).checked_ilog2()? as usize;
        let name = path.get(slash + 1..)?;
        return Some((slash, ShortName { words: words_of(name), len: name.len() }));
    };
    let all = prim::bytes::load_16(path, from)?;
    let at = slashes(all).checked_ilog2()?;
    let name = all >> 8 >> (8 * at);
    Some((from + at as usize, ShortName { words: [name as u64, (name >> 64) as u64], len: 15 - at as usize }))
}

/// Returns the slashes of a path of fewer than 16 bytes.
#[inline(always)]
fn slashes_under_16(path: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (path.first_chunk::<8>(), path.last_chunk::<8>()) {
        let both = u128::from(u64::from_le_bytes(*first)) | u128::from(u64::from_le_bytes(*last)) << 64;
        let mask = slashes(both);
        return mask & 0xff | (mask >> 8) << (path.len() - 8);
    }
    // The zero bytes above the path are not slashes.
    slashes(u128::from(under_8(path)))
}

/// Returns one bit for each byte that is a slash.
#[inline(always)]
fn slashes(bytes: u128) -> u64 {
    u64::from(prim::bytes::matches(bytes, b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the components by the plain method.
    fn split(path: &[u8]) -> Vec<&[u8]> {
        path.split(|&byte| byte == b'/').collect()
    }

    fn cut(path: &[u8], from: usize) -> Vec<&[u8]> {
        let parts = Components::new(path);
        let (mut block, mut start, mut out) = (from, from, Vec::new());
        let mut mask = parts.delimiters(block);
        loop {
            while mask == 0 {
                block += 64;
                mask = parts.delimiters(block);
            }
            let end = block + mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let part = &path[start..end];
            if (1..=16).contains(&part.len()) {
                assert_eq!(Some(parts.short_at(start, part.len())), short(part), "{path:?}");
            }
            out.push(part);
            if end == path.len() {
                return out;
            }
            start = end + 1;
        }
    }

    #[test]
    fn components_are_those_of_a_plain_split_at_every_length_and_offset() {
        let mut random = fastrand::Rng::with_seed(7);
        for len in 0..300 {
            let path: Vec<u8> = (0..len).map(|_| if random.u8(..8) == 0 { b'/' } else { random.u8(..) | 1 }).collect();
            for from in [0, 1, 15, 16, 17, 63, 64, 65].into_iter().filter(|&from| from <= len) {
                assert_eq!(cut(&path, from), split(&path[from..]), "len {len} from {from}");
            }
        }
    }

    #[test]
    fn only_dot_and_dot_dot_are_dots() {
        for (name, dots) in [(".", true), ("..", true), ("...", false), (".a", false), ("a.", false), ("", false)] {
            assert_eq!(short(name.as_bytes()).unwrap().is_dots(), dots, "{name}");
        }
    }

    #[test]
    fn the_name_behind_the_last_slash_is_that_of_a_plain_split() {
        let mut random = fastrand::Rng::with_seed(8);
        for len in 0..300 {
            let path: Vec<u8> = (0..len % 40).map(|_| if random.u8(..8) == 0 { b'/' } else { random.u8(..) }).collect();
            let slash = path.iter().rposition(|&byte| byte == b'/').filter(|slash| path.len() - slash <= 16);
            let want = slash.map(|slash| (slash, short(&path[slash + 1..]).unwrap()));
            assert_eq!(last_name(&path), want, "{path:?}");
        }
    }

    #[test]
    fn a_nul_is_found_in_the_name_and_not_behind_it() {
        for len in 0..=16 {
            let mut name = vec![0xff; len];
            assert!(!short(&name).unwrap().has_nul(), "{len}");
            name.iter_mut().for_each(|byte| *byte = 1);
            assert!(!short(&name).unwrap().has_nul(), "{len}");
            for at in 0..len {
                name[at] = 0;
                assert!(short(&name).unwrap().has_nul(), "{len} {at}");
                name[at] = 1;
            }
        }
    }

    #[test]
    fn names_that_differ_in_length_or_one_byte_hash_apart() {
        let key = NameKey::random();
        let mut seen = std::collections::BTreeSet::new();
        for len in 1..=NAME_MAX {
            for fill in *b"ab" {
                assert!(seen.insert(key.hash(&vec![fill; len])), "{len} {fill}");
            }
        }
    }
}
