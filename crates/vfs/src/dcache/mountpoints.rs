//! The mount points: the number of mounts on each dentry, in all namespaces.

use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::dcache::dentry::Dentry;
use crate::dcache::object::ObjectFlags;
use crate::dcache::superblock::SuperBlock;
use std::collections::BTreeMap;

/// The number of mounts on each dentry that has any.
#[derive(Default)]
pub(crate) struct Mountpoints {
    on: BTreeMap<usize, u32>,
}

/// The address of a dentry as a key of tables.
fn address(dentry: &Dentry) -> usize {
    core::ptr::from_ref(dentry) as usize
}

impl Mountpoints {
    /// Counts a mount on `dentry` of `sb`, and makes walks look for it.
    ///
    /// # Errors
    /// `ENOENT`: its name was removed.
    pub(crate) fn mark(&mut self, sb: &SuperBlock, dentry: &Dentry) -> Result<(), Errno> {
        let parent = dentry.parent().ok_or(Errno::ENOENT)?;
        let _held = sb.ranks.lock(Rank::Directory, &parent.lock);
        // A name that moves meanwhile stays hashed; a removal needs this lock, or came before.
        if !dentry.object().is_hashed() {
            return Err(Errno::ENOENT);
        }
        *self.on.entry(address(dentry)).or_insert(0) += 1;
        dentry.update_flags(|object| object.with(ObjectFlags::MOUNTED));
        Ok(())
    }

    /// Counts one mount less on `dentry`.
    pub(crate) fn unmark(&mut self, dentry: &Dentry) {
        let key = address(dentry);
        if let Some(count) = self.on.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.on.remove(&key);
                dentry.update_flags(|object| object.without(ObjectFlags::MOUNTED));
            }
        }
    }
}
