//! Reverse paths: from a dentry to its path (`d_path`, `getcwd(3)`).
//!
//! # How it is locked
//! Optimistic first: names are collected up to the root without a lock, with the sequence of each entry on the way, and all
//! sequences are checked at the end. If they pass there was a moment, before the first check, when all names were these: so a
//! path is never a mixture. After a few tries renames are kept out, by the writer's side of their gate, and mounts by
//! theirs; entries on the way are never locked.
//!
//! # Where it comes from
//! Linux's `d_path`, which reads under `rename_lock`'s sequence; here each entry's own says enough.

use crate::context::{Context, Held, Place};
use crate::dentry::{Dentry, HASHED};
use crate::errno::Errno;
use crate::mount::MountRef;
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
        let (_, cwd) = self.root_and_cwd();
        if cwd.dentry().has(HASHED) { Ok(self.path_of(&cwd)) } else { Err(Errno::ENOENT) }
    }

    /// The path of what `path` leads to, without symbolic links, `.` or `..`: `realpath(3)`. Of a scoped walk, the path
    /// from the root of its scope.
    ///
    /// # Errors
    /// Those of a walk.
    pub fn canonical(&self, base: crate::namespace::Base<'_>, path: &[u8]) -> Result<Vec<u8>, Errno> {
        let held = self.hold(base, path, true)?;
        if !base.resolve.is_scoped() {
            return Ok(self.path_of(&held));
        }
        let (_, cwd) = self.root_and_cwd();
        let scope = base.scope.or(base.dir).unwrap_or(&cwd);
        Ok(path_from(held.sb(), held.place(), scope.place()))
    }

    /// The path of an open file as `/proc/self/fd` would show it: with ` (deleted)` if its name has gone.
    #[must_use]
    pub fn path_of_file(&self, file: &crate::file::OpenFile) -> Vec<u8> {
        self.path_of(file.held())
    }

    /// The path of what is held, as [`Context::path_of_file`].
    #[must_use]
    pub fn path_of(&self, held: &Held) -> Vec<u8> {
        let (root, _) = self.root_and_cwd();
        path_from(held.sb(), held.place(), root.place())
    }
}

/// The path of `place` from `root`, with a mark if its name has gone.
pub(crate) fn path_from(tree: &Tree, place: Place<'_>, root: Place<'_>) -> Vec<u8> {
    path(tree, place, root, DELETED)
}

/// Where `mount` is mounted, from `root`. What it shows may have lost its own name: that changes nothing here.
pub(crate) fn path_of_mount(tree: &Tree, mount: MountRef<'_>, root: Place<'_>) -> Vec<u8> {
    path(tree, Place { mount, dentry: mount.get().root() }, root, b"")
}

fn path(tree: &Tree, place: Place<'_>, root: Place<'_>, mark: &[u8]) -> Vec<u8> {
    let guard = tree.domain.read();
    for _ in 0..TRIES {
        let mounts = tree.mount_seq.0.read_begin();
        let mut seen = Vec::new();
        let path = climb(&guard, place, root, mark, &mut seen);
        let undisturbed = seen.iter().all(|(dentry, seq): &(&Dentry, u32)| !dentry.seq.retry(*seq));
        if undisturbed && !tree.mount_seq.0.read_retry(mounts) {
            return path;
        }
    }
    drop(guard);
    path_behind_the_gate(tree, place, root, mark)
}

/// The same with mounts and renames kept out.
#[cold]
fn path_behind_the_gate(tree: &Tree, place: Place<'_>, root: Place<'_>, mark: &[u8]) -> Vec<u8> {
    let _mounts = tree.ranks.lock(Rank::Mounts, &tree.mounts);
    let _ranked = tree.ranks.acquire(Rank::Renames);
    let _no_renames = tree.rename_gate.write();
    climb(&tree.domain.read(), place, root, mark, &mut Vec::new())
}

/// Collects names from `place` up to `root`, or as far as it goes, and what it has `seen` on the way.
fn climb<'g>(
    guard: &'g ReadGuard<'_>,
    place: Place<'g>,
    root: Place<'_>,
    mark: &[u8],
    seen: &mut Vec<(&'g Dentry, u32)>,
) -> Vec<u8> {
    // Backwards: each name reversed, then its slash; turned round at the end.
    let mut path = Vec::new();
    let (mut mount, mut at) = (place.mount, place.dentry);
    let reached = loop {
        if core::ptr::eq(at, root.dentry) && mount.ptr_eq(root.mount) {
            break true;
        }
        if core::ptr::eq(at, mount.get().root()) {
            let Some(up) = mount.get().attachment(guard) else { break false };
            (mount, at) = (up.parent.borrow(), up.mountpoint());
            continue;
        }
        seen.push((at, at.seq.begin()));
        match at.parent() {
            Some(parent) if !core::ptr::eq(parent, at) => {
                at.with_name_rcu(guard, |name| path.extend(name.iter().rev()));
                path.push(b'/');
                at = parent;
            }
            _ => break false,
        }
    };
    if path.is_empty() {
        path.push(b'/');
    }
    if !reached {
        path.extend(UNREACHABLE.iter().rev());
    }
    path.reverse();
    if !place.dentry.has(HASHED) {
        path.extend_from_slice(mark);
    }
    path
}
