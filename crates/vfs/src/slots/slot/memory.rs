//! The memory of one file system's slots.
//!
//! The invariants are in [slots](super).

use crate::slots::dentry::Dentry;
use prim::shared::PlainArc as Arc;
use sync::Slab;

/// The slabs of a superblock. A slot is borrowed from them, so it stays while the superblock does.
#[derive(Clone)]
pub(crate) struct SlotMemory {
    /// The number of the file system: `st_dev`.
    pub(crate) dev: u64,
    /// Of entries, and their inodes; of negative entries.
    pub(crate) slabs: [Arc<Slab<Dentry>>; 2],
}

impl SlotMemory {
    /// `is_first`: it may start with a huge page.
    pub(crate) fn new(dev: u64, is_first: bool) -> Self {
        let entries = if is_first { Slab::new() } else { Slab::small() };
        Self { dev, slabs: [entries, Slab::small()].map(Arc::new) }
    }
}
