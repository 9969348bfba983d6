//! **dcache_rcu** (Maneesh Soni, Dipankar Sarma, Paul McKenney, 2001 and 2002; Linux 2.5.62): chains are searched without a
//! lock.
//!
//! Entries are freed after a grace period, so a search of a chain may run beside changes. The search takes the new lock
//! of the entry that it finds, checks again that the entry still has that name in that place, and counts it. The sequence
//! lock `rename_lock` shows that a search may have missed an entry because it moved meanwhile. The list of unused entries
//! became lazy: an entry that is used again stays on it until the next search for entries to free, which takes it off. So a
//! hit needs neither the list nor `dcache_lock`; that search, under `dcache_lock`, has the more to do.
//!
//! `dcache_lock` remains for changes, and for each `dput` that drops the last reference. The cost
//! that remains is shared by all paths: the lock and the count of each component, of `/` first of
//! all.

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

/// Searches the chain once for `name` in `dir`, and counts the entry if there is one. The caller is
/// in a read section.
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
