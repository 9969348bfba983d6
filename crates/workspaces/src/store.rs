//! A store of forks over one base.

use crate::diff::{Change, changes};
use crate::fork_fs::ForkFs;
use crate::lower::Lower;
use crate::state::{Shared, State};
use crate::tree::Tree;
use crate::usage::{ForkLimits, Usage};
use core::fmt;
use std::sync::Arc;
use vfs::{Context, Errno};

/// One fork of a tree. A clone is the same fork.
///
/// ```
/// use lightfoot_workspaces::{Fork, ForkLimits};
/// use vfs::{Base, Vfs};
///
/// let base = Vfs::new(ramfs::RamFs::new());
/// let trunk = Fork::over(base.context(), true)?;
/// let one = trunk.fork(ForkLimits::default())?;
/// let tree = Vfs::new(one.file_system());
/// tree.context().mkdir(Base::CWD, b"/new", 0o755)?;
/// // A fork of the fork has the directory, and the trunk does not.
/// let two = Vfs::new(one.fork(ForkLimits::default())?.file_system());
/// assert!(two.context().attr(Base::CWD, b"/new", true).is_ok());
/// assert!(trunk.changes()?.is_empty());
/// # Ok::<(), vfs::Errno>(())
/// ```
#[derive(Clone)]
pub struct Fork(pub(crate) Arc<State>);

impl fmt::Debug for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fork").field("usage", &self.0.usage).finish_non_exhaustive()
    }
}

impl Fork {
    /// Returns the trunk of a new store: a fork of the tree of `base` without a change. The store reads the tree with the rights
    /// of `base`. `is_fixed`: nothing changes the tree any more. Otherwise a fork copies a file whole when it first changes its
    /// contents.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn over(base: Context, is_fixed: bool) -> Result<Self, Errno> {
        let lower = Lower::new(base, is_fixed)?;
        let usage = Usage::new(ForkLimits::default(), (0, 0));
        State::new(Arc::new(Shared::new(lower)), Tree::default(), usage).map(|state| Self(Arc::new(state)))
    }

    /// Returns a new fork, which has the changes of this one. Calls that run at this moment are in it whole or not at all.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn fork(&self, limits: ForkLimits) -> Result<Self, Errno> {
        self.0.fork(limits).map(|state| Self(Arc::new(state)))
    }

    /// Returns the file system of the fork, to be mounted once.
    #[must_use]
    pub fn file_system(&self) -> ForkFs {
        ForkFs(self.0.clone())
    }

    /// Returns the changes since the fork was made, by path.
    ///
    /// # Errors
    /// The errors of the base.
    pub fn changes(&self) -> Result<Vec<Change>, Errno> {
        changes(&self.0)
    }

    /// Returns whether files or directories of the fork are open.
    pub(crate) fn has_open_files(&self) -> bool {
        self.0.has_open_files()
    }

    /// Returns the bytes and the inodes in use.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        self.0.usage.now()
    }
}
