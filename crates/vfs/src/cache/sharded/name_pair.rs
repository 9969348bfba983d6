//! The locks of two names, for a rename.
//!
//! # How it is locked
//! Two shards of one directory are taken by their number. Beside a name of one directory, the lock of a name in another one is only
//! tried, or awaited for a while: so a thread in a shard waits for no thread that closes a slot.
//!
//! # Where it comes from
//! As [`sharded`](super).

use super::{NameGuard, shard_of};
use crate::base::rank::{Locked, Rank};
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::shard::{Names, ShardAt};
use core::cmp::Ordering;
use sync::MutexGuard;
use sync::rcu::ReadGuard;

/// The locks of two names, in one directory or in two. The lock of a directory covers all its names.
pub(crate) struct NamePairGuard<'a> {
    /// Where their directories keep them, if these are sharded.
    pub(crate) names: [Option<Names<'a>>; 2],
    _locks: [Option<Locked<'a>>; 2],
}

/// A name of a rename: its directory, and its hash.
pub(crate) type NameIn<'a> = (&'a Dentry, u64);

impl SuperBlock {
    /// Locks the names with these hashes in the directory `dir`, which the caller holds. As for [`SuperBlock::lock_name`].
    pub(crate) fn lock_names<'a>(&'a self, dir: &'a Dentry, hashes: [u64; 2], waited: bool) -> NamePairGuard<'a> {
        let whole = |lock| NamePairGuard { names: [None, None], _locks: [Some(lock), None] };
        let (lock, slot) = self.lock_or_shard(dir, waited);
        let Some((sharded_dirs, slot)) = slot else { return whole(self.ranks.taken(Rank::Directory, lock)) };
        let at = hashes.map(|hash| ShardAt { slot, shard: shard_of(hash) });
        let (low, high) = in_order(at);
        let first = self.ranks.take(Rank::Directory, sharded_dirs.lock_at(low));
        let second = high.map(|high| self.ranks.take(Rank::Directory, sharded_dirs.lock_at(high)));
        MutexGuard::lend(lock);
        self.name_pair(at.map(|at| Some(sharded_dirs.names(at))), first, second)
    }

    /// Locks the first name, in a directory that the caller holds, and tries to lock the second
    /// one, in another such directory. `None`: another thread has the second lock.
    pub(crate) fn lock_and_try<'a>(
        &'a self,
        (dir, hash): NameIn<'a>,
        (other, other_hash): NameIn<'a>,
        waited: bool,
    ) -> Option<NamePairGuard<'a>> {
        let NameGuard { _lock: first, names } = self.lock_name(dir, hash, waited);
        let (second, other_names) = self.try_name(other, other_hash)?;
        let second = self.ranks.taken_nested(Rank::Directory, second);
        Some(NamePairGuard { names: [names, other_names], _locks: [Some(first), Some(second)] })
    }

    /// Locks two names in the directory `dir`. This fails if `dir` is not sharded, or if under the
    /// locks its sequence is not `seq`, with which `dir` had its name. Waits for a while if other
    /// threads have the locks.
    #[cold]
    pub(crate) fn enter_names<'g>(
        &'g self,
        _guard: &'g ReadGuard<'_>,
        dir: &'g Dentry,
        seq: u32,
        hashes: [u64; 2],
    ) -> Option<NamePairGuard<'g>> {
        let sharded_dirs = self.sharded_for_changes()?;
        let ShardAt { slot, .. } = sharded_dirs.shard_in(dir, hashes[0])?;
        let at = hashes.map(|hash| ShardAt { slot, shard: shard_of(hash) });
        let (low, high) = in_order(at);
        let first = sharded_dirs.try_at(dir, low)?;
        let second = match high {
            Some(high) => Some(sharded_dirs.try_at(dir, high)?),
            None => None,
        };
        (!dir.seq.retry(seq)).then(|| self.name_pair(at.map(|at| Some(sharded_dirs.names(at))), first, second))
    }

    /// Returns the locks of two names that were taken already.
    pub(crate) fn name_pair<'a>(
        &'a self,
        names: [Option<Names<'a>>; 2],
        first: MutexGuard<'a, ()>,
        second: Option<MutexGuard<'a, ()>>,
    ) -> NamePairGuard<'a> {
        let first = self.ranks.taken(Rank::Directory, first);
        let second = second.map(|second| self.ranks.taken_nested(Rank::Directory, second));
        NamePairGuard { names, _locks: [Some(first), second] }
    }

    /// Tries to lock a name in a directory that the caller holds.
    fn try_name<'a>(&'a self, dir: &'a Dentry, hash: u64) -> Option<(MutexGuard<'a, ()>, Option<Names<'a>>)> {
        if let Some(lock) = dir.lock.is_free().then(|| dir.lock.try_lock()).flatten() {
            return Some((lock, None));
        }
        let sharded_dirs = self.sharded_for_changes()?;
        let at = sharded_dirs.shard_in(dir, hash)?;
        Some((sharded_dirs.try_at(dir, at)?, Some(sharded_dirs.names(at))))
    }
}

/// Shards of one slot in the order in which their locks are taken; one if they are the same.
fn in_order([one, other]: [ShardAt; 2]) -> (ShardAt, Option<ShardAt>) {
    match one.shard.cmp(&other.shard) {
        Ordering::Less => (one, Some(other)),
        Ordering::Equal => (one, None),
        Ordering::Greater => (other, Some(one)),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::base::attr::{Attr, S_IFDIR};
    use crate::cache::budget::Budget;
    use crate::cache::tree::Tree;
    use crate::fs::{CachedNames, FileSystem, FsTraits, NameStore, NewInode};
    use crate::slots::whole_path::Options;
    use sync::PerCpuOwner;

    struct Names;
    impl FileSystem for Names {
        fn root(&self) -> NewInode {
            let attr = Attr { mode: S_IFDIR | 0o755, ..Attr::default() };
            NewInode { node: 1, attr, ..NewInode::default() }
        }
        fn traits(&self) -> FsTraits {
            FsTraits {
                names: NameStore::Cache(CachedNames { changes_in_parallel: true, ..CachedNames::default() }),
                ..FsTraits::default()
            }
        }
    }

    fn new_superblock() -> (PerCpuOwner<Tree>, SuperBlock) {
        let owner = PerCpuOwner::new(Tree::new(Options::default()), false);
        let sb = SuperBlock::new(owner.share(), Box::new(Names), Budget::default().into(), true);
        (owner, sb)
    }

    /// Returns how often threads waited for the root until it was sharded. (Only the waits of one
    /// period of the clock count.)
    fn waits_before_sharding(sb: &SuperBlock, hashes: [u64; 2]) -> Option<u32> {
        (1..1_000_000).find(|_| sb.lock_names(sb.root(), hashes, true).names.iter().all(Option::is_some))
    }

    #[test]
    fn a_directory_is_split_where_renames_wait_for_it_and_only_there() {
        let (_owner, sb) = new_superblock();
        let (dir, hashes) = (sb.root(), [sb.hash(b"a"), sb.hash(b"b")]);
        (0..1000).for_each(|_| assert!(sb.lock_names(dir, hashes, false).names[0].is_none()));
        assert!(waits_before_sharding(&sb, hashes).is_some_and(|waits| waits >= super::super::MANY));
        // An operation that needs all names merges it.
        drop(sb.lock_dir(dir));
        assert!(sb.lock_names(dir, hashes, false).names[0].is_none());
    }

    #[test]
    fn names_of_one_stripe_have_one_lock_and_others_two() {
        let (_owner, sb) = new_superblock();
        let hash = |shard: u64| shard << 40;
        assert!(waits_before_sharding(&sb, [0, 0]).is_some());
        for [one, other] in [[3, 3], [3, 4], [4, 3]] {
            let locks = sb.lock_names(sb.root(), [hash(one), hash(other)], false);
            assert!(locks.names.iter().all(Option::is_some));
            assert_eq!(locks._locks[1].is_some(), one != other);
            // Another thread gets neither, but any third one.
            let others = [one, other, 5].map(|shard| sb.try_name(sb.root(), hash(shard)).is_some());
            assert_eq!(others, [false, false, true]);
        }
    }
}
