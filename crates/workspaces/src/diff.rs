//! The changes of a fork since it was made, by path.
//!
//! # What it is
//! The difference of two maps, which follows the changes, not the size of the tree. A file that moved is found by its node, so a
//! rename is exact, whatever else changed.

use crate::record::{Key, Node, Part, Place, Record};
use crate::state::State;
use crate::tree::Tree;
use core::fmt;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use vfs::{Errno, Foreign};

/// One change of a fork.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Change {
    /// The path from the root of the fork, without a slash at the start; of a removed file, the path that it had.
    pub path: Vec<u8>,
    /// The kind of the change.
    pub kind: ChangeKind,
}

/// The kind of a change.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ChangeKind {
    /// The path is new.
    Added,
    /// The path was removed, with everything below it.
    Removed,
    /// Contents or attributes changed, or another file has the name.
    Modified,
    /// The file had this path.
    Renamed(Vec<u8>),
}

impl fmt::Display for Change {
    /// Writes the change as `git status --short` does: a letter and the path.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = Foreign::bytes(&self.path);
        match &self.kind {
            ChangeKind::Added => write!(f, "A {shown}"),
            ChangeKind::Removed => write!(f, "D {shown}"),
            ChangeKind::Modified => write!(f, "M {shown}"),
            ChangeKind::Renamed(from) => write!(f, "R {} -> {shown}", Foreign::bytes(from)),
        }
    }
}

/// Returns the path of a name, if its directory has a name.
pub(crate) fn path_of(state: &State, tree: &Tree, (dir, name): (u64, &[u8])) -> Option<Vec<u8>> {
    let (mut names, mut at) = (vec![Key::from(name)], dir);
    while at != state.root {
        // A directory that has not changed is where lookups found it.
        let (parent, name) = tree.place(at).or_else(|| state.held_places(at).pop())?;
        let is_gone = tree.node(at).is_some_and(|node| node.attr.nlink == 0);
        if is_gone || names.len() > vfs::PATH_MAX {
            return None;
        }
        names.push(name);
        at = parent;
    }
    names.reverse();
    Some(names.join(&b'/'))
}

/// Returns the node of a record of a name. `base`: the base's node of the name.
pub(crate) fn node_of(record: Option<&Record>, base: Option<u64>) -> Option<u64> {
    match record {
        Some(Record::Entry(entry)) => Some(entry.node),
        Some(_) => None,
        None => base,
    }
}

/// Returns the changes from one tree of the store to another.
pub(crate) fn changes(state: &State, now: &Tree, then: &Tree) -> Result<Vec<Change>, Errno> {
    let (mut added, mut removed, mut changed) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
    let mut reached = HashMap::new();
    for (key, new, old) in now.map.diff(&then.map, Record::is_same) {
        match Part::of(key) {
            Some(Part::Name(dir, name)) => {
                // The names of a directory that was removed are removed with it.
                let is_reached = match reached.get(&dir) {
                    Some(is_reached) => *is_reached,
                    None => *reached.entry(dir).or_insert(state.is_reached(now, dir)?),
                };
                if !is_reached {
                    continue;
                }
                let is_shown = new.is_none() || old.is_none();
                let base = if is_shown { state.covered_in(now, dir, name)? } else { None };
                let (new, old) = (node_of(new, base), node_of(old, base));
                if new == old {
                    continue;
                }
                let Some(path) = path_of(state, now, (dir, name)) else { continue };
                new.map(|node| added.insert(path.clone(), node));
                old.map(|node| removed.insert(path, node));
            }
            Some(Part::Node(node)) => changed.push((node, new, old)),
            _ => {}
        }
    }
    let mut found = names(&added, &removed);
    let [is_added, is_removed] = [&added, &removed].map(|of| of.values().copied().collect::<HashSet<u64>>());
    for (node, new, old) in changed {
        let (Some(new), Some(old)) = (state_of(node, new, old), state_of(node, old, new)) else { continue };
        let is_named = is_added.contains(&node) && !is_removed.contains(&node);
        let is_other = !old.looks_like(&new);
        let path = match node == state.root || new.attr.nlink == 0 || !is_other {
            true => None,
            false if is_named => old_path(state, now, then, node, &added)?,
            false => place_of(state, now, then, node)?.and_then(|(dir, name)| path_of(state, now, (dir, &name))),
        };
        found.extend(path.map(|path| Change { path, kind: ChangeKind::Modified }));
    }
    for Change { path, kind } in &mut found {
        *path = state.seen(path);
        if let ChangeKind::Renamed(from) = kind {
            *from = state.seen(from);
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Returns the state of a node in one tree: by its record, or as in the base, which the record in the other tree names. `None`:
/// the tree does not have the node.
fn state_of(node: u64, record: Option<&Record>, other: Option<&Record>) -> Option<Arc<Node>> {
    match (record, other) {
        (Some(Record::Node(found)), _) => Some(found.clone()),
        (_, Some(Record::Node(other))) => Node::of_base(other.base.clone()?, node).ok().map(Arc::new),
        _ => None,
    }
}

/// Returns a name of a node in a tree, which may have no record of it, but another tree has.
fn place_of(state: &State, now: &Tree, then: &Tree, node: u64) -> Result<Option<Place>, Errno> {
    if let Some(place) = state.name_of(now, node)? {
        return Ok(Some(place));
    }
    let Some((dir, name)) = then.place(node) else { return Ok(None) };
    Ok(if state.is_of(now, (dir, &name), node)? { Some((dir, name)) } else { None })
}

/// Returns the path of a node that has new names, under a name that is not new.
fn old_path(
    state: &State,
    now: &Tree,
    then: &Tree,
    node: u64,
    added: &BTreeMap<Vec<u8>, u64>,
) -> Result<Option<Vec<u8>>, Errno> {
    for (dir, name) in [now.place(node), then.place(node)].into_iter().flatten().chain(state.held_places(node)) {
        if state.is_of(now, (dir, &name), node)?
            && state.is_reached(now, dir)?
            && let Some(path) = path_of(state, now, (dir, &name)).filter(|path| !added.contains_key(path))
        {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Returns the changes of names.
fn names(added: &BTreeMap<Vec<u8>, u64>, removed: &BTreeMap<Vec<u8>, u64>) -> Vec<Change> {
    let from: BTreeMap<u64, &Vec<u8>> = removed.iter().map(|(path, node)| (*node, path)).collect();
    let moved = |node: &u64| from.get(node).map(|path| (*path).clone());
    let is_added: HashSet<u64> = added.values().copied().collect();
    let mut found = Vec::new();
    for (path, node) in added {
        let kind = match moved(node) {
            Some(from) => ChangeKind::Renamed(from),
            None if removed.contains_key(path) => ChangeKind::Modified,
            None => ChangeKind::Added,
        };
        found.push(Change { path: path.clone(), kind });
    }
    for (path, node) in removed {
        if !is_added.contains(node) && !added.contains_key(path) {
            found.push(Change { path: path.clone(), kind: ChangeKind::Removed });
        }
    }
    found
}
