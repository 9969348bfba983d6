//! **The four patches of January 2013** (Waiman Long, on Linux 3.8): counts that move without a lock, and reverse paths
//! beside one another. Each era here has the patches up to its number.
//!
//! `d_path` must not see a name move while it climbs. When `dcache_lock` was removed (2009),
//! `d_path` took `rename_lock` instead, a sequence lock, as a writer. So one reverse path excluded
//! every other, and readers of `/proc/*/maps` spent a third of an 80-CPU machine waiting.
//!
//! | patch | what                                                                                          | era            |
//! |-------|-----------------------------------------------------------------------------------------------|----------------|
//! | 1     | counts move by compare-exchange, two tries, then the entry's lock                             | `patch-2013-1` |
//! | 2     | a sequence lock with a second kind of reader, which keeps writers out but not others of its kind; nothing uses it | the same |
//! | 3     | `rename_lock` becomes one, and reverse paths are such readers                                 | `patch-2013-3` |
//! | 4     | reverse paths take no entry's lock: with renames kept out, no name and no parent changes      | `patch-2013-4` |
//!
//! The form that was merged in Linux 3.12 differs: [`linux_3_12`](crate::linux_3_12).

use crate::rcu_walk::GoOn;
use crate::tree::grace::AtOnce;
use crate::tree::lockless::LocklessCount;
use crate::tree::mutex::Spinning;
use crate::tree::renames::{SeqShared, SeqSpin};
use locks::TicketLock;

/// Counts without a lock.
pub(crate) type Patch1 = GoOn<LocklessCount<TicketLock>, SeqSpin<TicketLock>>;
/// And reverse paths beside one another.
pub(crate) type Patch3 = GoOn<LocklessCount<TicketLock>, SeqShared>;
/// And without the locks of entries.
pub(crate) type Patch4 = GoOn<LocklessCount<TicketLock>, SeqShared, Spinning, TicketLock, AtOnce, false>;
