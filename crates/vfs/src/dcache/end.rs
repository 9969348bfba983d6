//! The end of dentries and inodes.

use crate::base::attr::{S_IFLNK, S_IFMT};
use crate::dcache::dentry::Dentry;
use crate::dcache::inode::{DeadInode, Inode};
use crate::dcache::object::{Object, ObjectFlags};
use crate::dcache::reclaim::SlotKind;
use crate::dcache::slot::{cold_part, dentry_beside};
use crate::dcache::superblock::SuperBlock;
use prim::atomic::Ordering::AcqRel;

impl SuperBlock {
    /// Returns the count of the name, and removes the name's share of its file's links.
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
        // It has a holder: from now on it holds its parent, for `..` and reverse paths.
        dir.count.get();
        dentry.update_object(|object| object.with(ObjectFlags::PARENT_PINNED));
        self.unpin_ref(dentry);
    }

    /// Kills `dentry`, which has no holder and no name, unless another thread takes a reference first.
    #[cold]
    pub(super) fn last_put(&self, dentry: &Dentry) {
        let mut dead = dentry;
        while dead.count.try_kill(0) {
            let parent = dead.object().pins_parent().then(|| dead.parent()).flatten();
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
        let Some(inode) = dentry.inode() else { return self.free_slot(dentry, SlotKind::Negative) };
        dentry.set_object(Object::NEGATIVE);
        // An inode that is reachable by node may get a link meanwhile.
        if core::ptr::eq(inode, &raw const cold_part(dentry).inode)
            && !self.inodes.is_kept()
            && let Some(dead) = inode.put_last()
        {
            self.evict(&dead);
            self.free_slot(dentry, SlotKind::Entry);
            return;
        }
        self.put_inode(inode);
        self.leave_slot(dentry);
    }

    /// Returns a reference on an inode that was found by its node.
    pub(crate) fn put_inode(&self, inode: &Inode) {
        if let Some(dead) = inode.put() {
            self.evict(&dead);
            self.leave_slot(dentry_beside(&dead));
        }
    }

    /// Ends one use of the slot of `dentry`: by the dentry, or by the inode beside it.
    fn leave_slot(&self, dentry: &Dentry) {
        // ORDERING: AcqRel, with itself by the slot's other user: the thread that frees the slot has seen the
        // other's last access.
        if cold_part(dentry).inode.slot_users.fetch_sub(1, AcqRel) == 1 {
            self.free_slot(dentry, SlotKind::Entry);
        }
    }

    fn evict(&self, inode: &DeadInode<'_>) {
        self.inodes.remove(&self.domain, inode);
        self.contain(|| self.fs.evict(inode));
        // Walks call the file system's check without a reference.
        let read_by = self.own_permissions.then_some(&self.domain);
        self.contain(|| inode.private.clear(inode, read_by));
        if inode.mode() & S_IFMT == S_IFLNK {
            if let Some(body) = inode.link_body.load(&self.domain.read()) {
                self.charge_body(body.len(), -1);
            }
            inode.link_body.set(&self.domain, None);
        }
        inode.clear_acl(&self.domain);
    }
}
