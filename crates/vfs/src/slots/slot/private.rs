//! A file system's own data of an inode, in the inode's slot. Its safety rests on the invariants of
//! [`super`].
//!
//! # How it is locked
//! No lock: the first thread that sets it wins, and the thread that ends the inode takes it out.

use crate::slots::inode::DeadInode;
use core::any::Any;
use prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
};

/// A file system's own data of one inode: set once, freed after the inode's last use.
pub(crate) struct Private(AtomicPtr<Box<dyn Any + Send + Sync>>);

impl Private {
    pub(crate) fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// Returns true if the inode has no data. The caller is the only user of the slot.
    pub(crate) fn is_none(&self) -> bool {
        self.0.load(Relaxed).is_null()
    }

    pub(crate) fn get(&self) -> Option<&(dyn Any + Send + Sync)> {
        // ORDERING: Acquire, pairs with the AcqRel exchange in `get_or_set`: the boxed value is seen.
        let data = self.0.load(Acquire);
        // SAFETY: invariant 3; the pointer came from `Box::into_raw`.
        unsafe { data.as_ref() }.map(|data| &**data)
    }

    pub(crate) fn get_or_set(&self, make: impl FnOnce() -> Box<dyn Any + Send + Sync>) -> &(dyn Any + Send + Sync) {
        if let Some(data) = self.get() {
            return data;
        }
        let made = Box::into_raw(Box::new(make()));
        // ORDERING: AcqRel, Release pairs with the Acquire load in `get`, Acquire and the failure's Acquire
        // with the exchange of the first thread.
        let data = match self.0.compare_exchange(core::ptr::null_mut(), made, AcqRel, Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: `made` came from `Box::into_raw` above, and no other thread has seen it.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
        // SAFETY: invariant 3.
        unsafe { &**data }
    }

    /// Takes the data out of a dead inode, and frees it.
    pub(crate) fn clear(&self, _dead: &DeadInode<'_>) {
        // Relaxed: no other thread refers to the inode; `Inode::put` ordered their last uses before this.
        let data = self.0.load(Relaxed);
        if data.is_null() {
            return;
        }
        self.0.store(core::ptr::null_mut(), Relaxed);
        // SAFETY: invariant 3: no thread has a reference to it; it came from `Box::into_raw`.
        drop(unsafe { Box::from_raw(data) });
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        // Relaxed: `&mut self` means that no other thread reads it.
        let data = self.0.load(Relaxed);
        if !data.is_null() {
            // SAFETY: invariant 3, as in `clear`: the slab is freed a grace period after its
            // superblock.
            drop(unsafe { Box::from_raw(data) });
        }
    }
}
