//! Stale attributes at the end of a walk: see `dcache/fetch.rs`.

use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::dcache::fallback::Fallback;
use crate::dcache::inode::Inode;
use crate::walk::WalkEnd;

impl WalkEnd<'_> {
    /// The attributes. In rcu-walk, stale attributes make the walk continue in ref-walk.
    ///
    /// # Errors
    /// Errors of the file system; `EAGAIN`, which the walk never returns.
    #[inline(always)]
    pub(crate) fn attr(&self) -> Result<Attr, Errno> {
        let inode = self.inode()?;
        if inode.is_stale() { self.stale_attr(inode) } else { Ok(inode.attr()) }
    }

    /// The attributes of an inode whose attributes are stale.
    ///
    /// # Errors
    /// As for [`WalkEnd::attr`].
    #[cold]
    #[inline(never)]
    pub(crate) fn stale_attr(&self, inode: &Inode) -> Result<Attr, Errno> {
        if self.is_held() { self.sb().attr_now(inode) } else { Err(self.fall_back(Fallback::Attributes)) }
    }
}
