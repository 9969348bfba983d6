//! The table of nodes, by their numbers and by the names in the tree.
//!
//! # What it is
//! A [`NameTree`] whose nodes carry a [`Node`], and the keys of objects that follow from its names. A directory whose table drops a
//! name no longer has all its names here.
//!
//! # How it is locked
//! By its owner.

use crate::key::{Key, LINK};
use crate::meta::{Found, Kind};
use crate::node::Node;
use pathfs::NameTree;
use std::sync::Arc;

type Tree = NameTree<str, Arc<Node>>;

/// The root's node.
pub(crate) const ROOT: u64 = Tree::ROOT;

/// See the [module documentation](self).
pub(crate) struct Nodes(Tree);

impl Nodes {
    pub(crate) fn new() -> Self {
        Self(Tree::new(Arc::new(Node::new(ROOT, Kind::Dir)), |dir| dir.facts().complete = None))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Arc<Node>> {
        self.0.get(id)
    }

    /// Returns the key of the node `id`. Returns `None` if the node was removed, or if no request can
    /// name its key.
    pub(crate) fn key(&self, id: u64) -> Option<Key> {
        let mut key = self.0.names_to(id)?.join("/");
        match self.get(id)?.kind {
            Kind::Dir if id != ROOT => key.push('/'),
            Kind::Link => key.push_str(LINK),
            _ => {}
        }
        Key::new(key)
    }

    /// Returns the node of `name` in `dir`, if there is one.
    pub(crate) fn child(&self, dir: u64, name: &str) -> Option<&Arc<Node>> {
        self.0.child((dir, name)).map(|(_, node)| node)
    }

    /// Returns all nodes in `dir`, by name.
    pub(crate) fn children(&self, dir: u64) -> impl Iterator<Item = (&str, &Arc<Node>)> {
        self.0.children(dir)
    }

    /// Returns the node of a name that the store has. Creates a new node if the name had none, or a
    /// node of the other kind.
    pub(crate) fn known(&mut self, dir: u64, name: &str, kind: Kind, is_cold: bool) -> Arc<Node> {
        let at = (dir, name);
        if let Some((id, node)) = self.0.child(at).filter(|(_, node)| node.kind == kind) {
            let node = node.clone();
            if !is_cold {
                self.0.revive(id);
            }
            return node;
        }
        let id = self.0.add(at, is_cold, |id| Arc::new(Node::new(id, kind)));
        self.0.get(id).expect("it was added").clone()
    }

    /// Returns the node of a name that the store has, as [`Nodes::known`]. A link with another body is
    /// another link.
    pub(crate) fn found(&mut self, dir: u64, name: &str, found: &Found, is_cold: bool) -> Arc<Node> {
        let is_other = |node: &Arc<Node>| node.kind == Kind::Link && node.facts().is_other(found);
        if self.child(dir, name).is_some_and(is_other) {
            self.remove(dir, name);
        }
        self.known(dir, name, found.kind(), is_cold)
    }

    /// Notes that a name was removed. The node of the name stays until the inode of the node is
    /// evicted.
    pub(crate) fn remove(&mut self, dir: u64, name: &str) {
        self.0.remove((dir, name));
    }

    /// Notes that the name `from` became the name `to`. Each of the two is a directory and a name
    /// in this directory.
    pub(crate) fn rename(&mut self, from: (u64, &str), to: (u64, &str)) {
        self.0.rename(from, to, false);
    }

    /// Notes that the inode of this node was evicted.
    pub(crate) fn evicted(&mut self, id: u64) {
        self.0.evicted(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_directories_end_with_a_slash() {
        let mut nodes = Nodes::new();
        let dir = nodes.known(ROOT, "dir", Kind::Dir, false).id;
        let file = nodes.known(dir, "file", Kind::File, false).id;
        let key = |nodes: &Nodes, id| nodes.key(id).map(|key| key.path().to_owned());
        assert_eq!((key(&nodes, ROOT), key(&nodes, file)), (Some("/".into()), Some("dir/file".into())));
        nodes.rename((ROOT, "dir"), (ROOT, "moved"));
        assert_eq!((key(&nodes, dir), key(&nodes, file)), (Some("moved/".into()), Some("moved/file".into())));
        nodes.remove(ROOT, "moved");
        assert_eq!((nodes.key(dir), nodes.key(file)), (None, None));
    }

    #[test]
    fn a_directory_of_which_a_name_was_dropped_is_not_complete() {
        let mut nodes = Nodes::new();
        nodes.get(ROOT).unwrap().facts().complete = Some(std::time::Instant::now());
        let mut number = 0;
        while nodes.get(ROOT).unwrap().facts().complete.is_some() {
            nodes.known(ROOT, &number.to_string(), Kind::File, true);
            number += 1;
        }
        assert_eq!((nodes.len(), nodes.child(ROOT, "0").is_none()), (number, true));
    }

    #[test]
    fn another_kind_under_the_name_is_another_node() {
        let mut nodes = Nodes::new();
        let file = nodes.known(ROOT, "x", Kind::File, false).id;
        let dir = nodes.known(ROOT, "x", Kind::Dir, false).id;
        assert!(file != dir && nodes.key(file).is_none());
        assert_eq!(nodes.key(dir), Key::new("x/".into()));
    }
}
