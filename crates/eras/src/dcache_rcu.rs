//! **dcache_rcu** (Maneesh Soni, Dipankar Sarma, Paul McKenney, 2001 and 2002; Linux 2.5.62): chains are searched without a
//! lock.
//!
//! Entries are freed after a grace period, so a search of a chain may run beside changes. What it finds it locks by the
//! entry's own new lock, looks again whether it is still that name in that place, and counts. An entry that was missed
//! because it moved meanwhile is told by `rename_lock`, a sequence lock. The list of unused entries became lazy: what is used
//! again stays on it until somebody looks for what to free, so that a hit needs no list and no `dcache_lock`.
//!
//! `dcache_lock` remains for changes, and for each `dput` that drops the last reference. What hurts now is shared by all
//! paths: the lock and the count of each component, of `/` first of all.

use crate::tree::Tree;
use crate::tree::count::Count;
use crate::tree::dentry::{Dentry, UNHASHED};
use crate::tree::mount::{Mounts, Uncrossed};
use crate::tree::mutex::Sleeping;
use crate::tree::name::Name;
use crate::tree::one_lock::{Lookup, OneLock};
use crate::tree::renames::Renames;
use core::marker::PhantomData;
use sync::{RawLock, TasLock};

/// The era of 2002.
pub(crate) type DcacheRcu = LockFreeSearch<TasLock, Uncrossed>;

/// The search without `dcache_lock`, with the spinlock, the mounts and the mutex of some year. See the [module
/// documentation](self).
pub(crate) struct LockFreeSearch<R, M, X = Sleeping>(PhantomData<(R, M, X)>);

impl<R: RawLock + 'static, M: Mounts, X: RawLock + 'static> Lookup for LockFreeSearch<R, M, X> {
    type Spin = R;
    type Mutex = X;
    type Mounts = M;
    const IS_LOCK_FREE: bool = true;

    fn child(tree: &Tree<OneLock<Self>>, dir: u32, name: &Name<'_>) -> Option<u32> {
        let _guard = tree.domain.read();
        loop {
            let start = tree.scheme.renames.begin();
            let found = search(tree, dir, name);
            if found.is_some() || !tree.scheme.renames.retry(start) {
                return found;
            }
        }
    }
}

/// One search of the chain, in a read section.
fn search<L: Lookup>(tree: &Tree<OneLock<L>>, dir: u32, name: &Name<'_>) -> Option<u32> {
    tree.chain(dir, name.hash).find(|&at| {
        if !tree.resembles(at, dir, name) {
            return false;
        }
        let entry = tree.entry(at);
        let _held = entry.count().lock();
        let is_it = entry.parent() == dir && !entry.has(UNHASHED) && tree.is_named(at, name);
        if is_it {
            entry.count().get();
        }
        is_it
    })
}
