//! Tests of the map: against the standard library's, with many versions, and counts of what a change or a comparison
//! touches.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::*;

type Numbers = Map<u32, u32>;
type Model = BTreeMap<u32, u32>;
type Changes = Vec<(u32, Option<u32>, Option<u32>)>;

/// Checks the structure below `node`: sizes, order, bounds. Returns the number of entries and of levels.
fn check_node(node: &Node<u32, u32>, is_root: bool, low: Option<u32>, high: Option<u32>) -> (usize, usize) {
    let fewest = match node {
        _ if !is_root => FEWEST,
        Node::Leaf(_) => 0,
        Node::Inner { .. } => 2,
    };
    assert!((fewest..=MOST).contains(&node.len()), "{} items", node.len());
    let keys: Vec<u32> = match node {
        Node::Leaf(entries) => entries.iter().map(|entry| entry.0).collect(),
        Node::Inner { bounds, .. } => bounds.to_vec(),
    };
    assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
    assert!(keys.iter().all(|key| low.is_none_or(|low| low <= *key) && high.is_none_or(|high| *key < high)));
    let Node::Inner { children, .. } = node else { return (keys.len(), 1) };
    assert_eq!(keys.len() + 1, children.len());
    let mut total = 0;
    let mut depths = Vec::new();
    for (i, child) in children.iter().enumerate() {
        let low = if i == 0 { low } else { Some(keys[i - 1]) };
        let (len, depth) = check_node(child, false, low, keys.get(i).copied().or(high));
        total += len;
        depths.push(depth);
    }
    assert!(depths.iter().all(|depth| *depth == depths[0]), "depths {depths:?}");
    (total, depths[0] + 1)
}

/// Checks the structure of `map`, and its entries against the model's. Returns the number of levels.
fn check(map: &Numbers, model: &Model) -> usize {
    let (len, depth) = check_node(&map.root, true, None, None);
    assert_eq!(len, model.len());
    assert!(map.range::<u32>(Bound::Unbounded).eq(model));
    depth
}

/// Checks searches for one key, in and beside the map.
fn check_key(map: &Numbers, model: &Model, key: u32) {
    assert_eq!(map.get(&key), model.get(&key));
    for from in [Bound::Included(&key), Bound::Excluded(&key)] {
        assert!(map.range(from).take(40).eq(model.range::<u32, _>((from, Bound::Unbounded)).take(40)));
    }
}

/// Returns the changes between two models.
fn model_diff(here: &Model, there: &Model) -> Changes {
    let mut keys: Vec<u32> = here.keys().chain(there.keys()).copied().collect();
    keys.sort_unstable();
    keys.dedup();
    let pairs = keys.into_iter().map(|key| (key, here.get(&key).copied(), there.get(&key).copied()));
    pairs.filter(|(_, here, there)| here != there).collect()
}

/// Returns the changes between two maps, and the number of pairs of values that the comparison looked at.
fn diff(here: &Numbers, there: &Numbers) -> (Changes, usize) {
    let looked = Cell::new(0);
    let same = |a: &u32, b: &u32| {
        looked.set(looked.get() + 1);
        a == b
    };
    let changes = here.diff(there, same).map(|(key, a, b)| (*key, a.copied(), b.copied())).collect();
    (changes, looked.get())
}

/// Makes some changes of both, of one kind: mostly insertions or removals, or ascending keys.
fn change(random: &mut fastrand::Rng, keys: u32, map: &mut Numbers, model: &mut Model) {
    let insertions = [1, 5, 9][random.usize(..3)];
    let ascends = random.u8(..4) == 0;
    let mut key = random.u32(..keys);
    for _ in 0..random.usize(..200) {
        key = if ascends { key + 1 } else { random.u32(..keys) };
        if random.u8(..10) < insertions {
            let value = random.u32(..4);
            assert_eq!(map.insert(key, value), model.insert(key, value));
        } else {
            assert_eq!(map.remove(&key), model.remove(&key));
        }
    }
}

/// Changes and copies up to 12 versions, and checks each against its model.
fn check_versions(seed: u64, keys: u32) {
    println!("seed {seed}, {keys} keys");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut versions = vec![(Numbers::default(), Model::new())];
    for _ in 0..150 {
        let mut place = random.usize(..versions.len());
        if random.bool() {
            let copy = versions[place].clone();
            if versions.len() < 12 {
                place = versions.len();
                versions.push(copy);
            } else {
                place = random.usize(..versions.len());
                versions[place] = copy;
            }
        }
        let (map, model) = &mut versions[place];
        change(&mut random, keys, map, model);
        check(map, model);
        check_key(map, model, random.u32(..keys + 1));
        let (here, there) = (&versions[place], &versions[random.usize(..versions.len())]);
        assert_eq!(diff(&here.0, &there.0).0, model_diff(&here.1, &there.1));
    }
    for (map, model) in &versions {
        check(map, model);
        (0..keys + 1).for_each(|key| check_key(map, model, key));
    }
}

#[test]
fn versions_change_independently_and_agree_with_a_model() {
    for seed in 0..8 {
        for keys in [20, 200, 3000] {
            check_versions(seed, keys);
        }
    }
}

/// Returns a map and a model with the even numbers below `2 * len`, inserted in random or in ascending order.
fn even_numbers(len: u32, is_shuffled: bool) -> (Numbers, Model) {
    let mut keys: Vec<u32> = (0..len).map(|i| 2 * i).collect();
    if is_shuffled {
        fastrand::Rng::with_seed(u64::from(len)).shuffle(&mut keys);
    }
    let mut map = Numbers::default();
    for key in &keys {
        map.insert(*key, 0);
    }
    (map, keys.into_iter().map(|key| (key, 0)).collect())
}

#[test]
fn depth_is_logarithmic_after_insertions_and_after_removals() {
    // Ascending insertions leave 12 items in a node, and 12^5 is 248,832; random ones leave fewer.
    for (is_shuffled, depth) in [(true, 6), (false, 5)] {
        let (mut map, mut model) = even_numbers(100_000, is_shuffled);
        assert!(check(&map, &model) <= depth);
        // A node has 4 items at least: 4^5 is 1024.
        let keep = |key: u32| key.is_multiple_of(200);
        for key in (0..200_000).filter(|key| !keep(*key)) {
            assert_eq!(map.remove(&key), model.remove(&key));
        }
        assert!(check(&map, &model) <= 5);
        for key in (0..200_000).rev().filter(|key| keep(*key)) {
            assert_eq!(map.remove(&key), Some(0));
        }
        assert_eq!(check(&map, &Model::new()), 1);
    }
}

#[test]
fn diff_looks_at_the_neighbourhood_of_changes_only() {
    for is_shuffled in [true, false] {
        let (map, model) = even_numbers(100_000, is_shuffled);
        let mut random = fastrand::Rng::with_seed(3);
        // Each kind of change moves the nodes beside it in another way.
        for kind in ["replace", "insert", "remove", "all"] {
            let (mut changed, mut changed_model) = (map.clone(), model.clone());
            for i in 0..100 {
                let key = random.u32(..100_000) * 2;
                if kind == "replace" || kind == "all" && i % 3 == 0 {
                    changed.insert(key, 1);
                    changed_model.insert(key, 1);
                } else if kind == "insert" || kind == "all" && i % 3 == 1 {
                    changed.insert(key + 1, 1);
                    changed_model.insert(key + 1, 1);
                } else {
                    changed.remove(&key);
                    changed_model.remove(&key);
                }
            }
            check(&changed, &changed_model);
            for (here, there) in
                [((&map, &model), (&changed, &changed_model)), ((&changed, &changed_model), (&map, &model))]
            {
                let (changes, looked) = diff(here.0, there.0);
                assert_eq!(changes, model_diff(here.1, there.1));
                assert!(looked <= 100 * MOST, "{kind}: looked at {looked} pairs of values");
            }
        }
        assert_eq!(diff(&map, &map.clone()), (Vec::new(), 0));
    }
}

#[test]
fn diff_skips_shared_nodes_of_trees_with_different_heights() {
    let (large, large_model) = even_numbers(3000, true);
    let (mut small, mut small_model) = (large.clone(), large_model.clone());
    for key in (600..6000).step_by(2) {
        small.remove(&key);
        small_model.remove(&key);
    }
    assert!(check(&small, &small_model) < check(&large, &large_model));
    for (here, there, expected) in [
        (&large, &small, model_diff(&large_model, &small_model)),
        (&small, &large, model_diff(&small_model, &large_model)),
    ] {
        let (changes, looked) = diff(here, there);
        assert_eq!(changes, expected);
        assert!(looked <= 2 * MOST, "looked at {looked} pairs of values");
    }
}

/// Returns the addresses of the nodes on the path to `key`.
fn path(map: &Numbers, key: u32) -> Vec<*const Node<u32, u32>> {
    let mut path = vec![Arc::as_ptr(&map.root)];
    let mut node = &map.root;
    while let Node::Inner { bounds, children } = &**node {
        node = &children[child_of(bounds, &key)];
        path.push(Arc::as_ptr(node));
    }
    path
}

#[test]
fn a_change_copies_the_shared_nodes_of_its_path_once() {
    let (mut map, _) = even_numbers(1000, true);
    let before = path(&map, 500);
    map.insert(500, 1);
    assert_eq!(path(&map, 500), before, "a map that is not shared changes in place");

    let copy = map.clone();
    map.remove(&501);
    assert_eq!(path(&map, 500), before, "a removal of an absent key copies nothing");
    map.insert(500, 2);
    assert_eq!(path(&copy, 500), before);
    let after = path(&map, 500);
    assert!(after.iter().zip(&before).all(|(after, before)| after != before), "the change copies the whole path");
    map.insert(500, 3);
    assert_eq!(path(&map, 500), after, "the second change copies nothing");
    assert_eq!((copy.get(&500), map.get(&500)), (Some(&1), Some(&3)));
}

/// A key with an owned part, and its borrowed form.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Owned(u64, Arc<[u8]>);

impl Compare<Owned> for (u64, &[u8]) {
    fn compare(&self, key: &Owned) -> Ordering {
        self.cmp(&(key.0, &key.1))
    }
}

#[test]
fn a_search_takes_a_borrowed_form_of_the_key() {
    let mut map = Map::default();
    for name in ["a", "b", "c"] {
        map.insert(Owned(1, name.as_bytes().into()), name);
    }
    assert_eq!(map.get(&(1, &b"b"[..])), Some(&"b"));
    assert_eq!(map.get(&(2, &b"b"[..])), None);
    assert_eq!(map.remove(&(1, &b"b"[..])), Some("b"));
    let from_b = {
        let name = b"b".to_vec();
        map.range(Bound::Included(&(1, &name[..])))
    };
    assert_eq!(from_b.map(|(_, name)| *name).collect::<Vec<_>>(), ["c"]);
}
