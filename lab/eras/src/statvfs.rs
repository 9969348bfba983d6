//! **`statvfs(3)`** before and after 2010: the mount's flags out of the list of mounts, or from the mount itself.
//!
//! `statfs(2)` did not return a mount's flags, and `statvfs(3)` must; so the C library read `/proc/mounts` until it
//! found the mount. The kernel formats that list line by line, each with a reverse path, under the semaphore of the
//! mount namespace. In dbench, which calls it all the time, that was most of the profile (October 2009). Nick Piggin
//! left it out of the benchmark first, then made `statfs(2)` return the flags (Linux 2.6.36).
//!
//! This is vfs-scale with the change; [`vfs_scale`](crate::vfs_scale) is without.

use crate::era::Result;
use crate::path::Route;
use crate::tree::Tree;
use crate::tree::count::LockedCount;
use crate::tree::dentry::Early;
use crate::tree::fine_locks::{Fine, FineLocks};
use crate::tree::fs_struct::FsStruct;
use crate::tree::grace::AtOnce;
use crate::tree::mount::PerCpuMounts;
use crate::tree::mutex::Spinning;
use crate::tree::renames::SeqSpin;
use crate::tree::walk::counted_walk;
use locks::TicketLock;
use sync::AlwaysQueue;

/// By the mount. See the [module documentation](self).
pub(crate) struct ByMount;

impl Fine for ByMount {
    type Dentry = Early<LockedCount<TicketLock>>;
    type Spin = TicketLock;
    type Mutex = Spinning;
    type Renames = SeqSpin<TicketLock>;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = AtOnce;
    const LOCKS_EACH: bool = true;
    const LISTS_MOUNTS: bool = false;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        counted_walk(tree, fs, route)
    }
}
