//! The table of nodes by itself, and against a model.

use super::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

type Table = Nodes<Arc<u64>>;

fn table() -> Table {
    Nodes::new(Arc::new(ROOT))
}

fn look_up(nodes: &Table, key: u64) -> NodeId {
    let (id, value) = nodes.look_up(key, |value| **value == key, || Arc::new(key)).expect("the id is free");
    assert_eq!((*value, id.id), (key, key));
    id
}

#[test]
fn a_node_stays_until_every_lookup_is_forgotten() {
    let nodes = table();
    let id = look_up(&nodes, 7);
    assert_eq!(nodes.look_up(7, |_| true, || panic!("it is known")).map(|found| found.0), Some(id));
    assert_eq!((nodes.lookups(id.id), nodes.total_lookups(), nodes.len()), (Some(2), 2, 2));
    assert_eq!(nodes.forget(id.id, 1), None);
    assert_eq!((nodes.get(id.id), nodes.find(7).map(|found| found.0)), (Some(Arc::new(7)), Some(id)));
    assert_eq!(nodes.forget(id.id, 1), Some(Arc::new(7)));
    assert_eq!((nodes.get(id.id), nodes.find(7), nodes.lookups(id.id)), (None, None, None));
    assert_eq!((nodes.len(), nodes.total_lookups(), nodes.excess_forgets()), (1, 0, 0));
}

#[test]
fn a_number_that_is_used_again_has_the_next_generation() {
    let nodes = table();
    let first = look_up(&nodes, 7);
    nodes.forget(first.id, 1);
    let second = look_up(&nodes, 7);
    assert_eq!(second, NodeId { generation: first.generation + 1, ..first });
}

#[test]
fn the_root_is_known_from_the_start_and_never_forgotten() {
    let nodes = table();
    assert!(nodes.look_up(ROOT, |_| true, || panic!("it is the root's")).is_none());
    assert_eq!(nodes.forget(ROOT, u64::MAX), None);
    assert_eq!((nodes.get(ROOT), nodes.lookups(ROOT), nodes.len()), (Some(Arc::new(ROOT)), Some(1), 1));
    assert_eq!(nodes.find(ROOT).map(|found| found.0.id), Some(ROOT));
    assert_eq!(nodes.excess_forgets(), 0);
}

#[test]
fn an_unknown_node_is_not_found_and_forgetting_it_is_counted() {
    let nodes = table();
    for (count, id) in (1..).zip([0, 2, 3, 1 << 31, 1 << 32, u64::MAX]) {
        assert_eq!((nodes.get(id), nodes.lookups(id), nodes.forget(id, 1)), (None, None, None), "{id}");
        assert_eq!(nodes.excess_forgets(), count);
    }
    let id = look_up(&nodes, 7).id;
    assert_eq!(nodes.forget(id, 0), None);
    assert_eq!(nodes.forget(id, u64::MAX - 10), Some(Arc::new(7)));
    assert_eq!((nodes.len(), nodes.total_lookups()), (1, 0));
    // Wraps at worst; it is a figure.
    assert_eq!(nodes.forget(id, u64::MAX), None);
}

#[test]
fn a_value_is_made_and_dropped_with_no_lock_held() {
    struct LocksOnDrop(Option<Arc<Nodes<Arc<LocksOnDrop>>>>);
    impl Drop for LocksOnDrop {
        fn drop(&mut self) {
            if let Some(nodes) = &self.0 {
                // Every shard's lock.
                assert_eq!(nodes.total_lookups(), 0);
            }
        }
    }
    let nodes = Arc::new(Nodes::new(Arc::new(LocksOnDrop(None))));
    let make = || {
        assert_eq!(nodes.total_lookups(), 0);
        Arc::new(LocksOnDrop(Some(nodes.clone())))
    };
    let (id, value) = nodes.look_up(2, |_| true, make).expect("the id is free");
    drop(value);
    drop(nodes.forget(id.id, 1));
}

#[test]
fn a_value_made_in_vain_is_dropped() {
    let nodes = table();
    let mut inner = None;
    // The node comes while its value is made.
    let make = || {
        inner = Some(look_up(&nodes, 7));
        Arc::new(8)
    };
    let (id, value) = nodes.look_up(7, |_| true, make).expect("the id is free");
    assert_eq!((Some(id), *value, nodes.lookups(id.id)), (inner, 7, Some(2)));
}

#[test]
fn the_clock_returns_nodes_that_were_not_used_since_it_came_by() {
    let nodes = table();
    let ids: Vec<u64> = (2..=1000).map(|key| look_up(&nodes, key).id).collect();
    let cold = |n| {
        let mut out = Vec::new();
        nodes.coldest(n, &mut out);
        out.into_iter().map(|(id, _)| id).collect::<BTreeSet<u64>>()
    };
    assert_eq!(cold(usize::MAX), BTreeSet::new(), "all are new");
    let hot: BTreeSet<u64> = ids[..300].iter().copied().collect();
    hot.iter().for_each(|&id| assert!(nodes.get(id).is_some()));
    let all: BTreeSet<u64> = ids.iter().copied().collect();
    assert_eq!(cold(usize::MAX), &all - &hot);
    assert_eq!(cold(usize::MAX), all, "none was used in between");
}

#[test]
fn the_clock_gives_no_more_than_is_asked_for_and_goes_on_from_there() {
    let nodes = table();
    let all: BTreeSet<u64> = (2..=5000).map(|key| look_up(&nodes, key).id).collect();
    let mut first = Vec::new();
    nodes.coldest(usize::MAX, &mut first);
    assert!(first.is_empty());
    let (mut given, mut calls) = (BTreeSet::new(), 0);
    while given.len() < all.len() {
        let mut out = Vec::new();
        nodes.coldest(100, &mut out);
        assert!(out.len() <= 100);
        let before = given.len();
        given.extend(out.iter().map(|&(id, _)| id));
        calls += 1;
        assert!(calls < 1000, "{} of {} after {calls} calls, {before} before", given.len(), all.len());
    }
    assert_eq!(given, all);
}

#[test]
fn memory_is_given_back_when_nodes_go() {
    let nodes = table();
    let empty = nodes.bytes();
    let ids: Vec<u64> = (2..=100_000).map(|key| look_up(&nodes, key).id).collect();
    let full = nodes.bytes();
    let each = (full - empty) / ids.len();
    let beside = each - size_of::<u64>() - size_of::<Arc<u64>>();
    assert!((20..=44).contains(&beside), "{beside} bytes a node beside key and value");
    ids.iter().for_each(|&id| assert!(nodes.forget(id, 1).is_some()));
    // Each shard keeps a few slots.
    assert!(nodes.bytes() - empty < (full - empty) / 10, "{} of {full}", nodes.bytes());
    assert_eq!(look_up(&nodes, 2).generation, 99_999, "no generation is given out twice");
}

#[test]
fn each_node_is_visited_once_with_no_lock_held() {
    let nodes = table();
    let all: BTreeSet<u64> = (2..=500).map(|key| look_up(&nodes, key).id).chain([ROOT]).collect();
    let mut seen = BTreeSet::new();
    nodes.for_each(|id, value| {
        assert!(seen.insert(id), "{id} twice");
        assert_eq!(nodes.get(id), Some(value));
    });
    assert_eq!(seen, all);
}

#[test]
fn at_random_the_table_does_what_a_map_does() {
    let seed = fastrand::u64(..);
    println!("seed {seed:#x}");
    let (mut random, nodes) = (fastrand::Rng::with_seed(seed), table());
    // By key: id, count. And the highest generation that each id had.
    let mut model: BTreeMap<u64, (NodeId, u64)> = BTreeMap::new();
    let mut generations: BTreeMap<u64, u64> = BTreeMap::new();
    for turn in 0..200_000_u64 {
        // Grows for a while, then shrinks.
        let grows = turn / 20_000 % 2 == 0;
        let key = random.u64(2..4002);
        let looks_up = random.u8(..10) < if grows { 7 } else { 2 };
        if looks_up {
            let id = look_up(&nodes, key);
            let entry = model.entry(key).or_insert((id, 0));
            if entry.1 == 0 {
                let before = generations.insert(id.id, id.generation);
                assert!(before < Some(id.generation), "seed {seed:#x}: {id:?} was given out before");
            }
            assert_eq!(entry.0, id, "seed {seed:#x}");
            entry.1 += 1;
        } else if let Some(entry) = model.get_mut(&key) {
            let lookups = random.u64(1..=entry.1);
            let gone = nodes.forget(entry.0.id, lookups);
            entry.1 -= lookups;
            assert_eq!(gone.map(|value| *value), (entry.1 == 0).then_some(key), "seed {seed:#x}");
            if entry.1 == 0 {
                model.remove(&key);
            }
        }
        let other = random.u64(2..4002);
        assert_eq!(nodes.find(other).map(|found| found.0), model.get(&other).map(|entry| entry.0), "seed {seed:#x}");
    }
    assert_eq!(nodes.len(), model.len() + 1);
    assert_eq!(nodes.total_lookups(), model.values().map(|entry| entry.1).sum::<u64>());
    assert_eq!(nodes.excess_forgets(), 0);
    for (key, (id, lookups)) in model {
        assert_eq!((nodes.get(id.id), nodes.lookups(id.id)), (Some(Arc::new(key)), Some(lookups)), "seed {seed:#x}");
    }
}

#[test]
fn threads_that_look_up_and_forget_the_same_keys_leave_nothing_behind() {
    let nodes = table();
    std::thread::scope(|s| {
        for thread in 0..4_u64 {
            let nodes = &nodes;
            s.spawn(move || {
                let mut random = fastrand::Rng::with_seed(thread);
                for _ in 0..20_000 {
                    let key = random.u64(2..10);
                    let id = look_up(nodes, key).id;
                    assert_eq!(nodes.get(id).map(|value| *value), Some(key), "it is not forgotten");
                    nodes.forget(id, 1);
                }
            });
        }
    });
    assert_eq!((nodes.len(), nodes.total_lookups(), nodes.excess_forgets()), (1, 0, 0));
}

#[test]
fn all_go_at_once() {
    let nodes = table();
    (2..500).for_each(|key| _ = look_up(&nodes, key));
    let mut all: Vec<u64> = nodes.forget_all().iter().map(|value| **value).collect();
    all.sort_unstable();
    assert_eq!(all, (2..500).collect::<Vec<_>>());
    assert_eq!((nodes.len(), nodes.total_lookups(), nodes.get(2)), (1, 0, None));
    look_up(&nodes, 2);
}

#[test]
fn an_id_that_another_file_has_is_not_given_to_a_second() {
    let nodes = table();
    let id = look_up(&nodes, 7);
    assert!(nodes.look_up(7, |value| **value == 8, || Arc::new(8)).is_none());
    assert_eq!((nodes.lookups(7), nodes.len()), (Some(1), 2));
    // One that comes while the value is made.
    assert!(nodes.look_up(9, |value| **value == 8, || Arc::new(*look_up_other(&nodes, 9))).is_none());
    assert_eq!(nodes.lookups(9), Some(1));
    nodes.forget(id.id, 1);
    assert!(nodes.look_up(7, |value| **value == 8, || Arc::new(8)).is_some());
}

fn look_up_other(nodes: &Table, key: u64) -> Arc<u64> {
    look_up(nodes, key);
    Arc::new(8)
}
