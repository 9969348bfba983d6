//! Many changes of a fork's tree at once: a return to an earlier state, and the caches that must follow.
//!
//! # What it is
//! The tree is exchanged inside of the closed gate. Then the cached names and attributes that differ are marked stale, so that the
//! next walk that reaches one reads the new tree. A program that runs meanwhile may see the old tree in one place and the new one
//! in another, until the call returns.
//!
//! A file that a program has open stays for that program: a file that the new tree lacks loses its names, and ends with its last
//! close.

use crate::fork::forked;
use crate::lower::Held;
use crate::record::{Node, Part, Place, Record};
use crate::state::{Closed, Snapshot, State, count};
use crate::tree::Tree;
use std::collections::HashMap;
use std::sync::Arc;
use vfs::Errno;

/// With more changes than this all cached answers of the fork are marked stale.
const MANY: usize = 4096;

/// Names and nodes that differ between two trees.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    pub(crate) names: Vec<Place>,
    pub(crate) nodes: Vec<u64>,
}

impl Stale {
    /// Returns the difference of two trees.
    pub(crate) fn between(now: &Tree, then: &Tree) -> Self {
        let mut stale = Self::default();
        for (key, _, _) in now.map.diff(&then.map, Record::is_same) {
            match Part::of(key) {
                Some(Part::Name(dir, name)) => stale.names.push((dir, name.into())),
                Some(Part::Node(node)) => stale.nodes.push(node),
                _ => {}
            }
        }
        stale
    }

    /// Marks the cached answers of a fork stale. The caller holds none of its locks.
    pub(crate) fn mark(&self, state: &State) {
        let invalidators = state.invalidators.lock().clone();
        for invalidator in invalidators {
            if self.names.len() + self.nodes.len() > MANY {
                invalidator.all();
                continue;
            }
            self.names.iter().for_each(|(dir, name)| invalidator.entry(*dir, name));
            self.nodes.iter().for_each(|node| invalidator.inode(*node));
        }
    }
}

impl State {
    /// Returns the tree at the beginning of the fork, or at its last commit.
    pub(crate) fn origin(&self) -> Tree {
        self.origin.lock().0.clone()
    }

    /// Returns the tree and its use, for another fork, and the closed gate. Later writes of this fork copy contents first.
    pub(crate) fn snapshot(&self) -> (Closed<'_>, Snapshot) {
        let closed = self.close();
        self.begin_epoch();
        (closed, (self.tree.lock().clone(), self.usage.now()))
    }

    /// Returns the fork to an earlier state of it, or to the state of another fork.
    ///
    /// # Errors
    /// `ENOSPC`: the limits of this fork do not allow that state.
    pub(crate) fn roll_back(&self, target: &Snapshot) -> Result<(), Errno> {
        let stale = {
            let _closed = self.close();
            let mut tree = self.tree.lock();
            let (mut new, usage) = forked(target, self.usage.limits);
            new.list_after(&tree);
            let stale = Stale::between(&tree, &new);
            let left = |number: &u64| if new.node(*number).is_none() { tree.node(*number).cloned() } else { None };
            let left: Vec<(u64, Arc<Node>)> =
                stale.nodes.iter().filter_map(|number| Some((*number, left(number)?))).collect();
            let before = new.bytes;
            for (number, node) in left.iter().filter(|(number, node)| node.base.is_none() && self.is_open(*number)) {
                new.keep(*number, node);
                count(&usage, node);
            }
            usage.settle(before, new.bytes);
            let used = self.usage.now();
            self.usage.replace(usage.now())?;
            let logged = self.log(true, || self.changed(&tree, &new).into_iter().collect());
            logged.or_else(|errno| self.usage.replace(used).and(Err(errno)))?;
            self.hold_left(&tree, &stale, left);
            *tree = new;
            self.begin_epoch();
            stale
        };
        stale.mark(self);
        Ok(())
    }

    /// Holds the files of the base that have no record any more: programs may have them open.
    fn hold_left(&self, tree: &Tree, stale: &Stale, left: Vec<(u64, Arc<Node>)>) {
        let covered = |place: &Place| Some((tree.covered(place.0, &place.1)?.node, place.clone()));
        let mut places: HashMap<u64, Place> = stale.names.iter().filter_map(covered).collect();
        for (number, node) in left {
            let place = places.remove(&number).or_else(|| tree.place(number));
            if let (Some(file), Some(_)) = (node.base.clone(), &place) {
                self.held.lock().keep(number, Held { file, place });
            }
        }
    }
}
