//! The trunk of a store, and a new fork of a fork, of its present state or of its beginning.

use crate::state::{Parent, Shared, State, give_back};
use crate::tree::Tree;
use crate::upper::event::Event;
use crate::usage::{ForkLimits, Usage};
use std::sync::Arc;
use vfs::Errno;

impl State {
    /// Returns the trunk of a new store, or of one that a directory keeps.
    pub(crate) fn trunk(shared: Arc<Shared>) -> Result<Self, Errno> {
        let usage = Usage::new(ForkLimits::default(), (0, 0));
        Self::new(shared, Tree::default(), usage, Parent::Base, (0, 0))
    }

    /// Returns the state of a new fork of this one.
    pub(crate) fn fork(self: &Arc<Self>, limits: ForkLimits) -> Result<Self, Errno> {
        let _closed = self.close();
        // The contents so far belong to neither.
        self.begin_epoch();
        let now = (self.tree.lock().clone(), self.usage.now());
        let parent = if let Parent::Base = self.parent { Parent::Trunk } else { Parent::Fork(Arc::downgrade(self)) };
        self.fork_of(&now, limits, parent, false)
    }

    /// Returns the state of a new fork of the tree at the beginning of this one, or at its last commit, with the same parent.
    pub(crate) fn fork_origin(&self, limits: ForkLimits) -> Result<Self, Errno> {
        // No commit changes the origin meanwhile.
        let _inside = self.enter();
        let then = self.origin.lock().clone();
        let parent = if let Parent::Base = self.parent { Parent::Trunk } else { self.parent.clone() };
        self.fork_of(&then, limits, parent, true)
    }

    fn fork_of(
        &self,
        (of, used): &(Tree, (u64, u64)),
        limits: ForkLimits,
        parent: Parent,
        of_origin: bool,
    ) -> Result<Self, Errno> {
        let (tree, ended) = of.fork();
        let usage = Usage::new(limits, *used);
        usage.settle(of.bytes, tree.bytes);
        ended.iter().for_each(|node| give_back(&usage, node));
        let (id, from) = (self.shared.next_fork(), if of_origin { self.from } else { self.id });
        let new = Self::new(self.shared.clone(), tree, usage, parent, (id, from))?;
        self.log(false, || vec![Event::Begin { fork: id, from, like: self.id, of_origin, limits }])?;
        Ok(new)
    }
}
