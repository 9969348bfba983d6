//! The lock of a directory, from the read section of a walk to the operation.
//!
//! The invariants are those of the [slots](super).

use super::Address;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::stripe::{Names, Shelf, Stripe, StripeAt};
use core::marker::PhantomData;
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
    /// Locks `dentry`, if it can be locked at once, and then still has the sequence `seq`, in which it had its name.
    #[inline(always)]
    pub(crate) fn try_lock(sb: &SuperBlock, _guard: &ReadGuard<'_>, dentry: &Dentry, seq: u32) -> Option<Self> {
        let lock: &Mutex<()> = &dentry.lock;
        let held = lock.try_lock()?;
        if dentry.seq.retry(seq) {
            return None;
        }
        debug_assert!(dentry.object().is_hashed());
        core::mem::forget(held);
        Some(Self { dentry: Address::of(sb.dev, dentry), lock: NonNull::from(lock) })
    }

    /// The dentry, and the guard of its lock, in their superblock `sb`.
    #[inline(always)]
    pub(crate) fn bind(self, sb: &SuperBlock) -> (&Dentry, MutexGuard<'_, ()>) {
        // SAFETY: invariant 1: the superblock's memory stays while it is borrowed.
        let lock = unsafe { self.lock.as_ref() };
        // SAFETY: `try_lock` forgot the guard, in this thread, since this is not `Send`; and this value is used up.
        (self.dentry.get(sb), unsafe { lock.guard_again() })
    }
}

/// The same for a name in a split directory.
///
/// A split directory that has its name keeps its slot while one of its stripes is locked: a removal needs all of them.
#[must_use]
pub(crate) struct LockedName {
    dir: Address,
    at: StripeAt,
    /// The guard belongs to this thread.
    of: PhantomData<*const ()>,
}

impl LockedName {
    /// Locks the name with the hash `hash` in `dir`, if the directory is split, and has the sequence `seq` then.
    pub(crate) fn enter(sb: &SuperBlock, guard: &ReadGuard<'_>, dir: &Dentry, seq: u32, hash: u64) -> Option<Self> {
        let (held, at) = sb.splits_of_changes()?.enter(guard, dir, seq, hash)?;
        core::mem::forget(held);
        Some(Self { dir: Address::of(sb.dev, dir), at, of: PhantomData })
    }

    /// The directory, the guard and the stripe, in their superblock `sb`.
    pub(crate) fn bind(self, sb: &SuperBlock) -> (&Dentry, MutexGuard<'_, ()>, Names<'_>) {
        let splits = sb.splits.as_deref().expect("entered before");
        // SAFETY: `enter` forgot the guard, in this thread, since this is not `Send`; and this value is used up.
        let guard = unsafe { splits.lock_at(self.at).guard_again() };
        (self.dir.get(sb), guard, splits.names(self.at))
    }
}

// SAFETY: a lock, a link and numbers, all of them atomics, of which zeros are the free lock, no link and zero. (The lock's unit has no
// bytes.)
unsafe impl sync::zeroed::Zeroes for Stripe {}
// SAFETY: as above.
unsafe impl sync::zeroed::Zeroes for Shelf {}
