//! A directory tree as a list of entries to copy, parents before children. Contents stay where they
//! are.

mod source;
mod synthetic;

pub(crate) use source::{below as source_place, read};
pub(crate) use synthetic::{cold, hot};

use serde::Serialize;
use std::path::PathBuf;

/// A tree to copy.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Its description, for the report.
    pub(crate) name: String,
    /// Where the contents of its files are, if they have any.
    pub(crate) origin: Option<PathBuf>,
    /// Permission bits of its root.
    pub(crate) root_mode: u32,
    /// All entries below the root, each after its directory.
    pub(crate) entries: Vec<Entry>,
    pub(crate) omitted: Omitted,
}

/// One name in a tree.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its path from the tree's root, with a slash first.
    pub(crate) path: Box<[u8]>,
    pub(crate) mode: u32,
    pub(crate) kind: Kind,
}

/// The kind of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Directory,
    /// A regular file of so many bytes.
    File {
        len: u64,
    },
    Symlink(Box<[u8]>),
    /// A device node, FIFO or socket.
    Special {
        file_type: u32,
        rdev: u64,
    },
}

/// How much of a tree was left out, and why. All are counts of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Omitted {
    /// Files and directories whose contents cannot be read: copied empty.
    pub(crate) unreadable: usize,
    /// Directories that another file system is mounted on: copied empty.
    pub(crate) mount_points: usize,
    /// Device nodes, FIFOs and sockets that may not be made: not copied.
    pub(crate) special: usize,
    /// Entries too deep or with too long a path: not copied.
    pub(crate) too_deep: usize,
    /// Files that are long, or came when enough had been copied: copied as holes of the same length.
    pub(crate) as_holes: usize,
    /// Whether the tree was cut at the greatest number of entries.
    pub(crate) is_cut: bool,
}

impl Entry {
    /// Components of its path.
    pub(crate) fn depth(&self) -> usize {
        depth(&self.path)
    }

    pub(crate) fn is_dir(&self) -> bool {
        self.kind == Kind::Directory
    }

    pub(crate) fn is_file(&self) -> bool {
        matches!(self.kind, Kind::File { .. })
    }
}

/// Components of a path that begins with a slash and has no doubled one.
pub(crate) fn depth(path: &[u8]) -> usize {
    path.iter().filter(|&&byte| byte == b'/').count()
}
