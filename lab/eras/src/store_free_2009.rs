//! **The store-free walk of October 2009** (Nick Piggin, linux-kernel, 6 to 15 October 2009), as it was posted: a prototype
//! on top of vfs-scale, with which the figures of that month were taken.
//!
//! A path is walked by samples of the entries' sequences, and only the last component is counted.
//! The prototype did not do the following yet, which therefore still cost in the published figures:
//!
//! * The walk begins under `fs->lock`, which threads of a process share, and holds the CPU's own mount lock to its end
//!   (since 9 October).
//! * A path with `..`, and the way to a directory in which a name is made, removed or moved, are walked with the lock and
//!   the count of each component, as before. So `create` and `unlink` gained nothing.
//! * On trouble the whole walk begins again, with locks.
//! * The entry has the layout of before, with the count and the lock on the line that walks read.
//!
//! The cost that remains: the lock and the count of the last component, of directories in which
//! names change, and of `/`.

use crate::era::Result;
use crate::path::Route;
use crate::rcu_walk::walk_and_restart;
use crate::tree::Tree;
use crate::tree::count::LockedCount;
use crate::tree::dentry::Early;
use crate::tree::fine_locks::{Fine, FineLocks, Sequence, Walk};
use crate::tree::fs_struct::FsStruct;
use crate::tree::grace::AtOnce;
use crate::tree::mount::PerCpuMounts;
use crate::tree::mutex::Spinning;
use crate::tree::renames::SeqSpin;
use crate::tree::walk::counted_walk;
use locks::TicketLock;
use sync::AlwaysQueue;

/// See the [module documentation](self); with a sequence in each entry, or [one around the walk](crate::outer_sequence).
pub(crate) struct StoreFree2009<const IS_OUTER: bool = false>;

impl<const IS_OUTER: bool> Fine for StoreFree2009<IS_OUTER> {
    type Dentry = Early<LockedCount<TicketLock>>;
    type Spin = TicketLock;
    type Mutex = Spinning;
    type Renames = SeqSpin<TicketLock>;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = AtOnce;
    const LOCKS_EACH: bool = true;
    const LISTS_MOUNTS: bool = true;
    const SEQUENCE: Sequence = if IS_OUTER { Sequence::OfRenames } else { Sequence::OfEntry };
    const HOLDS_MOUNTS: bool = true;
    const STARTS_LOCKED: bool = true;
    const WALKS_UP: bool = false;
    const WALK: Walk<Self> = walk;
}

fn walk<F: Fine>(tree: &Tree<FineLocks<F>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
    if route.is_parent { counted_walk(tree, fs, route) } else { walk_and_restart(tree, fs, route) }
}
