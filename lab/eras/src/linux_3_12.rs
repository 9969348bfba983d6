//! **Linux 3.12** (November 2013): what was merged of the changes of that year, each in another form than it was posted.
//!
//! * The count moves by compare-exchange in the lock's word, again and again for as long as the lock is free (Linus
//!   Torvalds's lockref), and from any count but that of an entry that has ended.
//! * A reverse path climbs without a lock and checks the sequence of moves. Only if something moved it takes
//!   `rename_lock`, alone, but leaves the sequence as it is, so that walks go on (Waiman Long's locking reader). It samples
//!   the root, which it does not count.
//! * The directory's mutex has a queue (since 3.10).
//!
//! # Scalable RCU
//! With another rule than [`AtOnce`] it is the same kernel whose open files are freed after a grace period, by three kinds
//! of RCU. Since 2.6.14 a closed file is freed by RCU, so that descriptors are looked up without a lock; a loop of open and
//! close makes a callback a turn. With one queue and one lock for callbacks and for reports (2002 to 2.6.28) each CPU comes
//! back to that lock in each grace period; with a tree of locks (2.6.29) few do; Lightfoot's has no lock. See
//! `tree/grace.rs`. Counters: grace periods, files freed, and the backlog.

use crate::era::Result;
use crate::path::Route;
use crate::rcu_walk::walk_and_go_on;
use crate::tree::Tree;
use crate::tree::dentry::Late;
use crate::tree::fine_locks::{Fine, FineLocks};
use crate::tree::fs_struct::FsStruct;
use crate::tree::grace::{AtOnce, Grace};
use crate::tree::lockref::Lockref312;
use crate::tree::mount::PerCpuMounts;
use crate::tree::mutex::QueuedSpinning;
use crate::tree::renames::SeqExclusive;
use core::marker::PhantomData;
use locks::TicketLock;
use sync::AlwaysQueue;

/// See the [module documentation](self).
pub(crate) struct Linux312<G = AtOnce>(PhantomData<G>);

impl<G: Grace> Fine for Linux312<G> {
    type Dentry = Late<Lockref312>;
    type Spin = TicketLock;
    type Mutex = QueuedSpinning;
    type Renames = SeqExclusive<TicketLock>;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = G;
    const LOCKS_EACH: bool = false;
    const CLIMBS_FREE: bool = true;
    const LISTS_MOUNTS: bool = false;
    const HOLDS_MOUNTS: bool = true;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        walk_and_go_on(tree, fs, route)
    }
}
