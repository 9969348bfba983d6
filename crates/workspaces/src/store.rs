//! A store of forks over one base.

use crate::diff::{Change, changes};
use crate::fork_fs::ForkFs;
use crate::lower::Lower;
use crate::page::Pages;
use crate::record::MADE;
use crate::state::{Parent, Shared, State};
use std::sync::Arc;
use sync::pages::PagePool;
use vfs::{Context, Errno};

/// One fork of a tree. A clone is the same fork. Its methods that make forks are in `fork`, and the methods of a commit in `commit`
/// and `publish`.
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
#[derive(Clone, Debug)]
pub struct Fork(pub(crate) Arc<State>);

impl Fork {
    /// Returns the trunk of a new store: a fork of the tree of `base` without a change. The store reads the tree with the rights
    /// of `base`. `is_fixed`: nothing changes the tree any more. Otherwise a fork copies a file whole when it first changes its
    /// contents.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn over(base: Context, is_fixed: bool) -> Result<Self, Errno> {
        let (lower, pages) = (Lower::new(base, is_fixed)?, Pages::Memory(PagePool::new()));
        State::trunk(Arc::new(Shared::new(lower, pages, None, (MADE, 1, 1)))).map(Self::of)
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
        let now = self.0.tree.lock().clone();
        changes(&self.0, &now, &self.0.origin())
    }

    /// Returns the changes that lead from another fork of the same store to this one, by path.
    ///
    /// # Errors
    /// `EINVAL` for a fork of another store, or that shows another directory; the errors of the base.
    pub fn changes_since(&self, other: &Self) -> Result<Vec<Change>, Errno> {
        self.check_like(other)?;
        let [now, then] = [self, other].map(|fork| fork.0.tree.lock().clone());
        changes(&self.0, &now, &then)
    }

    /// Returns the fork to the state of its beginning, or of its last commit; with `to`, to the present state of that fork of the
    /// same store. The fork loses its other changes. An open file that the state lacks stays for the program that has it open.
    ///
    /// # Errors
    /// `EINVAL` for a fork of another store, or that shows another directory; `ENOSPC`: the limits of the fork do not allow that state.
    pub fn roll_back(&self, to: Option<&Self>) -> Result<(), Errno> {
        let Some(to) = to else {
            let origin = self.0.origin.lock().clone();
            return self.0.roll_back(&origin);
        };
        self.check_like(to)?;
        if Arc::ptr_eq(&self.0, &to.0) {
            return Ok(());
        }
        let (_, target) = to.0.snapshot();
        self.0.roll_back(&target)
    }

    fn check_like(&self, other: &Self) -> Result<(), Errno> {
        let is_like = Arc::ptr_eq(&self.0.shared, &other.0.shared) && self.0.dir == other.0.dir;
        if is_like { Ok(()) } else { Err(Errno::EINVAL) }
    }

    /// Returns whether `child` was made from this fork.
    pub(crate) fn is_parent_of(&self, child: &Self) -> bool {
        matches!(&child.0.parent, Parent::Fork(parent) if core::ptr::eq(parent.as_ptr(), Arc::as_ptr(&self.0)))
    }

    /// Returns the bytes and the inodes in use.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        self.0.usage.now()
    }
}
