//! Names of entries, as atomic words: short ones in the entry, long ones in a separate table.
//!
//! # What it is
//! Up to 32 bytes are in the entry itself (`DNAME_INLINE_LEN`), as in every era; a longer name
//! takes a block of 256. Names are read by walkers that hold no lock while a rename writes them, so
//! they are words and not bytes. The era decides how a reader handles a torn name: it checks a
//! sequence, or has the lock that renames take.
//!
//! # Source
//! `d_iname` and `d_name` of Linux's dentry; "external names" are those that do not fit.

use super::list::NONE;
use super::pool::Pool;
use crate::era::{Error, Result};
use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Bytes that a name may have.
pub(crate) const NAME_MAX: usize = 255;

const INLINE_WORDS: usize = 4;
const LONG_WORDS: usize = 32;
const INLINE: usize = INLINE_WORDS * 8;

/// A name that is looked for or given, and its hash.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    bytes: &'a [u8],
    pub(crate) hash: u32,
}

impl<'a> Name<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self> {
        if bytes.len() > NAME_MAX {
            return Err(Error::NameTooLong);
        }
        let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        let hash = words(bytes).fold(bytes.len() as u64, mix);
        Ok(Self { bytes, hash: (hash ^ hash >> 32) as u32 })
    }
}

/// Returns the bytes eight by eight, the last ones filled up with zeros.
fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    })
}

/// The part of a name that is on an entry's first line: `d_name`. 16 bytes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct NameKey {
    hash: AtomicU32,
    len: AtomicU32,
    /// The block of a long name, else `NONE`.
    long: AtomicU32,
    _pointer: u32,
}

/// A short name: `d_iname`. 32 bytes.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct InlineName([AtomicU64; INLINE_WORDS]);

impl NameKey {
    pub(crate) fn new() -> Self {
        Self { hash: AtomicU32::new(0), len: AtomicU32::new(0), long: AtomicU32::new(NONE), _pointer: 0 }
    }

    pub(crate) fn hash(&self) -> u32 {
        self.hash.load(Relaxed)
    }

    /// Makes it a name of no bytes, which none looks for, until it is set again.
    pub(crate) fn hide(&self) {
        self.len.store(0, Relaxed);
    }
}

impl InlineName {
    pub(crate) fn new() -> Self {
        Self([const { AtomicU64::new(0) }; INLINE_WORDS])
    }
}

/// The long names of a tree.
pub(crate) struct LongNames {
    blocks: Box<[Block]>,
    free: Pool,
}

#[repr(align(64))]
struct Block([AtomicU64; LONG_WORDS]);

impl LongNames {
    /// Room for `count` of them.
    pub(crate) fn new(count: usize) -> Self {
        let blocks = (0..count).map(|_| Block([const { AtomicU64::new(0) }; LONG_WORDS])).collect();
        Self { blocks, free: Pool::new(count) }
    }

    /// Returns a block for a name of `len` bytes if it needs one, else `NONE`; to be handed to
    /// [`set`](Self::set).
    pub(crate) fn reserve(&self, name: &Name<'_>) -> Result<u32> {
        if name.bytes.len() <= INLINE { Ok(NONE) } else { self.free.take().ok_or(Error::NoSpace) }
    }

    /// Gives an entry its name. The caller excludes concurrent readers by a lock, or notifies them by a sequence.
    pub(crate) fn set(&self, key: &NameKey, inline: &InlineName, name: &Name<'_>, block: u32) {
        let former = key.long.load(Relaxed);
        let target = if block == NONE { &inline.0[..] } else { &self.blocks[block as usize].0[..] };
        words(name.bytes).zip(target).for_each(|(word, place)| place.store(word, Relaxed));
        key.hash.store(name.hash, Relaxed);
        key.long.store(block, Relaxed);
        key.len.store(name.bytes.len() as u32, Relaxed);
        self.give_back(former);
    }

    /// Takes an entry's name away.
    pub(crate) fn clear(&self, key: &NameKey) {
        self.give_back(key.long.load(Relaxed));
        key.long.store(NONE, Relaxed);
    }

    /// Frees a block that was reserved or held a name.
    pub(crate) fn give_back(&self, block: u32) {
        if block != NONE {
            self.free.give(block);
        }
    }

    /// Returns whether an entry has the name.
    pub(crate) fn is(&self, key: &NameKey, inline: &InlineName, name: &Name<'_>) -> bool {
        let len = key.len.load(Relaxed) as usize;
        len == name.bytes.len()
            && self
                .words(key, inline)
                .is_some_and(|have| words(name.bytes).zip(have).all(|(word, place)| word == place.load(Relaxed)))
    }

    /// Appends an entry's name to `out`.
    pub(crate) fn copy(&self, key: &NameKey, inline: &InlineName, out: &mut Vec<u8>) {
        let len = key.len.load(Relaxed) as usize;
        // A name that is being changed may be without its block: the reader will find that it must
        // read again.
        let Some(words) = self.words(key, inline) else { return };
        let len = len.min(words.len() * 8);
        let from = out.len();
        words[..len.div_ceil(8)].iter().for_each(|word| out.extend(word.load(Relaxed).to_le_bytes()));
        out.truncate(from + len);
    }

    /// Returns the words of a name; `None` if it is long and has no block: it is being changed.
    fn words<'a>(&'a self, key: &NameKey, inline: &'a InlineName) -> Option<&'a [AtomicU64]> {
        if key.len.load(Relaxed) as usize <= INLINE {
            return Some(&inline.0);
        }
        self.blocks.get(key.long.load(Relaxed) as usize).map(|block| &block.0[..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_was_set_last_and_blocks_come_back() {
        let names = LongNames::new(1);
        let (key, inline) = (NameKey::new(), InlineName::new());
        let long: Vec<u8> = (0..255).map(|n| b'a' + n % 26).collect();
        let mut before: &[u8] = b"before";
        for len in [1, 7, 8, 9, 31, 32, 33, 255, 5, 100, 32] {
            let bytes = &long[..len];
            let name = Name::new(bytes).unwrap();
            names.clear(&key);
            names.set(&key, &inline, &name, names.reserve(&name).unwrap());
            assert!(names.is(&key, &inline, &name) && key.hash() == name.hash, "{len}");
            assert!(!names.is(&key, &inline, &Name::new(before).unwrap()), "{len}");
            let mut copy = b"/".to_vec();
            names.copy(&key, &inline, &mut copy);
            assert_eq!(copy, [b"/", bytes].concat());
            before = bytes;
        }
        assert_eq!(names.free.free(), 1);
        assert_eq!(Name::new(&[b'a'; 256]).map(|_| ()), Err(Error::NameTooLong));
    }

    #[test]
    fn one_byte_more_or_another_order_is_another_name() {
        let hash = |bytes: &[u8]| Name::new(bytes).unwrap().hash;
        assert_ne!(hash(b"a"), hash(b"a\0"));
        assert_ne!(hash(b"abcdefgh12345678"), hash(b"12345678abcdefgh"));
    }
}
