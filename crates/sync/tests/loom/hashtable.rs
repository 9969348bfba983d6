//! loom models of `HashTable`. Under loom a table grows as soon as it has more nodes than buckets, and each insert and
//! remove moves one bucket.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::rcu::{RcuDomain, ReadGuard};
use lightfoot_sync::{HashNode, HashTable, SeqCount};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(model);
}

/// A node that is filed under its hash.
struct Node {
    next: AtomicUsize,
    hash: AtomicUsize,
    /// 1: first on its chain. 2: the same, and it has no count of removals.
    first: AtomicUsize,
    removals: SeqCount,
    /// Written before the node is inserted first.
    content: UnsafeCell<u32>,
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
        self.hash.load(Relaxed) as u64
    }

    fn is_first(&self) -> bool {
        self.first.load(Relaxed) != 0
    }

    fn removals(&self) -> Option<&SeqCount> {
        (self.first.load(Relaxed) != 2).then_some(&self.removals)
    }
}

/// A table and nodes; fields drop in order, the nodes after the table.
struct World {
    table: HashTable<Node>,
    nodes: Vec<Node>,
    domain: RcuDomain,
}

/// What one thread does in the world, all of it in one read section.
struct Actor<'w> {
    world: &'w World,
    guard: ReadGuard<'w>,
}

impl World {
    /// `hashes`: one node each. Those of `filed` are inserted in this order.
    fn new(buckets: usize, hashes: &[usize], filed: &[usize]) -> Arc<Self> {
        let node = |&hash: &usize| Node {
            next: AtomicUsize::new(0),
            hash: AtomicUsize::new(hash),
            first: AtomicUsize::new(1),
            removals: SeqCount::new(),
            content: UnsafeCell::new(0),
        };
        let nodes = hashes.iter().map(node).collect();
        let domain = RcuDomain::without_reclaimer();
        let world = Self { table: HashTable::new(&domain, buckets, ()), nodes, domain };
        let actor = world.enter();
        filed.iter().for_each(|&node| actor.insert(node));
        drop(actor);
        Arc::new(world)
    }

    fn enter(&self) -> Actor<'_> {
        Actor { world: self, guard: self.domain.read() }
    }

    /// Runs `f` on another thread.
    fn spawn(world: &Arc<Self>, f: impl Fn(&Actor<'_>) + 'static) -> thread::JoinHandle<()> {
        let world = world.clone();
        thread::spawn(move || f(&world.enter()))
    }
}

impl Actor<'_> {
    fn hash(&self, node: usize) -> u64 {
        self.world.nodes[node].hash.load(Relaxed) as u64
    }

    fn insert(&self, node: usize) {
        let World { table, nodes, domain } = self.world;
        // SAFETY: the models insert a node that is on no chain; nodes outlive the table; `hash` is the node's own.
        unsafe { table.insert(domain, &self.guard, &nodes[node], self.hash(node)) };
    }

    fn remove(&self, node: usize) {
        let World { table, nodes, domain } = self.world;
        nodes[node].removals.write_begin();
        assert!(table.remove(domain, &self.guard, &nodes[node], self.hash(node)), "node {node} was not on its chain");
        nodes[node].removals.write_end();
    }

    /// Takes a node off its chain and files it under another hash at once, as a slab hands memory out again.
    fn reuse(&self, node: usize, hash: usize) {
        self.remove(node);
        self.world.nodes[node].hash.store(hash, Relaxed);
        self.insert(node);
    }

    /// Takes a node off its chain and files it anew at once, behind the first nodes of the same chain.
    fn reuse_behind(&self, node: usize) {
        self.remove(node);
        self.world.nodes[node].first.store(0, Relaxed);
        self.insert(node);
    }

    fn finds(&self, node: usize, hash: u64) -> bool {
        let wanted = &self.world.nodes[node];
        self.world.table.find_slow(&self.guard, hash, |at| core::ptr::eq(at, wanted)).is_some()
    }

    /// As `finds`, by the quick search, which may miss what a writer disturbs.
    fn sees(&self, node: usize, hash: u64) -> bool {
        let wanted = &self.world.nodes[node];
        self.world.table.view(&self.guard).find(hash, |_| (), |at| core::ptr::eq(at, wanted)).is_some()
    }

    /// The nodes of the chain of `hash`, in the order of a search.
    fn chain(&self, hash: u64) -> Vec<usize> {
        let mut chain = Vec::new();
        let nodes = &self.world.nodes;
        self.world.table.find_slow(&self.guard, hash, |at| {
            chain.extend(nodes.iter().position(|node| core::ptr::eq(node, at)));
            false
        });
        chain
    }

    fn write(&self, node: usize, value: u32) {
        // SAFETY: see `Sync` of `Node`.
        self.world.nodes[node].content.with_mut(|content| unsafe { *content = value });
    }

    fn read(&self, node: usize) -> u32 {
        // SAFETY: see `Sync` of `Node`.
        self.world.nodes[node].content.with(|content| unsafe { *content })
    }
}

#[test]
fn a_node_that_stays_is_found_while_its_neighbour_is_reused_on_another_chain() {
    check(4, || {
        // Chain 0 is 1, 0; chain 1 is empty.
        let world = World::new(4, &[0, 0], &[0, 1]);
        let writer = World::spawn(&world, |actor| actor.reuse(1, 1));
        assert!(world.enter().finds(0, 0));
        writer.join().unwrap();
    });
}

#[test]
fn a_node_that_stays_is_found_while_its_neighbour_is_reused_behind_it() {
    check(4, || {
        // Chain 0 is 1, 0, and then 0, 1: a reader that stands on 1 comes to the end of the right chain.
        let world = World::new(4, &[0, 0], &[0, 1]);
        let writer = World::spawn(&world, |actor| actor.reuse_behind(1));
        assert!(world.enter().finds(0, 0));
        writer.join().unwrap();
    });
}

#[test]
fn a_node_that_stays_is_found_while_two_before_it_are_reused_behind_it() {
    check(2, || {
        // A reader on 2 has read the link to 1, which is then reused behind 0.
        let world = World::new(4, &[0, 0, 0], &[0, 1, 2]);
        let writer = World::spawn(&world, |actor| {
            actor.reuse_behind(1);
            actor.reuse_behind(2);
        });
        assert!(world.enter().finds(0, 0));
        writer.join().unwrap();
    });
}

#[test]
fn first_nodes_lead_their_chain_in_a_table_of_each_size() {
    check(0, || {
        let world = World::new(1, &[0; 6], &[]);
        let actor = world.enter();
        for node in 0..6 {
            world.nodes[node].first.store(node % 2, Relaxed);
            actor.insert(node);
            let chain = actor.chain(0);
            assert_eq!(chain.len(), node + 1);
            assert!(chain.is_sorted_by_key(|&node| 1 - node % 2), "{chain:?}");
        }
        assert!(world.table.reserved(&actor.guard).1 > 1);
        for node in 0..5 {
            actor.remove(node);
            let chain = actor.chain(0);
            assert_eq!(chain.len(), 5 - node);
            assert!(chain.is_sorted_by_key(|&node| 1 - node % 2), "{chain:?}");
        }
    });
}

#[test]
fn a_reader_that_is_carried_away_over_two_reused_nodes_knows_it() {
    check(3, || {
        // Chain 0 is 2, 1, 0. Node 0's old link is "end of chain 0": a reader that follows 2 to it must not see that.
        let world = World::new(4, &[0, 0, 0], &[0, 1, 2]);
        let writer = World::spawn(&world, |actor| {
            actor.reuse(0, 1);
            actor.reuse(2, 1);
        });
        assert!(world.enter().finds(1, 0));
        writer.join().unwrap();
    });
}

#[test]
fn a_node_that_stays_is_found_while_the_table_grows() {
    check(4, || {
        let world = World::new(1, &[0, 1], &[0]);
        let writer = World::spawn(&world, |actor| actor.insert(1));
        assert!(world.enter().finds(0, 0));
        writer.join().unwrap();
        let actor = world.enter();
        assert!(actor.sees(0, 0) && actor.sees(1, 1));
        assert_eq!(world.table.reserved(&actor.guard).1, 2);
    });
}

#[test]
fn a_node_that_stays_is_found_while_the_table_grows_twice() {
    check(3, || {
        // Nodes 0 and 1 share bucket 0 of two; node 2 makes it four.
        let world = World::new(1, &[0, 2, 1], &[0]);
        let writer = World::spawn(&world, |actor| {
            actor.insert(1);
            actor.insert(2);
        });
        assert!(world.enter().finds(0, 0));
        writer.join().unwrap();
    });
}

/// A table on its way from four buckets to two: bucket 0 was moved, and bucket 2 holds node 0. Node 1 is not inserted
/// yet and belongs in bucket 0 of both tables.
fn shrinking() -> Arc<World> {
    let world = World::new(1, &[2, 0, 1, 3, 5], &[0, 2, 3, 4]);
    let actor = world.enter();
    assert_eq!(world.table.reserved(&actor.guard).1, 4);
    [4, 3, 2].iter().for_each(|&node| actor.remove(node));
    drop(actor);
    world
}

#[test]
fn a_node_that_stays_is_found_while_the_table_shrinks() {
    check(3, || {
        let world = shrinking();
        let writer = World::spawn(&world, |actor| {
            actor.insert(1);
            actor.insert(2);
            actor.insert(3);
        });
        assert!(world.enter().finds(0, 2));
        writer.join().unwrap();
        let actor = world.enter();
        assert_eq!(world.table.reserved(&actor.guard).1, 2);
        assert!(actor.sees(0, 2) && actor.sees(1, 0));
    });
}

#[test]
fn a_reader_carried_into_the_next_table_sees_what_the_nodes_there_held() {
    check(3, || {
        let world = shrinking();
        let writer = World::spawn(&world, |actor| {
            actor.write(1, 7);
            // Into the next table; then bucket 2 is moved, and node 0 linked before node 1.
            actor.insert(1);
            actor.insert(2);
        });
        let actor = world.enter();
        if actor.sees(1, 2) {
            assert_eq!(actor.read(1), 7);
        }
        drop(actor);
        writer.join().unwrap();
    });
}

#[test]
fn the_mover_of_the_last_bucket_has_seen_what_the_others_moved() {
    check(3, || {
        let world = World::new(2, &[0, 1, 2, 3], &[0, 1]);
        let insert_and_look = |actor: &Actor<'_>, node: usize| {
            actor.insert(node);
            for (node, hash) in [(0, 0), (1, 1), (node, node as u64)] {
                assert!(actor.finds(node, hash), "node {node}");
            }
        };
        let other = World::spawn(&world, move |actor| insert_and_look(actor, 2));
        insert_and_look(&world.enter(), 3);
        other.join().unwrap();
        let actor = world.enter();
        assert!((0..4).all(|node| actor.finds(node, node as u64)));
    });
}

#[test]
fn writers_find_their_bucket_while_the_table_grows() {
    check(3, || {
        let world = World::new(1, &[0, 1], &[0]);
        let other = World::spawn(&world, |actor| actor.insert(1));
        world.enter().reuse(0, 3);
        other.join().unwrap();
        let actor = world.enter();
        assert!(actor.finds(0, 3) && actor.finds(1, 1) && !actor.finds(0, 0));
    });
}

#[test]
fn a_writer_sees_the_links_of_the_writer_before_it() {
    check(4, || {
        // Chain 0 is 1, 0; both go, from two threads.
        let world = World::new(4, &[0, 0, 0], &[0, 1]);
        let other = World::spawn(&world, |actor| {
            actor.insert(2);
            actor.remove(1);
        });
        world.enter().remove(0);
        other.join().unwrap();
        let actor = world.enter();
        assert!(actor.finds(2, 0) && !actor.finds(0, 0) && !actor.finds(1, 0));
    });
}

#[test]
fn a_reader_that_finds_a_node_sees_what_it_held_when_it_was_inserted() {
    for quick in [true, false] {
        check(4, move || {
            let world = World::new(4, &[0, 0], &[0]);
            let writer = World::spawn(&world, |actor| {
                actor.write(1, 7);
                actor.insert(1);
            });
            let actor = world.enter();
            let found = if quick { actor.sees(1, 0) } else { actor.finds(1, 0) };
            if found {
                assert_eq!(actor.read(1), 7);
            }
            drop(actor);
            writer.join().unwrap();
        });
    }
}

#[test]
fn a_reader_carried_to_a_node_sees_what_it_held_when_it_was_inserted() {
    for quick in [true, false] {
        check(4, move || {
            // Node 0 goes from chain 0 to before node 1, which is new: a reader on 0 comes to 1. (With counts, the slow
            // search has a fence there.)
            let world = World::new(4, &[0, 1], &[0]);
            world.nodes.iter().for_each(|node| node.first.store(2, Relaxed));
            let writer = World::spawn(&world, |actor| {
                actor.write(1, 7);
                actor.insert(1);
                actor.reuse(0, 1);
            });
            let actor = world.enter();
            let found = if quick { actor.sees(1, 0) } else { actor.finds(1, 0) };
            if found {
                assert_eq!(actor.read(1), 7);
            }
            drop(actor);
            writer.join().unwrap();
        });
    }
}
