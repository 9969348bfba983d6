//! Dentries without a name, and inodes that are found without one.
//!
//! # What it is
//! A file that was made without a name (`O_TMPFILE`), or found by its id, has a dentry that no
//! lookup finds: it is on no chain, and its parent is the directory that it was made in, or the
//! root. Only its holders keep the dentry. A directory always has a name, since its `..` must lead
//! somewhere.
//!
//! An inode is found by its node, in the table of a file system that keeps its own names. The
//! inodes of another file system are all in use by dentries: there the number of its slot leads to
//! the inode. A file whose first name was removed, and which has others, costs a pass over all
//! slots. So does a file whose inode number alone is known.
//!
//! # How it is locked
//! No lock: a dentry is pinned inside a read section in which it was alive.
//!
//! # Where it comes from
//! Linux's `d_tmpfile`, `d_obtain_alias`, `d_find_any_alias`.

use crate::base::name::Named;
use crate::cache::budget::SlotKind;
use crate::cache::insert::{NewInodeArgs, begin};
use crate::cache::reclaim::FreeSlot;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::inode::{Inode, InodeRef};
use crate::slots::object::{Object, ObjectFlags};
use crate::slots::slot::{DentryRef, cold_part, dentry_beside};
use prim::atomic::Ordering::Relaxed;

/// Passes over all slots, if the file gets or loses names during each.
const PASSES: usize = 4;

impl SuperBlock {
    /// Returns a dentry with a new inode and no name, on the parent `dir`. The caller owns the
    /// count.
    pub(crate) fn add_unnamed(&self, slot: FreeSlot<'_>, dir: &Dentry, new: &NewInodeArgs<'_>) -> DentryRef {
        let dentry = begin(slot);
        let inode = self.begin_inode(dentry, new);
        self.end_unnamed(dentry, dir, inode)
    }

    /// As `add_unnamed`, below the root, unless the node has an inode already: then returns the
    /// slot, and that inode.
    pub(crate) fn add_unnamed_unless_there<'s>(
        &'s self,
        slot: FreeSlot<'s>,
        new: &NewInodeArgs<'_>,
    ) -> Result<DentryRef, (FreeSlot<'s>, InodeRef<'s>)> {
        let (dentry, inode) = self.begin_unless_there(slot, new)?;
        Ok(self.end_unnamed(dentry, self.root(), inode))
    }

    /// Returns a further dentry of `inode`, without a name, below the root.
    pub(crate) fn add_unnamed_alias(&self, slot: FreeSlot<'_>, inode: InodeRef<'_>) -> DentryRef {
        let dentry = begin(slot);
        cold_part(dentry).inode.slot_users.store(1, Relaxed);
        self.end_unnamed(dentry, self.root(), inode)
    }

    /// Ends the write section of a slot that becomes a dentry without a name.
    fn end_unnamed(&self, dentry: &Dentry, dir: &Dentry, inode: InodeRef<'_>) -> DentryRef {
        let (name, mode) = (format!("#{}", inode.attr().ino), inode.mode());
        dentry.set_entry(&self.domain, dir, Named::new(name.as_bytes(), 0));
        dentry.retire_name();
        dentry.set_object(Object::of(inode, mode, self.dir_flags).with(ObjectFlags::PARENT_PINNED));
        dir.count.get();
        let counted = DentryRef::first(self.slots(), dentry);
        dentry.seq.write_end();
        counted
    }

    /// Returns the number of the slot that `inode` lies in: the same as long as the inode lives.
    pub(crate) fn slot_number(&self, inode: &Inode) -> u32 {
        u32::try_from(self.slab_of(SlotKind::Entry).number_of(dentry_beside(inode))).unwrap_or(u32::MAX)
    }

    /// Takes a count on the dentry beside `inode`, if that is one of its names, or was.
    pub(crate) fn pin_beside(&self, inode: &Inode) -> Option<DentryRef> {
        self.pin_of(dentry_beside(inode), inode.node())
    }

    /// Takes a count on a dentry of the inode `node`, which lies in the slot with the number `slot`.
    pub(crate) fn pin_numbered(&self, slot: u32, node: u64) -> Option<DentryRef> {
        let beside = self.slab_of(SlotKind::Entry).numbered(slot as usize)?;
        let pinned = self.pin_of(beside, node);
        if pinned.is_some() { pinned } else { self.pin_alias(beside, node) }
    }

    /// Takes a count on another name: the dentry in the slot has ended, and the inode may have
    /// further names.
    #[cold]
    fn pin_alias(&self, beside: &Dentry, node: u64) -> Option<DentryRef> {
        let inode = &cold_part(beside).inode;
        // Relaxed: a hint, which saves a pass for a file that was removed. One user of a slot whose
        // dentry ended is its inode.
        let may_live = || inode.slot_users.load(Relaxed) == 1 && inode.node() == node && inode.is_alive();
        for _ in 0..PASSES {
            if !may_live() {
                break;
            }
            let found = self.pin_any(|inode| inode.node() == node);
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Takes a count on a dentry of the inode with the number `ino`. Looks at all slots.
    #[cold]
    pub(crate) fn pin_with_ino(&self, ino: u64) -> Option<DentryRef> {
        // Twice: a file may lose the name ahead of the search while it gets one behind it.
        let pass = || self.pin_any(|inode| inode.attr().ino == ino);
        pass().or_else(pass)
    }

    /// Takes a count on the first dentry, in the order of the slots, of an inode that `matches`.
    fn pin_any(&self, matches: impl Fn(&Inode) -> bool) -> Option<DentryRef> {
        let mut found = None;
        self.slab_of(SlotKind::Entry).for_each(|dentry| {
            if found.is_none() {
                found = self.pin_if(dentry, &matches);
            }
        });
        found
    }

    /// Takes a count on `dentry`, in use or not, if it is one of the inode `node`.
    fn pin_of(&self, dentry: &Dentry, node: u64) -> Option<DentryRef> {
        self.pin_if(dentry, |inode| inode.node() == node)
    }

    /// Takes a count on `dentry`, in use or not, if it is one of an inode that `matches`.
    fn pin_if(&self, dentry: &Dentry, matches: impl Fn(&Inode) -> bool) -> Option<DentryRef> {
        let is_it = || dentry.inode().is_some_and(&matches);
        let pinned = {
            // A dentry that is alive now may end in this section, but its slot is not returned to
            // the system.
            let _guard = self.domain.read();
            if dentry.count.is_dead() || !is_it() {
                return None;
            }
            self.pin(dentry)?
        };
        if is_it() {
            return Some(pinned);
        }
        // The slot got another user meanwhile.
        self.unpin(pinned);
        None
    }

    /// Returns whether a dentry that is held has a name, or is the root.
    pub(crate) fn is_named(&self, dentry: &Dentry) -> bool {
        dentry.object().is_hashed()
    }
}
