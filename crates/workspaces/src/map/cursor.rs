//! A place in a map, which moves forward; and the comparison of two maps with two such places.
//!
//! A cursor stands at an item: an entry, or a node that it has not entered. Its owner passes the item, or
//! enters it. As an iterator, a cursor returns the entries in order.

use core::cmp::Ordering;
use core::ops::Bound;
use std::sync::Arc;

use super::{Change, Compare, Node, child_of, place_of};

/// A place in a map; an iterator over the entries from there on.
pub(crate) struct Cursor<'a, K, V> {
    /// The entries to come of the leaf that the cursor entered.
    entries: &'a [(K, V)],
    /// The children to come of each node that the cursor entered, with the root as the child of a node above it.
    levels: Vec<&'a [Arc<Node<K, V>>]>,
}

/// The item at which a cursor stands.
pub(super) enum Item<'a, K, V> {
    Entry(&'a K, &'a V),
    Node(&'a Arc<Node<K, V>>),
}

impl<'a, K, V> Cursor<'a, K, V> {
    /// Makes a cursor that stands at the root.
    pub(super) fn new(root: &'a Arc<Node<K, V>>) -> Self {
        Self { entries: &[], levels: vec![core::slice::from_ref(root)] }
    }

    /// Makes a cursor that stands at the first entry from `from` on.
    pub(super) fn at<Q: Compare<K> + ?Sized>(root: &'a Arc<Node<K, V>>, from: Bound<&Q>) -> Self {
        let mut cursor = Self::new(root);
        let (key, equal) = match from {
            Bound::Included(key) => (key, 0),
            Bound::Excluded(key) => (key, 1),
            Bound::Unbounded => return cursor,
        };
        let mut node = root;
        cursor.pass();
        while let Node::Inner { bounds, children } = &**node {
            let place = child_of(bounds, key);
            node = &children[place];
            cursor.levels.push(&children[place + 1..]);
        }
        if let Node::Leaf(entries) = &**node {
            cursor.entries = &entries[place_of(entries, key).map_or_else(|place| place, |place| place + equal)..];
        }
        cursor
    }

    /// Returns the item at which the cursor stands; `None` at the end of the map.
    pub(super) fn item(&mut self) -> Option<Item<'a, K, V>> {
        if let [(key, value), ..] = self.entries {
            return Some(Item::Entry(key, value));
        }
        while let Some(level) = self.levels.last() {
            if let [node, ..] = level {
                return Some(Item::Node(node));
            }
            self.levels.pop();
        }
        None
    }

    /// Moves behind the item at which the cursor stands.
    pub(super) fn pass(&mut self) {
        if !self.entries.is_empty() {
            self.entries = &self.entries[1..];
        } else if let Some(level) = self.levels.last_mut() {
            *level = &level[1..];
        }
    }

    /// Moves to the first item of `node`, at which the cursor stands.
    pub(super) fn enter(&mut self, node: &'a Node<K, V>) {
        self.pass();
        match node {
            Node::Leaf(entries) => self.entries = entries,
            Node::Inner { children, .. } => self.levels.push(children),
        }
    }
}

impl<'a, K, V> Iterator for Cursor<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.item()? {
                Item::Node(node) => self.enter(node),
                Item::Entry(key, value) => {
                    self.pass();
                    return Some((key, value));
                }
            }
        }
    }
}

/// Moves both cursors behind the next key whose values differ, and returns the key.
///
/// If the cursors stand at different nodes, they enter both. So they reach a shared node together, except where the
/// nodes before it differ in number or height. There, they meet again behind the next leaf: a cursor that stands at
/// an entry waits until the other one stands at an entry too.
pub(super) fn next_change<'a, K: Ord, V>(
    here: &mut Cursor<'a, K, V>,
    there: &mut Cursor<'a, K, V>,
    same: &impl Fn(&V, &V) -> bool,
) -> Option<Change<'a, K, V>> {
    loop {
        let order = match (here.item(), there.item()) {
            (Some(Item::Node(a)), Some(Item::Node(b))) => {
                if Arc::ptr_eq(a, b) {
                    here.pass();
                    there.pass();
                } else {
                    here.enter(a);
                    there.enter(b);
                }
                continue;
            }
            (Some(Item::Node(node)), _) => {
                here.enter(node);
                continue;
            }
            (_, Some(Item::Node(node))) => {
                there.enter(node);
                continue;
            }
            (Some(Item::Entry(a, _)), Some(Item::Entry(b, _))) => a.cmp(b),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let a = if order.is_le() { here.next() } else { None };
        let b = if order.is_ge() { there.next() } else { None };
        if let (Some((_, a)), Some((_, b))) = (a, b)
            && same(a, b)
        {
            continue;
        }
        let (key, _) = a.or(b)?;
        return Some((key, a.map(|(_, value)| value), b.map(|(_, value)| value)));
    }
}
