//! The order of the crate's locks; `docs/locking.md` lists what each lock protects.
//!
//! # What it is
//! One rank for each kind of lock that is nested with others. Debug builds check, for each tree,
//! that a thread takes locks only in this order (see [`sync::lockdep`]).
//!
//! # What it is not
//! A rank for every lock: the write section of a dentry's sequence, bucket locks and an inode's
//! sequence lock come below these ranks. The innermost functions take them, and take nothing else
//! under them.
//!
//! # Where it comes from
//! The ranks are from Linux's `Documentation/filesystems/directory-locking.rst`.

use sync::MutexGuard;
use sync::lockdep::{self, Ranked};

/// The crate's locks, outermost first.
#[derive(Clone, Copy)]
pub(crate) enum Rank {
    /// `Context::change`, `OpenFile::listing`.
    Handle,
    /// `Mount::ending`.
    Ending,
    /// `Tree::mounts`.
    Mounts,
    /// `Tree::rename_lock`.
    Rename,
    /// Names that a thread has locked: `SuperBlock::lock_remote_names`.
    Name,
    /// A directory's lock. Several at once: ancestors first, else by address.
    Directory,
    /// `Inode::data_lock`. Two at once, by address, while one file shares the storage of another.
    Data,
    /// `Tree::dir_moves`, its writers' side.
    DirMoves,
    /// `Inodes::lock`, of a node.
    Inodes,
    /// `Tree::renames`: a rename writes the ones of its directories, a reverse path reads and
    /// blocks them. Several at once: by their index.
    Renames,
}

impl lockdep::Rank for Rank {
    const NAMES: &'static [&'static str] = &[
        "a handle's lock",
        "the end of a mount",
        "the mounts",
        "the rename lock",
        "a locked name",
        "a directory's lock",
        "a data lock",
        "moves of directories",
        "the inodes",
        "renames",
    ];

    fn level(self) -> usize {
        self as usize
    }
}

/// The ranks that each thread holds in one tree.
pub(crate) type Ranks = lockdep::Checker<Rank>;

/// A held lock without data.
pub(crate) type Locked<'a> = Ranked<'a, Rank, MutexGuard<'a, ()>>;
