//! Many changes of a fork's tree at once: a return to an earlier state, and the caches that must follow.
//!
//! # What it is
//! The tree is exchanged inside of the closed gate. Then the cached names and attributes that differ are marked stale, so that the
//! next walk that reaches one reads the new tree. A program that runs meanwhile may see the old tree in one place and the new one
//! in another, until the call returns.
//!
//! A file that a program has open stays for that program: a file that the new tree lacks loses its names, and ends with its last
//! close.

use crate::lower::Held;
use crate::record::{Key, Node, Part, Record};
use crate::state::{State, count, give_back};
use crate::tree::Tree;
use crate::usage::Usage;
use std::collections::HashMap;
use std::sync::Arc;
use vfs::Errno;

/// With more changes than this all cached answers of the fork are marked stale.
const MANY: usize = 4096;

/// Names and nodes that differ between two trees.
#[derive(Debug, Default)]
pub(crate) struct Stale {
    names: Vec<(u64, Key)>,
    nodes: Vec<u64>,
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

    /// Adds a name.
    pub(crate) fn name(&mut self, dir: u64, name: &[u8]) {
        self.names.push((dir, name.into()));
    }

    /// Adds a node.
    pub(crate) fn node(&mut self, node: u64) {
        self.nodes.push(node);
    }

    /// Marks the cached answers of a fork stale. The caller holds none of its locks.
    pub(crate) fn mark(&self, state: &State) {
        for invalidator in state.invalidators() {
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

    /// Returns the tree and its use, for another fork to return to. Later writes of this fork copy contents first.
    pub(crate) fn snapshot(&self) -> (Tree, (u64, u64)) {
        let _closed = self.close();
        self.begin_epoch();
        (self.tree.lock().clone(), self.usage.now())
    }

    /// Returns the fork to an earlier state of it, or to the state of another fork.
    ///
    /// # Errors
    /// `ENOSPC`: the limits of this fork do not allow that state.
    pub(crate) fn roll_back(&self, (target, used): (Tree, (u64, u64))) -> Result<(), Errno> {
        let stale = {
            let _closed = self.close();
            let mut tree = self.tree.lock();
            let usage = Usage::new(self.usage.limits(), used);
            let (mut new, ended) = target.fork();
            usage.settle(target.bytes, new.bytes);
            ended.iter().for_each(|node| give_back(&usage, node));
            new.list_after(&tree);
            let before = new.bytes;
            let kept = tree.map.diff(&new.map, Record::is_same).filter_map(left).collect::<Vec<_>>();
            let kept = kept.into_iter().filter(|(number, node)| node.base.is_none() && self.is_open(*number));
            for (number, node) in kept {
                new.keep(number, &node);
                count(&usage, &node);
            }
            usage.settle(before, new.bytes);
            let used = self.usage.now();
            self.usage.replace(usage.now())?;
            let logged = self.log(true, || self.changed(&tree, &new).into_iter().collect());
            logged.or_else(|errno| self.usage.replace(used).and(Err(errno)))?;
            self.hold_changed(&tree, &new);
            let stale = Stale::between(&tree, &new);
            *tree = new;
            self.begin_epoch();
            stale
        };
        stale.mark(self);
        Ok(())
    }

    /// Holds the files of the base that have no record any more: programs may have them open.
    fn hold_changed(&self, tree: &Tree, new: &Tree) {
        let changed: Vec<_> = tree.map.diff(&new.map, Record::is_same).collect();
        let covered = |record: Option<&Record>| match record? {
            Record::Whiteout(covered) => Some(covered.node),
            Record::Entry(entry) => entry.covered.map(|covered| covered.node),
            _ => None,
        };
        let place = |(key, old, _): &(&Key, Option<&Record>, Option<&Record>)| match Part::of(key)? {
            Part::Name(dir, name) => Some((covered(*old)?, (dir, Key::from(name)))),
            _ => None,
        };
        let mut places: HashMap<u64, (u64, Key)> = changed.iter().filter_map(place).collect();
        for (number, node) in changed.into_iter().filter_map(left) {
            let place = places.remove(&number).or_else(|| tree.place(number));
            if let (Some(file), Some(_)) = (node.base.clone(), &place) {
                self.held.lock().keep(number, Held { file, place });
            }
        }
    }
}

/// Returns the node of a difference, if only the first tree has its record.
fn left((key, old, new): (&Key, Option<&Record>, Option<&Record>)) -> Option<(u64, Arc<Node>)> {
    match (Part::of(key)?, old?, new) {
        (Part::Node(number), Record::Node(node), None) => Some((number, node.clone())),
        _ => None,
    }
}
