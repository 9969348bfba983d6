//! Changes of one side of a commit that end, since the other side wins.
//!
//! # What it is
//! A conflict has a place: a file whose contents or rights both sides have changed, or a name. One side returns to the origin there,
//! so the other side's change is the only one. A name returns only if that concerns no other name: its files, before and now,
//! have one link each, and are not directories.

use crate::commit::{ConflictKind, Conflicts};
use crate::diff::node_of;
use crate::record::{Covered, Entry, Node, Place, Record, Stamp};
use crate::state::State;
use crate::tree::Tree;
use std::collections::BTreeSet;
use std::sync::Arc;
use vfs::{Errno, S_IFDIR};

/// The place of a conflict.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum At {
    Name(Place),
    Contents(u64),
    Rights(u64),
}

impl At {
    /// Returns the place of a conflict of a file's contents, or of its attributes.
    pub(crate) fn file(number: u64, kind: ConflictKind) -> Self {
        if kind == ConflictKind::Contents { Self::Contents(number) } else { Self::Rights(number) }
    }
}

/// Returns the tree of one side without its changes at the conflicts. `None`: the conflicts must be reported.
///
/// # Errors
/// The base's.
pub(crate) fn undone(
    state: &State,
    (side, origin): (&Tree, &Tree),
    conflicts: &Conflicts,
) -> Result<Option<Tree>, Errno> {
    let mut undo = Undo { state, side, origin, tree: side.clone() };
    let are_undone = all(conflicts, |at| match at {
        At::Name((dir, name)) => undo.name(*dir, name),
        At::Contents(number) => undo.node(*number, |node, old| {
            node.contents.clone_from(&old.contents);
            (node.attr.size, node.attr.blocks, node.attr.mtime) = (old.attr.size, old.attr.blocks, old.attr.mtime);
        }),
        At::Rights(number) => undo.node(*number, |node, old| {
            node.xattrs.clone_from(&old.xattrs);
            (node.attr.mode, node.attr.uid, node.attr.gid) = (old.attr.mode, old.attr.uid, old.attr.gid);
        }),
    })?;
    Ok(are_undone.then_some(undo.tree))
}

/// Calls `one` with each place, until it returns `false`. `false`: a conflict has no place, or `one` did.
fn all(conflicts: &Conflicts, mut one: impl FnMut(&At) -> Result<bool, Errno>) -> Result<bool, Errno> {
    // Each place once: a file may have several conflicts.
    for at in conflicts.values().collect::<BTreeSet<_>>() {
        if !at.as_ref().map_or(Ok(false), &mut one)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the tree of a fork of the trunk, with the files that the base has at the conflicts as those that its changes replace.
/// `None`: the conflicts must be reported.
///
/// # Errors
/// The base's.
pub(crate) fn accepted(state: &State, tree: &Tree, conflicts: &Conflicts) -> Result<Option<Tree>, Errno> {
    let mut new = tree.clone();
    let are_accepted = all(conflicts, |at| match at {
        At::Name((dir, name)) => accept_name(state, &mut new, (*dir, name)),
        At::Contents(number) | At::Rights(number) => accept_file(state, &mut new, *number),
    })?;
    Ok(are_accepted.then_some(new))
}

/// Notes the file of the base that has a name now. `false`: it is a directory, or the fork has a directory there.
fn accept_name(state: &State, tree: &mut Tree, (dir, name): (u64, &[u8])) -> Result<bool, Errno> {
    let found = state.base_attr(tree, (dir, name))?;
    let covered = found.map(|attr| Covered::now(attr.ino));
    let record = match tree.name(dir, name) {
        Some(Record::Entry(entry)) if entry.kind == S_IFDIR => return Ok(false),
        Some(Record::Entry(entry)) => Some(Record::Entry(Entry { covered, ..*entry })),
        _ => covered.map(Record::Whiteout),
    };
    tree.set_name(dir, name, None);
    tree.set_name(dir, name, record.as_ref());
    if let Some(Record::Entry(Entry { node, .. })) = record
        && let Some(base) = tree.node(node).and_then(|node| node.base.clone())
        && base.attr_anew()?.nlink == 0
    {
        return Ok(make_anew(tree, node));
    }
    Ok(found.is_none_or(|attr| !attr.is_dir()))
}

/// Notes the state of a file of the base that another program has changed, or removed. `false`: the fork does not have all of it.
fn accept_file(state: &State, tree: &mut Tree, number: u64) -> Result<bool, Errno> {
    let Some(node) = tree.node(number).cloned() else { return Ok(false) };
    let Some(base) = &node.base else { return Ok(false) };
    let attr = base.attr_anew()?;
    if attr.nlink > 0 {
        tree.set_node(number, Arc::new(Node { stamp: Some(Stamp::of(&attr)), ..(*node).clone() }));
        return Ok(true);
    }
    let Some((dir, name)) = tree.place(number).filter(|_| make_anew(tree, number)) else { return Ok(false) };
    let entry = Entry { node: number, kind: node.attr.kind(), serial: 0, covered: None };
    if tree.name(dir, &name).is_none() {
        tree.set_name(dir, &name, Some(&Record::Entry(entry)));
    }
    accept_name(state, tree, (dir, &name))
}

/// Makes a file of the base, which is not there any more, a file of the fork. `false`: the fork does not have all of it.
fn make_anew(tree: &mut Tree, number: u64) -> bool {
    let Some(node) = tree.node(number) else { return false };
    let is_whole = node.contents.as_ref().is_some_and(|file| file.state.read().shown().0 == 0);
    if is_whole {
        let node = Node { base: None, stamp: None, ..(**node).clone() };
        tree.set_node(number, Arc::new(node));
    }
    is_whole
}

struct Undo<'u> {
    state: &'u State,
    side: &'u Tree,
    origin: &'u Tree,
    tree: Tree,
}

impl Undo<'_> {
    /// Returns a part of a node to the origin. `false`: that is not possible.
    fn node(&mut self, number: u64, part: impl FnOnce(&mut Node, &Node)) -> Result<bool, Errno> {
        let Some(now) = self.tree.node(number).cloned() else { return Ok(false) };
        let old = self.origin.before(&now)?;
        let mut undone = Node { stamp: old.stamp, ..(*now).clone() };
        part(&mut undone, &old);
        self.tree.set_node(number, Arc::new(undone));
        Ok(true)
    }

    /// Returns a name, and the state of its file, to the origin. `false`: that is not possible, or nothing changed.
    fn name(&mut self, dir: u64, name: &[u8]) -> Result<bool, Errno> {
        let records = [self.side, self.origin].map(|tree| tree.name(dir, name));
        let base = self.state.covered_in(self.side, dir, name)?;
        let [now, then] = records.map(|record| node_of(record, base));
        for (tree, number) in [(self.side, now), (self.origin, then)] {
            if !number.map_or(Ok(true), |number| self.is_single(tree, (dir, name), number))? {
                return Ok(false);
            }
        }
        if now == then {
            let state_of = |tree: &Tree, number| tree.node(number).map(Arc::as_ptr);
            let changed = now.filter(|number| state_of(self.side, *number) != state_of(self.origin, *number));
            changed.into_iter().for_each(|number| self.return_node(number, (dir, name)));
            return Ok(changed.is_some());
        }
        let is_here = |number| matches!(records[0], Some(Record::Entry(entry)) if entry.covered.is_some_and(|covered| covered.node == number));
        let is_made = |number| {
            let is_own = self.side.node(number).is_some_and(|node| node.base.is_none());
            is_here(number) || is_own && self.origin.node(number).is_none()
        };
        let is_named = |number: u64| self.side.node(number).is_some_and(|node| node.attr.nlink > 0);
        if now.is_some_and(|number| !is_made(number)) || then.is_some_and(is_named) {
            return Ok(false);
        }
        self.tree.set_name(dir, name, records[1]);
        now.into_iter().for_each(|number| self.tree.take_node(number));
        then.into_iter().for_each(|number| self.return_node(number, (dir, name)));
        if self.tree.node(dir).is_some() {
            self.tree.count(dir, false, i32::from(then.is_some()) - i32::from(now.is_some()))?;
        }
        Ok(true)
    }

    /// Returns whether the node of a name is a file with this name alone.
    fn is_single(&self, tree: &Tree, (dir, name): (u64, &[u8]), number: u64) -> Result<bool, Errno> {
        let of_base = || Ok(self.state.base_attr(tree, (dir, name))?.filter(|attr| attr.ino == number));
        let attr = tree.node(number).map_or_else(of_base, |node| Ok(Some(node.attr)))?;
        Ok(attr.is_some_and(|attr| attr.nlink == 1 && !attr.is_dir()))
    }

    /// Gives a node the record of the origin.
    fn return_node(&mut self, number: u64, (dir, name): (u64, &[u8])) {
        match self.origin.node(number) {
            Some(then) => {
                self.tree.set_node(number, then.clone());
                self.tree.set_place(number, dir, name.into());
            }
            None => self.tree.take_node(number),
        }
    }
}
