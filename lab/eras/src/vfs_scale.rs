//! **vfs-scale** (Nick Piggin, 2009): `dcache_lock`, `inode_lock`, `files_lock` and `vfsmount_lock` are split.
//!
//! Each chain has a lock, each entry's lock protects its count and its children, unused entries and
//! inodes are on lists for each CPU, the mount lock is the CPU's own. Changes of different
//! directories meet nowhere any more. A walk still takes the lock of each component to count it.
//! The shared parts of all paths cost as before: `/`, the working directory, `fs->lock`.
//!
//! Counts are under the entry's lock, so that a `dput` needs no global one. A reverse path takes `rename_lock` as a
//! writer, and the lock of each entry on the way. `statvfs(3)` still reads the list of mounts: that is how dbench was
//! first measured, and why it was measured again without.

use crate::tree::count::LockedCount;
use crate::tree::dentry::Early;
use crate::tree::fine_locks::{Fine, Walk};
use crate::tree::grace::AtOnce;
use crate::tree::mount::PerCpuMounts;
use crate::tree::mutex::Spinning;
use crate::tree::renames::SeqSpin;
use crate::tree::walk::counted_walk;
use locks::TicketLock;
use sync::AlwaysQueue;

/// See the [module documentation](self); `statvfs` by the list of mounts, or [by the mount](crate::statvfs).
pub(crate) struct VfsScale<const LISTS_MOUNTS: bool = true>;

impl<const LISTS_MOUNTS: bool> Fine for VfsScale<LISTS_MOUNTS> {
    type Dentry = Early<LockedCount<TicketLock>>;
    type Spin = TicketLock;
    type Mutex = Spinning;
    type Renames = SeqSpin<TicketLock>;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = AtOnce;
    const LOCKS_EACH: bool = true;
    const LISTS_MOUNTS: bool = LISTS_MOUNTS;
    const WALK: Walk<Self> = counted_walk;
}
