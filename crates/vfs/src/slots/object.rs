//! The object word of a dentry: the address of its inode, and its flags.
//!
//! # What it is
//! | bits | meaning |
//! |---|---|
//! | 0..48 | address of the inode; 0: negative or free |
//! | 48 [`LINK`](ObjectFlags::LINK) | a symbolic link |
//! | 49 [`HASHED`](ObjectFlags::HASHED) | in the table: reachable by name |
//! | 50 [`COMPLETE`](ObjectFlags::COMPLETE) | a directory with all its names in the cache: a miss is `ENOENT` |
//! | 51 [`PARENT_PINNED`](ObjectFlags::PARENT_PINNED) | unlinked but held, and holds a count on its parent |
//! | 52 [`MOUNTED`](ObjectFlags::MOUNTED) | a mount point, in some namespace |
//! | 53 [`CHECKED`](ObjectFlags::CHECKED) | valid until the time in `cookie` only |
//! | 54 [`COLD`](ObjectFlags::COLD) | not used since the cache's clock hand passed |
//! | 55 [`FOLDED`](ObjectFlags::FOLDED) | a directory with names that its file system hashes and compares |
//! | 56 [`ACL`](ObjectFlags::ACL) | a directory with an access ACL |
//! | 57 [`HOT`](ObjectFlags::HOT) | a negative entry that was hit twice since the clock hand passed |
//! | 58 [`START`](ObjectFlags::START) | in no dentry: the walk starts here, so the name does not matter |
//! | 59 [`PASSED`](ObjectFlags::PASSED) | a directory or link that a recorded path passed: its moves count ([`whole_path`](crate::slots::whole_path)) |
//! | 62 [`DIR`](ObjectFlags::DIR) | a directory |
//! | 63 [`SEARCH_ALL`](ObjectFlags::SEARCH_ALL) | a directory that everyone may search (0111), and none of 52, 53, 55, 56 is set: a walk skips the slow step |
//!
//! # What it is not
//! It is a copy: the word of the dentry may have changed since.
//!
//! # How it is locked
//! See [`Dentry::update_object`](crate::slots::dentry::Dentry::update_object).
//!
//! # Where it comes from
//! Linux's `d_inode` and `d_flags`, in one word, so that a walk reads both at one moment.

use crate::base::attr::{S_IFDIR, S_IFLNK, S_IFMT};
use crate::slots::inode::{Inode, InodeRef};
use bitflags::bitflags;

bitflags! {
    /// The flags of an object word; see the [module documentation](self).
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub(crate) struct ObjectFlags: u64 {
        const LINK = 1 << 48;
        const HASHED = 1 << 49;
        const COMPLETE = 1 << 50;
        const PARENT_PINNED = 1 << 51;
        const MOUNTED = 1 << 52;
        const CHECKED = 1 << 53;
        const COLD = 1 << 54;
        const FOLDED = 1 << 55;
        const ACL = 1 << 56;
        const HOT = 1 << 57;
        const START = 1 << 58;
        const PASSED = 1 << 59;
        const DIR = 1 << 62;
        const SEARCH_ALL = 1 << 63;

        /// Flags of a path's end that need the slow step.
        const SPECIAL = Self::LINK.bits() | Self::MOUNTED.bits() | Self::CHECKED.bits() | Self::COLD.bits();
        /// Flags of a directory that each walk through it must look at.
        const SLOW_SEARCH = Self::MOUNTED.bits() | Self::CHECKED.bits() | Self::FOLDED.bits() | Self::ACL.bits();
    }
}

/// The bits of the inode's address.
const ADDRESS: u64 = (1 << 48) - 1;

/// See the [module documentation](self).
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Object(u64);

impl Object {
    /// The word of a free dentry, and of a negative entry before it has flags.
    pub(crate) const NEGATIVE: Self = Self(0);

    /// Returns the word of a dentry with this reference on an inode of `mode`; `dir_flags` are the flags of
    /// its superblock's directories.
    #[inline(always)]
    pub(crate) fn of(inode: InodeRef<'_>, mode: u32, dir_flags: ObjectFlags) -> Self {
        let object = Self(core::ptr::from_ref::<Inode>(&inode) as u64);
        match mode & S_IFMT {
            // An ACL may refuse a right that the mode allows.
            S_IFDIR if inode.has_acl() => object.with(ObjectFlags::DIR | dir_flags | ObjectFlags::ACL),
            S_IFDIR => object.with(ObjectFlags::DIR | dir_flags).with_search(mode),
            S_IFLNK => object.with(ObjectFlags::LINK),
            _ => object,
        }
    }

    /// Returns the word that [`bits`](Object::bits) returned; for the dentry, which keeps it in an
    /// atomic.
    #[inline(always)]
    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    #[inline(always)]
    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the address of the inode; 0 if the word has none.
    #[inline(always)]
    pub(crate) const fn inode_address(self) -> u64 {
        self.0 & ADDRESS
    }

    /// Returns whether any of `flags` is set.
    #[inline(always)]
    pub(crate) const fn has(self, flags: ObjectFlags) -> bool {
        self.0 & flags.bits() != 0
    }

    #[inline(always)]
    pub(crate) const fn with(self, flags: ObjectFlags) -> Self {
        Self(self.0 | flags.bits())
    }

    #[inline(always)]
    pub(crate) const fn without(self, flags: ObjectFlags) -> Self {
        Self(self.0 & !flags.bits())
    }

    /// Returns the word of a directory of `mode`, with [`SEARCH_ALL`](ObjectFlags::SEARCH_ALL) as
    /// mode and flags demand.
    pub(crate) fn with_search(self, mode: u32) -> Self {
        let closed = self.without(ObjectFlags::SEARCH_ALL);
        let is_open =
            self.is_dir() && mode & 0o111 == 0o111 && !self.is_negative() && !self.has(ObjectFlags::SLOW_SEARCH);
        if is_open { closed.with(ObjectFlags::SEARCH_ALL) } else { closed }
    }

    /// Returns the word of a directory of `mode` with an expiry.
    pub(crate) fn with_expiry(self, mode: u32) -> Self {
        let object = self.with(ObjectFlags::CHECKED);
        if object.is_dir() { object.with_search(mode) } else { object }
    }

    /// Returns whether there is no inode: a name that does not exist, or a free dentry.
    #[inline(always)]
    pub(crate) const fn is_negative(self) -> bool {
        self.inode_address() == 0
    }

    #[inline(always)]
    pub(crate) const fn is_dir(self) -> bool {
        self.has(ObjectFlags::DIR)
    }

    #[inline(always)]
    pub(crate) const fn is_link(self) -> bool {
        self.has(ObjectFlags::LINK)
    }

    /// Returns whether it is reachable by its name.
    #[inline(always)]
    pub(crate) const fn is_hashed(self) -> bool {
        self.has(ObjectFlags::HASHED)
    }

    /// Returns whether the cache has all names of the directory.
    #[inline(always)]
    pub(crate) const fn is_complete(self) -> bool {
        self.has(ObjectFlags::COMPLETE)
    }

    /// Returns whether it is a mount point, in some namespace.
    #[inline(always)]
    pub(crate) const fn is_mountpoint(self) -> bool {
        self.has(ObjectFlags::MOUNTED)
    }

    /// Returns whether it must be revalidated after some time.
    #[inline(always)]
    pub(crate) const fn has_expiry(self) -> bool {
        self.has(ObjectFlags::CHECKED)
    }

    /// Returns whether it was not used since the cache's clock hand passed.
    #[inline(always)]
    pub(crate) const fn is_cold(self) -> bool {
        self.has(ObjectFlags::COLD)
    }

    /// Returns whether the file system of the directory hashes and compares its names.
    #[inline(always)]
    pub(crate) const fn is_folded(self) -> bool {
        self.has(ObjectFlags::FOLDED)
    }

    /// Returns whether it is a negative entry that was hit twice since the cache's clock hand
    /// passed.
    #[inline(always)]
    pub(crate) const fn is_hot(self) -> bool {
        self.has(ObjectFlags::HOT)
    }

    /// Returns whether it is a directory that everyone may search: the top bit, which a test of the
    /// sign finds.
    #[inline(always)]
    pub(crate) const fn is_open_dir(self) -> bool {
        self.has(ObjectFlags::SEARCH_ALL)
    }

    /// Returns whether a directory with the word `new` is harder to search than with this word: not
    /// everyone may search it any more, or it has a new flag that each walk must look at.
    pub(crate) fn is_harder_as(self, new: Self) -> bool {
        let gained = new.0 & !self.0 & ObjectFlags::SLOW_SEARCH.bits();
        gained != 0 || (self.is_open_dir() && !new.is_open_dir())
    }

    /// Returns whether a path may end here without the slow step: there is an inode and no flag of
    /// [`SPECIAL`](ObjectFlags::SPECIAL). One compare, since those bits are above the address.
    #[inline(always)]
    pub(crate) const fn is_plain_end(self) -> bool {
        (self.0 & (ADDRESS | ObjectFlags::SPECIAL.bits())).wrapping_sub(1) < ADDRESS
    }
}

impl core::fmt::Debug for Object {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:#x} ", self.inode_address())?;
        bitflags::parser::to_writer(&ObjectFlags::from_bits_truncate(self.0), f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_ends_at_an_inode_without_the_slow_step_unless_a_special_flag_is_set() {
        let dir = ObjectFlags::DIR;
        let cases = [
            (0, ObjectFlags::empty(), false),
            (0, ObjectFlags::HASHED | dir, false),
            (64, ObjectFlags::empty(), true),
            (ADDRESS, ObjectFlags::empty(), true),
            (64, dir | ObjectFlags::HASHED, true),
            (64, ObjectFlags::LINK, false),
            (0, ObjectFlags::LINK, false),
            (64, ObjectFlags::MOUNTED, false),
            (64, ObjectFlags::CHECKED, false),
            (64, ObjectFlags::COLD | ObjectFlags::HASHED, false),
            (64, dir | ObjectFlags::FOLDED | ObjectFlags::ACL | ObjectFlags::COMPLETE, true),
        ];
        for (address, flags, expected) in cases {
            let object = Object(address).with(flags);
            assert_eq!(object.is_plain_end(), expected, "{object:?}");
        }
    }

    #[test]
    fn everyone_may_search_a_directory_only_without_a_flag_that_needs_the_slow_step() {
        let cases = [
            (64, 0o755, ObjectFlags::COMPLETE, true),
            (64, 0o711, ObjectFlags::SEARCH_ALL, true),
            (64, 0o750, ObjectFlags::SEARCH_ALL, false),
            (64, 0o755, ObjectFlags::MOUNTED, false),
            (64, 0o755, ObjectFlags::CHECKED, false),
            (64, 0o755, ObjectFlags::FOLDED, false),
            (64, 0o755, ObjectFlags::ACL | ObjectFlags::SEARCH_ALL, false),
            (0, 0o755, ObjectFlags::SEARCH_ALL, false),
        ];
        for (address, mode, flags, expected) in cases {
            let object = Object(address).with(flags | ObjectFlags::DIR).with_search(mode);
            assert_eq!(object.is_open_dir(), expected, "{object:?} {mode:o}");
        }
        assert!(!Object(64).with_search(0o755).is_open_dir(), "not a directory");
    }

    #[test]
    fn it_prints_its_flags_by_name() {
        let object = Object(64).with(ObjectFlags::DIR | ObjectFlags::HASHED);
        assert_eq!(format!("{object:?}"), "0x40 HASHED | DIR");
    }
}
