//! Which node is at which path.
//!
//! # What it is
//! For each node its parent and its name, and for each name in a directory its node. A path is put together from the
//! names on the way up, so a directory that moves is one change.
//!
//! # What it is not
//! Exact about what the caches hold: that a lookup's answer was used is not said to a file system, so an inode may
//! begin with a node just when the inode before it with that node ends. So nodes that were evicted are kept for a
//! while ([`COLD`] of them), and are back when a lookup answers with them.
//!
//! # How it is locked
//! By its owner.
//!
//! # Where it comes from
//! libfuse's table of nodes by id and by name (`lib/fuse.c`), whose kernel counts its lookups instead; own code.

use std::collections::{BTreeMap, VecDeque};

/// The root's node.
pub(super) const ROOT: u64 = 1;

/// Evicted nodes that are kept.
const COLD: usize = 4096;

/// A name in a directory.
type Name = (u64, Box<[u8]>);

#[derive(Debug)]
struct Place {
    parent: u64,
    name: Box<[u8]>,
    kind: u32,
    /// No inode has it, as far as is known.
    cold: bool,
}

/// How often the table had changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct State {
    /// Names that were made.
    made: u64,
    /// Paths that went.
    moved: u64,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Nodes {
    places: BTreeMap<u64, Place>,
    names: BTreeMap<Name, u64>,
    /// In the order in which they became cold; some are no longer.
    cold: VecDeque<u64>,
    next: u64,
    state: State,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            names: BTreeMap::new(),
            cold: VecDeque::new(),
            next: ROOT + 1,
            state: State::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The path of `node`; `None`: it has none any more.
    pub(super) fn path(&self, node: u64) -> Option<Vec<u8>> {
        let (mut names, mut at) = (Vec::new(), node);
        while at != ROOT {
            let place = self.places.get(&at)?;
            names.push(&*place.name);
            at = place.parent;
        }
        names.reverse();
        Some(names.join(&b'/'))
    }

    /// The path of `name` in `dir`, and how often the table has changed.
    pub(super) fn child(&self, dir: u64, name: &[u8]) -> Option<(Vec<u8>, State)> {
        let mut path = self.path(dir)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Some((path, self.state))
    }

    /// Whether paths went since.
    pub(super) fn has_moved(&self, since: &State) -> bool {
        self.state.moved != since.moved
    }

    /// The node of a name that a lookup found.
    pub(super) fn known(&mut self, dir: u64, name: &[u8], kind: u32) -> u64 {
        let node = self.node_of(dir, name, kind, false);
        if let Some(place) = self.places.get_mut(&node) {
            place.cold = false;
        }
        node
    }

    /// The node of a name that was listed; a new one is nobody's yet.
    pub(super) fn listed(&mut self, dir: u64, name: &[u8], kind: u32) -> u64 {
        self.node_of(dir, name, kind, true)
    }

    fn node_of(&mut self, dir: u64, name: &[u8], kind: u32, cold: bool) -> u64 {
        match self.names.get(&(dir, name.into())).copied() {
            Some(node) if self.places.get(&node).is_some_and(|place| place.kind == kind) => node,
            Some(other) => {
                self.forget(other);
                self.add(dir, name, kind, cold)
            }
            None => self.add(dir, name, kind, cold),
        }
    }

    fn add(&mut self, dir: u64, name: &[u8], kind: u32, cold: bool) -> u64 {
        let node = self.next;
        self.next += 1;
        self.places.insert(node, Place { parent: dir, name: name.into(), kind, cold });
        self.names.insert((dir, name.into()), node);
        if cold {
            self.queue(node);
        }
        node
    }

    /// A name was made; what it was known for before has gone.
    pub(super) fn made(&mut self, dir: u64, name: &[u8], kind: u32) -> u64 {
        self.state.made += 1;
        self.forget_name(dir, name);
        self.add(dir, name, kind, false)
    }

    /// The name was not there when the table was as in `since`.
    pub(super) fn vanished(&mut self, dir: u64, name: &[u8], since: &State) {
        if self.state == *since {
            self.forget_name(dir, name);
        }
    }

    /// A name was taken away.
    pub(super) fn removed(&mut self, dir: u64, name: &[u8]) {
        self.state.moved += 1;
        self.forget_name(dir, name);
    }

    /// What was at `from` is at `to`; with `exchange` the other way too.
    pub(super) fn moved(&mut self, from: (u64, &[u8]), to: (u64, &[u8]), exchange: bool) {
        self.state.moved += 1;
        let moved = self.names.remove(&(from.0, from.1.into()));
        let target = self.names.remove(&(to.0, to.1.into()));
        self.put(moved, to);
        if exchange {
            self.put(target, from);
        } else if let Some(target) = target {
            self.forget(target);
        }
    }

    fn put(&mut self, node: Option<u64>, (dir, name): (u64, &[u8])) {
        let Some(node) = node else { return };
        if let Some(place) = self.places.get_mut(&node) {
            (place.parent, place.name) = (dir, name.into());
            self.names.insert((dir, name.into()), node);
        }
    }

    /// An inode with this node ended.
    pub(super) fn evicted(&mut self, node: u64) {
        if let Some(place) = self.places.get_mut(&node) {
            place.cold = true;
            self.queue(node);
        }
    }

    fn queue(&mut self, node: u64) {
        self.cold.push_back(node);
        if self.cold.len() > COLD
            && let Some(oldest) = self.cold.pop_front()
            && self.places.get(&oldest).is_some_and(|place| place.cold)
        {
            self.forget(oldest);
        }
    }

    fn forget_name(&mut self, dir: u64, name: &[u8]) {
        if let Some(node) = self.names.get(&(dir, name.into())).copied() {
            self.forget(node);
        }
    }

    /// Takes a node out, with all below it.
    fn forget(&mut self, node: u64) {
        let mut going = vec![node];
        while let Some(node) = going.pop() {
            let below = self.names.range((node, Box::default())..(node + 1, Box::default()));
            going.extend(below.map(|(_, child)| *child));
            if let Some(place) = self.places.remove(&node) {
                let name = (place.parent, place.name);
                if self.names.get(&name) == Some(&node) {
                    self.names.remove(&name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::{S_IFDIR, S_IFREG};

    #[test]
    fn a_directory_that_moves_takes_along_what_is_below_it() {
        let mut nodes = Nodes::new();
        let a = nodes.made(ROOT, b"a", S_IFDIR);
        let b = nodes.made(a, b"b", S_IFDIR);
        let file = nodes.known(b, b"file", S_IFREG);
        assert_eq!(nodes.path(file).as_deref(), Some(&b"a/b/file"[..]));
        nodes.moved((a, b"b"), (ROOT, b"c"), false);
        assert_eq!(nodes.path(file).as_deref(), Some(&b"c/file"[..]));
        nodes.moved((ROOT, b"a"), (ROOT, b"c"), true);
        assert_eq!((nodes.path(a), nodes.path(file)), (Some(b"c".to_vec()), Some(b"a/file".to_vec())));
        nodes.removed(ROOT, b"a");
        assert_eq!((nodes.path(b), nodes.path(file), nodes.len()), (None, None, 1));
    }

    #[test]
    fn a_node_that_was_evicted_comes_back_unless_many_went_after_it() {
        let mut nodes = Nodes::new();
        let dir = nodes.made(ROOT, b"dir", S_IFDIR);
        let file = nodes.made(dir, b"file", S_IFREG);
        nodes.evicted(file);
        assert_eq!(nodes.known(dir, b"file", S_IFREG), file);
        nodes.evicted(file);
        for number in 0..COLD {
            nodes.listed(dir, format!("{number}").as_bytes(), S_IFREG);
        }
        assert_ne!(nodes.known(dir, b"file", S_IFREG), file);
        assert_eq!(nodes.len(), 1 + COLD + 1);
    }

    #[test]
    fn another_kind_under_the_name_is_another_node() {
        let mut nodes = Nodes::new();
        let file = nodes.known(ROOT, b"x", S_IFREG);
        let dir = nodes.known(ROOT, b"x", S_IFDIR);
        assert!(file != dir && nodes.path(file).is_none() && nodes.path(dir).is_some());
    }
}
