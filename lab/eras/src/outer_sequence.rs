//! **The outer sequence** (linux-kernel, 7 October 2009): the alternative to a sequence in each entry, which was discussed
//! beside the store-free walk and not built.
//!
//! The walk samples `rename_lock` once, before it begins, and checks after each step that nothing moved since. An entry
//! needs no sequence. A move first makes the length of the name zero, so that no search takes parts of two names for a name.
//! The removal of a name is not a move: it shows under the lock of the last component.
//!
//! All else is [`store_free_2009`](crate::store_free_2009)'s, so that the two differ in their sequences only.
//!
//! What hurts: each move anywhere sends each walk that is under way back to the beginning, with locks.

use crate::era::Result;
use crate::path::Route;
use crate::rcu_walk::walk_and_restart;
use crate::tree::Tree;
use crate::tree::count::LockedCount;
use crate::tree::dentry::Early;
use crate::tree::fine_locks::{Fine, FineLocks, Sequence};
use crate::tree::fs_struct::FsStruct;
use crate::tree::grace::AtOnce;
use crate::tree::mount::PerCpuMounts;
use crate::tree::mutex::Spinning;
use crate::tree::renames::SeqSpin;
use crate::tree::walk::counted_walk;
use locks::TicketLock;
use sync::AlwaysQueue;

/// See the [module documentation](self).
pub(crate) struct OuterSequence;

impl Fine for OuterSequence {
    type Dentry = Early<LockedCount<TicketLock>>;
    type Spin = TicketLock;
    type Mutex = Spinning;
    type Renames = SeqSpin<TicketLock>;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = AtOnce;
    const LOCKS_EACH: bool = true;
    const LISTS_MOUNTS: bool = true;
    const SEQUENCE: Sequence = Sequence::OfRenames;
    const HOLDS_MOUNTS: bool = true;
    const STARTS_LOCKED: bool = true;
    const WALKS_UP: bool = false;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        if route.is_parent { counted_walk(tree, fs, route) } else { walk_and_restart(tree, fs, route) }
    }
}
