//! One shard of the table of nodes: a slab of nodes, and an index of their ids.
//!
//! # What it is
//! Nodes are in a [`Slab`], whose keys stay the same while the shard grows, so that the clock and visits can go over the
//! keys a few at a time. A [`HashTable`] of keys finds a node by its id.
//!
//! # What it is not
//! Thread-safe: the shard's lock protects all of it.
//!
//! # Invariants
//! 1. Each node of the slab has one entry in the index, under the hash of its id, and no entry is without its node.
//! 2. A node changes its key only in [`Shard::compact`], and only to a lower one.

use hashbrown::HashTable;
use slab::Slab;

/// A shard with no more slots than this does not shrink.
const SMALLEST: usize = 32;

/// A shard shrinks when fewer than one in this many slots have a node. To shrink moves all of these, each with a search of
/// the index, so a smaller number makes forgets slower.
const SPARSE: usize = 4;

pub(super) struct Shard<V> {
    nodes: Slab<Node<V>>,
    /// Keys of `nodes`, by the hash of the node's id.
    index: HashTable<u32>,
    seed: u64,
    /// The sum of all counts.
    lookups: u64,
    /// The slot that the clock looks at next.
    hand: usize,
}

struct Node<V> {
    id: u64,
    value: V,
    lookups: u64,
    generation: u32,
    /// A request used the node since the clock came by.
    is_used: bool,
}

/// An id and its hash.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) id: u64,
    pub(super) hash: u64,
}

impl Key {
    /// Folded multiplication by a seed that others cannot guess. Source: wyhash (Wang Yi, 2019).
    pub(super) fn new(id: u64, seed: u64) -> Self {
        let product = u128::from(id ^ seed) * u128::from(seed | 1);
        Self { id, hash: (product as u64 ^ (product >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) }
    }
}

/// The result of [`Shard::look_up`].
pub(super) enum Lookup<V> {
    /// The node's generation and value.
    Known(u32, V),
    /// Another file has the id.
    Taken,
    /// No node has the id.
    Unknown,
}

impl<V: Clone> Shard<V> {
    /// Returns an empty shard for keys that are made with `seed`.
    pub(super) fn new(seed: u64) -> Self {
        Self { nodes: Slab::new(), index: HashTable::new(), seed, lookups: 0, hand: 0 }
    }

    /// Counts one more lookup of the node `key` and marks it as used, if `is_same` accepts its value.
    pub(super) fn look_up(&mut self, key: Key, is_same: impl FnOnce(&V) -> bool) -> Lookup<V> {
        let Some(node) = self.find_mut(key) else { return Lookup::Unknown };
        if !is_same(&node.value) {
            return Lookup::Taken;
        }
        node.lookups += 1;
        node.is_used = true;
        let known = Lookup::Known(node.generation, node.value.clone());
        self.lookups += 1;
        known
    }

    /// Returns the generation and value of the node `key`.
    pub(super) fn find(&self, key: Key) -> Option<(u32, V)> {
        self.nodes.get(self.slot(key)?).map(|node| (node.generation, node.value.clone()))
    }

    /// Adds the node `key`, which is not there, with a count of 1.
    pub(super) fn add(&mut self, key: Key, generation: u32, value: V) {
        if self.nodes.len() == self.nodes.capacity() {
            // By a quarter instead of by doubling: most of the memory is here.
            self.nodes.reserve_exact(self.nodes.len() / 4 + SMALLEST / 2);
        }
        let slot = self.nodes.insert(Node { id: key.id, value, lookups: 1, generation, is_used: true });
        let (nodes, seed) = (&self.nodes, self.seed);
        self.index.insert_unique(key.hash, slot as u32, |&slot| hash_of(nodes, slot, seed));
        self.lookups += 1;
    }

    /// Returns the value of the node `key`, which is marked as used.
    #[inline]
    pub(super) fn get(&mut self, key: Key) -> Option<V> {
        let node = self.find_mut(key)?;
        // A store only where it changes something.
        if !node.is_used {
            node.is_used = true;
        }
        Some(node.value.clone())
    }

    #[cfg(any(test, loom))]
    pub(super) fn lookups(&self, key: Key) -> Option<u64> {
        self.nodes.get(self.slot(key)?).map(|node| node.lookups)
    }

    /// Subtracts `lookups` from the count of the node `key`. Returns the node's value if the count is 0 now (the node is
    /// removed then), and by how much `lookups` exceeded the count.
    pub(super) fn forget(&mut self, key: Key, lookups: u64) -> (Option<V>, u64) {
        let nodes = &mut self.nodes;
        let found = self.index.find_entry(key.hash, |&slot| has_id(nodes, slot, key.id));
        let Ok(entry) = found else { return (None, lookups) };
        let slot = *entry.get() as usize;
        let Some(node) = nodes.get_mut(slot) else { return (None, lookups) };
        let had = node.lookups;
        node.lookups = had.saturating_sub(lookups);
        self.lookups -= had.min(lookups);
        if lookups < had {
            return (None, 0);
        }
        entry.remove();
        let node = nodes.remove(slot);
        if nodes.capacity() > SMALLEST && nodes.len() * SPARSE < nodes.capacity() {
            self.compact();
        }
        (Some(node.value), lookups - had)
    }

    /// Moves all values to `out` and begins anew.
    pub(super) fn take_all(&mut self, out: &mut Vec<V>) {
        let old = core::mem::replace(self, Self::new(self.seed));
        out.extend(old.nodes.into_iter().map(|(_, node)| node.value));
    }

    pub(super) fn total_lookups(&self) -> u64 {
        self.lookups
    }

    /// Returns one more than the highest slot that may have a node.
    pub(super) fn slots(&self) -> usize {
        self.nodes.capacity()
    }

    #[cfg(any(test, loom))]
    pub(super) fn bytes(&self) -> usize {
        self.index.allocation_size() + self.nodes.capacity() * size_of::<Option<Node<V>>>()
    }

    /// Moves the clock's hand past one slot. Removes the mark of a node that was used; returns a
    /// node that was not.
    pub(super) fn sweep(&mut self) -> Option<(u64, &V)> {
        if self.hand >= self.nodes.capacity() {
            self.hand = 0;
        }
        let node = self.nodes.get_mut(self.hand);
        self.hand += 1;
        let node = node?;
        let was_used = core::mem::replace(&mut node.is_used, false);
        (!was_used).then_some((node.id, &node.value))
    }

    pub(super) fn clone_slots(&self, slots: core::ops::Range<usize>, out: &mut Vec<(u64, V)>) {
        let nodes = slots.filter_map(|slot| self.nodes.get(slot));
        out.extend(nodes.map(|node| (node.id, node.value.clone())));
    }

    fn slot(&self, key: Key) -> Option<usize> {
        self.index.find(key.hash, |&slot| has_id(&self.nodes, slot, key.id)).map(|&slot| slot as usize)
    }

    fn find_mut(&mut self, key: Key) -> Option<&mut Node<V>> {
        self.nodes.get_mut(self.slot(key)?)
    }

    /// Moves nodes to the lowest slots and frees the others.
    #[cold]
    fn compact(&mut self) {
        let Self { nodes, index, seed, .. } = self;
        nodes.compact(|node, from, to| {
            let entry = index.find_mut(Key::new(node.id, *seed).hash, |&slot| slot as usize == from);
            entry.map(|slot| *slot = to as u32).is_some()
        });
        index.shrink_to(nodes.len(), |&slot| hash_of(nodes, slot, *seed));
    }
}

fn has_id<V>(nodes: &Slab<Node<V>>, slot: u32, id: u64) -> bool {
    nodes.get(slot as usize).is_some_and(|node| node.id == id)
}

/// Returns the hash under which the node in `slot` is in the index.
fn hash_of<V>(nodes: &Slab<Node<V>>, slot: u32, seed: u64) -> u64 {
    // Invariant 1: there is a node.
    nodes.get(slot as usize).map_or(0, |node| Key::new(node.id, seed).hash)
}
