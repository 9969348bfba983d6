//! Whether a file has flags that the VFS obeys: `chattr(1)`.
//!
//! # What it is
//! One bit of the mode. The file system keeps the flags; operations that they may forbid request
//! them if the bit is set ([`flags_allow`](crate::walk::permission::flags_allow)). A host obeys its
//! own flags, so the bit of a file of the host may be missing.
//!
//! # How it is locked
//! The bit changes in a write section of the inode's sequence lock. An operation that read it
//! before continues.
//!
//! # Where it comes from
//! `ioctl_iflags(2)`; `IS_IMMUTABLE` and `IS_APPEND` in Linux.

use super::{HAS_ACL, HAS_FLAGS, Inode};
use crate::base::flags::InodeFlags;
use prim::atomic::Ordering::Relaxed;

impl Inode {
    /// Returns whether it has flags that the VFS obeys.
    pub(crate) fn has_flags(&self) -> bool {
        self.mode.load(Relaxed) & HAS_FLAGS != 0
    }

    /// Returns whether more than the mode decides on permissions.
    pub(crate) fn has_acl_or_flags(&self) -> bool {
        self.mode.load(Relaxed) & (HAS_ACL | HAS_FLAGS) != 0
    }

    /// Notes which flags its file system has of it.
    pub(crate) fn note_flags(&self, flags: InodeFlags) {
        let _held = self.seq.write_lock();
        // Relaxed: inside the sequence lock's write section.
        let mode = self.mode.load(Relaxed) & !HAS_FLAGS;
        self.mode.store(if flags.intersects(InodeFlags::OBEYED) { mode | HAS_FLAGS } else { mode }, Relaxed);
    }
}
