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
use crate::gate::Closed;
use crate::lower::Held;
use crate::record::{Node, Part, Place, Record};
use crate::state::{Snapshot, State, count, used_by};
use crate::tree::Tree;
use crate::upper::event::Event;
use crate::usage::Usage;
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
            let (new, usage) = forked(target, self.usage.limits);
            exchange(vec![self.replace(new, usage)], true, None)?
        };
        stale.into_iter().for_each(|stale| stale.mark(self));
        Ok(())
    }

    /// As [`replace`](Self::replace), with the use of the tree counted anew.
    pub(crate) fn replace_counted(&self, new: Tree) -> Exchange<'_> {
        let usage = Usage::new(self.usage.limits, used_by(&new));
        self.replace(new, usage)
    }

    /// Prepares another tree for the closed fork. Files that programs have open stay.
    pub(crate) fn replace(&self, mut new: Tree, usage: Usage) -> Exchange<'_> {
        let old = self.tree.lock().clone();
        new.list_after(&old);
        let stale = Stale::between(&old, &new);
        let left = |number: &u64| if new.node(*number).is_none() { old.node(*number).cloned() } else { None };
        let left: Vec<(u64, Arc<Node>)> =
            stale.nodes.iter().filter_map(|number| Some((*number, left(number)?))).collect();
        let before = new.bytes;
        for (number, node) in left.iter().filter(|(number, node)| node.base.is_none() && self.is_open(*number)) {
            new.keep(*number, node);
            count(&usage, node);
        }
        usage.settle(before, new.bytes);
        Exchange { state: self, old, new, used: usage.now(), stale, left }
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

/// A tree that is about to take the place of another.
pub(crate) struct Exchange<'s> {
    state: &'s State,
    old: Tree,
    new: Tree,
    used: (u64, u64),
    stale: Stale,
    /// Nodes that the new tree does not have.
    left: Vec<(u64, Arc<Node>)>,
}

/// Exchanges the trees of closed forks, all or none. Returns what is stale in the caches of each. `more`: an event for the log.
///
/// # Errors
/// `ENOSPC`: the limits of a fork; the errors of the log.
pub(crate) fn exchange(all: Vec<Exchange<'_>>, is_removal: bool, more: Option<Event>) -> Result<Vec<Stale>, Errno> {
    let before: Vec<_> = all.iter().map(|one| one.state.usage.now()).collect();
    let used = all.iter().try_for_each(|one| one.state.usage.replace(one.used));
    let events = || all.iter().filter_map(|one| one.state.changed(&one.old, &one.new)).chain(more).collect();
    let logged = used.and_then(|()| all.first().map_or(Ok(()), |one| one.state.log(is_removal, events)));
    let restored = || all.iter().zip(before).try_for_each(|(one, used)| one.state.usage.replace(used));
    logged.or_else(|errno| restored().and(Err(errno)))?;
    let done = |Exchange { state, old, new, stale, left, .. }| {
        state.hold_left(&old, &stale, left);
        *state.tree.lock() = new;
        state.begin_epoch();
        stale
    };
    Ok(all.into_iter().map(done).collect())
}
