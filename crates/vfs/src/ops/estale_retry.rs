//! Operations that fail with `ESTALE`: the cache has a file that the file system does not have any
//! more, or a directory.
//!
//! # What it is
//! Another client of the file system has replaced a file or a directory of the path, and the cache
//! still has the old one. So the operation looks all names of its path up again and runs again, as
//! long as they lead to other files than before. Linux does the same once (`retry_estale`,
//! `LOOKUP_REVAL`), for every system call with a path. Walks by themselves do it, too
//! ([`walk::estale`](crate::walk::estale)).
//!
//! The new look first waits for a change of the name that is under way in this cache: the file
//! system may have made it, and the cache not yet.
//!
//! # What it is not
//! For operations on a held place or an open file: they have no path. `ESTALE` then means that the
//! file was removed.
//!
//! # How it is locked
//! No lock is held between the steps. The directory's lock, or the lock of the name, is only waited
//! for.
//!
//! # Where it comes from
//! `include/linux/namei.h` of Linux.

use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::mount::context::Context;
use crate::mount::place::{Base, PathAt, PathRef};

/// How often an operation is tried again whose files others replace each time.
const TRIES: u32 = 32;

impl Context {
    /// Calls `f` with the file at `path`, held, and again as [`Context::again`].
    #[inline]
    pub(crate) fn on_held<R>(
        &self,
        base: Base<'_>,
        path: &[u8],
        follow: bool,
        f: impl Fn(&PathRef) -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let once = || f(&self.hold(base, path, follow)?);
        self.unless_stale(&[PathAt { base, path }], follow, &once)
    }

    /// Runs an operation on paths, and again as [`Context::again`].
    #[inline]
    pub(crate) fn unless_stale<R>(
        &self,
        paths: &[PathAt<'_>],
        follow: bool,
        operation: &dyn Fn() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match operation() {
            Err(Errno::ESTALE) => self.again(paths, follow, operation),
            done => done,
        }
    }

    /// Runs an operation again that has failed with `ESTALE`, after all names of its paths were looked up again, as long as they then
    /// lead to other files. `follow`: a link at the end of a path is followed.
    #[cold]
    #[inline(never)]
    pub(crate) fn again<R>(
        &self,
        paths: &[PathAt<'_>],
        follow: bool,
        operation: &dyn Fn() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        if paths.iter().any(|at| at.base.resolve.contains(Resolve::CACHED)) {
            return Err(Errno::ESTALE);
        }
        // Held, so that no other file gets their identity.
        let mut before: Option<Vec<PathRef>> = None;
        for _ in 0..TRIES {
            let now = paths
                .iter()
                .map(|at| self.look_again(*at, follow, |place| self.end_change(place)))
                .collect::<Result<Vec<_>, _>>()?;
            let is_same = |one: &PathRef, other: &PathRef| one.identity() == other.identity();
            if before.is_some_and(|before| before.iter().zip(&now).all(|(one, other)| is_same(one, other))) {
                break;
            }
            before = Some(now);
            match operation() {
                Err(Errno::ESTALE) => {}
                done => return done,
            }
        }
        Err(Errno::ESTALE)
    }

    /// Waits for a change of the name that is under way.
    fn end_change(&self, place: &PathRef) -> Result<(), Errno> {
        let Some((dir, name)) = place.parent_and_name() else { return Ok(()) };
        let sb = place.sb();
        let deadline = Deadline::at(self.request().deadline);
        if sb.lock_remote_names([(dir.dentry(), sb.hash(&name)); 2], deadline)?.is_none() {
            drop(sb.lock_dir(dir.dentry()));
        }
        Ok(())
    }
}
