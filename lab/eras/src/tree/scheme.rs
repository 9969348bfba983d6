//! The decisions of a generation of the directory cache: how it finds, counts, changes and climbs.
//! The operations on top ([`operations`](super::operations)) are the same for all.
//!
//! Functions take the tree and not the scheme alone, since the locked data are in both. *Counted*
//! means: the caller holds a reference, which [`Scheme::put`] returns.

use super::Tree;
use super::count::Count;
use super::dentry::Dentry;
use super::fs_struct::FsStruct;
use super::global_lock::GlobalGuard;
use super::mount::Mounts;
use super::name::Name;
use crate::era::Result;
use crate::path::Route;
use locks::lockstat::Class;
use sync::rwsem::SlowPath;
use sync::{RawLock, TasLock};

/// An entry that moves. The mutexes of both directories are held, and the mutex of a replaced
/// entry.
pub(crate) struct Move<'a> {
    pub(crate) entry: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// The entry that has the name now.
    pub(crate) replaced: Option<u32>,
    pub(crate) name: Name<'a>,
    /// The block of a long name.
    pub(crate) block: u32,
}

/// See the [module documentation](self).
pub(crate) trait Scheme: Sized + Send + Sync + 'static {
    type Dentry: Dentry;
    /// The lock of one chain.
    type BucketLock: Default + Send + Sync;
    /// The mutex of a directory, with its way to wait.
    type Mutex: RawLock + 'static;
    /// The slow path of a file's semaphore.
    type Readers: SlowPath + Send + Sync + 'static;
    type Mounts: Mounts;
    /// `statvfs` reads the list of mounts.
    const LISTS_MOUNTS: bool;
    /// Searches take no lock against the end of entries, so these are freed after a grace period.
    const IS_RCU: bool;

    fn new() -> Self;

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class));

    /// See [`Era::visit_counters`](crate::Era::visit_counters).
    fn visit_counters(_tree: &Tree<Self>, _visit: &mut dyn FnMut(&'static str, u64)) {}

    /// Held during each operation: the big lock.
    fn enter(&self) -> Option<GlobalGuard<'_, TasLock>> {
        None
    }

    /// Walks the route; returns the end, counted, and with it the mount.
    fn walk(tree: &Tree<Self>, fs: &FsStruct, route: &Route<'_>) -> Result<u32>;

    /// Where a walk begins, counted, and with it the mount.
    fn start(tree: &Tree<Self>, fs: &FsStruct, is_absolute: bool) -> u32 {
        let start = {
            let _caller = prim::lockstat::caller("path_get");
            let _fs = fs.read();
            let start = fs.start(is_absolute);
            tree.mounts.get();
            tree.entry(start).count().get();
            start
        };
        if is_absolute {
            tree.mounts.cross();
        }
        start
    }

    /// Returns the entry of this name in the counted directory `dir`, counted.
    fn child(tree: &Tree<Self>, dir: u32, name: &Name<'_>) -> Option<u32>;

    /// `..` of the counted directory `dir`, counted.
    fn dot_dot(tree: &Tree<Self>, dir: u32) -> u32 {
        Self::parent(tree, dir)
    }

    /// Returns the directory of a counted entry, counted: `dget_parent`.
    fn parent(tree: &Tree<Self>, entry: u32) -> u32;

    /// Gives a reference back: `dput`.
    fn put(tree: &Tree<Self>, entry: u32);

    /// Makes a new entry, which is not published yet, part of the directory `dir`, whose mutex is held.
    fn attach(tree: &Tree<Self>, dir: u32, entry: u32);

    /// Takes the name of a counted entry away; the directory's mutex is held.
    fn detach(tree: &Tree<Self>, entry: u32);

    /// Moves an entry.
    fn relocate(tree: &Tree<Self>, moving: &Move<'_>);

    /// Calls `f` while the list of the children of `dir` is still.
    fn with_children<R>(tree: &Tree<Self>, dir: u32, f: impl FnOnce() -> R) -> R;

    /// Calls `f` while `entry`, a child found by [`with_children`](Self::with_children), is still.
    fn with_child<R>(_tree: &Tree<Self>, _entry: u32, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Writes the path of a counted entry into `path`: `d_path`.
    fn reverse_path(tree: &Tree<Self>, fs: &FsStruct, entry: u32, path: &mut Vec<u8>);

    /// Notes that a file joins or leaves the list of open files. The caller is not in a read
    /// section.
    fn file_changed(tree: &Tree<Self>, is_open: bool);
}
