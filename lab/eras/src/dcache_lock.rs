//! **dcache_lock, per component** (Linux 2.4, 2001).
//!
//! When the directory cache left the big kernel lock it got one lock for all of it, `dcache_lock`:
//! chains, counts at zero, lists. A walk takes the lock once for each component, to search the
//! chain and to count the entry that it finds (and to take the entry off the list of unused
//! entries, if it was on that list). Then the walk drops the count on the previous directory.
//!
//! The lock that hurts: `dcache_lock`. An 8-CPU web server spent a fifth of its acquisitions waiting (Lockmeter, 2002).

use crate::tree::Tree;
use crate::tree::mount::Uncrossed;
use crate::tree::mutex::Sleeping;
use crate::tree::name::Name;
use crate::tree::one_lock::{Lookup, OneLock};
use sync::TasLock;

/// See the [module documentation](self).
pub(crate) struct PerComponent;

impl Lookup for PerComponent {
    type Spin = TasLock;
    type Mutex = Sleeping;
    type Mounts = Uncrossed;
    const IS_LOCK_FREE: bool = false;

    fn child(tree: &Tree<OneLock<Self>>, dir: u32, name: &Name<'_>) -> Option<u32> {
        OneLock::child_under_lock(tree, dir, name)
    }
}
