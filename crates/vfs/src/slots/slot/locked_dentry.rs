//! The lock of a directory, from the read section of a walk to the operation.
//!
//! The invariants are in [slots](super).

use super::{Address, SlotMemory};
use crate::slots::dentry::Dentry;
use crate::slots::shard::{Shard, ShardList};
use core::ptr::NonNull;
use sync::rcu::ReadGuard;
use sync::{Mutex, MutexGuard};

/// A directory whose lock this thread took in the read section in which it found it, without its superblock.
/// [`LockedDentry::bind`] makes a guard of it.
///
/// A directory that has its name keeps its slot while it is locked: a removal needs the same lock.
#[must_use]
pub(crate) struct LockedDentry {
    dentry: Address,
    lock: NonNull<Mutex<()>>,
}

impl LockedDentry {
    /// Locks `dentry`. Fails if another thread has the lock, or if under the lock the dentry's
    /// sequence is not `seq`, in which it had its name.
    #[inline(always)]
    pub(crate) fn try_lock(memory: &SlotMemory, _guard: &ReadGuard<'_>, dentry: &Dentry, seq: u32) -> Option<Self> {
        let lock: &Mutex<()> = &dentry.lock;
        let held = lock.try_lock()?;
        if dentry.seq.retry(seq) {
            return None;
        }
        debug_assert!(dentry.object().is_hashed());
        core::mem::forget(held);
        Some(Self { dentry: Address::of(memory.dev, dentry), lock: NonNull::from(lock) })
    }

    /// Returns the dentry, and the guard of its lock, in their superblock's `memory`.
    #[inline(always)]
    pub(crate) fn bind(self, memory: &SlotMemory) -> (&Dentry, MutexGuard<'_, ()>) {
        // SAFETY: invariant 1: the memory stays while it is borrowed.
        let lock = unsafe { self.lock.as_ref() };
        // SAFETY: `try_lock` forgot the guard, in this thread, since this is not `Send`; and this value is used up.
        (self.dentry.get(memory), unsafe { lock.guard_again() })
    }
}

/// A guard without a borrow of its lock.
#[must_use]
pub(crate) struct DetachedGuard(NonNull<Mutex<()>>);

impl DetachedGuard {
    pub(crate) fn new(guard: MutexGuard<'_, ()>) -> Self {
        let lock = NonNull::from(MutexGuard::lock_of(&guard));
        core::mem::forget(guard);
        Self(lock)
    }

    /// Returns the guard of `lock`, which must be the lock that the guard was made of.
    pub(crate) fn bind(self, lock: &Mutex<()>) -> MutexGuard<'_, ()> {
        assert!(core::ptr::eq(self.0.as_ptr(), lock), "a guard of another lock");
        // SAFETY: `new` forgot the guard of this lock, in this thread, since this is not `Send`; and this value is used up.
        unsafe { lock.guard_again() }
    }
}

// SAFETY: a lock, a link and numbers, all of them atomics, of which zeros are the free lock, no link and zero. (The lock's unit has no
// bytes.)
unsafe impl sync::zeroed::Zeroes for Shard {}
// SAFETY: as above.
unsafe impl sync::zeroed::Zeroes for ShardList {}
