//! Extended attributes.

use super::{Caller, Session};
use vfs::{AclKind, Errno, SetXattr};

/// File capabilities (`capabilities(7)`).
const CAPABILITY: &[u8] = b"security.capability";

impl Session {
    /// Refuses attributes that hold an ACL, if ACLs are off.
    fn check_acl_option(&self, name: &[u8]) -> Result<(), Errno> {
        if !self.options.acl && AclKind::of_xattr(name).is_some() { Err(Errno::EOPNOTSUPP) } else { Ok(()) }
    }

    /// GETXATTR: the whole value.
    ///
    /// # Errors
    /// As for [`vfs::Context::get_xattr`]; `EOPNOTSUPP` for an ACL, if ACLs are off; `ESTALE`.
    pub fn getxattr(&self, caller: &Caller, node: u64, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.check_acl_option(name)?;
        let held = self.node(node)?;
        self.callers.looking(caller, |context| context.get_xattr_held(&held, name))
    }

    /// LISTXATTR: names, each followed by a NUL byte.
    ///
    /// # Errors
    /// As for [`vfs::Context::list_xattrs`]; `ESTALE`.
    pub fn listxattr(&self, caller: &Caller, node: u64) -> Result<Vec<u8>, Errno> {
        let held = self.node(node)?;
        let names = self.callers.looking(caller, |context| context.list_xattrs_held(&held))?;
        // The kernel does not filter the list, so names that only root may read are left out here.
        let is_listed = |name: &[u8]| caller.who.is_root() || !name.starts_with(b"trusted.");
        Ok(names.iter().filter(|name| is_listed(name)).flat_map(|name| name.iter().copied().chain([0])).collect())
    }

    /// SETXATTR, with the flags of `setxattr(2)`.
    ///
    /// # Errors
    /// `EINVAL` for other flags; as for [`vfs::Context::set_xattr`]; `EOPNOTSUPP` for an ACL, if
    /// ACLs are off; `ESTALE`.
    pub fn setxattr(&self, caller: &Caller, node: u64, name: &[u8], value: &[u8], flags: i32) -> Result<(), Errno> {
        let how = match flags {
            0 => SetXattr::Any,
            1 => SetXattr::Create,
            2 => SetXattr::Replace,
            _ => return Err(Errno::EINVAL),
        };
        self.check_acl_option(name)?;
        let held = self.node(node)?;
        self.callers.with_groups(caller).set_xattr_held(&held, name, value, how)
    }

    /// REMOVEXATTR.
    ///
    /// # Errors
    /// As for [`vfs::Context::remove_xattr`]; `EOPNOTSUPP` for an ACL, if ACLs are off; `ESTALE`.
    pub fn removexattr(&self, caller: &Caller, node: u64, name: &[u8]) -> Result<(), Errno> {
        self.check_acl_option(name)?;
        let held = self.node(node)?;
        if name == CAPABILITY {
            // The kernel takes it from a file that a user writes to, and lets no user remove it otherwise.
            return self.callers.looking(caller, |context| context.remove_xattr_held(&held, name));
        }
        self.callers.with_groups(caller).remove_xattr_held(&held, name)
    }
}
