//! Attributes as an inode keeps them.

use crate::base::attr::{Attr, S_IFBLK, S_IFCHR, S_IFMT};
use prim::wide::Line;

/// Storage is counted in pages of 4096 bytes; `stat(2)` counts blocks of 512.
pub(crate) const BLOCKS_PER_PAGE: u64 = 8;

/// The bits of a mode that are shown: file type and permissions.
const MODE: u32 = 0o177_777;

/// The word of a birth that is not kept.
pub(crate) const NO_BIRTH: i64 = i64::MIN;

/// Attributes of an inode at one moment, packed into a cache line as in the inode, and the inode's
/// birth, which lies in another line. A query copies line and birth, and unpacks only the
/// attributes that its caller reads.
///
/// | word | lower half | upper half |
/// |---|---|---|
/// | 0 | not part of the attributes | mode, with flags above [`S_IFMT`] that are not shown |
/// | 1 | links | owner |
/// | 2 | group | pages of storage, or the device number of a device node, which has no storage |
/// | 3 to 7 | length, inode number, times of access, modification and change | |
#[derive(Clone, Copy)]
pub struct PackedAttr {
    line: Line,
    /// [`NO_BIRTH`], or nanoseconds since the epoch.
    birth: i64,
}

impl PackedAttr {
    /// Returns a copy of an inode's first line, and of the word of its birth.
    #[inline(always)]
    pub(crate) fn new(line: Line, birth: i64) -> Self {
        Self { line, birth }
    }

    /// Returns when the file was made, in nanoseconds since the epoch, if the cache keeps that: [`Inode::birth`](crate::Inode::birth).
    #[inline]
    #[must_use]
    pub fn birth(&self) -> Option<i64> {
        (self.birth != NO_BIRTH).then_some(self.birth)
    }

    /// Returns these attributes, with that birth.
    #[must_use]
    pub(crate) fn with_birth(self, birth: Option<i64>) -> Self {
        Self { birth: birth.unwrap_or(NO_BIRTH), ..self }
    }

    /// Returns the attributes.
    #[inline]
    #[must_use]
    pub fn unpack(&self) -> Attr {
        let words = self.line.words();
        let (low, high) = (|word: usize| words[word] as u32, |word: usize| (words[word] >> 32) as u32);
        let mode = high(0) & MODE;
        let (rdev, blocks) = sharded_extra(mode, high(2));
        Attr {
            ino: words[4],
            mode,
            nlink: low(1),
            uid: high(1),
            gid: low(2),
            rdev,
            size: words[3],
            blocks,
            atime: words[5].cast_signed(),
            mtime: words[6].cast_signed(),
            ctime: words[7].cast_signed(),
        }
    }
}

/// Without a birth.
impl From<&Attr> for PackedAttr {
    #[inline]
    fn from(attr: &Attr) -> Self {
        let both = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let line = Line::from_words([
            both(0, attr.mode),
            both(attr.nlink, attr.uid),
            both(attr.gid, extra(attr)),
            attr.size,
            attr.ino,
            attr.atime.cast_unsigned(),
            attr.mtime.cast_unsigned(),
            attr.ctime.cast_unsigned(),
        ]);
        Self::new(line, NO_BIRTH)
    }
}

/// By the attributes: a birth may be unknown on one side.
impl PartialEq for PackedAttr {
    fn eq(&self, other: &Self) -> bool {
        self.unpack() == other.unpack()
    }
}

impl Eq for PackedAttr {}

impl core::fmt::Debug for PackedAttr {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.unpack().fmt(f)
    }
}

/// Returns the number that an inode keeps for both: pages of storage, or the device number of a
/// device node.
pub(crate) fn extra(attr: &Attr) -> u32 {
    if is_device(attr.mode) { attr.rdev } else { u32::try_from(attr.blocks / BLOCKS_PER_PAGE).unwrap_or(u32::MAX) }
}

/// Returns the device number and the blocks that [`extra`] made into one number.
#[inline(always)]
pub(crate) fn sharded_extra(mode: u32, extra: u32) -> (u32, u64) {
    if is_device(mode) { (extra, 0) } else { (0, u64::from(extra) * BLOCKS_PER_PAGE) }
}

#[inline(always)]
fn is_device(mode: u32) -> bool {
    matches!(mode & S_IFMT, S_IFCHR | S_IFBLK)
}
