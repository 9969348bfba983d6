//! The flags of an inode: `chattr(1)`.

use super::{Caller, Session};
use vfs::{Errno, InodeFlags};

impl Session {
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
        self.callers.with_groups(caller).set_inode_flags_held(&held, flags)
    }
}
