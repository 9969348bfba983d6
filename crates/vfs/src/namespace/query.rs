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
    pub fn attr(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<Attr, Errno> {
        self.attr_as(base, path, follow, |attr| attr)
    }

    /// [`Context::attr`], made into the caller's own type by `make` before the last check.
    ///
    /// For front ends: inlined into the function that returns the result, it writes the attributes once, to their place. A copy
    /// on the way costs a stall, since it loads wide what was just stored narrow.
    ///
    /// # Errors
    /// Those of a walk.
    #[inline(always)]
    pub fn attr_as<R, E: From<Errno>>(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        make: impl Fn(Attr) -> R,
    ) -> Result<R, E> {
        self.resolve(base, path, follow, |found| Ok(make(found.inode()?.attr())))
    }

    /// Checks that this context may do `mask` (of `MAY_*`; 0: that the file is there): `faccessat2(2)` with `AT_EACCESS`.
    ///
    /// # Errors
    /// `EACCES`, those of a walk.
    pub fn access(&self, base: Base<'_>, path: &[u8], mask: u32) -> Result<(), Errno> {
        self.resolve(base, path, true, |found| {
            let attr = found.inode()?.attr();
            if mask == 0 { Ok(()) } else { found.cred.may(&attr, mask & 7) }
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
