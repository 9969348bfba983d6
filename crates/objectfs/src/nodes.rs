//! The table of nodes: for each its directory and its name, and for each name its node.
//!
//! # What it is
//! The key of an object is built from the names on the way up, so a directory that moves is one change. A node that was evicted
//! stays for a while ([`COLD`] of them): an inode may begin with it just when the one before it ends.
//!
//! # How it is locked
//! By its owner.
//!
//! # Where it comes from
//! `vfs::PathAdapter`.

use crate::node::Node;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// The root's node.
pub(crate) const ROOT: u64 = 1;

/// The most evicted nodes that are kept.
const COLD: usize = 4096;

struct NodePlace {
    /// The directory and the name in it; `None`: it was removed.
    at: Option<(u64, Box<str>)>,
    node: Arc<Node>,
    /// Whether its inode was evicted, or not made yet.
    is_cold: bool,
}

/// See the [module documentation](self).
pub(crate) struct Nodes {
    places: HashMap<u64, NodePlace>,
    names: HashMap<u64, BTreeMap<Box<str>, u64>>,
    cold: VecDeque<u64>,
    next: u64,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        let root = NodePlace { at: None, node: Arc::new(Node::new(ROOT, true)), is_cold: false };
        Self {
            places: [(ROOT, root)].into_iter().collect(),
            names: HashMap::new(),
            cold: VecDeque::new(),
            next: ROOT + 1,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Node>> {
        self.places.get(&id).map(|place| &place.node)
    }

    /// The key of `id`: of a directory with a slash at its end, of the root the empty one. `None` if it was removed.
    pub(crate) fn key(&self, id: u64) -> Option<String> {
        let place = self.places.get(&id)?;
        if id == ROOT {
            return Some(String::new());
        }
        let (dir, name) = place.at.as_ref()?;
        let mut key = self.key(*dir)?;
        key.push_str(name);
        if place.node.is_dir {
            key.push('/');
        }
        Some(key)
    }

    /// The node of `name` in `dir`, if there is one.
    pub(crate) fn child(&self, dir: u64, name: &str) -> Option<&Arc<Node>> {
        self.names.get(&dir)?.get(name).and_then(|id| self.get(*id))
    }

    /// All nodes in `dir`, by name.
    pub(crate) fn children(&self, dir: u64) -> impl Iterator<Item = (&str, &Arc<Node>)> {
        let names = self.names.get(&dir).into_iter().flatten();
        names.filter_map(|(name, id)| Some((&**name, self.get(*id)?)))
    }

    /// The node of a name that the store has; a name of the other kind is another node.
    pub(crate) fn known(&mut self, dir: u64, name: &str, is_dir: bool, is_cold: bool) -> Arc<Node> {
        if let Some(node) = self.child(dir, name).filter(|node| node.is_dir == is_dir).cloned() {
            if !is_cold && let Some(place) = self.places.get_mut(&node.id) {
                place.is_cold = false;
            }
            return node;
        }
        self.remove(dir, name);
        let node = Arc::new(Node::new(self.next, is_dir));
        self.next += 1;
        self.places.insert(node.id, NodePlace { at: Some((dir, name.into())), node: node.clone(), is_cold });
        self.names.entry(dir).or_default().insert(name.into(), node.id);
        if is_cold {
            self.queue(node.id);
        }
        node
    }

    /// A name was removed. Its node stays until it is evicted.
    pub(crate) fn remove(&mut self, dir: u64, name: &str) {
        let Some(id) = self.names.get_mut(&dir).and_then(|names| names.remove(name)) else { return };
        if let Some(place) = self.places.get_mut(&id) {
            place.at = None;
            if place.is_cold {
                self.forget(id);
            }
        }
    }

    /// The name `from` in the first directory became `to` in the second one.
    pub(crate) fn rename(&mut self, from: (u64, &str), to: (u64, &str)) {
        self.remove(to.0, to.1);
        let Some(id) = self.names.get_mut(&from.0).and_then(|names| names.remove(from.1)) else { return };
        if let Some(place) = self.places.get_mut(&id) {
            place.at = Some((to.0, to.1.into()));
            self.names.entry(to.0).or_default().insert(to.1.into(), id);
        }
    }

    /// The inode of this node was evicted.
    pub(crate) fn evicted(&mut self, id: u64) {
        let Some(place) = self.places.get_mut(&id).filter(|_| id != ROOT) else { return };
        place.is_cold = true;
        if place.at.is_none() {
            self.forget(id);
        } else {
            self.queue(id);
        }
    }

    fn queue(&mut self, id: u64) {
        self.cold.push_back(id);
        if self.cold.len() > COLD
            && let Some(oldest) = self.cold.pop_front()
            && self.places.get(&oldest).is_some_and(|place| place.is_cold)
        {
            self.forget(oldest);
        }
    }

    /// Drops a node with everything below it. Its directory no longer has all names here.
    fn forget(&mut self, id: u64) {
        let mut going = vec![id];
        while let Some(id) = going.pop() {
            going.extend(self.names.remove(&id).into_iter().flat_map(BTreeMap::into_values));
            let Some((dir, name)) = self.places.remove(&id).and_then(|place| place.at) else { continue };
            if let Some(names) = self.names.get_mut(&dir)
                && names.get(&name) == Some(&id)
            {
                names.remove(&name);
            }
            if let Some(dir) = self.get(dir) {
                dir.facts().complete = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_moves_takes_along_what_is_below_it() {
        let mut nodes = Nodes::new();
        let dir = nodes.known(ROOT, "dir", true, false).id;
        let file = nodes.known(dir, "file", false, false).id;
        assert_eq!((nodes.key(ROOT), nodes.key(file)), (Some(String::new()), Some("dir/file".into())));
        nodes.rename((ROOT, "dir"), (ROOT, "moved"));
        assert_eq!((nodes.key(dir), nodes.key(file)), (Some("moved/".into()), Some("moved/file".into())));
        nodes.remove(ROOT, "moved");
        assert_eq!((nodes.key(dir), nodes.key(file)), (None, None));
        nodes.evicted(file);
        nodes.evicted(dir);
        assert_eq!(nodes.len(), 1);
    }

    #[test]
    fn a_node_that_was_evicted_comes_back_unless_many_went_after_it() {
        let mut nodes = Nodes::new();
        let file = nodes.known(ROOT, "file", false, false).id;
        nodes.evicted(file);
        assert_eq!(nodes.known(ROOT, "file", false, false).id, file);
        nodes.evicted(file);
        nodes.get(ROOT).unwrap().facts().complete = Some(std::time::Instant::now());
        for number in 0..COLD {
            nodes.known(ROOT, &number.to_string(), false, true);
        }
        assert!(nodes.known(ROOT, "file", false, false).id != file);
        assert!(nodes.get(ROOT).unwrap().facts().complete.is_none());
        assert_eq!(nodes.len(), 1 + COLD + 1);
    }

    #[test]
    fn another_kind_under_the_name_is_another_node() {
        let mut nodes = Nodes::new();
        let file = nodes.known(ROOT, "x", false, false).id;
        let dir = nodes.known(ROOT, "x", true, false).id;
        assert!(file != dir && nodes.key(file).is_none());
        assert_eq!(nodes.key(dir).as_deref(), Some("x/"));
    }
}
