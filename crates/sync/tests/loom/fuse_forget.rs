//! loom models of the table of FUSE nodes: the very file of `crates/fuse/src/nodes.rs`, with one shard.
//!
//! The models catch a forget that counts down in one section and removes in another, and a lookup that does not look
//! again after it has made its value. The thread to which a forget gave a value marks the value dead, as the session
//! ends nodes that the kernel has forgotten; a thread that may still use a node must never find that mark.

#[allow(dead_code, reason = "the models need a part of it")]
#[path = "../../../fuse/src/nodes.rs"]
mod nodes;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;
use nodes::{NodeId, Nodes};

struct Value {
    key: u64,
    is_dead: AtomicBool,
}

type Table = Nodes<Arc<Value>>;

fn value(key: u64) -> Arc<Value> {
    Arc::new(Value { key, is_dead: AtomicBool::new(false) })
}

fn tell(nodes: &Table, key: u64) -> NodeId {
    let (id, value) = nodes.look_up(key, |value| value.key == key, || value(key)).expect("nobody else has the id");
    assert_eq!(value.key, key);
    assert!(!value.is_dead.load(Relaxed), "a lookup was answered with a dead node");
    id
}

/// Whether the node went.
fn forget(nodes: &Table, id: NodeId, lookups: u64) -> bool {
    let gone = nodes.forget(id.id, lookups);
    if let Some(value) = &gone {
        assert!(!value.is_dead.swap(true, Relaxed), "a node went twice");
    }
    gone.is_some()
}

/// Checks that the kernel may use `id` of `key`, which `lookups` replies reported to it.
fn is_known(nodes: &Table, id: NodeId, key: u64, lookups: u64) {
    let value = nodes.get(id.id).expect("reported, and not forgotten");
    assert_eq!((value.key, value.is_dead.load(Relaxed)), (key, false));
    assert_eq!(nodes.lookups(id.id), Some(lookups), "a count was lost");
}

fn is_empty(nodes: &Table) {
    assert_eq!((nodes.len(), nodes.total_lookups(), nodes.excess_forgets()), (1, 0, 0));
}

fn check(model: impl Fn(Arc<Table>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.max_branches = 20_000;
    builder.check(move || model(Arc::new(Nodes::new(value(1)))));
}

#[test]
fn forget_against_lookup() {
    check(|nodes| {
        let first = tell(&nodes, 7);
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || forget(&nodes, first, 1))
        };
        let second = tell(&nodes, 7);
        assert!(nodes.get(second.id).is_some_and(|value| value.key == 7), "told, and not forgotten");
        let went = other.join().unwrap();
        // Revived before it went, or made anew in its place.
        assert_eq!(second.generation != first.generation, went);
        is_known(&nodes, second, 7, 1);
        assert!(forget(&nodes, second, 1));
        is_empty(&nodes);
    });
}

#[test]
fn no_count_is_lost_between_two_lookups_and_the_forget_of_an_earlier_one() {
    check(|nodes| {
        let first = tell(&nodes, 7);
        let forgets = {
            let nodes = nodes.clone();
            thread::spawn(move || forget(&nodes, first, 1))
        };
        let looks_up = {
            let nodes = nodes.clone();
            thread::spawn(move || tell(&nodes, 7))
        };
        let id = tell(&nodes, 7);
        let other = looks_up.join().unwrap();
        assert_eq!(other.id, id.id);
        assert_eq!(forgets.join().unwrap(), id.generation != first.generation || other.generation != first.generation);
        is_known(&nodes, id, 7, 2);
        assert!(forget(&nodes, id, 2));
        is_empty(&nodes);
    });
}

#[test]
fn of_two_lookups_of_a_new_key_both_are_counted_and_one_node_is_made() {
    check(|nodes| {
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || tell(&nodes, 7))
        };
        let id = tell(&nodes, 7);
        assert_eq!(other.join().unwrap(), id);
        is_known(&nodes, id, 7, 2);
        assert_eq!(nodes.len(), 2);
        assert!(forget(&nodes, id, 2));
        is_empty(&nodes);
    });
}

#[test]
fn of_two_forgets_the_last_one_and_no_other_gets_the_value() {
    check(|nodes| {
        let id = tell(&nodes, 7);
        assert_eq!(tell(&nodes, 7), id);
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || forget(&nodes, id, 1))
        };
        let here = forget(&nodes, id, 1);
        assert!(here != other.join().unwrap());
        is_empty(&nodes);
    });
}

#[test]
fn a_slot_that_a_forget_frees_differs_from_the_next_lookups_slot() {
    check(|nodes| {
        let first = tell(&nodes, 7);
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || forget(&nodes, first, 1))
        };
        let second = tell(&nodes, 8);
        assert!(second != first, "one name for two nodes");
        is_known(&nodes, second, 8, 1);
        assert!(other.join().unwrap());
        is_known(&nodes, second, 8, 1);
        assert!(forget(&nodes, second, 1));
        is_empty(&nodes);
    });
}

#[test]
fn the_clock_gives_no_node_that_was_gone_before_it_began() {
    check(|nodes| {
        let (first, second) = (tell(&nodes, 7), tell(&nodes, 8));
        // Takes the marks off.
        nodes.coldest(2, &mut Vec::new());
        let other = {
            let nodes = nodes.clone();
            thread::spawn(move || forget(&nodes, first, 1))
        };
        let mut cold = Vec::new();
        nodes.coldest(2, &mut cold);
        assert!(cold.iter().any(|(id, value)| (*id, value.key) == (second.id, 8)), "nobody asked for it");
        assert!(cold.iter().all(|(id, value)| value.key == if *id == first.id { 7 } else { 8 }));
        assert!(other.join().unwrap());
        cold.clear();
        nodes.coldest(2, &mut cold);
        assert!(cold.iter().all(|(id, _)| *id == second.id));
    });
}
