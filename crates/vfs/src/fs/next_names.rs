//! The names that a walk needs after the one that it looks up.

use crate::base::name::NAME_MAX;
use crate::fs::arguments::NewInode;

/// The names that the walk needs next, each in the directory that the name before it leads to, and the answers that the file
/// system has for them already: [`FileSystem::lookup`](crate::FileSystem::lookup).
///
/// The answers are returned here, and not by an [`Invalidator`](crate::Invalidator): while the file system runs, the cache does not
/// have the directories that the names are in.
///
/// ```
/// use lightfoot_vfs::{Attr, NewInode, NextNames, S_IFDIR};
///
/// // Of the path `/usr/lib/x`, while the walk looks up `usr`:
/// let mut next = NextNames::of(b"/lib/x");
/// assert!(next.names().eq([b"lib".as_slice(), b"x"]));
/// next.found(NewInode { node: 7, attr: Attr { ino: 7, mode: S_IFDIR | 0o755, ..Attr::default() }, ..NewInode::default() });
/// next.absent(); // There is no `x` in `lib`.
/// ```
#[derive(Debug, Default)]
pub struct NextNames<'p> {
    path: &'p [u8],
    pub(crate) answers: Vec<Option<NewInode>>,
}

impl<'p> NextNames<'p> {
    /// No names.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the names at the beginning of `path`, up to a `.` or `..`.
    #[must_use]
    pub fn of(path: &'p [u8]) -> Self {
        Self { path, answers: Vec::new() }
    }

    /// Returns the path that the names are of, without answers: for another thread.
    pub(crate) fn path(&self) -> &'p [u8] {
        self.path
    }

    /// Adds answers that another thread got for the same names.
    pub(crate) fn extend(&mut self, answers: Vec<Option<NewInode>>) {
        self.answers.extend(answers);
    }

    /// Returns the names, in order. One of them may lead to a symbolic link, a mount point or a
    /// file: the VFS then ignores the answers behind it.
    pub fn names(&self) -> impl Iterator<Item = &'p [u8]> + use<'p> {
        let parts = self.path.split(|&byte| byte == b'/').filter(|part| !part.is_empty());
        parts.take_while(|part| !matches!(*part, b"." | b"..") && part.len() <= NAME_MAX)
    }

    /// Answers the next name: it leads to `inode`, at some moment of this call. The VFS uses the
    /// answer like the answer to a lookup, unless anything was invalidated, or a directory changed,
    /// during the call.
    pub fn found(&mut self, inode: NewInode) {
        self.answers.push(Some(inode));
    }

    /// Answers the next name: it does not exist.
    pub fn absent(&mut self) {
        self.answers.push(None);
    }

    /// Returns the answers so far, in the order of the names; `None`: the name does not exist.
    #[must_use]
    pub fn answers(&self) -> &[Option<NewInode>] {
        &self.answers
    }
}
