//! The inodes of a file system that keeps its own names, by what it knows them by.
//!
//! # What it is
//! A hash table over the inodes in the slots, so that two names whose lookups answer with one node become two dentries of one
//! inode, and so that a file system can say by node what changed. A file system that leaves its names to the cache needs none:
//! every name of its came through the cache.
//!
//! # How it is locked
//! Finding: RCU, then a reference unless the last one went. Adding follows a find that found nothing, under
//! `lock`, so that one node has one inode.
//!
//! # Where it comes from
//! Linux's `inode_hashtable`, `iget5_locked`.

use crate::inode::Inode;
use crate::slot::{InodeTable, link_inode};
use crate::superblock::SuperBlock;
use prim::atomic::{AtomicBool, Ordering::Relaxed};
use prim::shared::Arc;
use sync::Mutex;
use sync::rcu::RcuDomain;

/// See the [module documentation](self).
pub(crate) struct Inodes {
    table: Option<Arc<InodeTable>>,
    /// A node may have had two inodes: a directory that moved behind the cache.
    doubles: AtomicBool,
    /// Held from looking for a node to adding it.
    pub(crate) lock: Mutex<()>,
}

/// Buckets of a new table.
const MIN_BUCKETS: usize = 64;

/// The hash of a node.
pub(crate) fn node_hash(node: u64) -> u64 {
    let mixed = (node ^ node >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 29
}

impl Inodes {
    /// The table of a file system that keeps its own names, or none.
    pub(crate) fn new(is_kept: bool) -> Self {
        Self {
            table: is_kept.then(|| Arc::new(InodeTable::new(MIN_BUCKETS, ()))),
            doubles: AtomicBool::new(false),
            lock: Mutex::new(()),
        }
    }

    /// Says that a node has two inodes from now on.
    pub(crate) fn note_double(&self) {
        // Relaxed: it is never taken back, and who pushes at this moment finds one of them or both.
        self.doubles.store(true, Relaxed);
    }

    /// Whether a node may have two inodes.
    pub(crate) fn has_doubles(&self) -> bool {
        self.doubles.load(Relaxed)
    }

    /// Whether inodes can be found by node.
    pub(crate) fn is_kept(&self) -> bool {
        self.table.is_some()
    }

    pub(crate) fn add(&self, domain: &RcuDomain, inode: &Inode) {
        if let Some(table) = &self.table {
            link_inode(table, domain, &domain.read(), inode, node_hash(inode.node()));
        }
    }

    pub(crate) fn remove(&self, domain: &RcuDomain, inode: &Inode) {
        if let Some(table) = &self.table {
            let removed = table.remove(domain, &domain.read(), inode, node_hash(inode.node()));
            debug_assert!(removed, "an inode that lives is in the table of its file system");
        }
    }

    /// Calls `f` with the inode of `node`, on which a reference was taken: it is `f`'s to keep or to give back.
    pub(crate) fn get<R>(&self, sb: &SuperBlock, node: u64, f: impl FnOnce(&Inode) -> R) -> Option<R> {
        let table = self.table.as_ref()?;
        let guard = sb.domain.read();
        let found = table.find_slow(&guard, node_hash(node), |inode| inode.node() == node && inode.is_alive())?;
        if !found.try_get() {
            return None;
        }
        if found.node() != node {
            sb.put_inode(found);
            return None;
        }
        Some(f(found))
    }

    /// The table itself, to outlive the superblock by a grace period.
    pub(crate) fn table(&self) -> Option<Arc<InodeTable>> {
        self.table.clone()
    }
}
