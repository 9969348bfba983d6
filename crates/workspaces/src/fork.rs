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
        // The contents so far belong to neither.
        let (_closed, now) = self.0.snapshot();
        let is_trunk = matches!(self.0.parent, Parent::Base);
        let parent = if is_trunk { Parent::Trunk } else { Parent::Fork(Arc::downgrade(&self.0)) };
        self.0.fork_of(&now, limits, parent, false).map(Self::of)
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
        self.0.fork_of(&then, limits, parent, true).map(Self::of)
    }
}

impl State {
    /// Returns the trunk of a new store, or of one that a directory keeps.
    pub(crate) fn trunk(shared: Arc<Shared>) -> Result<Self, Errno> {
        let usage = Usage::new(ForkLimits::default(), (0, 0));
        Self::new(shared, Tree::default(), usage, Parent::Base, (0, 0))
    }

    fn fork_of(&self, of: &Snapshot, limits: ForkLimits, parent: Parent, of_origin: bool) -> Result<Self, Errno> {
        let (tree, usage) = forked(of, limits);
        let (id, from) = (self.shared.next_fork(), if of_origin { self.from } else { self.id });
        let new = Self::new(self.shared.clone(), tree, usage, parent, (id, from))?;
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
