//! Lookups in a directory of a file system that keeps its own names, by several threads at once.
//!
//! # What it is
//! Such a directory is split where threads often wait for it to look names up. Its stripes then cover what lookups and
//! evictions do to a name. An operation that changes the directory takes it whole. Its attributes are never in shares.
//!
//! A thread that looks a name up keeps the directory by a *hold*: the shelf of the thread's CPU index counts it, so that
//! threads write no common line. When the directory is merged, the holds are added to its count, and are given back there.
//!
//! # How it is locked
//! As [`split`](super). A shelf's lock covers its number of holds. Before the slot is closed, the directory's count is
//! raised by more than all holds. So a thread that finds the slot closed may subtract its hold from the count before the
//! holds were added to it.
//!
//! # Where it comes from
//! `percpu_ref` of Linux, for the holds; own code.

use super::{NameLock, Splits};
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::slot::UncountedDentry;
use crate::slots::stripe::{Names, Shelf, WIDTH, add};
use prim::atomic::Ordering::Relaxed;
use sync::MutexGuard;
use sync::rcu::ReadGuard;

/// What keeps a split directory for a lookup in it, as a count does. Return it by [`SuperBlock::end_hold`].
#[must_use]
pub(crate) struct SplitHold(UncountedDentry);

impl SplitHold {
    /// The directory, in its superblock `sb`.
    pub(crate) fn get<'a>(&'a self, sb: &'a SuperBlock) -> &'a Dentry {
        self.0.get(sb.slots())
    }
}

impl Splits {
    /// Takes what the shelves of a closed slot count.
    pub(super) fn take_holds(&self, slot: usize) -> u32 {
        let take = |sum: u32, shelf: &Shelf| {
            let _held = shelf.lock.lock();
            // Relaxed: under the shelf's lock.
            let holds = shelf.holds.load(Relaxed);
            shelf.holds.store(0, Relaxed);
            sum.wrapping_add(holds)
        };
        self.shelves(slot).iter().fold(0, take)
    }

    /// Changes the thread's number of holds, if the slot of `dir` is open for it, and `may` returns true.
    fn count_hold(&self, dir: &Dentry, by: u32, may: impl FnOnce() -> bool) -> bool {
        let at = self.slot_of(dir);
        if !self.slots[at].serves(dir) {
            return false;
        }
        let shelf = &self.shelves(at)[prim::cpu::id() % WIDTH];
        let _held = shelf.lock.lock();
        let counts = self.slots[at].serves(dir) && may();
        if counts {
            add(&shelf.holds, by);
        }
        counts
    }
}

impl SuperBlock {
    /// The stripes of names, if threads create and remove names with their locks.
    pub(crate) fn splits_of_changes(&self) -> Option<&Splits> {
        self.splits.as_deref().filter(|_| !self.is_limited)
    }

    /// The stripes of names, if threads look names up with their locks.
    fn splits_of_lookups(&self) -> Option<&Splits> {
        self.splits.as_deref().filter(|_| self.is_limited)
    }

    /// References on split directories that are not in their counts.
    pub(crate) fn split_holds(&self) -> isize {
        let holds = self.splits_of_lookups().map_or(0, |splits| {
            let used = (0..splits.slots.len()).filter(|&slot| splits.slots[slot].owner.get().is_some());
            // Relaxed: figures by themselves.
            used.flat_map(|slot| splits.shelves(slot))
                .fold(0_u32, |sum, shelf| sum.wrapping_add(shelf.holds.load(Relaxed)))
        });
        holds.cast_signed() as isize
    }

    /// Whether `dir` is split for lookups. It may be merged at any time.
    pub(crate) fn is_split_for_lookups(&self, dir: &Dentry) -> bool {
        self.splits_of_lookups().is_some_and(|splits| splits.slot(dir).serves(dir))
    }

    /// Keeps the directory `dir` without a count, if it is split for lookups, and has the sequence `seq` then.
    pub(crate) fn hold_split(&self, _guard: &ReadGuard<'_>, dir: &Dentry, seq: u32) -> Option<SplitHold> {
        let is_kept = self.splits_of_lookups()?.count_hold(dir, 1, || !dir.seq.retry(seq));
        is_kept.then(|| SplitHold(UncountedDentry::of(self.slots(), dir)))
    }

    /// Ends what [`SuperBlock::hold_split`] began.
    pub(crate) fn end_hold(&self, hold: SplitHold) {
        let dir = hold.get(self);
        if !self.splits_of_lookups().is_some_and(|splits| splits.count_hold(dir, u32::MAX, || true)) {
            self.unpin_ref(dir);
        }
    }

    /// Locks the name with the hash `hash` in the directory `dir`, which the caller keeps, to look it up.
    pub(crate) fn lock_to_look_up<'a>(&'a self, dir: &'a Dentry, hash: u64) -> NameLock<'a> {
        let Some(splits) = self.splits_of_lookups() else { return self.lock_name(dir, hash, false) };
        if !self.splits_always()
            && dir.lock.is_free()
            && let Some(lock) = dir.lock.try_lock()
        {
            return NameLock::new(self.ranks.taken(Rank::Directory, lock), None);
        }
        if let Some(at) = splits.stripe_in(dir, hash) {
            let ranked = self.ranks.acquire(Rank::Directory);
            let lock = self.ranks.take(Rank::Directory, splits.lock_at(at));
            drop(ranked);
            if splits.slots[at.slot].serves(dir) {
                return NameLock::new(self.ranks.taken(Rank::Directory, lock), Some(splits.names(at)));
            }
        }
        self.lock_name(dir, hash, true)
    }

    /// Tries to lock the directory `dir` of `entry`, or if that is split the name of `entry`. By then `entry` may be in another
    /// directory.
    pub(crate) fn try_lock_of<'a>(
        &'a self,
        dir: &'a Dentry,
        entry: &Dentry,
    ) -> Option<(MutexGuard<'a, ()>, Option<Names<'a>>)> {
        if let Some(lock) = dir.lock.is_free().then(|| dir.lock.try_lock()).flatten() {
            return Some((lock, None));
        }
        let splits = self.splits_of_lookups()?;
        let guard = self.domain.read();
        let hash = entry.filed_hash_rcu(dir, self.key, &guard);
        let at = splits.stripe_in(dir, hash)?;
        let lock = splits.lock_at(at).try_lock()?;
        // The name may be that of another life of the slot until now. It does not change while its stripe is locked.
        let is_name = splits.slots[at.slot].serves(dir)
            && entry.is_in(dir)
            && entry.filed_hash_rcu(dir, self.key, &guard) == hash;
        is_name.then(|| (lock, Some(splits.names(at))))
    }
}
