//! When a table changes its size, and that it loses no node.

use super::*;

struct Node {
    next: AtomicUsize,
    hash: u64,
}

// SAFETY: the word is a field that only the table writes.
unsafe impl HashNode for Node {
    type Key = ();

    fn next(&self) -> &AtomicUsize {
        &self.next
    }

    fn hash(&self, (): &(), _guard: &ReadGuard<'_>) -> u64 {
        self.hash
    }
}

/// A table and nodes; fields drop in order, the nodes after the table.
struct World {
    table: HashTable<Node>,
    nodes: Vec<Node>,
    domain: RcuDomain,
}

impl World {
    fn new(buckets: usize, nodes: usize) -> Self {
        let domain = RcuDomain::without_reclaimer();
        let node =
            |at: usize| Node { next: AtomicUsize::new(0), hash: (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) };
        Self { table: HashTable::new(&domain, buckets, ()), nodes: (0..nodes).map(node).collect(), domain }
    }

    fn insert(&self, nodes: core::ops::Range<usize>) {
        for node in &self.nodes[nodes] {
            // SAFETY: the tests insert a node that is on no chain; nodes outlive the table; the hash is the node's own.
            unsafe { self.table.insert(&self.domain, &self.domain.read(), node, node.hash) };
        }
    }

    fn remove(&self, nodes: core::ops::Range<usize>) {
        for node in &self.nodes[nodes] {
            assert!(self.table.remove(&self.domain, &self.domain.read(), node, node.hash));
        }
    }

    fn buckets(&self) -> usize {
        self.table.reserved(&self.domain.read()).1
    }

    fn finds(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        self.table.find_slow(&self.domain.read(), node.hash, |other| core::ptr::eq(other, node)).is_some()
    }
}

#[test]
fn a_table_grows_by_four_in_a_burst_and_by_two_otherwise() {
    let world = World::new(64, 20_000);
    world.insert(0..200);
    assert_eq!(world.buckets(), 256);
    // Not a burst: many operations for few nodes.
    for _ in 0..100 {
        world.remove(100..200);
        world.insert(100..200);
    }
    world.insert(200..400);
    assert_eq!(world.buckets(), 512);
    world.insert(400..1000);
    assert_eq!(world.buckets(), 2048);
    world.insert(1000..20_000);
    assert_eq!(world.buckets(), 32_768);
    assert!((0..20_000).all(|node| world.finds(node)));
}

#[test]
fn a_table_keeps_its_size_while_its_nodes_are_removed_and_made_again() {
    let world = World::new(64, 10_000);
    world.insert(0..10_000);
    let buckets = world.buckets();
    for _ in 0..10 {
        world.remove(0..10_000);
        assert_eq!(world.buckets(), buckets);
        world.insert(0..10_000);
        assert_eq!(world.buckets(), buckets);
    }
}

#[test]
fn a_table_that_stays_sparse_shrinks_to_what_its_nodes_need() {
    let world = World::new(64, 10_000);
    world.insert(0..10_000);
    let buckets = world.buckets();
    world.remove(200..10_000);
    for _ in 0..buckets / 200 {
        world.remove(100..200);
        world.insert(100..200);
    }
    assert_eq!(world.buckets(), 512);
    assert!((0..200).all(|node| world.finds(node)) && !world.finds(200));
}

#[test]
fn threads_that_insert_and_remove_while_the_table_changes_lose_no_node() {
    const EACH: usize = 20_000;
    let world = World::new(1, 3 * EACH);
    std::thread::scope(|s| {
        for first in [0, EACH, 2 * EACH] {
            let world = &world;
            s.spawn(move || {
                for _ in 0..3 {
                    world.insert(first..first + EACH);
                    assert!((first..first + EACH).all(|node| world.finds(node)));
                    world.remove(first..first + EACH - 1000);
                    assert!((first + EACH - 1000..first + EACH).all(|node| world.finds(node)));
                    world.remove(first + EACH - 1000..first + EACH);
                }
                world.insert(first..first + 1000);
            });
        }
    });
    assert!((0..3 * EACH).all(|node| world.finds(node) == (node % EACH < 1000)));
    assert!(world.table.count() == 3000);
}
