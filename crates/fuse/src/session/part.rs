//! The part of a tree that a session shows, and the rights with which it acts.

use std::fmt;
use vfs::{Base, Context, Credentials, Errno, PathRef, Vfs};

/// A part of a tree to serve: all of it, with the rights of each caller, or everything below a
/// directory, with the rights of a context.
pub struct Part {
    pub(super) context: Context,
    pub(super) root: PathRef,
    /// Everybody acts with these. `None`: everybody acts with their own rights.
    pub(super) acts_as: Option<Credentials>,
}

impl Part {
    /// Returns the whole tree. Each caller acts with its own rights.
    ///
    /// # Errors
    /// As for opening the root directory.
    pub fn whole(vfs: &Vfs) -> Result<Self, Errno> {
        let context = vfs.context();
        let root = context.hold(Base::CWD, b"/", true)?;
        Ok(Self { context, root, acts_as: None })
    }

    /// Returns the part at and below the directory `dir` from `base`. All callers act with the
    /// credentials that `context` has at this call: new files belong to its user, and an operation
    /// that this user may not do fails. Where the kernel checks permissions, it also checks the
    /// rights of each caller.
    ///
    /// # Errors
    /// As for a walk; `ENOTDIR`; `EACCES` without permission to search the directory.
    pub fn below(context: &Context, base: Base<'_>, dir: &[u8]) -> Result<Self, Errno> {
        let root = context.hold(base, dir, true)?;
        if !root.is_dir() {
            return Err(Errno::ENOTDIR);
        }
        Ok(Self { context: context.fork(), root, acts_as: Some(context.credentials()) })
    }
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("acts_as", &self.acts_as).finish_non_exhaustive()
    }
}
