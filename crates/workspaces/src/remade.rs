//! Files of the base in whose place a commit has made others, and the numbers of both.
//!
//! # What it is
//! A node of a fork is a number, and the number of a file of the base is its inode number. A directory that is
//! made anew keeps its node in all forks. The inode number of a file that has left is free: the next file
//! with it gets another number.

use crate::record::{Key, Node, Part, Record, Stamp};
use crate::state::State;
use crate::tree::Tree;
use crate::upper::event::Event;
use core::ops::Bound;
use std::collections::HashMap;
use std::sync::Arc;
use vfs::{Errno, PathRef};

/// New directories and moved files, and their stamps before, by their inode numbers before.
pub(crate) type Remade = HashMap<u64, (Stamp, Arc<PathRef>)>;

fn of<'r>(remade: &'r Remade, old: &PathRef) -> Option<&'r (Stamp, Arc<PathRef>)> {
    remade.get(&old.attr().ok()?.ino)
}

impl State {
    /// Gives a directory the node of another one, which it replaces.
    pub(crate) fn renumber(&self, old: u64, new: u64) {
        if new != old {
            self.set_number(new, self.number(old));
            self.free_number(old);
        }
    }

    /// Gives the next file with an inode number another number than the file that has left.
    pub(crate) fn free_number(&self, ino: u64) {
        self.set_number(ino, self.shared.next_node());
    }

    fn set_number(&self, ino: u64, node: u64) {
        self.shared.lower.set_number(ino, node);
        self.shared.upper.as_ref().map(|upper| upper.number(ino, node));
    }

    /// Holds the new directories in place of the old ones.
    pub(crate) fn hold_remade(&self, remade: &Remade) {
        self.held.lock().replace(|file| of(remade, file).map(|(_, new)| new.clone()));
    }

    /// Shows the new directories where the fork has the old ones.
    ///
    /// # Errors
    /// The log's.
    pub(crate) fn anchor(&self, remade: &Remade) -> Result<(), Errno> {
        if remade.is_empty() {
            return Ok(());
        }
        self.hold_remade(remade);
        let lower = &self.shared.lower;
        let of_origin = {
            let mut origin = self.origin.lock();
            let old = origin.0.clone();
            origin.0.anchor(remade);
            Event::tree(lower, (self.id, true), &old, &origin.0)
        };
        let mut tree = self.tree.lock();
        let old = tree.clone();
        tree.anchor(remade);
        self.log(true, || of_origin.into_iter().chain(self.changed(&old, &tree)).collect())
    }
}

impl Tree {
    /// Reads all records.
    #[cold]
    pub(crate) fn anchor(&mut self, remade: &Remade) {
        let new = |node: &Arc<Node>| of(remade, node.base.as_ref()?);
        let node = |(key, record): (&Key, &Record)| match Part::of(key) {
            Some(Part::Node(number)) => Some((number, new(record.node()?)?)),
            _ => None,
        };
        let all: Vec<_> = self.map.range(Bound::<&[u8]>::Unbounded).filter_map(node).collect();
        for (number, (before, base)) in all {
            if let (Ok(node), Ok(attr)) = (self.node_mut(number), base.attr()) {
                node.base = Some(base.clone());
                // Otherwise another program had changed the file.
                let is_known = node.stamp == Some(*before);
                let other = node.stamp.map(|stamp| Stamp { ino: attr.ino, ..stamp });
                node.stamp = if is_known { Some(Stamp::of(&attr)) } else { other };
            }
        }
    }
}
