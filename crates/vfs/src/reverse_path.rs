//! Reverse paths: from a dentry to its path (`d_path`, `getcwd(3)`).
//!
//! # How it is locked
//! Optimistic first: names are collected up to the root without a lock and thrown away if a rename ran meanwhile; after a
//! few tries renames are kept out by the writer's side of their sequence lock. Entries on the way are never locked.

use crate::context::{Context, Held};
use crate::dentry::{Dentry, HASHED};
use crate::errno::Errno;
use crate::rank::Rank;
use crate::tree::Tree;
use sync::rcu::ReadGuard;

/// Optimistic tries before renames are locked out.
const TRIES: u32 = 4;

/// What stands before the path of a place that the context's root does not lead to.
const UNREACHABLE: &[u8] = b"(unreachable)";

/// What stands after the path of a name that was removed.
const DELETED: &[u8] = b" (deleted)";

impl Context {
    /// The working directory's path: `getcwd(2)`.
    ///
    /// # Errors
    /// `ENOENT` if it was removed.
    pub fn current_dir(&self) -> Result<Vec<u8>, Errno> {
        let cwd = {
            let guard = self.tree().domain.read();
            self.state(&guard).cwd.clone()
        };
        if cwd.dentry().has(HASHED) { Ok(self.path_of(&cwd)) } else { Err(Errno::ENOENT) }
    }

    /// The path of what `path` leads to, without symbolic links, `.` or `..`: `realpath(3)`.
    ///
    /// # Errors
    /// Those of a walk.
    pub fn canonical(&self, base: crate::namespace::Base<'_>, path: &[u8]) -> Result<Vec<u8>, Errno> {
        Ok(self.path_of(&self.hold(base, path, true)?))
    }

    /// The path of an open file as `/proc/self/fd` would show it: with ` (deleted)` if its name has gone.
    #[must_use]
    pub fn path_of_file(&self, file: &crate::file::OpenFile) -> Vec<u8> {
        self.path_of(file.held())
    }

    pub(crate) fn path_of(&self, held: &Held) -> Vec<u8> {
        let tree = held.tree();
        let guard = tree.domain.read();
        let own = self.tree().domain.read();
        let root = self.state(&own).root.dentry();
        for _ in 0..TRIES {
            let start = tree.rename_seq.0.read_begin();
            let path = climb(tree, &guard, held.dentry(), root);
            if !tree.rename_seq.0.read_retry(start) {
                return path;
            }
        }
        let _ranked = tree.ranks.acquire(Rank::RenameSeq);
        let _no_renames = tree.rename_seq.0.write_lock();
        climb(tree, &guard, held.dentry(), root)
    }
}

/// Collects names from `dentry` up to `root`, or to the tree's root. Whole only if no rename ran meanwhile.
fn climb(tree: &Tree, guard: &ReadGuard<'_>, dentry: &Dentry, root: &Dentry) -> Vec<u8> {
    // Backwards: each name reversed, then its slash; turned round at the end.
    let mut path = Vec::new();
    let mut at = dentry;
    while !core::ptr::eq(at, root) && !core::ptr::eq(at, tree.root()) {
        at.with_name_rcu(guard, |name| path.extend(name.iter().rev()));
        path.push(b'/');
        match at.parent() {
            Some(parent) => at = parent,
            None => break,
        }
    }
    if path.is_empty() {
        path.push(b'/');
    }
    if !core::ptr::eq(at, root) {
        path.extend(UNREACHABLE.iter().rev());
    }
    path.reverse();
    if !dentry.has(HASHED) {
        path.extend_from_slice(DELETED);
    }
    path
}
