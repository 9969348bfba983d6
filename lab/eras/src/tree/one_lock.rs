//! Counts, changes and reverse paths under `dcache_lock`: the common part of 2.4, fastwalk,
//! dcache_rcu and 2.6.32.
//!
//! # How it is locked
//! | lock            | protects                                                                              |
//! |-----------------|---------------------------------------------------------------------------------------|
//! | `dcache_lock`   | chains, children, names, places, the list of unused entries, counts that become zero  |
//! | an entry's lock | (where searches take no `dcache_lock`) that entry's name, place and hashed state       |
//! | `rename_lock`   | (the same) shows searches that missed that an entry moved                            |
//! | `inode_lock`    | the list of all inodes                                                                |
//! | `files_lock`    | the list of open files                                                                |
//!
//! Order: a directory's mutex, `dcache_lock`, `vfsmount_lock` or `rename_lock`, an entry's lock.
//!
//! A count is moved by atomic operations. One exception made this expensive: a `dput` that drops
//! the last reference must do so under `dcache_lock` (`atomic_dec_and_lock`), to put the entry on
//! the list of unused ones or to free it; so each `stat` of an otherwise unused file took the
//! global lock at its end.
//!
//! Creating a file takes `dcache_lock` three times (the child's link, the inode's alias, the chain) and `inode_lock`
//! once; removing it takes each once or twice.
//!
//! # Source
//! `fs/dcache.c` and `fs/namei.c` of Linux 2.4 to 2.6.37, as its documentation (`Documentation/filesystems/`) and the
//! papers on it describe them: M. Soni, D. Sarma, P. McKenney, "Scaling dcache with RCU" (Linux Journal 117, 2004).

use super::Tree;
use super::count::{AtomicCount, Count, LooseCount};
use super::dentry::{Dentry, Early, ON_LRU, UNHASHED};
use super::fs_struct::{FsStruct, ROOT};
use super::global_lock::GlobalLock;
use super::list::{Head, NONE, some};
use super::mount::Mounts;
use super::name::Name;
use super::renames::{Renames, SeqSpin};
use super::scheme::{Move, Scheme};
use crate::era::Result;
use crate::path::Route;
use core::marker::PhantomData;
use locks::lockstat::Class;
use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use prim::lockstat;
use sync::{AlwaysQueue, RawLock};

/// Entries that become unused between two searches for some to free: models the shortage of memory
/// (chosen here).
const PRUNE_EVERY: u32 = 128;

/// Entries that such a search looks at, as `prune_dcache`'s batch.
const PRUNE_AT_MOST: u32 = 128;

/// The differences between the eras with `dcache_lock`.
pub(crate) trait Lookup: Sized + Send + Sync + 'static {
    /// The spinlock of the time.
    type Spin: RawLock + 'static;
    /// See [`Scheme::Mutex`].
    type Mutex: RawLock + 'static;
    type Mounts: Mounts;
    /// Searches take no `dcache_lock`: entries have their own locks, are freed after a grace period, and leave the
    /// list of unused ones only when somebody looks for such.
    const IS_LOCK_FREE: bool;

    /// See [`Scheme::child`].
    fn child(tree: &Tree<OneLock<Self>>, dir: u32, name: &Name<'_>) -> Option<u32>;

    /// See [`Scheme::walk`].
    fn walk(tree: &Tree<OneLock<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        super::walk::counted_walk(tree, fs, route)
    }
}

/// See the [module documentation](self).
pub(crate) struct OneLock<L: Lookup> {
    pub(crate) dcache: GlobalLock<L::Spin>,
    pub(crate) renames: SeqSpin<L::Spin>,
    unused: List,
    /// Entries put on the list of unused ones, where the next search for such begins, and those that it found in use.
    aged: AtomicU32,
    hand: AtomicU32,
    deferred: AtomicU64,
    /// The last number of a new inode.
    last_ino: AtomicU64,
    inode: GlobalLock<L::Spin>,
    inodes: List,
    files: GlobalLock<L::Spin>,
    _lookup: PhantomData<L>,
}

/// A list's head, apart from locks and other heads.
#[repr(align(128))]
struct List(Head);

impl<L: Lookup> OneLock<L> {
    /// Returns the entry of this name, counted: found under `dcache_lock`.
    pub(crate) fn child_under_lock(tree: &Tree<Self>, dir: u32, name: &Name<'_>) -> Option<u32> {
        let _dcache = tree.scheme.dcache.lock();
        let found = tree.find(dir, name)?;
        tree.entry(found).count().get();
        Self::in_use(tree, found);
        Some(found)
    }

    /// Takes an entry off the list of unused ones if it is on it. Under `dcache_lock`.
    pub(crate) fn in_use(tree: &Tree<Self>, number: u32) {
        let entry = tree.entry(number);
        if entry.has(ON_LRU) {
            // Relaxed: under `dcache_lock`.
            if tree.scheme.hand.load(Relaxed) == number {
                tree.scheme.hand.store(entry.lists().lru.next().unwrap_or(NONE), Relaxed);
            }
            tree.scheme.unused.0.remove(number, |n| &tree.entry(n).lists().lru);
            entry.change_flags(0, ON_LRU);
        }
    }

    /// Searches for entries to free, after each so many that became unused: takes those off the list that are in use, which
    /// lazy removal had left there. (It frees none: the cache is complete here.) Under `dcache_lock`.
    fn prune(tree: &Tree<Self>) {
        let scheme = &tree.scheme;
        // Relaxed, all: under `dcache_lock`.
        let aged = scheme.aged.load(Relaxed) + 1;
        scheme.aged.store(aged % PRUNE_EVERY, Relaxed);
        if aged < PRUNE_EVERY {
            return;
        }
        for _ in 0..PRUNE_AT_MOST {
            let Some(at) = some(scheme.hand.load(Relaxed)).or_else(|| scheme.unused.0.first()) else { return };
            scheme.hand.store(tree.entry(at).lists().lru.next().unwrap_or(NONE), Relaxed);
            if tree.entry(at).count().value() > 0 {
                Self::in_entry(tree, at, || Self::in_use(tree, at));
                scheme.deferred.store(scheme.deferred.load(Relaxed) + 1, Relaxed);
            }
        }
    }

    /// Calls `f` with the entry's own lock, if the era has one to take.
    fn in_entry<R>(tree: &Tree<Self>, number: u32, f: impl FnOnce() -> R) -> R {
        let _held = L::IS_LOCK_FREE.then(|| tree.entry(number).count().lock());
        f()
    }

    /// Does the work that follows when the last reference to `number` may have been dropped.
    /// Returns the directory whose reference ends with the entry.
    fn put_last(tree: &Tree<Self>, number: u32) -> Option<u32> {
        let entry = tree.entry(number);
        let dir = {
            let _dcache = tree.scheme.dcache.lock();
            if !entry.count().put_last() {
                return None;
            }
            if !entry.has(UNHASHED) {
                if !entry.has(ON_LRU) {
                    Self::in_entry(tree, number, || entry.change_flags(ON_LRU, 0));
                    tree.scheme.unused.0.insert(number, |n| &tree.entry(n).lists().lru);
                    if L::IS_LOCK_FREE {
                        Self::prune(tree);
                    }
                }
                return None;
            }
            Self::in_use(tree, number);
            let dir = entry.parent();
            tree.unlink_child(dir, number);
            dir
        };
        {
            let _inode = tree.scheme.inode.lock();
            tree.scheme.inodes.0.remove(number, |n| &tree.inode(n).all);
        }
        tree.free(number);
        Some(dir)
    }

    /// Takes an entry off its chain. Under `dcache_lock`.
    fn unhash(tree: &Tree<Self>, number: u32) {
        Self::in_entry(tree, number, || {
            tree.hash_out(number);
            tree.entry(number).change_flags(UNHASHED, 0);
        });
    }
}

impl<L: Lookup> Scheme for OneLock<L> {
    type Dentry = Early<AtomicCount<L::Spin>>;
    type BucketLock = ();
    type Mutex = L::Mutex;
    type Readers = AlwaysQueue;
    type Mounts = L::Mounts;
    const LISTS_MOUNTS: bool = true;
    const IS_RCU: bool = L::IS_LOCK_FREE;

    fn new() -> Self {
        Self {
            dcache: GlobalLock::new("dcache_lock"),
            renames: SeqSpin::new(),
            unused: List(Head::new()),
            aged: AtomicU32::new(0),
            hand: AtomicU32::new(NONE),
            deferred: AtomicU64::new(0),
            last_ino: AtomicU64::new(0),
            inode: GlobalLock::new("inode_lock"),
            inodes: List(Head::new()),
            files: GlobalLock::new("files_lock"),
            _lookup: PhantomData,
        }
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        [&self.dcache, &self.inode, &self.files].into_iter().for_each(|lock| visit(lock.class()));
        if L::IS_LOCK_FREE {
            self.renames.visit_locks(visit);
        }
    }

    fn visit_counters(tree: &Tree<Self>, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("deferred_removals", tree.scheme.deferred.load(Relaxed));
    }

    fn walk(tree: &Tree<Self>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        L::walk(tree, fs, route)
    }

    fn child(tree: &Tree<Self>, dir: u32, name: &Name<'_>) -> Option<u32> {
        L::child(tree, dir, name)
    }

    fn dot_dot(tree: &Tree<Self>, dir: u32) -> u32 {
        let _dcache = tree.scheme.dcache.lock();
        let parent = tree.entry(dir).parent();
        tree.entry(parent).count().get();
        parent
    }

    fn parent(tree: &Tree<Self>, entry: u32) -> u32 {
        if !L::IS_LOCK_FREE {
            return Self::dot_dot(tree, entry);
        }
        let _held = tree.entry(entry).count().lock();
        let parent = tree.entry(entry).parent();
        tree.entry(parent).count().get();
        parent
    }

    fn put(tree: &Tree<Self>, entry: u32) {
        let _caller = lockstat::caller("dput");
        let mut next = Some(entry);
        while let Some(at) = next {
            let is_done = tree.entry(at).count().put_unless_last();
            next = if is_done { None } else { Self::put_last(tree, at) };
        }
    }

    fn attach(tree: &Tree<Self>, dir: u32, entry: u32) {
        {
            // d_alloc: a child counts on its directory.
            let _dcache = tree.scheme.dcache.lock();
            tree.entry(dir).count().get();
            tree.link_child(dir, entry);
        }
        {
            // new_inode
            let _inode = tree.scheme.inode.lock();
            // Relaxed: under `inode_lock`.
            tree.scheme.last_ino.store(tree.scheme.last_ino.load(Relaxed) + 1, Relaxed);
            tree.scheme.inodes.0.insert(entry, |n| &tree.inode(n).all);
        }
        // d_instantiate: the inode's list of aliases, which is not kept here.
        drop(tree.scheme.dcache.lock());
        // d_rehash
        let _dcache = tree.scheme.dcache.lock();
        Self::in_entry(tree, entry, || tree.hash_in(entry));
    }

    fn detach(tree: &Tree<Self>, entry: u32) {
        let _dcache = tree.scheme.dcache.lock();
        Self::unhash(tree, entry);
    }

    fn relocate(tree: &Tree<Self>, moving: &Move<'_>) {
        let &Move { entry, from, to, .. } = moving;
        {
            let _dcache = tree.scheme.dcache.lock();
            let _renames = L::IS_LOCK_FREE.then(|| tree.scheme.renames.write());
            if let Some(replaced) = moving.replaced {
                Self::unhash(tree, replaced);
            }
            Self::in_entry(tree, entry, || {
                tree.hash_out(entry);
                tree.place(entry, to, &moving.name, moving.block);
                tree.hash_in(entry);
            });
            tree.unlink_child(from, entry);
            tree.link_child(to, entry);
            tree.entry(to).count().get();
        }
        Self::put(tree, from);
    }

    fn with_children<R>(tree: &Tree<Self>, _dir: u32, f: impl FnOnce() -> R) -> R {
        let _dcache = tree.scheme.dcache.lock();
        f()
    }

    fn reverse_path(tree: &Tree<Self>, fs: &FsStruct, entry: u32, path: &mut Vec<u8>) {
        let _caller = lockstat::caller("d_path");
        {
            let _caller = lockstat::caller("path_get");
            let _fs = fs.read();
            tree.entry(ROOT).count().get();
            tree.mounts.get();
        }
        {
            let _dcache = tree.scheme.dcache.lock();
            let _mounts = tree.mounts.still();
            tree.climb(entry, path, usize::MAX, |_, copy| copy());
        }
        Self::put(tree, ROOT);
        tree.mounts.put();
    }

    fn file_changed(tree: &Tree<Self>, _is_open: bool) {
        drop(tree.scheme.files.lock());
    }
}
