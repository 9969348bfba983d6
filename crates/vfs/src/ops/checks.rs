//! Parts of operations that serve both cases: a locked directory, and a locked name.

use crate::base::errno::Errno;
use crate::fs::After;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;

/// Checks that an entry that will be removed or moved is not a mount point.
///
/// # Errors
/// `EBUSY`.
pub(crate) fn check_no_mount(entry: &Dentry) -> Result<(), Errno> {
    if entry.object().is_mountpoint() { Err(Errno::EBUSY) } else { Ok(()) }
}

/// The marks of [`add_link`] and [`end_link`] together.
pub(super) const LINK_MARKS: u32 = 2;

/// Counts a further name of a file, before the file system is called. Atomic under the inode's lock, so that a file cannot lose its
/// last name and gain another. Where the file system reports links, the copy may be wrong, and the file system checks that.
///
/// # Errors
/// `ENOENT`: the file has lost its last name.
pub(super) fn add_link(inode: &Inode, now: i64) -> Result<(), Errno> {
    let may_be_first = inode.is_linkable() || inode.is_reported();
    inode.update(|attr| {
        if attr.nlink == 0 && !may_be_first {
            return Err(Errno::ENOENT);
        }
        attr.nlink += 1;
        attr.ctime = now;
        Ok(())
    })
}

/// Ends the change that [`add_link`] began, by the file system's result. `ctime`: the time of the
/// last change before.
pub(super) fn end_link(inode: &Inode, linked: Result<After, Errno>, ctime: i64) -> Result<After, Errno> {
    match &linked {
        Err(_) => inode.link_changed(-1, ctime),
        Ok(_) => {
            inode.clear_linkable();
            // The copy changed before the file system. A request between the two changes cleared
            // the mark, and its answer lacks the new name.
            if inode.is_reported() {
                inode.mark_stale();
            }
        }
    }
    linked
}
