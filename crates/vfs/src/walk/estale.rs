//! Walks that begin again after `ESTALE`.
//!
//! # What it is
//! A lookup, or a request for attributes at the end of a walk, fails with `ESTALE` if another
//! client of the file system has replaced a directory or file of the path, and the cache still has
//! the old one. The walk then marks all names of its path as stale and begins again, once. So it
//! looks them all up again.
//!
//! # How it is locked
//! As [`ref_walk`](super::ref_walk).
//!
//! # Where it comes from
//! `filename_lookup` of Linux's `fs/namei.c`, which walks again with `LOOKUP_REVAL`.

use crate::base::errno::Errno;
use crate::mount::context::Context;
use crate::mount::place::{PathAt, PathRef};
use crate::walk::ref_walk::RefWalk;

impl Context {
    /// Begins a walk again, after `links` symbolic links, that will look all names of its path up.
    #[cold]
    pub(super) fn walk_again(&self, links: u32, at: PathAt<'_>, follow: bool) -> Result<RefWalk, Errno> {
        self.reach(links, at, follow, RefWalk::expire)?;
        RefWalk::from_start(self, links, at.base, at.path)
    }

    /// Looks all names of a path up again, after `settle` was called with the last place that the cache has. Returns the last place that
    /// the file system has. If the path leads to no file, that is a directory on the way.
    ///
    /// # Errors
    /// The errors of `settle`; `EXDEV` for an absolute path with `BENEATH`.
    pub(crate) fn look_again(
        &self,
        at: PathAt<'_>,
        follow: bool,
        settle: impl Fn(&PathRef) -> Result<(), Errno>,
    ) -> Result<PathRef, Errno> {
        let cached = self.reach(0, at, follow, RefWalk::expire)?;
        settle(&cached)?;
        self.reach(0, at, follow, |_| ())
    }

    /// Walks a path as far as it leads, and calls `each` after each step.
    fn reach(&self, links: u32, at: PathAt<'_>, follow: bool, each: impl Fn(&RefWalk)) -> Result<PathRef, Errno> {
        let mut walk = RefWalk::from_start(self, links, at.base, at.path)?;
        while !walk.is_done(follow) && walk.step(follow).is_ok() {
            each(&walk);
        }
        Ok(walk.place())
    }
}
