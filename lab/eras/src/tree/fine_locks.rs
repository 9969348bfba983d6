//! Counts, changes and reverse paths under fine-grained locks: vfs-scale and all that came after it.
//!
//! # How it is locked
//! | lock            | protects                                                                          |
//! |-----------------|-----------------------------------------------------------------------------------|
//! | a bucket's lock | its chain                                                                         |
//! | an entry's lock | its count, name, place and hashed state; the list of its children                 |
//! | `rename_lock`   | shows searches that missed, and reverse paths, that an entry moved               |
//! | part of a list  | unused entries, all inodes: a lock for each CPU                                   |
//! | an inode chain's lock | the chain of inodes by number (`iget`), where the file system has such      |
//!
//! Order: a directory's mutex, `rename_lock`, an entry's lock, a bucket's or a list's. Only a listing
//! holds two entries' locks: the directory's, then the child's. (Linux's `d_move` holds up to four at once; here it takes
//! the same ones one after the other, which the directories' mutexes allow.)
//!
//! A store-free walker takes none of these. It samples an entry's sequence, which is odd while its name, place or
//! hashed state changes.
//!
//! # Source
//! Nick Piggin's vfs-scale patches (linux-kernel, 2009), merged in Linux 2.6.38; `Documentation/filesystems/path-lookup.txt`.

use super::Tree;
use super::count::{Count, FineCount};
use super::dentry::{Dentry, ON_LRU, UNHASHED};
use super::fs_struct::{FsStruct, ROOT};
use super::grace::Grace;
use super::inode_table::{InodeChains, InodeNumbers};
use super::mount::Mounts;
use super::name::Name;
use super::renames::Renames;
use super::scheme::{Move, Scheme};
use super::sharded::Sharded;
use crate::era::Result;
use crate::path::Route;
use locks::lockstat::Class;
use prim::lockstat;
use sync::rwsem::SlowPath;
use sync::{Lock, LockGuard, RawLock, SeqWrite};

/// The sequence that shows a store-free walk a change of the data that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sequence {
    /// A sequence count in each entry.
    OfEntry,
    /// `rename_lock`, sampled once, before the walk begins.
    OfRenames,
}

/// The differences between the eras with fine-grained locks.
pub(crate) trait Fine: Sized + Send + Sync + 'static {
    type Dentry: Dentry<Count: FineCount>;
    /// The spinlock of the time.
    type Spin: RawLock + 'static;
    /// See [`Scheme::Mutex`].
    type Mutex: RawLock + 'static;
    type Renames: Renames;
    type Readers: SlowPath + Send + Sync + 'static;
    type Mounts: Mounts;
    /// When files are freed.
    type Grace: Grace;
    /// A reverse path takes the lock of each entry.
    const LOCKS_EACH: bool;
    /// See [`Scheme::LISTS_MOUNTS`].
    const LISTS_MOUNTS: bool;
    /// The sequence by which a store-free walk checks the data that it has read.
    const SEQUENCE: Sequence = Sequence::OfEntry;
    /// A store-free walk holds the mount lock from its beginning to its end.
    const HOLDS_MOUNTS: bool = false;
    /// A store-free walk begins under `fs->lock`.
    const STARTS_LOCKED: bool = false;
    /// A store-free walk passes through `..` too.
    const WALKS_UP: bool = true;

    /// See [`Scheme::walk`].
    const WALK: Walk<Self>;
}

/// A way to walk; see [`Scheme::walk`].
pub(crate) type Walk<F> = fn(&Tree<FineLocks<F>>, &FsStruct, &Route<'_>) -> Result<u32>;

/// Bytes of a path at which a pass without a lock stops: `PATH_MAX`.
const LONGEST: usize = 4096;

/// See the [module documentation](self).
pub(crate) struct FineLocks<F: Fine> {
    pub(crate) renames: F::Renames,
    unused: Sharded<F::Spin>,
    inodes: Sharded<F::Spin>,
    inode_chains: InodeChains<F::Spin>,
    numbers: InodeNumbers,
    grace: F::Grace,
    files: Sharded<F::Spin>,
}

impl<F: Fine> FineLocks<F> {
    /// Does the work that follows when the count of `number` has become zero, under its lock, which
    /// the caller holds. Returns the directory whose reference ends with the entry.
    fn put_last(
        tree: &Tree<Self>,
        number: u32,
        held: <<F::Dentry as Dentry>::Count as Count>::Guard<'_>,
    ) -> Option<u32> {
        let entry = tree.entry(number);
        let lists = entry.lists();
        if !entry.has(UNHASHED) {
            if !entry.has(ON_LRU) {
                entry.change_flags(ON_LRU, 0);
                tree.scheme.unused.insert(number, &lists.home, |n| &tree.entry(n).lists().lru);
            }
            return None;
        }
        if entry.has(ON_LRU) {
            tree.scheme.unused.remove(number, &lists.home, |n| &tree.entry(n).lists().lru);
        }
        // Without a name and a count no walker comes back to it, but a store-free walker that found it as its working directory.
        drop(Self::write(entry));
        entry.count().kill(&held);
        drop(held);
        let dir = entry.parent();
        {
            let _held = tree.entry(dir).count().lock();
            tree.unlink_child(dir, number);
        }
        let inode = tree.inode(number);
        tree.scheme.inodes.remove(number, &inode.home, |n| &tree.inode(n).all);
        tree.hash_inode(number);
        tree.free(number);
        Some(dir)
    }

    /// Returns the lock of an entry's chain.
    fn bucket(tree: &Tree<Self>, number: u32) -> LockGuard<'_, F::Spin, ()> {
        lockstat::named(|| "chains of entries");
        tree.bucket_of(number).lock.lock()
    }

    /// Begins the write section in which an entry changes. Returns `None` where entries have no
    /// sequences.
    fn write(entry: &F::Dentry) -> Option<SeqWrite<'_>> {
        (F::SEQUENCE == Sequence::OfEntry).then(|| entry.state().seq.write())
    }

    /// Searches the chain once for `name` in `dir`, and counts the entry if there is one. The
    /// caller is in a read section.
    fn search(tree: &Tree<Self>, dir: u32, name: &Name<'_>) -> Option<u32> {
        tree.chain(dir, name.hash).find(|&at| {
            if !tree.resembles(at, dir, name) {
                return false;
            }
            let entry = tree.entry(at);
            let held = entry.count().lock();
            let is_it = entry.parent() == dir && !entry.has(UNHASHED) && tree.is_named(at, name);
            if is_it {
                entry.count().get_locked(&held);
            }
            is_it
        })
    }

    /// Writes the path of `entry` into `path`. The first pass stores nothing but to the CPU's own
    /// mount lock. If something moved, a second pass keeps moves out. The root is sampled, not
    /// counted.
    fn climb_free(tree: &Tree<Self>, fs: &FsStruct, entry: u32, path: &mut Vec<u8>) {
        let guard = tree.domain.read();
        let _mounts = tree.mounts.still();
        let _root = fs.start_rcu(true, &guard, |_| ());
        let start = tree.scheme.renames.begin();
        // A pass that is led round in a circle must come to an end.
        let is_whole = tree.climb(entry, path, LONGEST, |_, copy| copy());
        if !is_whole || tree.scheme.renames.retry(start) {
            let _renames = tree.scheme.renames.still();
            tree.climb(entry, path, usize::MAX, |_, copy| copy());
        }
    }

    /// Returns a reference to an entry that was found without one, if `is_still` confirms, when
    /// nothing can change any more, that it is the same entry.
    pub(crate) fn legitimize(tree: &Tree<Self>, number: u32, is_still: impl Fn() -> bool) -> bool {
        let count = tree.entry(number).count();
        if count.try_get() {
            let is_right = is_still();
            if !is_right {
                Self::put(tree, number);
            }
            return is_right;
        }
        let held = count.lock();
        let is_right = is_still();
        if is_right {
            count.get_locked(&held);
        }
        is_right
    }
}

impl<F: Fine> Tree<FineLocks<F>> {
    /// Writes to the chain of an inode that joins or leaves the chain, on file systems that find
    /// inodes by their number (`iget`): not on tmpfs.
    fn hash_inode(&self, number: u32) {
        if !self.options.is_pinned {
            self.scheme.inode_chains.change(number);
        }
    }
}

impl<F: Fine> Scheme for FineLocks<F> {
    type Dentry = F::Dentry;
    type BucketLock = Lock<F::Spin, ()>;
    type Mutex = F::Mutex;
    type Readers = F::Readers;
    type Mounts = F::Mounts;
    const LISTS_MOUNTS: bool = F::LISTS_MOUNTS;
    const IS_RCU: bool = true;

    fn new() -> Self {
        let (unused, inodes, files) = (Sharded::new(), Sharded::new(), Sharded::new());
        let (inode_chains, numbers) = (InodeChains::new(), InodeNumbers::new());
        Self { renames: F::Renames::new(), unused, inodes, inode_chains, numbers, grace: F::Grace::new(), files }
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        self.renames.visit_locks(visit);
    }

    fn walk(tree: &Tree<Self>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        F::WALK(tree, fs, route)
    }

    fn child(tree: &Tree<Self>, dir: u32, name: &Name<'_>) -> Option<u32> {
        let _guard = tree.domain.read();
        loop {
            let start = tree.scheme.renames.begin();
            let found = Self::search(tree, dir, name);
            if found.is_some() || !tree.scheme.renames.retry(start) {
                return found;
            }
        }
    }

    fn parent(tree: &Tree<Self>, entry: u32) -> u32 {
        let _guard = tree.domain.read();
        loop {
            let parent = tree.entry(entry).parent();
            if Self::legitimize(tree, parent, || tree.entry(entry).parent() == parent) {
                return parent;
            }
        }
    }

    fn put(tree: &Tree<Self>, entry: u32) {
        let _caller = lockstat::caller("dput");
        let mut next = Some(entry);
        while let Some(at) = next {
            next = tree.entry(at).count().put().and_then(|held| Self::put_last(tree, at, held));
        }
    }

    fn attach(tree: &Tree<Self>, dir: u32, entry: u32) {
        {
            // d_alloc: a child counts on its directory.
            let count = tree.entry(dir).count();
            let held = count.lock();
            count.get_locked(&held);
            tree.link_child(dir, entry);
        }
        let inode = tree.inode(entry);
        tree.scheme.numbers.next();
        tree.scheme.inodes.insert(entry, &inode.home, |n| &tree.inode(n).all);
        tree.hash_inode(entry);
        // d_instantiate, d_rehash
        let _held = tree.entry(entry).count().lock();
        let _bucket = Self::bucket(tree, entry);
        tree.hash_in(entry);
    }

    fn detach(tree: &Tree<Self>, number: u32) {
        let entry = tree.entry(number);
        let _held = entry.count().lock();
        let _write = Self::write(entry);
        let _bucket = Self::bucket(tree, number);
        tree.hash_out(number);
        entry.change_flags(UNHASHED, 0);
    }

    fn relocate(tree: &Tree<Self>, moving: &Move<'_>) {
        let &Move { entry: number, from, to, .. } = moving;
        {
            let _renames = tree.scheme.renames.write();
            if let Some(replaced) = moving.replaced {
                Self::detach(tree, replaced);
            }
            // Before the entry leads to it.
            tree.entry(to).count().get();
            {
                let entry = tree.entry(number);
                let _held = entry.count().lock();
                let _write = Self::write(entry);
                {
                    let _bucket = Self::bucket(tree, number);
                    tree.hash_out(number);
                }
                if F::SEQUENCE == Sequence::OfRenames {
                    // No search takes half of the old name and half of the new one for a name.
                    entry.key().name.hide();
                }
                tree.place(number, to, &moving.name, moving.block);
                let _bucket = Self::bucket(tree, number);
                tree.hash_in(number);
            }
            Self::with_children(tree, from, || tree.unlink_child(from, number));
            Self::with_children(tree, to, || tree.link_child(to, number));
        }
        Self::put(tree, from);
    }

    fn with_children<R>(tree: &Tree<Self>, dir: u32, f: impl FnOnce() -> R) -> R {
        let _held = tree.entry(dir).count().lock();
        f()
    }

    fn with_child<R>(tree: &Tree<Self>, entry: u32, f: impl FnOnce() -> R) -> R {
        let _held = tree.entry(entry).count().lock();
        f()
    }

    fn reverse_path(tree: &Tree<Self>, fs: &FsStruct, entry: u32, path: &mut Vec<u8>) {
        let _caller = lockstat::caller("d_path");
        if F::Renames::CLIMBS_FREE {
            return Self::climb_free(tree, fs, entry, path);
        }
        {
            let _caller = lockstat::caller("path_get");
            let _fs = fs.read();
            tree.entry(ROOT).count().get();
            tree.mounts.get();
        }
        {
            let _mounts = tree.mounts.still();
            let _renames = tree.scheme.renames.still();
            tree.climb(entry, path, usize::MAX, |at, copy| {
                let _held = F::LOCKS_EACH.then(|| tree.entry(at).count().lock());
                copy();
            });
        }
        Self::put(tree, ROOT);
        tree.mounts.put();
    }

    fn visit_counters(tree: &Tree<Self>, visit: &mut dyn FnMut(&'static str, u64)) {
        tree.scheme.grace.visit_counters(&tree.domain, visit);
    }

    fn file_changed(tree: &Tree<Self>, is_open: bool) {
        tree.scheme.files.touch();
        if !is_open {
            tree.scheme.grace.closed(&tree.domain);
        }
        tree.scheme.grace.quiescent();
    }
}
