//! Reverse paths: from a dentry to its path (`d_path`, `getcwd(3)`).
//!
//! # How it is locked
//! Optimistic first: a climb to the root collects the names without a lock, with the sequence of each entry
//! on the way, and checks all sequences at the end. If they are unchanged, there was a moment, before the
//! first check, when all names were these: a path is never a mixture. After a few tries the climb blocks
//! renames, by the writer's side of their gate, and mounts, by their lock; entries on the way are never
//! locked.
//!
//! # Where it comes from
//! Linux's `d_path`, which reads under `rename_lock`'s sequence; here the sequences of the entries are
//! enough.

use crate::base::rank::Rank;
use crate::dcache::dentry::Dentry;
use crate::dcache::tree::Tree;
use crate::mount::MountRef;
use crate::mount::place::Place;
use sync::rcu::ReadGuard;

/// Optimistic tries before renames are blocked.
const TRIES: u32 = 4;

/// The prefix of the path of a place outside of the context's root.
const UNREACHABLE: &[u8] = b"(unreachable)";

/// The suffix of the path of a removed name.
const DELETED: &[u8] = b" (deleted)";

/// The path of `place` from `root`, with the suffix if its name was removed.
pub(crate) fn path_from(tree: &Tree, place: Place<'_>, root: Place<'_>) -> Vec<u8> {
    path(tree, place, root, DELETED)
}

/// The path of the mount point of `mount` from `root`. The mounted file may have lost its name; that has no
/// effect.
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

/// The same, with mounts and renames blocked.
#[cold]
fn path_behind_the_gate(tree: &Tree, place: Place<'_>, root: Place<'_>, mark: &[u8]) -> Vec<u8> {
    let _mounts = tree.ranks.lock(Rank::Mounts, &tree.mounts);
    let _ranked = tree.ranks.acquire(Rank::Renames);
    let _no_renames = tree.rename_gate.write();
    climb(&tree.domain.read(), place, root, mark, &mut Vec::new())
}

/// Collects names from `place` up to `root`, or as far as possible, and the entries `seen` on the way.
fn climb<'g>(
    guard: &'g ReadGuard<'_>,
    place: Place<'g>,
    root: Place<'_>,
    mark: &[u8],
    seen: &mut Vec<(&'g Dentry, u32)>,
) -> Vec<u8> {
    // Backwards: each name reversed, then its slash; reversed at the end.
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
            _ => {
                // Outside of its mount: as in Linux, the path has no names then.
                path.clear();
                break false;
            }
        }
    };
    if path.is_empty() {
        path.push(b'/');
    }
    if !reached {
        path.extend(UNREACHABLE.iter().rev());
    }
    path.reverse();
    if !place.dentry.object().is_hashed() {
        path.extend_from_slice(mark);
    }
    path
}
