//! Stale attributes at the end of a walk: see `cache/fetch.rs`.

use crate::base::attr::Attr;
use crate::base::errno::Errno;
use crate::walk::ref_walk::Question;
use crate::walk::walk_end::WalkEnd;

impl WalkEnd<'_> {
    /// The attributes. In rcu-walk, stale attributes make the walk continue in ref-walk.
    ///
    /// # Errors
    /// Errors of the file system; `EAGAIN`, which the walk never returns.
    #[inline(always)]
    pub(crate) fn attr(&self) -> Result<Attr, Errno> {
        let inode = self.inode()?;
        inode.fresh_attr().map_or_else(|| self.stale_attr(), Ok)
    }

    /// The attributes, if they are stale.
    ///
    /// # Errors
    /// As for [`WalkEnd::attr`].
    #[cold]
    #[inline(never)]
    pub(crate) fn stale_attr(&self) -> Result<Attr, Errno> {
        self.answer(Question::Attributes)
    }
}
