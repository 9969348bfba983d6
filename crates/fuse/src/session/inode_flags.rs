//! The flags of an inode: `chattr(1)`.
//!
//! Since Linux 5.13 the kernel checks that the caller owns the file, and may change the flags that only
//! `CAP_LINUX_IMMUTABLE` may change. Before, it sent the call without a check, as any `ioctl(2)`. So the
//! session checks the caller, without capabilities unless it is root, until the transport notes that the
//! kernel checks.
//!
//! # Where it comes from
//! `fuse_fileattr_set` in Linux's `fs/fuse/ioctl.c`, and `fuse_do_ioctl` before it.

use super::{Caller, Session};
use std::sync::atomic::Ordering::Relaxed;
use vfs::{Errno, InodeFlags};

impl Session {
    /// Notes whether the kernel checks callers of [`set_inode_flags`](Self::set_inode_flags).
    pub fn note_checked_flags(&self, checks: bool) {
        // Relaxed: a flag by itself, set before the first request.
        self.kernel_checks_flags.store(checks, Relaxed);
    }

    /// IOCTL with `FS_IOC_GETFLAGS`.
    ///
    /// # Errors
    /// As for [`vfs::Context::inode_flags_held`]; `ESTALE`.
    pub fn inode_flags(&self, caller: &Caller, node: u64) -> Result<InodeFlags, Errno> {
        let held = self.node(node)?;
        self.callers.looking(caller, |context| context.inode_flags_held(&held))
    }

    /// IOCTL with `FS_IOC_SETFLAGS`.
    ///
    /// # Errors
    /// As for [`vfs::Context::set_inode_flags_held`]; `ESTALE`.
    pub fn set_inode_flags(&self, caller: &Caller, node: u64, flags: InodeFlags) -> Result<(), Errno> {
        let held = self.node(node)?;
        // Relaxed: as in `note_checked_flags`.
        let is_checked = self.kernel_checks_flags.load(Relaxed);
        let callers = &self.callers;
        let context = if is_checked { callers.with_groups(caller) } else { callers.unprivileged(caller) };
        context.set_inode_flags_held(&held, flags)
    }
}
