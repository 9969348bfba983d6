//! The handle by which a file system reports changes behind the caches.
//!
//! It reaches the cache by a trait object, so that the trait of file systems does not depend on the cache. `cache/invalidate.rs`
//! has the rules.

use core::fmt::Debug;
use prim::shared::DynArc;
use std::any::Any;

/// A way to the cache of one file system, which may have ended.
pub(crate) trait Invalidate: Any + Debug + Send + Sync {
    /// As [`Invalidator::entry`]; with `is_removal`, as [`Invalidator::removed`].
    fn entry_changed(&self, dir: u64, name: &[u8], is_removal: bool);

    /// As [`Invalidator::inode`].
    fn inode_changed(&self, node: u64);

    /// As [`Invalidator::all`].
    fn all_changed(&self);
}

/// Reports to a tree's caches that something changed behind them. Keeps nothing alive; after the file
/// system's last unmount it does nothing.
///
/// An invalidation may release the last use of an inode, and of the file system: it may call
/// [`crate::FileSystem::evict`]. So do not hold a lock that `evict` takes.
#[derive(Clone, Debug)]
pub struct Invalidator(DynArc<dyn Invalidate>);

impl Invalidator {
    pub(crate) fn new(cache: impl Invalidate) -> Self {
        Self(DynArc::new(cache))
    }

    /// Returns the value it was made of, if that is a `T`.
    pub(crate) fn way<T: Invalidate>(&self) -> Option<&T> {
        (&*self.0 as &dyn Any).downcast_ref()
    }

    /// Marks the entry `name` of the directory with the node `dir` stale.
    pub fn entry(&self, dir: u64, name: &[u8]) {
        self.0.entry_changed(dir, name, false);
    }

    /// As [`entry`](Self::entry), and the file that had the name was removed. Observers are
    /// notified of the removal, if the entry was not stale before, and the file had no other name
    /// and is not a directory.
    pub fn removed(&self, dir: u64, name: &[u8]) {
        self.0.entry_changed(dir, name, true);
    }

    /// Marks the attributes of the inode `node` stale, and the names in it if it is a directory.
    pub fn inode(&self, node: u64) {
        self.0.inode_changed(node);
    }

    /// Marks everything stale. Examines all cached entries.
    pub fn all(&self) {
        self.0.all_changed();
    }
}
