//! The inodes of a file system that keeps its own names, by node.
//!
//! # What it is
//! A hash table over the inodes in the slots. Two names whose lookups return one node become two
//! dentries of one inode, and a file system can invalidate by node. A file system that leaves its
//! names to the cache needs no table: each of its names came through the cache.
//!
//! # How it is locked
//! A search runs under RCU. It then takes a reference on the inode, unless the last reference was
//! put. The lock of a node's bucket decides which of several threads inserts its inode
//! ([`Inodes::add_unless_there`]), so that one node has one inode. An inode is inserted before its
//! life begins, so the thread whose inode was not inserted has nothing to take back.
//!
//! A node's ACLs are replaced under the lock of the node. Nodes share these locks by their hash.
//!
//! # Where it comes from
//! Linux's `inode_hashtable`, `iget5_locked`.

use crate::cache::superblock::SuperBlock;
use crate::slots::inode::{Inode, InodeRef};
use crate::slots::slot::{InodeTable, dentry_beside, find_inode, link_inode, link_inode_unless_there, node_hash};
use prim::atomic::{AtomicBool, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use sync::Mutex;
use sync::rcu::RcuDomain;

/// See the [module documentation](self).
pub(crate) struct Inodes {
    /// Shared, to outlive the superblock by a grace period.
    pub(super) table: Option<Arc<InodeTable>>,
    /// Whether a node may have two inodes: of a directory that moved behind the cache.
    doubles: AtomicBool,
    /// By the node's hash. Side by side: a request to the file system comes before each use.
    locks: Box<[Mutex<()>]>,
}

impl Inodes {
    /// Returns the table of a file system that keeps its own names, or none. It begins with few buckets, and grows.
    pub(crate) fn new(domain: &RcuDomain, is_kept: bool, width: usize) -> Self {
        Self {
            table: is_kept.then(|| Arc::new(InodeTable::new(domain, 4 * width, ()))),
            doubles: AtomicBool::new(false),
            locks: (0..width).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Returns the lock of a node's ACLs, which it shares with others.
    pub(crate) fn lock(&self, node: u64) -> &Mutex<()> {
        // The table takes the low bits.
        &self.locks[(node_hash(node) >> 32) as usize & (self.locks.len() - 1)]
    }

    /// Notes that a node now has two inodes.
    pub(crate) fn note_double(&self) {
        // Relaxed: it is never cleared, and a concurrent invalidation finds one of them or both.
        self.doubles.store(true, Relaxed);
    }

    /// Returns whether a node may have two inodes.
    pub(crate) fn has_doubles(&self) -> bool {
        self.doubles.load(Relaxed)
    }

    /// Returns whether inodes can be found by node.
    pub(crate) fn is_kept(&self) -> bool {
        self.table.is_some()
    }

    #[inline(always)]
    pub(crate) fn add(&self, domain: &RcuDomain, inode: &Inode) {
        if let Some(table) = &self.table {
            link_inode(table, domain, &domain.read(), inode, node_hash(inode.node()));
        }
    }

    /// Adds `inode`, whose life has not begun, unless its node already has an inode. Returns that
    /// other inode, whose first name is, or was, in the cache.
    pub(crate) fn add_unless_there<'s>(&self, sb: &'s SuperBlock, inode: &Inode) -> Option<InodeRef<'s>> {
        let table = self.table.as_ref()?;
        loop {
            match link_inode_unless_there(sb.slots(), &sb.domain, table, inode, node_hash(inode.node())) {
                Ok(()) => return None,
                Err(Some(there)) if there.node() == inode.node() => {
                    // The thread that added it stores the flags and the expiry of the first name in
                    // this write section. The caller's changes there must come after it.
                    let _is_published = dentry_beside(&there).seq.begin();
                    return Some(there);
                }
                Err(Some(other)) => sb.put_inode(other),
                Err(None) => prim::thread::yield_now(),
            }
        }
    }

    #[inline(always)]
    pub(crate) fn remove(&self, domain: &RcuDomain, inode: &Inode) {
        if let Some(table) = &self.table {
            let removed = table.remove(domain, &domain.read(), inode, node_hash(inode.node()));
            debug_assert!(removed, "an inode that lives is in the table of its file system");
        }
    }

    /// Returns a reference on the inode of `node` in `sb`, whose table this is.
    pub(crate) fn get<'s>(&self, sb: &'s SuperBlock, node: u64) -> Option<InodeRef<'s>> {
        let is_it = |inode: &Inode| inode.node() == node && inode.is_alive();
        let found = find_inode(sb.slots(), &sb.domain.read(), self.table.as_ref()?, node_hash(node), is_it)?;
        if found.node() != node {
            sb.put_inode(found);
            return None;
        }
        Some(found)
    }
}
