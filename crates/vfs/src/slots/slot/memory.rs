//! The memory of one file system's slots.
//!
//! The invariants are in [slots](super).

use crate::slots::dentry::Dentry;
use prim::shared::PlainArc as Arc;
use sync::{OnceBox, Slab};

/// The slabs of a superblock, of which a tree may have thousands. A slot is borrowed from them, so it stays while the superblock does.
#[derive(Clone)]
pub(crate) struct SlotMemory {
    /// The number of the file system: `st_dev`.
    pub(crate) dev: u64,
    pub(crate) slabs: Arc<Both<Slab<Dentry>>>,
}

/// Of entries and their inodes; and of negative entries, made with the first one. Alone on its lines: each lookup reads it, and
/// its neighbours in memory may be written.
#[repr(align(64))]
pub(crate) struct Both<T: Send + Sync> {
    pub(crate) entries: T,
    pub(crate) negatives: OnceBox<T>,
}

impl<T: Send + Sync> Both<T> {
    /// Returns those that exist.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        core::iter::once(&self.entries).chain(self.negatives.get())
    }
}

impl SlotMemory {
    /// `is_first`: it may start with a huge page.
    pub(crate) fn new(dev: u64, is_first: bool) -> Self {
        let entries = if is_first { Slab::new() } else { Slab::small() };
        Self { dev, slabs: Arc::new(Both { entries, negatives: OnceBox::none() }) }
    }
}
