//! The end of dentries and inodes.

use super::SuperBlock;
use crate::attr::{S_IFLNK, S_IFMT};
use crate::cache::Kind;
use crate::dentry::{Dentry, PARENT_PINNED};
use crate::inode::Inode;
use crate::slot::{dentry_beside, rest_of};
use prim::atomic::Ordering::AcqRel;

impl SuperBlock {
    /// Gives up the count that the name held, and the name's share of its file's links.
    pub(super) fn release(&self, dir: &Dentry, dentry: &Dentry, links: i32, now: i64) {
        let inode = dentry.inode();
        let dies = dentry.count.try_kill(1);
        match inode {
            Some(inode) if dies && links != 0 && inode.is_last() => inode.last_link_went(links),
            Some(inode) if links != 0 => inode.link_changed(-links, now),
            _ => {}
        }
        if dies {
            self.bury(dentry);
            return;
        }
        // Somebody holds it: from now on it counts on its parent, for `..` and reverse paths.
        dir.count.get();
        dentry.change_flags(0, PARENT_PINNED);
        self.unpin_ref(dentry);
    }

    /// Nobody holds `dentry` and it has no name. Unless somebody takes it up again, it dies.
    #[cold]
    pub(super) fn last_put(&self, dentry: &Dentry) {
        let mut dead = dentry;
        while dead.count.try_kill(0) {
            let parent = dead.has(PARENT_PINNED).then(|| dead.parent()).flatten();
            self.bury(dead);
            match parent {
                Some(parent) if parent.count.put() => dead = parent,
                _ => return,
            }
        }
    }

    /// Frees a dead dentry, and its inode with the last name.
    pub(crate) fn bury(&self, dentry: &Dentry) {
        self.charge_name(dentry.object(), dentry.len(), -1);
        dentry.clear_name(&self.domain);
        let Some(inode) = dentry.inode() else { return self.free_slot(dentry, Kind::Negative) };
        dentry.set_object(0);
        // An inode that lookups of other names find may get one meanwhile.
        if core::ptr::eq(inode, &raw const rest_of(dentry).inode) && !self.inodes.is_kept() && inode.is_last() {
            self.evict(inode);
            self.free_slot(dentry, Kind::Entry);
            return;
        }
        self.put_inode(inode);
        self.leave_slot(dentry);
    }

    /// Gives back a reference on an inode that was found by its node.
    pub(crate) fn put_inode(&self, inode: &Inode) {
        if inode.put() {
            self.evict(inode);
            self.leave_slot(dentry_beside(inode));
        }
    }

    /// One use less of the slot of `dentry`: by the dentry itself, or by the inode beside it.
    fn leave_slot(&self, dentry: &Dentry) {
        // ORDERING: AcqRel, with itself by the slot's other user: who frees the slot has seen the other's last access.
        if rest_of(dentry).inode.slot_users.fetch_sub(1, AcqRel) == 1 {
            self.free_slot(dentry, Kind::Entry);
        }
    }

    fn evict(&self, inode: &Inode) {
        self.inodes.remove(&self.domain, inode);
        self.fs.evict(inode);
        inode.private.clear();
        if inode.mode() & S_IFMT == S_IFLNK {
            if let Some(body) = inode.link_body.load(&self.domain.read()) {
                self.charge_body(body.len(), -1);
            }
            inode.link_body.set(&self.domain, None);
        }
        inode.clear_acl(&self.domain);
    }
}
