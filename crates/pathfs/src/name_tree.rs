//! The table of nodes and names of a file system that works with whole paths or keys.
//!
//! # What it is
//! For each node its directory and its name in it, and for each name in a directory its node. A path is built from the names on the
//! way up, so a directory that moves is one change. A node carries a value of the file system's.
//!
//! # What it is not
//! An exact image of the caches: a file system is not notified whether a lookup's answer was used. So an inode may begin with a node
//! just when the inode before it ends. *Cold* nodes, whose inode was evicted or has not begun, are therefore kept for a while
//! ([`COLD`] of them), and are revived when a lookup returns them.
//!
//! # How it is locked
//! By its owner.
//!
//! # Where it comes from
//! libfuse's table of nodes by id and by name (`lib/fuse.c`), whose kernel counts its lookups instead.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// The most cold nodes that are kept.
const COLD: usize = 4096;

/// A name in a directory: the directory's node, and the name.
pub type NameIn<'n, K> = (u64, &'n K);

#[derive(Debug)]
struct NodePlace<K: ?Sized, N> {
    /// The directory of the node, and the name in this directory. `None`: the node was removed, or
    /// is the root.
    at: Option<(u64, Box<K>)>,
    value: N,
    is_cold: bool,
}

/// The nodes of a file system, their names, and for each a value of the type `N`. `K` is the type of names: `str`, or `[u8]`.
///
/// ```
/// use lightfoot_pathfs::NameTree;
///
/// let mut tree = NameTree::<str, ()>::new((), |_| ());
/// let dir = tree.add((NameTree::<str, ()>::ROOT, "dir"), false, |_| ());
/// let file = tree.add((dir, "file"), false, |_| ());
/// assert_eq!(tree.names_to(file), Some(vec!["dir", "file"]));
/// ```
#[derive(Debug)]
pub struct NameTree<K: ?Sized, N> {
    places: HashMap<u64, NodePlace<K, N>>,
    names: HashMap<u64, BTreeMap<Box<K>, u64>>,
    /// Cold nodes in order of eviction; some may be in use again.
    cold: VecDeque<u64>,
    next: u64,
    forgot: fn(&N),
}

impl<K: ?Sized, N> NameTree<K, N>
where
    K: Ord,
    for<'n> Box<K>: From<&'n K>,
{
    /// The root's node.
    pub const ROOT: u64 = 1;

    /// Creates a tree with a root. The tree calls `forgot` with the value of a directory when it
    /// drops a cold node in this directory: the directory then has names that the table lacks.
    #[must_use]
    pub fn new(root: N, forgot: fn(&N)) -> Self {
        let root = NodePlace { at: None, value: root, is_cold: false };
        Self {
            places: HashMap::from([(Self::ROOT, root)]),
            names: HashMap::new(),
            cold: VecDeque::new(),
            next: Self::ROOT + 1,
            forgot,
        }
    }

    /// Returns how many nodes there are, with the root.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "the root is always there")]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the value of a node.
    #[must_use]
    pub fn get(&self, node: u64) -> Option<&N> {
        self.places.get(&node).map(|place| &place.value)
    }

    /// Returns the names on the way from the root to `node`. Returns `None` if the node, or a
    /// directory above the node, was removed.
    #[must_use]
    pub fn names_to(&self, node: u64) -> Option<Vec<&K>> {
        let (mut names, mut at) = (Vec::new(), node);
        while at != Self::ROOT {
            let (dir, name) = self.places.get(&at)?.at.as_ref()?;
            names.push(&**name);
            at = *dir;
        }
        names.reverse();
        Some(names)
    }

    /// Returns the node of a name, and the value of this node.
    #[must_use]
    pub fn child(&self, at: NameIn<'_, K>) -> Option<(u64, &N)> {
        let node = *self.names.get(&at.0)?.get(at.1)?;
        Some((node, self.get(node)?))
    }

    /// Returns all names in `dir`, in order, with the values of their nodes.
    pub fn children(&self, dir: u64) -> impl Iterator<Item = (&K, &N)> {
        let names = self.names.get(&dir).into_iter().flatten();
        names.filter_map(|(name, node)| Some((&**name, self.get(*node)?)))
    }

    /// Creates a node of the name, with the value that `make` returns for its number. A node that
    /// had the name loses the name. `is_cold`: whether the new node has no inode yet.
    pub fn add(&mut self, at: NameIn<'_, K>, is_cold: bool, make: impl FnOnce(u64) -> N) -> u64 {
        self.remove(at);
        let node = self.next;
        self.next += 1;
        self.places.insert(node, NodePlace { at: Some((at.0, at.1.into())), value: make(node), is_cold });
        self.names.entry(at.0).or_default().insert(at.1.into(), node);
        if is_cold {
            self.queue(node);
        }
        node
    }

    /// Notes that an inode may begin with this node.
    pub fn revive(&mut self, node: u64) {
        if let Some(place) = self.places.get_mut(&node) {
            place.is_cold = false;
        }
    }

    /// Removes a name. The node of the name stays until the inode of the node is evicted.
    pub fn remove(&mut self, at: NameIn<'_, K>) {
        let node = self.take(at);
        self.end(node);
    }

    /// Notes that `from` was renamed to `to`. With `exchange`, notes that the two names were
    /// exchanged.
    pub fn rename(&mut self, from: NameIn<'_, K>, to: NameIn<'_, K>, exchange: bool) {
        let (moved, target) = (self.take(from), self.take(to));
        self.put(moved, to);
        if exchange {
            self.put(target, from);
        } else {
            self.end(target);
        }
    }

    /// Notes that the inode of this node was evicted.
    pub fn evicted(&mut self, node: u64) {
        let Some(place) = self.places.get_mut(&node).filter(|_| node != Self::ROOT) else { return };
        place.is_cold = true;
        if place.at.is_none() {
            self.forget(node);
        } else {
            self.queue(node);
        }
    }

    fn take(&mut self, at: NameIn<'_, K>) -> Option<u64> {
        self.names.get_mut(&at.0)?.remove(at.1)
    }

    fn put(&mut self, node: Option<u64>, at: NameIn<'_, K>) {
        if let Some(node) = node
            && let Some(place) = self.places.get_mut(&node)
        {
            place.at = Some((at.0, at.1.into()));
            self.names.entry(at.0).or_default().insert(at.1.into(), node);
        }
    }

    /// Notes that a node has lost its name. Drops the node if it is cold.
    fn end(&mut self, node: Option<u64>) {
        if let Some(node) = node
            && let Some(place) = self.places.get_mut(&node)
        {
            place.at = None;
            if place.is_cold {
                self.forget(node);
            }
        }
    }

    fn queue(&mut self, node: u64) {
        self.cold.push_back(node);
        if self.cold.len() > COLD
            && let Some(oldest) = self.cold.pop_front()
            && self.places.get(&oldest).is_some_and(|place| place.is_cold)
        {
            self.forget(oldest);
        }
    }

    /// Drops a node with everything below it.
    fn forget(&mut self, node: u64) {
        let mut going = vec![node];
        while let Some(node) = going.pop() {
            going.extend(self.names.remove(&node).into_iter().flat_map(BTreeMap::into_values));
            let Some((dir, name)) = self.places.remove(&node).and_then(|place| place.at) else { continue };
            if let Some(names) = self.names.get_mut(&dir)
                && names.get(&name) == Some(&node)
            {
                names.remove(&name);
            }
            if let Some(dir) = self.get(dir) {
                (self.forgot)(dir);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    type Tree = NameTree<str, ()>;

    const ROOT: u64 = Tree::ROOT;

    fn at(dir: u64, name: &str) -> NameIn<'_, str> {
        (dir, name)
    }

    #[test]
    fn a_directory_that_moves_takes_along_what_is_below_it() {
        let mut tree = Tree::new((), |()| ());
        let mut add = |dir, name| tree.add(at(dir, name), false, |_| ());
        let a = add(ROOT, "a");
        let b = add(a, "b");
        let file = add(b, "file");
        let check = |tree: &Tree, node, expected: Option<&str>| {
            assert_eq!(tree.names_to(node).map(|names| names.join("/")).as_deref(), expected);
        };
        check(&tree, ROOT, Some(""));
        check(&tree, file, Some("a/b/file"));
        tree.rename(at(a, "b"), at(ROOT, "c"), false);
        check(&tree, file, Some("c/file"));
        tree.rename(at(ROOT, "a"), at(ROOT, "c"), true);
        check(&tree, a, Some("c"));
        check(&tree, file, Some("a/file"));
        tree.remove(at(ROOT, "a"));
        check(&tree, b, None);
        check(&tree, file, None);
        tree.evicted(file);
        tree.evicted(b);
        assert_eq!(tree.len(), 2);
    }

    #[test]
    fn a_rename_over_a_name_ends_the_node_that_had_it() {
        let mut tree = Tree::new((), |()| ());
        let (from, to) = (tree.add(at(ROOT, "a"), false, |_| ()), tree.add(at(ROOT, "b"), false, |_| ()));
        tree.rename(at(ROOT, "a"), at(ROOT, "b"), false);
        assert_eq!(tree.child(at(ROOT, "b")).map(|(node, _)| node), Some(from));
        assert_eq!((tree.child(at(ROOT, "a")), tree.names_to(to)), (None, None));
        assert!(tree.get(to).is_some(), "its inode may still be open");
        tree.evicted(to);
        assert!(tree.get(to).is_none());
    }

    #[test]
    fn a_node_that_was_evicted_comes_back_unless_many_were_evicted_after_it() {
        let forgotten = Rc::new(Cell::new(0));
        let mut tree = NameTree::<str, Rc<Cell<u32>>>::new(forgotten.clone(), |dir| dir.set(dir.get() + 1));
        let kept = tree.add(at(ROOT, "kept"), true, |_| Rc::default());
        let dropped = tree.add(at(ROOT, "dropped"), true, |_| Rc::default());
        tree.revive(kept);
        for number in 0..COLD {
            assert_eq!(forgotten.get(), 0, "{number}");
            tree.add(at(ROOT, &number.to_string()), true, |_| Rc::default());
        }
        assert_eq!(forgotten.get(), 1);
        assert!(tree.get(kept).is_some() && tree.get(dropped).is_none());
        assert_eq!((tree.len(), tree.child(at(ROOT, "dropped"))), (1 + 1 + COLD, None));
    }
}
