//! Lookups in a directory of a file system that keeps its own names, by several threads at once.
//!
//! # What it is
//! Such a directory is sharded if threads often wait for its lock to look names up. Its shards then
//! cover the changes of a name by lookups and evictions. An operation that changes the directory
//! locks the whole directory. The directory's attributes are never in shares.
//!
//! A thread that looks a name up keeps the directory by a *hold*: the shard list of the thread's
//! CPU index counts it, so that threads write no common line. When the directory is merged, the
//! holds are added to its count, and are returned there.
//!
//! # How it is locked
//! As [`sharded`](super). A shard list's lock covers its number of holds. Before the slot is
//! closed, the directory's count is raised by more than all holds. So a thread that finds the slot
//! closed may subtract its hold from the count before the holds were added to it.
//!
//! # Where it comes from
//! `percpu_ref` of Linux, for the holds.

use super::{NameGuard, ShardedDirs};
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::shard::{Names, ShardList, WIDTH, add};
use crate::slots::slot::DentryPtr;
use prim::atomic::Ordering::Relaxed;
use sync::MutexGuard;
use sync::rcu::ReadGuard;

/// A hold that keeps a sharded directory for a lookup in it, as a count does. Return it by
/// [`SuperBlock::end_hold`].
#[must_use]
pub(crate) struct ShardedDirRef(DentryPtr);

impl ShardedDirRef {
    /// Returns the directory, in its superblock `sb`.
    pub(crate) fn get<'a>(&'a self, sb: &'a SuperBlock) -> &'a Dentry {
        self.0.get(sb.slots())
    }
}

impl ShardedDirs {
    /// Takes the holds that the shard lists of a closed slot count.
    pub(super) fn take_holds(&self, slot: usize) -> u32 {
        let take = |sum: u32, list: &ShardList| {
            let _held = list.lock.lock();
            // Relaxed: under the shard list's lock.
            let holds = list.holds.load(Relaxed);
            list.holds.store(0, Relaxed);
            sum.wrapping_add(holds)
        };
        self.lists(slot).iter().fold(0, take)
    }

    /// Changes the thread's number of holds, if the slot of `dir` is open for it, and `may` returns true.
    fn count_hold(&self, dir: &Dentry, by: u32, may: impl FnOnce() -> bool) -> bool {
        let at = self.slot_of(dir);
        if !self.slots[at].serves(dir) {
            return false;
        }
        let list = &self.lists(at)[prim::cpu::id() % WIDTH];
        let _held = list.lock.lock();
        let counts = self.slots[at].serves(dir) && may();
        if counts {
            add(&list.holds, by);
        }
        counts
    }
}

impl SuperBlock {
    /// Returns the shards of names, if threads create and remove names with their locks.
    pub(crate) fn sharded_for_changes(&self) -> Option<&ShardedDirs> {
        self.sharded_dirs().filter(|_| !self.is_evictable)
    }

    /// Returns the shards of names, if threads look names up with their locks.
    fn sharded_for_lookups(&self) -> Option<&ShardedDirs> {
        self.sharded_dirs().filter(|_| self.is_evictable)
    }

    /// References on sharded directories that are not in their counts.
    pub(crate) fn sharded_holds(&self) -> isize {
        let holds = self.sharded_for_lookups().map_or(0, |sharded_dirs| {
            let used = (0..sharded_dirs.slots.len()).filter(|&slot| sharded_dirs.slots[slot].owner.get().is_some());
            // Relaxed: figures by themselves.
            used.flat_map(|slot| sharded_dirs.lists(slot))
                .fold(0_u32, |sum, list| sum.wrapping_add(list.holds.load(Relaxed)))
        });
        holds.cast_signed() as isize
    }

    /// Returns whether `dir` is sharded for lookups. It may be merged at any time.
    pub(crate) fn is_sharded_for_lookups(&self, dir: &Dentry) -> bool {
        self.sharded_for_lookups().is_some_and(|sharded_dirs| sharded_dirs.slot(dir).serves(dir))
    }

    /// Keeps the directory `dir` without a count, if it is sharded for lookups, and still has the
    /// sequence `seq`.
    pub(crate) fn hold_sharded(&self, _guard: &ReadGuard<'_>, dir: &Dentry, seq: u32) -> Option<ShardedDirRef> {
        let is_kept = self.sharded_for_lookups()?.count_hold(dir, 1, || !dir.seq.retry(seq));
        is_kept.then(|| ShardedDirRef(DentryPtr::of(self.slots(), dir)))
    }

    /// Ends the hold of [`SuperBlock::hold_sharded`].
    pub(crate) fn end_hold(&self, hold: ShardedDirRef) {
        let dir = hold.get(self);
        if !self.sharded_for_lookups().is_some_and(|sharded_dirs| sharded_dirs.count_hold(dir, u32::MAX, || true)) {
            self.unpin_ref(dir);
        }
    }

    /// Locks the name with the hash `hash` in the directory `dir`, which the caller keeps, to look it up.
    pub(crate) fn lock_to_look_up<'a>(&'a self, dir: &'a Dentry, hash: u64) -> NameGuard<'a> {
        if !self.is_evictable {
            return self.lock_name(dir, hash, false);
        }
        if !self.shards_always()
            && dir.lock.is_free()
            && let Some(lock) = dir.lock.try_lock()
        {
            return NameGuard::new(self.ranks.taken(Rank::Directory, lock), None);
        }
        if let Some(sharded_dirs) = self.sharded_dirs()
            && let Some(at) = sharded_dirs.shard_in(dir, hash)
        {
            let ranked = self.ranks.acquire(Rank::Directory);
            let lock = self.ranks.take(Rank::Directory, sharded_dirs.lock_at(at));
            drop(ranked);
            if sharded_dirs.slots[at.slot].serves(dir) {
                return NameGuard::new(self.ranks.taken(Rank::Directory, lock), Some(sharded_dirs.names(at)));
            }
        }
        self.lock_name(dir, hash, true)
    }

    /// Tries to lock the directory `dir` of `entry`, or if `dir` is sharded the name of `entry`. By
    /// the time of the lock `entry` may be in another directory.
    pub(crate) fn try_lock_of<'a>(
        &'a self,
        dir: &'a Dentry,
        entry: &Dentry,
    ) -> Option<(MutexGuard<'a, ()>, Option<Names<'a>>)> {
        if let Some(lock) = dir.lock.is_free().then(|| dir.lock.try_lock()).flatten() {
            return Some((lock, None));
        }
        let sharded_dirs = self.sharded_for_lookups()?;
        let guard = self.domain.read();
        let hash = entry.filed_hash_rcu(dir, self.key, &guard);
        let at = sharded_dirs.shard_in(dir, hash)?;
        let lock = sharded_dirs.lock_at(at).try_lock()?;
        // Before this check the name may be from another life of the slot. It does not change while
        // its shard is locked.
        let is_name = sharded_dirs.slots[at.slot].serves(dir)
            && entry.is_in(dir)
            && entry.filed_hash_rcu(dir, self.key, &guard) == hash;
        is_name.then(|| (lock, Some(sharded_dirs.names(at))))
    }
}
