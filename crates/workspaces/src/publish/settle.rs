//! The records and the log of a fork after a commit to the base.

use super::journal::Step;
use super::{File, Plan};
use crate::record::{Part, Record, Stamp};
use crate::remade::Remade;
use crate::state::State;
use crate::upper::event::Event;
use prim::atomic::Ordering::Relaxed;
use std::sync::Arc;
use vfs::Errno;

/// Notes in the log of a directory that files of the base move, or move back: the log has their paths.
pub(super) fn log_moves(state: &State, steps: &[Step], is_back: bool) -> Result<(), Errno> {
    let moved = |step: &Step| match step.clone() {
        Step::Move { from, to, .. } if is_back => Some(Event::Moved { from: to, to: from }),
        Step::Move { from, to, .. } => Some(Event::Moved { from, to }),
        _ => None,
    };
    let mut events: Vec<Event> = steps.iter().filter_map(moved).collect();
    if is_back {
        events.reverse();
    }
    state.log(true, || events)?;
    state.sync()
}

impl Plan<'_> {
    /// Takes new stamps after steps that were undone, which change times in the base.
    pub(super) fn stamp(&self) -> Result<(), Errno> {
        let mut tree = self.state.tree.lock();
        let old = tree.clone();
        for File { number, .. } in &self.files {
            let node = tree.node_mut(*number)?;
            if let Some(base) = &node.base {
                node.stamp = Some(Stamp::of(&base.attr_anew()?));
            }
        }
        self.state.log(true, || self.state.changed(&old, &tree).into_iter().collect())
    }

    /// Notes in the fork's records that the base has the changes now.
    pub(super) fn settle(&self, remade: &Remade) -> Result<(), Errno> {
        let (state, tree) = (self.state, self.tree);
        let mut new = tree.clone();
        for (key, record, _) in tree.map.diff(&self.origin.map, Record::is_same) {
            if let (Some(Part::Name(dir, name)), Some(Record::Whiteout(_))) = (Part::of(key), record) {
                new.set_name(dir, name, None);
            }
        }
        for File { dir, name, path, .. } in &self.entries {
            new.cover(*dir, name, state.number(self.target.attr(path)?.ino));
        }
        for File { number, dir, name, path } in &self.files {
            if tree.node(*number).is_some_and(|node| node.base.is_none()) {
                state.usage.give_inode();
            }
            let held = self.target.0.at(path)?;
            let attr = held.attr_anew()?;
            // Another file may get the inode number of a file that was replaced.
            let old = tree.node(*number).and_then(|node| node.base.as_ref()?.attr().ok()).map(|old| old.ino);
            if let Some(old) = old.filter(|old| *old != attr.ino && state.number(*old) == *number) {
                state.free_number(old);
            }
            new.publish(*number, (*dir, name), Arc::new(held), &attr, state.number(attr.ino));
        }
        new.anchor(remade);
        let settle = Event::Settle { fork: state.id, at: state.settled.load(Relaxed), is_new: true };
        state.log(true, || state.changed(tree, &new).into_iter().chain([settle]).collect())?;
        state.usage.settle(tree.bytes, new.bytes);
        *state.origin.lock() = (new.clone(), state.usage.now());
        *state.tree.lock() = new;
        // The next write to a file is a change of its contents.
        state.begin_epoch();
        Ok(())
    }
}
