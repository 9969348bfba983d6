//! Reverse paths: from a dentry to its path (`d_path`, `getcwd(3)`).
//!
//! # How it is locked
//! The first tries are optimistic: a climb to the root collects the names without a lock, with the
//! sequence of each entry on the way, and checks all sequences at the end. If the sequences are
//! unchanged, all names were current at one moment, before the first check: a path is never a
//! mixture. After a few tries the climb blocks mounts, and renames of the names that the last try
//! passed, as a reader of their sequences ([`sync::SeqRwLock`]). Such climbs do not exclude one
//! another, nor renames of most other names. If the way now leads by a new name, the climb blocks
//! that name as well and repeats. Each repetition adds a sequence, so the repetitions end. Entries
//! on the way are never locked. A climb that blocks also samples the sequence of each entry, so
//! name and parent are of one moment; at that moment a rename of the name was blocked if the climb
//! has blocked the name's sequence.
//!
//! # Where it comes from
//! Linux's `d_path`: reverse paths that share `rename_lock` are of 2013 (Waiman Long). In Linux
//! `rename_lock` is one lock, and the first try reads under its sequence; here the sequences of the
//! entries and of their directories are enough.

use crate::base::name::PATH_MAX;
use crate::base::rank::Rank;
use crate::cache::tree::{RenameSet, Tree};
use crate::mount::MountRef;
use crate::mount::place::{self, Place, above};
use crate::slots::dentry::Dentry;
use sync::rcu::ReadGuard;

/// Optimistic tries before renames are blocked.
const TRIES: u32 = if cfg!(loom) { 1 } else { 4 };

/// The prefix of the path of a place outside of the context's root.
const UNREACHABLE: &[u8] = b"(unreachable)";

/// The suffix of the path of a removed name.
const DELETED: &[u8] = b" (deleted)";

/// Returns the path of `place` from `root`, with the suffix if its name was removed.
pub(crate) fn path_from(tree: &Tree, place: Place<'_>, root: Place<'_>) -> Vec<u8> {
    path(tree, place, root, DELETED)
}

/// Returns the path of the mount point of `mount` from `root`. The mounted file may have lost its
/// name; that has no effect.
pub(crate) fn path_of_mount(tree: &Tree, mount: MountRef<'_>, root: Place<'_>) -> Vec<u8> {
    path(tree, Place { mount, dentry: mount.get().root() }, root, b"")
}

fn path(tree: &Tree, place: Place<'_>, root: Place<'_>, mark: &[u8]) -> Vec<u8> {
    let guard = tree.domain.read();
    let mut path = Vec::new();
    for _ in 0..TRIES {
        let mounts = tree.mount_seq.read_begin();
        let mut seen: Vec<(&Dentry, u32)> = Vec::new();
        climb(&guard, place, root, mark, &mut path, |entry, path| {
            seen.push((entry, entry.seq.begin()));
            step_up(&guard, entry, path)
        });
        let undisturbed = seen.iter().all(|(dentry, seq)| !dentry.seq.retry(*seq));
        if undisturbed && !tree.mount_seq.read_retry(mounts) {
            return path;
        }
    }
    blocking_path(tree, &guard, place, root, mark, RenameSet::default())
}

/// Returns the path, with mounts blocked, and renames of `names` and of all other names on the way.
/// Waits inside a read section, but only for writers that wait for no reader of RCU.
#[cold]
fn blocking_path(
    tree: &Tree,
    guard: &ReadGuard<'_>,
    place: Place<'_>,
    root: Place<'_>,
    mark: &[u8],
    mut names: RenameSet,
) -> Vec<u8> {
    // A thread must not allocate while it holds a spinning lock. Only a longer path makes it do so.
    let mut path = Vec::with_capacity(PATH_MAX);
    loop {
        let _ranked = tree.ranks.acquire(Rank::Renames);
        let _renames = tree.renames.block(names, &tree.ranks);
        let _mounts = tree.mount_seq.read_lock();
        let mut passed = RenameSet::default();
        climb(guard, place, root, mark, &mut path, |entry, path| {
            let len = path.len();
            loop {
                let seq = entry.seq.begin();
                let parent = step_up(guard, entry, path);
                let hash = parent.map(|parent| entry.filed_hash_rcu(parent, tree.key, guard));
                if !entry.seq.retry(seq) {
                    parent.zip(hash).into_iter().for_each(|(parent, hash)| passed.add(parent, hash));
                    return parent;
                }
                path.truncate(len);
            }
        });
        if names.contains(passed) {
            return path;
        }
        names = names.union(passed);
    }
}

/// Adds the name of `entry` to `path`, backwards, and its slash. Returns its directory; none if it has no name there.
fn step_up<'g>(guard: &ReadGuard<'_>, entry: &'g Dentry, path: &mut Vec<u8>) -> Option<&'g Dentry> {
    let parent = above(entry)?;
    entry.with_name_rcu(guard, |name| path.extend(name.iter().rev()));
    path.push(b'/');
    Some(parent)
}

/// Collects names from `place` up to `root`, or as far as possible, into `path`, by `step`, which is [`step_up`].
fn climb<'g>(
    guard: &'g ReadGuard<'_>,
    place: Place<'g>,
    root: Place<'_>,
    mark: &[u8],
    path: &mut Vec<u8>,
    mut step: impl FnMut(&'g Dentry, &mut Vec<u8>) -> Option<&'g Dentry>,
) {
    // Backwards: each name reversed, then its slash; reversed at the end.
    path.clear();
    let reached = place::climb(guard, place, &root, |entry| {
        let parent = step(entry, path);
        if parent.is_none() {
            // Outside of its mount the path has no names, as in Linux.
            path.clear();
        }
        parent
    });
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::attr::{Attr, S_IFDIR};
    use crate::base::name::Named;
    use crate::fs::{CachedNames, FileSystem, FsTraits, NameStore, NewInode};
    use crate::{Base, Vfs};
    use prim::atomic::{AtomicBool, Ordering::Relaxed};

    struct Names;
    impl FileSystem for Names {
        fn root(&self) -> NewInode {
            let attr = Attr { ino: 1, mode: S_IFDIR | 0o755, nlink: 2, ..Attr::default() };
            NewInode { node: 1, attr, ..NewInode::default() }
        }
        fn traits(&self) -> FsTraits {
            FsTraits { names: NameStore::Cache(CachedNames::default()), ..FsTraits::default() }
        }
        fn create(
            &self,
            _: &crate::Request,
            _: &crate::Inode,
            _: Option<&[u8]>,
            _: &mut crate::NewNode<'_>,
        ) -> Result<u64, crate::Errno> {
            Ok(2)
        }
    }

    /// Calls `f` with the tree, the directories `x` and `y` below the root, and the place of `x/p`.
    fn with_tree(f: impl FnOnce(&Tree, [&Dentry; 2], Place<'_>, Place<'_>)) {
        let vfs = Vfs::new(Names);
        let context = vfs.context();
        let held = [b"/x".as_slice(), b"/y", b"/x/p", b"/"].map(|path| {
            if path != b"/" {
                context.mkdir(Base::CWD, path, 0o755).unwrap();
            }
            context.hold(Base::CWD, path, true).unwrap()
        });
        let [x, y, p, root] = &held;
        f(context.tree(), [x.dentry(), y.dentry()], p.place(), root.place());
    }

    #[test]
    fn reverse_paths_that_block_renames_do_not_exclude_one_another() {
        with_tree(|tree, [x, y], p, root| {
            let mut names = RenameSet::default();
            let on_the_way = [(x, b"p".as_slice()), (y, b"q"), (root.dentry, b"x")];
            on_the_way.iter().for_each(|(dir, name)| names.add(dir, tree.key.hash(name)));
            // As another such path does, for as long as it climbs.
            let (_renames, _mounts) = (tree.renames.block(names, &tree.ranks), tree.mount_seq.read_lock());
            assert_eq!(blocking_path(tree, &tree.domain.read(), p, root, b"", RenameSet::default()), b"/x/p");
            assert!(names.contains(names) && !RenameSet::default().contains(names));
        });
    }

    #[test]
    fn a_reverse_path_that_blocks_renames_waits_for_one_in_progress_and_follows_it() {
        with_tree(|tree, [x, y], p, root| {
            let domain = &tree.domain;
            let set = |parent: &Dentry, name: &[u8]| {
                p.dentry.seq.write_begin();
                p.dentry.set_entry(domain, parent, Named::new(name, tree.key.hash(name)));
                p.dentry.seq.write_end();
            };
            let hash = tree.key.hash(b"p");
            let mut names = RenameSet::default();
            names.add(x, hash);
            let renames = tree.renames.of(x, hash);
            let is_done = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let motion = renames.write_lock();
                let path = scope.spawn(|| {
                    let path = blocking_path(tree, &tree.domain.read(), p, root, b"", names);
                    is_done.store(true, Relaxed);
                    path
                });
                // A reader that waits has drawn a ticket.
                let waits = || format!("{renames:?}").contains("next: 1");
                prim::hint::spin_until(|| is_done.load(Relaxed) || waits());
                assert!(!is_done.load(Relaxed));
                set(y, b"q");
                drop(motion);
                assert_eq!(path.join().unwrap(), b"/y/q");
            });
            set(x, b"p");
        });
    }
}
