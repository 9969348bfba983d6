//! The lock of a directory, from the read section of a walk to the operation.
//!
//! The invariants are those of the [slots](super).

use super::Address;
use crate::dcache::dentry::Dentry;
use crate::dcache::superblock::SuperBlock;
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
