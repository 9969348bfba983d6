//! A file system's own data of an inode, in the inode's slot. Its safety rests on the invariants of
//! [`super`].
//!
//! # How it is locked
//! No lock: the first thread that sets it wins, and the thread that ends the inode takes it out.

use crate::slots::inode::DeadInode;
use core::any::Any;
use sync::OnceBox;

/// A file system's own data of one inode: set once, freed after the inode's last use, or with its slot.
pub(crate) struct Private(OnceBox<Box<dyn Any + Send + Sync>>);

impl Private {
    pub(crate) fn none() -> Self {
        Self(OnceBox::none())
    }

    pub(crate) fn get(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.0.get().map(|data| &**data)
    }

    pub(crate) fn get_or_set(&self, make: impl FnOnce() -> Box<dyn Any + Send + Sync>) -> &(dyn Any + Send + Sync) {
        &**self.0.get_or_make(make)
    }

    /// Takes the data out of a dead inode, and frees it.
    pub(crate) fn clear(&self, _dead: &DeadInode<'_>) {
        // SAFETY: invariant 3: no thread has a reference to it, or to the inode; `Inode::put` ordered their last uses.
        unsafe { self.0.clear() };
    }
}
