//! An ordered map whose copies share their nodes: the changes of a fork.
//!
//! The map is a B+tree: the leaves have the entries, in order; a node above them has its children and, between two
//! children, a bound. All leaves have the same depth. Nodes are counted references ([`Arc`]), so a copy of the map
//! copies one reference. A change follows the path from the root to one leaf. It copies the nodes of this path that
//! another copy of the map shares, and changes the other nodes in place. So the first change after a copy copies the
//! path, and later changes near it copy nothing. Other copies of the map keep the nodes that they had.
//!
//! - A node has at most 15 items. A full node takes one more and is then cut in two, so an insertion never grows its
//!   vector beyond 16 places. Insertions often come in ascending order: if the new item is the last, the node keeps
//!   most of its items, as it will not get more.
//! - A node below the root has at least 4 items. A smaller one is joined with a sibling, and the result is cut if it
//!   is too large. So the depth is logarithmic, whatever has been removed.
//! - The bounds of a node are one shared slice, because most changes copy a node without a change of its bounds.
//!   Copying a node with `n` children then counts `n + 1` references, not `2n`, and each count is a cache miss.
//! - A search in a node compares one item after the other. The processor then loads keys, and the names that they
//!   refer to, ahead of the comparison. A binary search waits for each of them, and was slower in a large map.
//!
//! [`Map::diff`] reads two maps with a cursor each. The cursors pass a node at which both stand, so the cost follows
//! the changes, not the size of the maps.
//!
//! Not here: a lock. A map is a value. Its owner shares it between threads, as one shares a `Vec`.
//!
//! Sources: the copies of a path are by Driscoll, Sarnak, Sleator and Tarjan, "Making Data Structures Persistent"
//! (1989); B-trees with counted, shared nodes by Rodeh, "B-trees, Shadowing, and Clones" (2008), as in btrfs.

use core::cmp::Ordering;
use core::ops::Bound;
use std::sync::Arc;

mod cursor;
#[cfg(test)]
mod tests;

use cursor::Cursor;

/// The most items of a node: entries of a leaf, or children.
const MOST: usize = 15;

/// The fewest items of a node below the root.
const FEWEST: usize = 4;

/// A key that differs between two maps: the key, its value here and its value there.
pub(crate) type Change<'a, K, V> = (&'a K, Option<&'a V>, Option<&'a V>);

/// The object that a search compares with keys: a key, or a borrowed form of it.
///
/// Each key implements it. A borrowed form, such as `(u64, &[u8])` for a key with an owned name, implements it in the
/// key's module, so that a search allocates nothing.
pub(crate) trait Compare<K> {
    /// Returns the order of `self` relative to `key`. It must agree with the order of the keys.
    fn compare(&self, key: &K) -> Ordering;
}

impl<K: Ord> Compare<K> for K {
    fn compare(&self, key: &K) -> Ordering {
        self.cmp(key)
    }
}

/// An ordered map; copies share their nodes. The module's doc describes its structure.
#[derive(Clone)]
pub(crate) struct Map<K, V> {
    root: Arc<Node<K, V>>,
}

/// A node. The lists are not empty, except in the root of an empty map.
enum Node<K, V> {
    /// Entries in the order of their keys.
    Leaf(Vec<(K, V)>),
    Inner {
        /// One fewer than children: the keys of child `i` are less than bound `i`, the keys of child `i + 1` are not.
        /// A bound need not be a key of the map.
        bounds: Arc<[K]>,
        children: Vec<Arc<Node<K, V>>>,
    },
}

/// The part that a node gave away: the bound before it, and the part.
type Part<K, V> = (K, Arc<Node<K, V>>);

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())) }
    }
}

impl<K: Ord + Clone, V: Clone> Map<K, V> {
    /// Returns the value of `key`.
    pub(crate) fn get<Q: Compare<K> + ?Sized>(&self, key: &Q) -> Option<&V> {
        let mut node = &self.root;
        loop {
            match &**node {
                Node::Inner { bounds, children } => node = &children[child_of(bounds, key)],
                Node::Leaf(entries) => return place_of(entries, key).ok().map(|place| &entries[place].1),
            }
        }
    }

    /// Returns the value of `key`, to change it. Copies nothing if the map does not have the key.
    pub(crate) fn get_mut<Q: Compare<K> + ?Sized>(&mut self, key: &Q) -> Option<&mut V> {
        self.get(key)?;
        let mut node = &mut self.root;
        loop {
            match Arc::make_mut(node) {
                Node::Inner { bounds, children } => node = &mut children[child_of(bounds, key)],
                Node::Leaf(entries) => {
                    let place = place_of(entries, key).ok()?;
                    return entries.get_mut(place).map(|(_, value)| value);
                }
            }
        }
    }

    /// Sets the value of `key`, and returns the value that it had.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (old, part) = insert(&mut self.root, key, value);
        if let Some((bound, part)) = part {
            let children = vec![Arc::clone(&self.root), part];
            self.root = Arc::new(Node::Inner { bounds: [bound].into(), children });
        }
        old
    }

    /// Removes `key`, and returns the value that it had. Copies nothing if the map does not have the key.
    pub(crate) fn remove<Q: Compare<K> + ?Sized>(&mut self, key: &Q) -> Option<V> {
        self.get(key)?;
        let old = remove(&mut self.root, key);
        if let Node::Inner { children, .. } = &*self.root
            && let [only] = &children[..]
        {
            self.root = Arc::clone(only);
        }
        old
    }

    /// Returns the entries from the key `from` on, in order. The iterator does not keep `from`.
    pub(crate) fn range<Q: Compare<K> + ?Sized>(&self, from: Bound<&Q>) -> Cursor<'_, K, V> {
        Cursor::at(&self.root, from)
    }

    /// Returns the keys whose values differ, in order: each with its value here and its value in `other`.
    ///
    /// Two values are equal if `same` returns true. The iterator does not enter a node that both maps share, so it
    /// calls `same` only for entries of the leaves that changes copied, and of a leaf beside each of them.
    pub(crate) fn diff<'a>(
        &'a self,
        other: &'a Self,
        same: impl Fn(&V, &V) -> bool,
    ) -> impl Iterator<Item = Change<'a, K, V>> {
        let mut here = Cursor::new(&self.root);
        let mut there = Cursor::new(&other.root);
        core::iter::from_fn(move || cursor::next_change(&mut here, &mut there, &same))
    }
}

/// Returns the index of the child that has `key`, if a child has it.
fn child_of<K, Q: Compare<K> + ?Sized>(bounds: &[K], key: &Q) -> usize {
    bounds.iter().position(|bound| key.compare(bound).is_lt()).unwrap_or(bounds.len())
}

/// Returns the index of `key`, or as an error the index at which it would stand.
fn place_of<K, V, Q: Compare<K> + ?Sized>(entries: &[(K, V)], key: &Q) -> Result<usize, usize> {
    for (place, (other, _)) in entries.iter().enumerate() {
        match key.compare(other) {
            Ordering::Greater => {}
            Ordering::Equal => return Ok(place),
            Ordering::Less => return Err(place),
        }
    }
    Err(entries.len())
}

/// Sets the value of `key` below `node`. Returns its old value, and a part of the node if this became too large.
fn insert<K: Ord + Clone, V: Clone>(node: &mut Arc<Node<K, V>>, key: K, value: V) -> (Option<V>, Option<Part<K, V>>) {
    let node = Arc::make_mut(node);
    let place = match node {
        Node::Leaf(entries) => match place_of(entries, &key) {
            Ok(place) => return (Some(core::mem::replace(&mut entries[place].1, value)), None),
            Err(place) => {
                entries.insert(place, (key, value));
                place
            }
        },
        Node::Inner { bounds, children } => {
            let place = child_of(bounds, &key);
            let (old, part) = insert(&mut children[place], key, value);
            let Some((bound, part)) = part else { return (old, None) };
            add_child(bounds, children, place, bound, part);
            place + 1
        }
    };
    let len = node.len();
    if len <= MOST {
        return (None, None);
    }
    let is_at_end = place + 1 == len;
    (None, Some(node.cut(if is_at_end { len - FEWEST } else { len / 2 })))
}

/// Removes `key` below `node`, and returns its value. The node may become too small.
fn remove<K: Ord + Clone, V: Clone, Q: Compare<K> + ?Sized>(node: &mut Arc<Node<K, V>>, key: &Q) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => place_of(entries, key).ok().map(|place| entries.remove(place).1),
        Node::Inner { bounds, children } => {
            let place = child_of(bounds, key);
            let old = remove(&mut children[place], key);
            if children[place].len() < FEWEST {
                join(bounds, children, place.saturating_sub(1));
            }
            old
        }
    }
}

/// Joins child `left` with the next child. Cuts the result in two equal parts if it is too large.
fn join<K: Clone, V: Clone>(bounds: &mut Arc<[K]>, children: &mut Vec<Arc<Node<K, V>>>, left: usize) {
    let right = Arc::unwrap_or_clone(children.remove(left + 1));
    let mut rest = bounds.to_vec();
    let bound = rest.remove(left);
    *bounds = rest.into();
    let node = Arc::make_mut(&mut children[left]);
    node.append(bound, right);
    if node.len() > MOST {
        let (bound, part) = node.cut(node.len() / 2);
        add_child(bounds, children, left, bound, part);
    }
}

/// Puts `part` and the bound before it behind child `place`.
fn add_child<K: Clone, V>(
    bounds: &mut Arc<[K]>,
    children: &mut Vec<Arc<Node<K, V>>>,
    place: usize,
    bound: K,
    part: Arc<Node<K, V>>,
) {
    let mut more = Vec::with_capacity(bounds.len() + 1);
    more.extend_from_slice(bounds);
    more.insert(place, bound);
    *bounds = more.into();
    children.insert(place + 1, part);
}

impl<K, V> Node<K, V> {
    /// Returns the number of entries or children.
    fn len(&self) -> usize {
        match self {
            Node::Leaf(entries) => entries.len(),
            Node::Inner { children, .. } => children.len(),
        }
    }
}

impl<K: Clone, V> Node<K, V> {
    /// Keeps the first `at` items, and returns the others with the bound before them.
    fn cut(&mut self, at: usize) -> Part<K, V> {
        match self {
            Node::Leaf(entries) => {
                let part = entries.split_off(at);
                (part[0].0.clone(), Arc::new(Node::Leaf(part)))
            }
            Node::Inner { bounds, children } => {
                let part = Node::Inner { bounds: bounds[at..].into(), children: children.split_off(at) };
                let bound = bounds[at - 1].clone();
                *bounds = bounds[..at - 1].into();
                (bound, Arc::new(part))
            }
        }
    }

    /// Takes the items of `right`, a node of the same height with greater keys; `bound` is between them.
    fn append(&mut self, bound: K, right: Self) {
        match (self, right) {
            (Node::Leaf(entries), Node::Leaf(more)) => entries.extend(more),
            (Node::Inner { bounds, children }, Node::Inner { bounds: more_bounds, children: more }) => {
                *bounds = bounds.iter().chain([&bound]).chain(&*more_bounds).cloned().collect();
                children.extend(more);
            }
            _ => unreachable!("two children of a node have the same height"),
        }
    }
}

impl<K: Clone, V: Clone> Clone for Node<K, V> {
    fn clone(&self) -> Self {
        match self {
            Node::Leaf(entries) => Node::Leaf(copy(entries)),
            Node::Inner { bounds, children } => Node::Inner { bounds: Arc::clone(bounds), children: copy(children) },
        }
    }
}

/// Copies a list, with space for the item for which a change copies it.
fn copy<T: Clone>(list: &[T]) -> Vec<T> {
    let mut copy = Vec::with_capacity((list.len() + 1).next_power_of_two());
    copy.extend_from_slice(list);
    copy
}
