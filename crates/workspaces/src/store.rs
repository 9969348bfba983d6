//! A store of forks over one base.

use crate::commit::{Commit, CommitOptions, commit};
use crate::diff::{Change, changes};
use crate::fork_fs::ForkFs;
use crate::lower::Lower;
use crate::publish::{Recovered, recover};
use crate::state::{Parent, Shared, State};
use crate::usage::ForkLimits;
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
        State::trunk(Arc::new(Shared::new(Lower::new(base, is_fixed)?))).map(Self::of)
    }

    /// Returns a new fork, which has the changes of this one. Calls that run at this moment are in it whole or not at all.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn fork(&self, limits: ForkLimits) -> Result<Self, Errno> {
        self.0.fork(limits).map(Self::of)
    }

    /// Returns a new fork of the tree at the beginning of this fork, or at its last commit. Its parent is the parent of this one.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn fork_origin(&self, limits: ForkLimits) -> Result<Self, Errno> {
        self.0.fork_origin(limits).map(Self::of)
    }

    pub(crate) fn of(state: State) -> Self {
        let state = Arc::new(state);
        state.shared.add(&state);
        Self(state)
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
        changes(&self.0, &self.0.origin())
    }

    /// Returns the changes that lead from another fork of the same store to this one, by path.
    ///
    /// # Errors
    /// `EINVAL` for a fork of another store; the errors of the base.
    pub fn changes_since(&self, other: &Self) -> Result<Vec<Change>, Errno> {
        if !Arc::ptr_eq(&self.0.shared, &other.0.shared) {
            return Err(Errno::EINVAL);
        }
        let then = other.0.tree.lock().clone();
        changes(&self.0, &then)
    }

    /// Makes the changes of the fork changes of the tree that it was made from; see [`Commit`]. The changes of a fork of the trunk are
    /// written into the base. All or nothing: the base has them after a crash, or a later
    /// [`recover`](Self::recover) completes or removes them. The fork stays, and its changes so far are not
    /// [changes](Self::changes) any more.
    ///
    /// # Errors
    /// `EINVAL`: this is the trunk; `ESTALE`: the parent was discarded; `ENOSPC`: the limits of the parent; `EBUSY`: another commit
    /// to the base runs or was cut off; the errors of the base.
    pub fn commit(&self, options: CommitOptions) -> Result<Commit, Errno> {
        commit(&self.0, options)
    }

    /// Completes or undoes a commit to the base that was cut off, by a crash for example. To be called before the first fork is
    /// made, while no other process has forks of the base.
    ///
    /// # Errors
    /// `EIO`: the journal of the commit cannot be read; the errors of the base.
    pub fn recover(&self) -> Result<Recovered, Errno> {
        recover(&self.0.shared.lower)
    }

    /// Returns the fork to the state of its beginning, or of its last commit; with `to`, to the present state of that fork of the
    /// same store. The fork loses its other changes. An open file that the state lacks stays for the program that has it open.
    ///
    /// # Errors
    /// `EINVAL` for a fork of another store; `ENOSPC`: the limits of the fork do not allow that state.
    pub fn roll_back(&self, to: Option<&Self>) -> Result<(), Errno> {
        let Some(to) = to else {
            let origin = self.0.origin.lock().clone();
            return self.0.roll_back(origin);
        };
        if !Arc::ptr_eq(&self.0.shared, &to.0.shared) {
            return Err(Errno::EINVAL);
        }
        if Arc::ptr_eq(&self.0, &to.0) { Ok(()) } else { self.0.roll_back(to.0.snapshot()) }
    }

    /// Returns whether `child` was made from this fork.
    pub(crate) fn is_parent_of(&self, child: &Self) -> bool {
        matches!(&child.0.parent, Parent::Fork(parent) if core::ptr::eq(parent.as_ptr(), Arc::as_ptr(&self.0)))
    }

    /// Returns how many times files and directories of the fork are open.
    pub(crate) fn open_files(&self) -> u64 {
        self.0.open_files()
    }

    /// Returns the bytes and the inodes in use.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        self.0.usage.now()
    }
}
