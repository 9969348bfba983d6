//! A new fork of a fork, of its present state or of its beginning.

use crate::state::{Parent, Shared, Snapshot, State, give_back};
use crate::store::Fork;
use crate::tree::Tree;
use crate::upper::event::Event;
use crate::usage::{ForkLimits, Usage};
use std::sync::Arc;
use vfs::Errno;

impl Fork {
    /// Returns a new fork, which has the changes of this one. Calls that run at this moment are in it whole or not at all.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn fork(&self, limits: ForkLimits) -> Result<Self, Errno> {
        self.fork_dir(b"", limits)
    }

    /// As [`fork`](Self::fork); the new fork shows a directory of this one alone. Its own forks show no more.
    ///
    /// ```
    /// use lightfoot_workspaces::{Fork, ForkLimits};
    /// use vfs::{Base, Vfs};
    ///
    /// let base = Vfs::new(ramfs::RamFs::new());
    /// base.context().mkdir(Base::CWD, b"/src", 0o755)?;
    /// let part = Fork::over(base.context(), true)?.fork_dir(b"src", ForkLimits::default())?;
    /// Vfs::new(part.file_system()).context().mkdir(Base::CWD, b"/new", 0o755)?;
    /// assert_eq!(part.changes()?[0].to_string(), "A new");
    /// # Ok::<(), vfs::Errno>(())
    /// ```
    ///
    /// # Errors
    /// `ENOENT`; `ENOTDIR`: no directory has the path, which follows no links; the errors of the base.
    pub fn fork_dir(&self, dir: &[u8], limits: ForkLimits) -> Result<Self, Errno> {
        // The contents so far belong to neither.
        let (_closed, now) = self.0.snapshot();
        let is_trunk = matches!(self.0.parent, Parent::Base);
        let parent = if is_trunk { Parent::Trunk } else { Parent::Fork(Arc::downgrade(&self.0)) };
        self.0.fork_of(&now, dir, (limits, parent, false)).map(Self::of)
    }

    /// Returns a new fork of the tree at the beginning of this fork, or at its last commit. Its parent is the parent of this one.
    ///
    /// # Errors
    /// The errors of the base's root directory.
    pub fn fork_origin(&self, limits: ForkLimits) -> Result<Self, Errno> {
        // No commit changes the origin meanwhile.
        let _inside = self.0.enter();
        let then = self.0.origin.lock().clone();
        let parent = if let Parent::Base = self.0.parent { Parent::Trunk } else { self.0.parent.clone() };
        self.0.fork_of(&then, b"", (limits, parent, true)).map(Self::of)
    }
}

impl State {
    /// Returns the trunk of a new store, or of one that a directory keeps.
    pub(crate) fn trunk(shared: Arc<Shared>) -> Result<Self, Errno> {
        let usage = Usage::new(ForkLimits::default(), (0, 0));
        Self::new(shared, Tree::default(), usage, Parent::Base, (0, 0))
    }

    fn fork_of(
        &self,
        of: &Snapshot,
        dir: &[u8],
        (limits, parent, of_origin): (ForkLimits, Parent, bool),
    ) -> Result<Self, Errno> {
        let (tree, usage) = forked(of, limits);
        let (id, from) = (self.shared.next_fork(), if of_origin { self.from } else { self.id });
        let mut new = Self::new(self.shared.clone(), tree, usage, parent, (id, from))?;
        new.show(&[&self.dir, dir].join(&b'/'))?;
        self.log(false, || vec![Event::Begin { fork: id, from, like: self.id, of_origin, limits }])?;
        Ok(new)
    }
}

/// Returns a tree and its use as a new fork has them.
pub(crate) fn forked((of, used): &Snapshot, limits: ForkLimits) -> (Tree, Usage) {
    let (tree, ended) = of.fork();
    let usage = Usage::new(limits, *used);
    usage.settle(of.bytes, tree.bytes);
    ended.iter().for_each(|node| give_back(&usage, node));
    (tree, usage)
}
