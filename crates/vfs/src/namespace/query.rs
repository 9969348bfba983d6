//! stat, access, readlink: questions, answered without a count on anything.

use super::Base;
use crate::attr::{Attr, S_IFLNK};
use crate::context::Context;
use crate::errno::Errno;

impl Context {
    /// Attributes of what `path` leads to: `stat(2)`, or `lstat(2)` without `follow`. In rcu-walk nothing shared is written.
    ///
    /// # Errors
    /// Those of a walk.
    #[inline(always)]
    pub fn attr(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<Attr, Errno> {
        self.resolve(base, path, follow, |found| Ok(found.inode()?.attr()))
    }

    /// Checks that this context may do `mask` (of `MAY_*`; 0: that the file is there): `faccessat2(2)` with `AT_EACCESS`.
    ///
    /// # Errors
    /// `EACCES`, those of a walk.
    pub fn access(&self, base: Base<'_>, path: &[u8], mask: u32) -> Result<(), Errno> {
        self.resolve(base, path, true, |found| {
            let attr = found.inode()?.attr();
            if mask == 0 { Ok(()) } else { found.state.cred.may(&attr, mask & 7) }
        })
    }

    /// What the symbolic link at `path` says: `readlink(2)`. The access time stays as it is.
    ///
    /// # Errors
    /// `EINVAL` if it is no symbolic link; those of a walk.
    pub fn read_link(&self, base: Base<'_>, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.resolve(base, path, false, |found| {
            let inode = found.inode()?;
            if inode.attr().kind() != S_IFLNK {
                return Err(Errno::EINVAL);
            }
            inode.link_body.load(found.guard).map(<[u8]>::to_vec).ok_or(Errno::EIO)
        })
    }
}
