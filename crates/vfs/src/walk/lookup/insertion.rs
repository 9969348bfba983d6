//! Adds the answer to a lookup to the cache.
//!
//! As [`lookup`](super); own code.

use super::NameAt;
use crate::base::errno::Errno;
use crate::cache::acls::acls_of;
use crate::cache::reclaim::{FreeSlot, MayEvict, SlotKind};
use crate::cache::superblock::SuperBlock;
use crate::fs::{NewInode, Valid};
use crate::slots::slot::dentry_beside;
use crate::slots::versions::Moment;

/// Adds a name that does not exist.
pub(in crate::walk) fn insert_absent(sb: &SuperBlock, may_evict: &mut MayEvict, at: NameAt<'_, '_>) {
    let NameAt { dir, names, named } = at;
    // Without a free slot the name is looked up again next time.
    if let Ok(slot) = slot_at(sb, SlotKind::Negative, at, may_evict) {
        sb.add_negative(names, slot, dir, named, sb.valid_in(dir));
    }
}

/// A slot for a locked name. If its directory is locked, other entries of it may be evicted.
///
/// # Errors
/// As for [`SuperBlock::slot`].
fn slot_at<'s>(
    sb: &'s SuperBlock,
    kind: SlotKind,
    at: NameAt<'_, '_>,
    may_evict: &mut MayEvict,
) -> Result<FreeSlot<'s>, Errno> {
    if at.names.is_some() { sb.slot(kind) } else { sb.slot_in(kind, at.dir, may_evict) }
}

/// Adds a name from the file system's answer: of an inode that is cached by its node, or of a new one. Returns the moment at
/// which a new directory began: before another thread could find it.
///
/// # Errors
/// `ENOMEM`: the budget is used up and every entry is held.
pub(in crate::walk) fn insert(
    sb: &SuperBlock,
    may_evict: &mut MayEvict,
    at: NameAt<'_, '_>,
    new: &NewInode,
) -> Result<Option<Moment>, Errno> {
    let NameAt { dir, names, named } = at;
    let slot = slot_at(sb, SlotKind::Entry, at, may_evict)?;
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
    inode.learn_reply(&sb.paths, &new.attr, None);
    if new.valid != Valid::UntilInvalidated {
        // The file system may treat a file with several names otherwise than when it had one: the first name's validity is
        // from then.
        first.expire(&sb.paths);
    }
    sb.renew_acls(first, &inode, acls_of(new));
    sb.set_valid(&inode, new.valid);
    sb.add_alias(names, slot, dir, named, inode, new.valid);
    Ok(None)
}
