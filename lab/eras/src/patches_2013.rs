//! **The four patches of January 2013** (Waiman Long, on Linux 3.8): counts that move without a lock, and reverse paths
//! beside one another. Each era here has the patches up to its number.
//!
//! `d_path` must not see a name move while it climbs. When `dcache_lock` went (2009) it took `rename_lock` instead, a
//! sequence lock, by its writers' side: so one reverse path kept out every other one, and readers of `/proc/*/maps`
//! spent a third of an 80-CPU machine waiting.
//!
//! | patch | what                                                                                          | era            |
//! |-------|-----------------------------------------------------------------------------------------------|----------------|
//! | 1     | counts move by compare-exchange, two tries, then the entry's lock                             | `patch-2013-1` |
//! | 2     | a sequence lock with a second kind of reader, which keeps writers out but not others of its kind; nothing uses it | the same |
//! | 3     | `rename_lock` becomes one, and reverse paths are such readers                                 | `patch-2013-3` |
//! | 4     | reverse paths take no entry's lock: with renames kept out, no name and no parent changes      | `patch-2013-4` |
//!
//! What was merged in Linux 3.12 is in other forms: [`linux_3_12`](crate::linux_3_12).

use crate::era::Result;
use crate::path::Route;
use crate::rcu_walk::walk_and_go_on;
use crate::tree::Tree;
use crate::tree::dentry::Late;
use crate::tree::fine_locks::{Fine, FineLocks};
use crate::tree::fs_struct::FsStruct;
use crate::tree::grace::AtOnce;
use crate::tree::lockless::LocklessCount;
use crate::tree::mount::PerCpuMounts;
use crate::tree::mutex::Spinning;
use crate::tree::renames::{Renames, SeqShared, SeqSpin};
use core::marker::PhantomData;
use locks::TicketLock;
use sync::AlwaysQueue;

/// Counts without a lock.
pub(crate) type Patch1 = Patches<SeqSpin<TicketLock>, true>;
/// And reverse paths beside one another.
pub(crate) type Patch3 = Patches<SeqShared, true>;
/// And without the locks of entries.
pub(crate) type Patch4 = Patches<SeqShared, false>;

/// See the [module documentation](self).
pub(crate) struct Patches<N, const LOCKS_EACH: bool>(PhantomData<N>);

impl<N: Renames, const LOCKS_EACH: bool> Fine for Patches<N, LOCKS_EACH> {
    type Dentry = Late<LocklessCount<TicketLock>>;
    type Spin = TicketLock;
    type Mutex = Spinning;
    type Renames = N;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = AtOnce;
    const LOCKS_EACH: bool = LOCKS_EACH;
    const LISTS_MOUNTS: bool = false;
    const HOLDS_MOUNTS: bool = true;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        walk_and_go_on(tree, fs, route)
    }
}
