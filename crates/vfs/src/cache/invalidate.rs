//! Invalidation: a file system reports changes behind the caches.
//!
//! # What it is
//! Stale entries are *expired*: flagged, so that the next walk that reaches one revalidates it
//! before continuing. That takes no lock and waits for nothing. So a file system may invalidate at
//! any time, from any thread, also from inside a request that holds a directory's lock. Running
//! lookups are repeated, since the directories' counters of changes move.
//!
//! # What it is not
//! Removal: an expired entry stays in memory until it is revalidated or evicted. The root of a file
//! system has no name to revalidate; its attributes are requested anew.
//!
//! # Limitations
//! A lookup's answer that overtakes an invalidation is put into the cache and then marked stale. A
//! reader between these two steps may see it once after the invalidation has returned.
//! (`lab/report/tests/it/torture.rs` allows that case and no other.)
//!
//! # How it is locked
//! Entries are found under RCU. A slot that serves another name meanwhile is expired without need.
//!
//! # Where it comes from
//! FUSE's `notify_inval_entry` and `notify_inval_inode`; `d_invalidate` of network file systems.

use crate::cache::observer::Identity;
use crate::cache::superblock::SuperBlock;
use crate::fs::invalidator::Invalidate;
use crate::slots::dentry::Dentry;
use crate::slots::inode::{Inode, InodeRef};
use prim::atomic::{Ordering::SeqCst, fence};
use prim::shared::Weak;

impl Invalidate for Weak<SuperBlock> {
    fn entry_changed(&self, dir: u64, name: &[u8], is_removal: bool) {
        let Some(sb) = self.upgrade() else { return };
        sb.on_nodes(dir, |dir, dir_inode| {
            sb.versions.bump(dir);
            let guard = sb.domain.read();
            let entry = sb.lookup_rcu(&guard, dir, sb.named(name));
            // A stale entry may be of another file than the one that was removed.
            let is_fresh = entry.is_some_and(|entry| !entry.is_expired());
            entry.into_iter().for_each(|entry| entry.expire(&sb.paths));
            let inode = entry.and_then(Dentry::inode);
            let is_last = inode.is_some_and(|inode| inode.attr().nlink <= 1 && !inode.attr().is_dir());
            let inode = inode.map(|inode| Identity::of(&sb, inode));
            drop(guard);
            let dir = Identity::of(&sb, dir_inode);
            sb.observers.notify(&sb.watches, |one| match &inode {
                Some(inode) if is_removal && is_fresh && is_last => one.removed(&dir, name, inode),
                inode => one.entry(&dir, name, inode.as_ref()),
            });
        });
    }

    fn inode_changed(&self, node: u64) {
        let Some(sb) = self.upgrade() else { return };
        sb.begin_invalidation();
        // Running lookups may find it under any name.
        sb.versions.bump_all();
        sb.on_nodes(node, |dentry, inode| {
            dentry.expire(&sb.paths);
            inode.mark_stale();
            sb.observers.notify(&sb.watches, |one| one.inode(&Identity::of(&sb, inode)));
        });
    }

    fn all_changed(&self) {
        let Some(sb) = self.upgrade() else { return };
        sb.begin_invalidation();
        sb.versions.bump_all();
        sb.for_each(|dentry| {
            if dentry.object().is_hashed() {
                dentry.expire(&sb.paths);
            }
        });
        sb.observers.notify(&sb.watches, |one| one.all());
    }
}

impl SuperBlock {
    /// Counts an invalidation, before anything is marked stale.
    fn begin_invalidation(&self) {
        self.count_invalidation();
        // ORDERING: pairs with the fences of `is_invalidated` and of `SuperBlock::renew` (fetch.rs).
        fence(SeqCst);
    }

    /// Calls `f` with each cached dentry of the inode `node`, and the inode, which stays meanwhile.
    /// The slot of the dentry may serve another name meanwhile.
    fn on_nodes(&self, node: u64, f: impl Fn(&Dentry, &Inode)) {
        self.begin_invalidation();
        let beside = self.inodes.get(self, node).map(|inode| {
            let own = crate::slots::slot::dentry_beside(&inode);
            let only = !self.inodes.has_doubles()
                && inode.refs() == 2
                && own.inode().is_some_and(|at| core::ptr::eq::<Inode>(at, &*inode));
            if only {
                f(own, &inode);
            }
            self.put_inode(inode);
            only
        });
        if beside == Some(false) {
            // Several names, or another than its first: no list has them. Also names that are held after their removal.
            self.for_each(|dentry| {
                let Some(inode) = dentry.inode().filter(|inode| inode.node() == node).and_then(InodeRef::take) else {
                    return;
                };
                // The first look was at a slot that another inode may have begun to use.
                if inode.node() == node {
                    f(dentry, &inode);
                }
                self.put_inode(inode);
            });
        }
    }

    /// Marks the entry `name` of the directory `dir` stale in the dentry that the directory has
    /// now: it was replaced in the cache during a change of the name.
    #[cold]
    pub(crate) fn expire_name(&self, dir: &Inode, name: &[u8]) {
        self.for_each(|dentry| {
            if dentry.inode().is_some_and(|inode| inode.node() == dir.node()) {
                self.expire_entry(dentry, name);
            }
        });
    }

    /// Marks the entry `name` below a directory's dentry stale.
    pub(crate) fn expire_entry(&self, dir: &Dentry, name: &[u8]) {
        self.begin_invalidation();
        self.versions.bump(dir);
        let guard = self.domain.read();
        self.lookup_rcu(&guard, dir, self.named(name)).into_iter().for_each(|entry| entry.expire(&self.paths));
    }
}
