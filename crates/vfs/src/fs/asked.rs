//! What a file system is asked to do, in the words of the system calls.

use crate::flag_set::flag_set;

/// Flags of `renameat2(2)`, by Linux's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RenameFlags(u32);

flag_set!(RenameFlags);

impl RenameFlags {
    /// Fail with `EEXIST` if the new name is there.
    pub const NOREPLACE: Self = Self(1);
    /// Both names are there and change places.
    pub const EXCHANGE: Self = Self(2);

    /// Flags out of Linux's numbers; `None` for others than these.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Option<Self> {
        if bits & !3 == 0 { Some(Self(bits)) } else { None }
    }
}

/// Whether an extended attribute must be new or must be there: `setxattr(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SetXattr {
    /// Either.
    #[default]
    Any,
    /// `EEXIST` if it is there: `XATTR_CREATE`.
    Create,
    /// `ENODATA` if it is not: `XATTR_REPLACE`.
    Replace,
}

/// What `fallocate(2)` does with a range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocate {
    /// Makes sure that it has storage; zeros where there was none.
    Reserve,
    /// Gives its storage back: it reads as zeros.
    PunchHole,
    /// Makes it read as zeros; it has storage.
    Zero,
}

/// What `lseek(2)` looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekFor {
    /// The next byte that has storage.
    Data,
    /// The next hole; the end of the file is one.
    Hole,
}
