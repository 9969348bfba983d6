//! stat, access, readlink: queries, without a count on anything.

use crate::base::access::credentials::{MAY_EXEC, MAY_WRITE};
use crate::base::attr::{Attr, S_IFLNK, S_IFMT};
use crate::base::errno::Errno;
use crate::base::packed_attr::PackedAttr;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt, PathRef};
use crate::slots::slot::inode_of;
use crate::walk::permission::{may, mount_allows};
use crate::walk::rcu_walk::Step;
use crate::walk::walk_end::WalkEnd;

impl Context {
    /// Attributes of the file at `path`: `stat(2)`, or `lstat(2)` without `follow`. In rcu-walk nothing
    /// shared is written.
    ///
    /// # Errors
    /// The errors of a walk.
    pub fn attr(&self, base: Base<'_>, path: &[u8], follow: bool) -> Result<Attr, Errno> {
        self.attr_as(base, path, follow, |attr, _| attr.unpack())
    }

    /// [`Context::attr`], converted to the caller's type by `make` before the last check; with `st_dev`,
    /// which is unique in this tree.
    ///
    /// For front ends: inlined into the function that returns the result, it writes the attributes
    /// once, to their final place. A copy would stall, with wide loads over fresh narrow stores.
    ///
    /// # Errors
    /// The errors of a walk.
    #[inline(always)]
    pub fn attr_as<R, E: From<Errno>>(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        make: impl Fn(PackedAttr, u64) -> R,
    ) -> Result<R, E> {
        let quick = |at: &Step<'_>| Some(make(inode_of(at.dentry, at.object)?.packed()?, at.mount.get().dev));
        self.resolve_after(0, base, path, follow, quick, |found| Ok(make(attr_at(found)?, found.mount.get().dev)))
    }

    /// Checks that this context may do `mask` (of `MAY_*`; 0: that the file exists): `faccessat2(2)` with
    /// `AT_EACCESS`, and with `AT_SYMLINK_NOFOLLOW` without `follow`.
    ///
    /// # Errors
    /// `EACCES`; `EROFS` to write on a read-only mount; errors of a walk.
    pub fn access(&self, base: Base<'_>, path: &[u8], follow: bool, mask: u32) -> Result<(), Errno> {
        self.resolve(base, path, follow, |found| {
            let attr = found.attr()?;
            if mask == 0 {
                return Ok(());
            }
            mount_allows(found.mount.get(), &attr, mask & MAY_EXEC)?;
            may(found, attr.rights(), mask & 7)?;
            mount_allows(found.mount.get(), &attr, mask & MAY_WRITE)
        })
    }

    /// Returns the text of the symbolic link at `path`: `readlink(2)`. Does not change the access
    /// time.
    ///
    /// # Errors
    /// `EINVAL` if it is not a symbolic link; errors of a walk.
    pub fn read_link(&self, base: Base<'_>, path: &[u8]) -> Result<Vec<u8>, Errno> {
        self.unless_stale(&[PathAt { base, path }], false, &|| {
            let body = self.resolve(base, path, false, |found| {
                let inode = found.inode()?;
                if inode.mode() & S_IFMT != S_IFLNK {
                    return Err(Errno::EINVAL);
                }
                match inode.link_body.load(found.guard) {
                    Some(body) => Ok(Ok(body.to_vec())),
                    None => found.pin().map(Err),
                }
            })?;
            body.or_else(|held: PathRef| held.sb().link_body(held.dentry(), &self.request()))
        })
    }
}

/// Returns the attributes at the end of a walk: out of line, since [`Context::attr_as`] has a
/// shorter way to them.
#[cold]
#[inline(never)]
fn attr_at(found: &WalkEnd<'_>) -> Result<PackedAttr, Errno> {
    Ok(PackedAttr::from(&found.attr()?).with_birth(found.inode()?.birth()))
}
