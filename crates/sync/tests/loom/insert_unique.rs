//! loom models of `HashTable::insert_unique`: of several threads that insert nodes of one key, one succeeds, also while the
//! table grows. (Under loom a table grows as soon as it has more nodes than buckets, and each insertion moves a bucket.)
//!
//! The content of a node lies in a tracked cell, so a loser that reads the winner's without having seen its insertion is a
//! data race for loom. All models fail if `insert_unique` scans before it locks the bucket. If it scans only a bucket of the
//! first table, and links unseen into the next table where that bucket was moved, the model of a bucket that moves fails.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{RcuDomain, ReadGuard};
use lightfoot_sync::{HashNode, HashTable};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicUsize;
use loom::thread;

struct Node {
    next: AtomicUsize,
    key: usize,
    content: UnsafeCell<usize>,
}

// SAFETY: the content is written while no other thread can reach the node; loom checks that.
unsafe impl Sync for Node {}

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Node {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, (): &(), _guard: &ReadGuard<'_>) -> u64 {
        self.key as u64
    }
}

/// A table and nodes; fields drop in order, the nodes after the table.
struct World {
    table: HashTable<Node>,
    nodes: Vec<Node>,
    domain: RcuDomain,
}

impl World {
    /// A node for each of `keys`, on no chain.
    fn new(buckets: usize, keys: &[usize]) -> Self {
        let node = |&key: &usize| Node { next: AtomicUsize::new(0), key, content: UnsafeCell::new(0) };
        let domain = RcuDomain::without_reclaimer();
        Self { table: HashTable::new(&domain, buckets, ()), nodes: keys.iter().map(node).collect(), domain }
    }

    /// Inserts a node unless its key is there; returns the content of the node that is there then.
    fn insert(&self, index: usize) -> usize {
        let (node, guard) = (&self.nodes[index], self.domain.read());
        // SAFETY: no other thread reaches the node before the insertion.
        node.content.with_mut(|content| unsafe { *content = index });
        let is_same = |other: &Node| other.key == node.key;
        // SAFETY: each node is inserted once; nodes outlive the table; the hash is the node's own.
        let there = unsafe { self.table.insert_unique(&self.domain, &guard, node, node.key as u64, is_same) };
        // SAFETY: it is on its chain, and nothing is written to it any more.
        there.unwrap_or(node).content.with(|content| unsafe { *content })
    }

    fn count(&self, key: usize) -> usize {
        let (guard, mut count) = (self.domain.read(), 0);
        let found = self.table.find_slow(&guard, key as u64, |node| {
            count += usize::from(node.key == key);
            false
        });
        assert!(found.is_none());
        count
    }
}

fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 20_000;
    builder.check(model);
}

#[test]
fn of_two_threads_with_one_key_one_inserts_its_node() {
    check(|| {
        let world = Arc::new(World::new(1, &[7, 7]));
        let other = {
            let world = world.clone();
            thread::spawn(move || world.insert(1))
        };
        let own = world.insert(0);
        assert_eq!(own, other.join().unwrap(), "both have the same node");
        assert_eq!(world.count(7), 1);
    });
}

/// Two nodes of other keys fill two buckets; the insertions of two nodes of `key` make the table grow,
/// and move a bucket each.
fn check_growing(key: usize) {
    check(move || {
        let world = World::new(2, &[2, 3, key, key]);
        assert_eq!((world.insert(0), world.insert(1)), (0, 1));
        let world = Arc::new(world);
        let other = {
            let world = world.clone();
            thread::spawn(move || world.insert(3))
        };
        let own = world.insert(2);
        assert_eq!(own, other.join().unwrap(), "both have the same node");
        assert_eq!((world.count(key), world.count(2), world.count(3)), (1, 1, 1));
    });
}

/// The key's bucket stays where it is.
#[test]
fn of_two_threads_with_one_key_one_inserts_its_node_while_the_table_grows() {
    check_growing(5);
}

/// The first insertion moves its own bucket, so the second one finds the node in the next table.
#[test]
fn of_two_threads_with_one_key_one_inserts_its_node_in_a_bucket_that_moves() {
    check_growing(4);
}
