//! **Fastwalk** (Hanna Linder, 2001 and 2002; Linux 2.5.11): `dcache_lock` held across the walk.
//!
//! A count on an entry in the middle of a path keeps it only until the next component is found.
//! Nothing is removed while `dcache_lock` is held. So a walk takes that lock once, passes from
//! entry to entry without a count, and counts the last one.
//!
//! Acquisitions fell by two thirds; the time for which the lock was held in total did not, so waits grew longer. The lock
//! that hurts is the same as before.

use crate::era::{Error, Result};
use crate::path::Route;
use crate::tree::Tree;
use crate::tree::count::Count;
use crate::tree::dentry::Dentry;
use crate::tree::fs_struct::FsStruct;
use crate::tree::mount::{Mounts, Uncrossed};
use crate::tree::mutex::Sleeping;
use crate::tree::name::Name;
use crate::tree::one_lock::{Lookup, OneLock};
use sync::TasLock;

/// See the [module documentation](self).
pub(crate) struct Fastwalk;

impl Lookup for Fastwalk {
    type Spin = TasLock;
    type Mutex = Sleeping;
    type Mounts = Uncrossed;
    const IS_LOCK_FREE: bool = false;

    /// Looks `name` up for a caller that holds the directory's mutex, as before fastwalk.
    fn child(tree: &Tree<OneLock<Self>>, dir: u32, name: &Name<'_>) -> Option<u32> {
        OneLock::child_under_lock(tree, dir, name)
    }

    fn walk(tree: &Tree<OneLock<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        let fs_held = fs.read();
        let _dcache = tree.scheme.dcache.lock();
        let mut at = fs.start(route.is_absolute);
        drop(fs_held);
        for component in route.components {
            at = match tree.look(at, component)? {
                None => tree.entry(at).parent(),
                Some(name) => tree.find(at, &name).ok_or(Error::NoEntry)?,
            };
        }
        if route.to_directory && !tree.inode(at).is_directory() {
            return Err(Error::NotDirectory);
        }
        tree.entry(at).count().get();
        OneLock::in_use(tree, at);
        tree.mounts.get();
        Ok(at)
    }
}
