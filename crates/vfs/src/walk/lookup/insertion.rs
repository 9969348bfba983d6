//! Adds the answer to a lookup to the cache.
//!
//! As [`lookup`](super).

use super::Lookup;
use crate::base::errno::Errno;
use crate::cache::budget::SlotKind;
use crate::cache::reclaim::{FreeSlot, MayEvict};
use crate::fs::{NewInode, Valid};
use crate::slots::shard::Names;
use crate::slots::slot::dentry_beside;
use crate::slots::versions::Moment;

impl<'a> Lookup<'a, '_> {
    /// Adds a name that does not exist.
    pub(in crate::walk) fn insert_absent(self, may_evict: &mut MayEvict, names: Option<&Names<'_>>) {
        let Self { sb, dir, named } = self;
        // Without a free slot the name is looked up again next time.
        if let Ok(slot) = self.slot(SlotKind::Negative, may_evict, names) {
            sb.add_negative(names, slot, dir, named, sb.valid_in(dir));
        }
    }

    /// Returns a slot for the locked name. If its directory is locked, other entries of it may be
    /// evicted.
    ///
    /// # Errors
    /// As for [`SuperBlock::slot`](crate::cache::superblock::SuperBlock::slot).
    fn slot(self, kind: SlotKind, may_evict: &mut MayEvict, names: Option<&Names<'_>>) -> Result<FreeSlot<'a>, Errno> {
        if names.is_some() { self.sb.slot(kind) } else { self.sb.slot_in(kind, self.dir, may_evict) }
    }

    /// Adds a name from the file system's answer: of an inode that is cached by its node, or of a
    /// new inode. Returns the moment at which a new directory began, before another thread could
    /// find it.
    ///
    /// # Errors
    /// `ENOMEM`: the budget is used up and every entry is held.
    pub(in crate::walk) fn insert(
        self,
        may_evict: &mut MayEvict,
        names: Option<&Names<'_>>,
        new: &NewInode,
    ) -> Result<Option<Moment>, Errno> {
        let Self { sb, dir, named } = self;
        let slot = self.slot(SlotKind::Entry, may_evict, names)?;
        let began = sb.versions.moment_of(slot.dentry());
        let Err((slot, inode)) = sb.add_unless_there(names, slot, dir, named, &new.into()) else {
            return Ok(new.attr.is_dir().then_some(began));
        };
        let first = dentry_beside(&inode);
        if new.attr.is_dir() || inode.attr().kind() != new.attr.kind() {
            // A directory that moved behind the cache: its former name is stale.
            first.expire(&sb.paths);
            sb.inodes.note_double();
            sb.put_inode(inode);
            sb.add_in(&sb.domain.read(), names, slot, dir, named, &new.into());
            return Ok(None);
        }
        if new.valid != Valid::UntilInvalidated {
            // The file system may treat a file with several names otherwise than a file with one:
            // the first name's validity is from the time when the file had one.
            first.expire(&sb.paths);
        }
        sb.renew_inode(first, &inode, new, None);
        sb.add_alias(names, slot, dir, named, inode, new.valid);
        Ok(None)
    }
}
