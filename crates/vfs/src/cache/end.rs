//! The end of dentries and inodes.

use crate::base::attr::{S_IFLNK, S_IFMT};
use crate::cache::budget::SlotKind;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::inode::{DeadInode, Inode, InodeRef};
use crate::slots::object::ObjectFlags;
use crate::slots::slot::{DeadDentry, DentryPtr, UnusedSlot, cold_part, leave_inode};
use prim::atomic::{AtomicBool, Ordering::Relaxed};
use sync::Mutex;

/// Dentries whose last count was put inside a read section.
#[derive(Default)]
pub(crate) struct LatePuts {
    dentries: Mutex<Vec<DentryPtr>>,
    /// Whether there are any. Written under the lock.
    is_used: AtomicBool,
}

impl LatePuts {
    fn add(&self, dentry: DentryPtr) {
        let mut dentries = self.dentries.lock();
        dentries.push(dentry);
        // Relaxed: a hint for other threads; this one sees it after its read section.
        self.is_used.store(true, Relaxed);
    }

    fn take(&self) -> Vec<DentryPtr> {
        let mut dentries = self.dentries.lock();
        self.is_used.store(false, Relaxed);
        core::mem::take(&mut *dentries)
    }
}

impl SuperBlock {
    /// Returns the count of the name, and removes the name's share of its file's links.
    #[inline(always)]
    pub(super) fn release(&self, dir: &Dentry, dentry: &Dentry, links: i32, now: i64) {
        let inode = dentry.inode();
        let dead = DeadDentry::kill(dentry, 1);
        match inode {
            Some(inode) if dead.is_some() && links != 0 && inode.is_last() => inode.last_link_went(links),
            Some(inode) if links != 0 => inode.link_changed(-links, now),
            _ => {}
        }
        if let Some(dead) = dead {
            self.bury(dead);
            return;
        }
        // The dentry has a holder, so it must hold its parent, for `..` and reverse paths.
        dir.count.get();
        dentry.update_object(|object| object.with(ObjectFlags::PARENT_PINNED));
        self.unpin_ref(dentry);
    }

    /// Kills `dentry`, which has no holder and no name, unless another thread takes a reference first.
    ///
    /// The end of a dentry calls the file system. So inside a read section, unless the file system
    /// never waits, the end is left to the next put outside of a section, the next step of a
    /// ref-walk or the end of the superblock, whichever comes first. Until that moment the dentry
    /// has a count of zero.
    #[cold]
    pub(super) fn last_put(&self, dentry: &Dentry) {
        if !self.never_waits && self.domain.is_reading() {
            self.late_puts.add(DentryPtr::of(self.slots(), dentry));
            return;
        }
        self.end_late_puts();
        self.end_unused(dentry);
    }

    /// Ends the dentries whose last count was put inside a read section, unless they are used again. Not inside one.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_late_puts(&self) {
        if self.late_puts.is_used.load(Relaxed) {
            self.late_puts.take().iter().for_each(|dentry| self.end_unused(dentry.get(self.slots())));
        }
    }

    fn end_unused(&self, dentry: &Dentry) {
        let mut at = dentry;
        while let Some(dead) = DeadDentry::kill(at, 0) {
            let parent = at.object().has(ObjectFlags::PARENT_PINNED).then(|| at.parent()).flatten();
            self.bury(dead);
            match parent {
                Some(parent) if parent.count.put() => at = parent,
                _ => return,
            }
        }
    }

    /// Frees a dead dentry, and its inode with the last name.
    #[inline(always)]
    pub(crate) fn bury(&self, mut dentry: DeadDentry<'_>) {
        self.charge_name(dentry.object(), dentry.len(), -1);
        dentry.clear_name(&self.domain);
        let Some(mut inode) = InodeRef::of_dead(&mut dentry) else {
            return self.free_slot(dentry.leave_alone(), SlotKind::Negative);
        };
        // An inode that is reachable by node may get a link meanwhile.
        if core::ptr::eq::<Inode>(&*inode, &raw const cold_part(&dentry).inode) && !self.inodes.is_kept() {
            inode = match inode.put_last() {
                Ok(dead) => {
                    self.evict(&dead);
                    return self.free_slot(dentry.leave_with(dead), SlotKind::Entry);
                }
                Err(inode) => inode,
            };
        }
        self.put_inode(inode);
        self.free_unused(dentry.leave());
    }

    /// Gives back a reference on an inode.
    pub(crate) fn put_inode(&self, inode: InodeRef<'_>) {
        if let Some(dead) = inode.put() {
            self.evict(&dead);
            self.free_unused(leave_inode(dead));
        }
    }

    /// Frees a slot of an entry, if neither the dentry nor the inode in it uses it any more.
    fn free_unused(&self, slot: Option<UnusedSlot<'_>>) {
        slot.into_iter().for_each(|slot| self.free_slot(slot, SlotKind::Entry));
    }

    #[inline(always)]
    fn evict(&self, inode: &DeadInode<'_>) {
        self.inodes.remove(&self.domain, inode);
        // Outside of `contain`, which catches panics: a test must fail if this is called inside a
        // read section.
        let fs = self.fs();
        self.contain(|| fs.evict(inode));
        if inode.private.get().is_some() {
            self.contain(|| inode.private.clear(inode));
        }
        if inode.mode() & S_IFMT == S_IFLNK {
            if let Some(body) = inode.link_body.load(&self.domain.read()) {
                self.charge_body(body.len(), -1);
            }
            inode.link_body.set(&self.domain, None);
        }
        inode.clear_acl(&self.domain);
    }
}
