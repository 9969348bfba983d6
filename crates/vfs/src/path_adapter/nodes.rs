//! The table of nodes and paths.
//!
//! # What it is
//! For each node its parent and its name, and for each name in a directory its node. A path is built from the
//! names on the way up, so a moved directory is one change.
//!
//! # What it is not
//! An exact image of the caches: a file system is not notified whether a lookup's answer was used. So an
//! inode may begin with a node just when the previous inode with that node ends. Evicted nodes are therefore
//! kept for a while ([`COLD`] of them), and are revived when a lookup returns them.
//!
//! # How it is locked
//! By its owner.
//!
//! # Where it comes from
//! libfuse's table of nodes by id and by name (`lib/fuse.c`), whose kernel counts its lookups instead.

use std::collections::{BTreeMap, VecDeque};

/// The root's node.
pub(super) const ROOT: u64 = 1;

/// The most evicted nodes that are kept.
const COLD: usize = 4096;

/// A name in a directory.
type Name = (u64, Box<[u8]>);

/// A name in a directory, borrowed.
#[derive(Clone, Copy)]
pub(super) struct NameIn<'a> {
    pub(super) dir: u64,
    pub(super) name: &'a [u8],
}

#[derive(Debug)]
struct NodePlace {
    parent: u64,
    name: Box<[u8]>,
    kind: u32,
    /// Whether its inode was evicted.
    cold: bool,
}

/// Counters of changes of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PathState {
    /// Names that were created.
    made: u64,
    /// Paths that were removed or moved.
    moved: u64,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(super) struct Nodes {
    places: BTreeMap<u64, NodePlace>,
    names: BTreeMap<Name, u64>,
    /// Cold nodes in order of eviction; some may be in use again.
    cold: VecDeque<u64>,
    next: u64,
    state: PathState,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            names: BTreeMap::new(),
            cold: VecDeque::new(),
            next: ROOT + 1,
            state: PathState::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The path of `node`; `None` if it was removed.
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

    /// The path of `name` in `dir`, and the counters of changes.
    pub(super) fn child(&self, dir: u64, name: &[u8]) -> Option<(Vec<u8>, PathState)> {
        let mut path = self.path(dir)?;
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        Some((path, self.state))
    }

    /// Whether paths were removed or moved since.
    pub(super) fn has_moved(&self, since: &PathState) -> bool {
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

    /// The node of a listed name; a new one has no inode yet.
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
        self.places.insert(node, NodePlace { parent: dir, name: name.into(), kind, cold });
        self.names.insert((dir, name.into()), node);
        if cold {
            self.queue(node);
        }
        node
    }

    /// A name was created; its former node is removed.
    pub(super) fn made(&mut self, dir: u64, name: &[u8], kind: u32) -> u64 {
        self.state.made += 1;
        self.forget_name(dir, name);
        self.add(dir, name, kind, false)
    }

    /// The name did not exist when the counters were `since`.
    pub(super) fn vanished(&mut self, dir: u64, name: &[u8], since: &PathState) {
        if self.state == *since {
            self.forget_name(dir, name);
        }
    }

    /// A name was removed.
    pub(super) fn removed(&mut self, dir: u64, name: &[u8]) {
        self.state.moved += 1;
        self.forget_name(dir, name);
    }

    /// `from` was moved to `to`; with `exchange`, they were exchanged.
    pub(super) fn moved(&mut self, from: NameIn<'_>, to: NameIn<'_>, exchange: bool) {
        self.state.moved += 1;
        let moved = self.names.remove(&(from.dir, from.name.into()));
        let target = self.names.remove(&(to.dir, to.name.into()));
        self.put(moved, to);
        if exchange {
            self.put(target, from);
        } else if let Some(target) = target {
            self.forget(target);
        }
    }

    fn put(&mut self, node: Option<u64>, NameIn { dir, name }: NameIn<'_>) {
        let Some(node) = node else { return };
        if let Some(place) = self.places.get_mut(&node) {
            (place.parent, place.name) = (dir, name.into());
            self.names.insert((dir, name.into()), node);
        }
    }

    /// The inode of this node was evicted.
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

    /// Removes a node, with everything below it.
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
    use crate::base::attr::{S_IFDIR, S_IFREG};

    #[test]
    fn a_directory_that_moves_takes_along_what_is_below_it() {
        let mut nodes = Nodes::new();
        let a = nodes.made(ROOT, b"a", S_IFDIR);
        let b = nodes.made(a, b"b", S_IFDIR);
        let file = nodes.known(b, b"file", S_IFREG);
        assert_eq!(nodes.path(file).as_deref(), Some(&b"a/b/file"[..]));
        nodes.moved(NameIn { dir: a, name: b"b" }, NameIn { dir: ROOT, name: b"c" }, false);
        assert_eq!(nodes.path(file).as_deref(), Some(&b"c/file"[..]));
        nodes.moved(NameIn { dir: ROOT, name: b"a" }, NameIn { dir: ROOT, name: b"c" }, true);
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
