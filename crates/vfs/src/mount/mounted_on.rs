//! The mounts on one mount, by the address of the mount point: a tree that is never changed, only
//! replaced.
//!
//! # What it is
//! A [`Children`] maps addresses to values. To add or remove one makes a new map that shares with
//! the old one all but the few nodes on the way to the change, so a mount beside ten thousand
//! others copies three nodes. Readers descend the map that they have loaded under RCU; the old map
//! ends after a grace period, and with it the nodes that are in no other.
//!
//! # Where it comes from
//! P. Bagwell, "Ideal Hash Trees" (2001). The addresses are their own hash: their low bits differ,
//! apart from the ones that are the same in all dentries.

use prim::shared::PlainArc as Arc;

/// Bits of an address that one level looks at.
const LEVEL: u32 = 5;

/// Low bits that are the same in the addresses of all dentries.
const ALIKE: u32 = size_of::<crate::slots::dentry::Dentry>().trailing_zeros();

/// See the [module documentation](self).
pub(super) struct Children<V>(Arc<Node<V>>);

enum Node<V> {
    Leaf(usize, V),
    /// One bit for each value of the level's bits that has a child, and the children in that order.
    Branch(u32, Box<[Arc<Node<V>>]>),
}

/// Returns the bit of `address` in a branch at `level`.
fn bit(address: usize, level: u32) -> u32 {
    1 << (address.rotate_right(ALIKE) >> (level * LEVEL) & ((1 << LEVEL) - 1))
}

/// Returns the place of `bit` among the bits of a branch: where it is, or would be.
fn place(bits: u32, bit: u32) -> usize {
    (bits & (bit - 1)).count_ones() as usize
}

impl<V: Clone> Children<V> {
    /// Returns the value of `address`.
    #[inline]
    pub(super) fn get(&self, address: usize) -> Option<&V> {
        let mut at = &*self.0;
        let mut level = 0;
        loop {
            match at {
                Node::Leaf(own, value) => return (*own == address).then_some(value),
                Node::Branch(bits, below) => {
                    let bit = bit(address, level);
                    if bits & bit == 0 {
                        return None;
                    }
                    at = &below[place(*bits, bit)];
                    level += 1;
                }
            }
        }
    }

    /// Returns all values, in no order.
    pub(super) fn values(&self) -> Vec<V> {
        let mut values = Vec::new();
        self.for_each_node(|node| {
            if let Node::Leaf(_, value) = &**node {
                values.push(value.clone());
            }
        });
        values
    }

    fn for_each_node(&self, mut f: impl FnMut(&Arc<Node<V>>)) {
        let mut rest = vec![&self.0];
        while let Some(node) = rest.pop() {
            f(node);
            if let Node::Branch(_, below) = &**node {
                rest.extend(below);
            }
        }
    }

    /// Returns the map `old`, or an empty one, with `value` at `address`, instead of any other value there.
    pub(super) fn with(old: Option<&Self>, address: usize, value: V) -> Self {
        let leaf = Arc::new(Node::Leaf(address, value));
        Self(match old {
            None => leaf,
            Some(old) => with(&old.0, address, leaf, 0),
        })
    }

    /// Returns the map without the value at `address`; `None` if no other value is left.
    pub(super) fn without(&self, address: usize) -> Option<Self> {
        without(&self.0, address, 0).map(Self)
    }
}

/// `node`, which is at `level`, with `leaf` of `address` below it.
fn with<V: Clone>(node: &Arc<Node<V>>, address: usize, leaf: Arc<Node<V>>, level: u32) -> Arc<Node<V>> {
    match &**node {
        Node::Leaf(own, _) if *own == address => leaf,
        Node::Leaf(own, _) => {
            // Two leaves where one was: apart, or together one level below.
            let (old, new) = (bit(*own, level), bit(address, level));
            let below: Box<[_]> = match old.cmp(&new) {
                core::cmp::Ordering::Less => [node.clone(), leaf].into(),
                core::cmp::Ordering::Greater => [leaf, node.clone()].into(),
                core::cmp::Ordering::Equal => [with(node, address, leaf, level + 1)].into(),
            };
            Arc::new(Node::Branch(old | new, below))
        }
        Node::Branch(bits, below) => {
            let bit = bit(address, level);
            let place = place(*bits, bit);
            let mut below = below.to_vec();
            if bits & bit == 0 {
                below.insert(place, leaf);
            } else {
                below[place] = with(&below[place], address, leaf, level + 1);
            }
            Arc::new(Node::Branch(bits | bit, below.into()))
        }
    }
}

/// `node`, which is at `level`, without the leaf of `address`; `None` if it was the only one.
fn without<V: Clone>(node: &Arc<Node<V>>, address: usize, level: u32) -> Option<Arc<Node<V>>> {
    let Node::Branch(bits, below) = &**node else {
        let is_it = matches!(&**node, Node::Leaf(own, _) if *own == address);
        return (!is_it).then(|| node.clone());
    };
    let bit = bit(address, level);
    if bits & bit == 0 {
        return Some(node.clone());
    }
    let place = place(*bits, bit);
    let mut rest = below.to_vec();
    let bits = match without(&below[place], address, level + 1) {
        Some(less) => {
            rest[place] = less;
            *bits
        }
        None => {
            rest.remove(place);
            bits & !bit
        }
    };
    match &rest[..] {
        [] => None,
        // A leaf stands as high as it can.
        [only] if matches!(**only, Node::Leaf(..)) => Some(only.clone()),
        _ => Some(Arc::new(Node::Branch(bits, rest.into()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, HashSet};

    fn nodes(map: &Children<usize>) -> HashSet<usize> {
        let mut nodes = HashSet::new();
        map.for_each_node(|node| {
            nodes.insert(Arc::as_ptr(node).addr());
        });
        nodes
    }

    #[test]
    fn a_map_agrees_with_a_plain_one_and_does_not_change() {
        let mut random = fastrand::Rng::with_seed(7);
        let (mut map, mut plain) = (None::<Children<usize>>, BTreeMap::new());
        let get = |map: &Option<Children<usize>>, address| map.as_ref()?.get(address).copied();
        for step in 0..20_000 {
            // Few addresses, some of which differ in their highest bits only.
            let address = (random.usize(..400) << 6) | (random.usize(..3) << 61);
            let (old, was) = (map.as_ref().map(|map| Children(map.0.clone())), plain.get(&address).copied());
            if random.bool() {
                map = Some(Children::with(map.as_ref(), address, step));
                plain.insert(address, step);
            } else {
                map = map.and_then(|map| map.without(address));
                plain.remove(&address);
            }
            assert_eq!(get(&old, address), was, "step {step}");
            assert_eq!(get(&map, address), plain.get(&address).copied(), "step {step}");
            assert_eq!(map.is_none(), plain.is_empty());
        }
        let mut values = map.map_or(Vec::new(), |map| map.values());
        values.sort_unstable();
        let mut plain: Vec<_> = plain.into_values().collect();
        plain.sort_unstable();
        assert_eq!(values, plain);
    }

    #[test]
    fn a_change_copies_few_nodes_however_many_there_are() {
        for (count, most) in [(1, 3), (10, 3), (10_000, 4), (100_000, 5)] {
            let with = |map: Option<Children<usize>>, number| Some(Children::with(map.as_ref(), number << 6, number));
            let map = (0..count).fold(None, with).unwrap();
            let old = nodes(&map);
            let copied = |new: Option<Children<usize>>| new.map_or(0, |new| nodes(&new).difference(&old).count());
            for address in [0, (count / 2) << 6, count << 6] {
                let more = copied(Some(Children::with(Some(&map), address, 0)));
                let fewer = copied(map.without(address));
                assert!(more <= most && fewer <= most, "{count}: {more}, {fewer}");
            }
        }
    }
}
