//! **Reverse paths** before and after 2013: `rename_lock` as a writer, or as one of many readers; each with and without
//! the lock of every entry on the way.
//!
//! `d_path` must not see a name move while it climbs. When `dcache_lock` went (2009) it took `rename_lock` instead, a
//! sequence lock, by its writers' side: so one reverse path kept out every other one, and readers of `/proc/*/maps`
//! spent a third of an 80-CPU machine waiting (Waiman Long, January 2013). His `seqrwlock` gives the sequence lock a
//! second kind of reader, which keeps writers out but not others of its kind.
//!
//! With renames kept out no name and no parent changes, so the lock of each entry protects nothing that is read; the
//! variants without it (`bare`) show what those cost.
//!
//! Those four have the walk of 2.6.38 and the count under the entry's lock. `linux-3.12` has the lockless count as well,
//! as the kernel had that got both changes. They share all but locks and counts.

use crate::era::Result;
use crate::path::Route;
use crate::rcu_walk::walk_and_go_on;
use crate::tree::Tree;
use crate::tree::count::{FineCount, LockedCount};
use crate::tree::dentry::Late;
use crate::tree::fine_locks::{Fine, FineLocks};
use crate::tree::fs_struct::FsStruct;
use crate::tree::lockref::Lockref2013;
use crate::tree::renames::{Renames, SeqShared, SeqSpin};
use core::marker::PhantomData;
use locks::TicketLock;
use sync::AlwaysQueue;

/// Reverse paths one at a time.
pub(crate) type Exclusive = ReversePaths<SeqSpin<TicketLock>, true>;
/// The same without entries' locks.
pub(crate) type ExclusiveBare = ReversePaths<SeqSpin<TicketLock>, false>;
/// Reverse paths beside one another.
pub(crate) type Shared = ReversePaths<SeqShared, true>;
/// The same without entries' locks.
pub(crate) type SharedBare = ReversePaths<SeqShared, false>;

/// Beside one another, without entries' locks, with lockless counts: both changes of 2013.
pub(crate) type Linux312 = ReversePaths<SeqShared, false, Lockref2013>;

/// See the [module documentation](self).
pub(crate) struct ReversePaths<N, const LOCKS_EACH: bool, C = LockedCount<TicketLock>>(PhantomData<(N, C)>);

impl<N: Renames, const LOCKS_EACH: bool, C: FineCount + 'static> Fine for ReversePaths<N, LOCKS_EACH, C> {
    type Dentry = Late<C>;
    type Spin = TicketLock;
    type Renames = N;
    type Readers = AlwaysQueue;
    const LOCKS_EACH: bool = LOCKS_EACH;
    const LISTS_MOUNTS: bool = false;
    const HOLDS_MOUNTS: bool = true;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        walk_and_go_on(tree, fs, route)
    }
}
