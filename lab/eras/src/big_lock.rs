//! **The big lock** (Linux 2.2 and before): one lock around every operation.
//!
//! The kernel of 1996 ran on several CPUs with one lock, `kernel_flag`, which each system call took at its start. Under
//! it the directory cache needed no lock, and counts were plain integers. A thread that slept released the lock. Nothing
//! sleeps here, except that a thread waits for a file's semaphore without the lock. The bottleneck is this only lock.
//!
//! The list of unused entries is kept as in 2.4: an entry leaves it when it is used.

use crate::era::Result;
use crate::path::Route;
use crate::tree::Tree;
use crate::tree::count::{AtomicCount, Count, LooseCount};
use crate::tree::dentry::{Dentry, Early, ON_LRU, UNHASHED};
use crate::tree::fs_struct::FsStruct;
use crate::tree::global_lock::{GlobalGuard, GlobalLock};
use crate::tree::list::Head;
use crate::tree::mount::{Mounts, Uncrossed};
use crate::tree::mutex::Sleeping;
use crate::tree::name::Name;
use crate::tree::scheme::{Move, Scheme};
use crate::tree::walk::counted_walk;
use locks::lockstat::Class;
use sync::{AlwaysQueue, TasLock};

/// See the [module documentation](self). All else is under `kernel_flag`.
pub(crate) struct BigLock {
    kernel_flag: GlobalLock<TasLock>,
    unused: Head,
    inodes: Head,
}

impl BigLock {
    /// Drops one reference; returns the directory whose reference ends with the entry.
    fn put_one(tree: &Tree<Self>, number: u32) -> Option<u32> {
        let (entry, scheme) = (tree.entry(number), &tree.scheme);
        if !entry.count().put_last() {
            return None;
        }
        if !entry.has(UNHASHED) {
            scheme.unused.insert(number, |n| &tree.entry(n).lists().lru);
            entry.change_flags(ON_LRU, 0);
            return None;
        }
        let dir = entry.parent();
        tree.unlink_child(dir, number);
        scheme.inodes.remove(number, |n| &tree.inode(n).all);
        tree.free(number);
        Some(dir)
    }

    fn get(tree: &Tree<Self>, number: u32) -> u32 {
        let entry = tree.entry(number);
        entry.count().get();
        if entry.has(ON_LRU) {
            tree.scheme.unused.remove(number, |n| &tree.entry(n).lists().lru);
            entry.change_flags(0, ON_LRU);
        }
        number
    }
}

impl Scheme for BigLock {
    type Dentry = Early<AtomicCount<TasLock>>;
    type BucketLock = ();
    type Mutex = Sleeping;
    type Readers = AlwaysQueue;
    type Mounts = Uncrossed;
    const LISTS_MOUNTS: bool = true;
    const IS_RCU: bool = false;

    fn new() -> Self {
        Self { kernel_flag: GlobalLock::new("kernel_flag"), unused: Head::new(), inodes: Head::new() }
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        visit(self.kernel_flag.class());
    }

    fn enter(&self) -> Option<GlobalGuard<'_, TasLock>> {
        Some(self.kernel_flag.lock())
    }

    fn walk(tree: &Tree<Self>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        counted_walk(tree, fs, route)
    }

    fn start(tree: &Tree<Self>, fs: &FsStruct, is_absolute: bool) -> u32 {
        tree.mounts.get();
        Self::get(tree, fs.start(is_absolute))
    }

    fn child(tree: &Tree<Self>, dir: u32, name: &Name<'_>) -> Option<u32> {
        tree.find(dir, name).map(|found| Self::get(tree, found))
    }

    fn parent(tree: &Tree<Self>, entry: u32) -> u32 {
        Self::get(tree, tree.entry(entry).parent())
    }

    fn put(tree: &Tree<Self>, entry: u32) {
        let mut next = Some(entry);
        while let Some(at) = next {
            next = Self::put_one(tree, at);
        }
    }

    fn attach(tree: &Tree<Self>, dir: u32, entry: u32) {
        Self::get(tree, dir);
        tree.link_child(dir, entry);
        tree.scheme.inodes.insert(entry, |n| &tree.inode(n).all);
        tree.hash_in(entry);
    }

    fn detach(tree: &Tree<Self>, entry: u32) {
        tree.hash_out(entry);
        tree.entry(entry).change_flags(UNHASHED, 0);
    }

    fn relocate(tree: &Tree<Self>, moving: &Move<'_>) {
        let &Move { entry, from, to, .. } = moving;
        moving.replaced.into_iter().for_each(|replaced| Self::detach(tree, replaced));
        tree.hash_out(entry);
        tree.place(entry, to, &moving.name, moving.block);
        tree.hash_in(entry);
        tree.unlink_child(from, entry);
        tree.link_child(to, entry);
        Self::get(tree, to);
        Self::put(tree, from);
    }

    fn with_children<R>(_tree: &Tree<Self>, _dir: u32, f: impl FnOnce() -> R) -> R {
        f()
    }

    fn reverse_path(tree: &Tree<Self>, _fs: &FsStruct, entry: u32, path: &mut Vec<u8>) {
        tree.climb(entry, path, usize::MAX, |_, copy| copy());
    }

    fn file_changed(_tree: &Tree<Self>, _is_open: bool) {}
}
