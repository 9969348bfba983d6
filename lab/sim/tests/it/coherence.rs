//! The rules of the coherence model, each by a time-table that comes out differently without it.

use super::small::Do::{Add, Adds, Load, Store};
use super::small::{Step, config, machine, time_table};

/// The durations of the steps.
fn check(what: &str, steps: &[Step], wanted: &[u64]) {
    let durations: Vec<u64> = time_table(config(machine()), steps).iter().map(|result| result.0).collect();
    assert_eq!(durations, wanted, "{what}: {steps:?}");
}

#[test]
fn an_access_costs_what_the_state_of_its_line_and_the_distance_say() {
    // CPU 0 is in node 0, CPU 2 in node 1 (distance 1), CPU 4 in node 2 (distance 2).
    let mine = (0, 0, Store(1), 0);
    check("memory, then hits", &[(0, 0, Load, 0), (1000, 0, Load, 0)], &[400, 1]);
    check("a line read from memory is exclusive", &[(0, 0, Load, 0), (1000, 0, Store(1), 0)], &[400, 2]);
    check(
        "stores and read-modify-writes of the owner",
        &[mine, (1000, 0, Store(1), 0), (2000, 0, Add(1), 0)],
        &[400, 2, 10],
    );
    for (cpu, loads, stores, adds) in [(1, 100, 104, 110), (2, 200, 204, 210), (4, 300, 304, 310)] {
        check("a modified line is loaded", &[mine, (1000, cpu, Load, 0)], &[400, loads]);
        check("a modified line is taken by a store", &[mine, (1000, cpu, Store(1), 0)], &[400, stores]);
        check("a modified line is taken by an add", &[mine, (1000, cpu, Add(1), 0)], &[400, adds]);
    }
    check("a shared line comes from the nearest", &[mine, (1000, 4, Load, 0), (2000, 6, Load, 0)], &[400, 300, 150]);
    check("a shared line inside the node", &[mine, (1000, 4, Load, 0), (2000, 5, Load, 0)], &[400, 300, 50]);
    check("another line is another line", &[mine, (1000, 2, Load, 8)], &[400, 400]);
    check("another word of the line is the same line", &[mine, (1000, 2, Load, 7)], &[400, 200]);
}

#[test]
fn a_write_takes_all_copies_and_costs_the_way_to_the_farthest() {
    let shared = [(0, 0, Store(1), 0), (1000, 1, Load, 0), (2000, 2, Load, 0), (3000, 4, Load, 0)];
    let then = |more: &[Step]| [&shared, more].concat();
    check("a store of a sharer", &then(&[(4000, 0, Store(1), 0)]), &[400, 100, 150, 250, 304]);
    check(
        "the others load again",
        &then(&[(4000, 0, Store(1), 0), (5000, 1, Load, 0), (6000, 4, Load, 0)]),
        &[400, 100, 150, 250, 304, 100, 250],
    );
    check(
        "a line that only the own node's cache has is taken there",
        &[(0, 0, Store(1), 0), (1000, 1, Add(1), 0), (2000, 0, Add(1), 0)],
        &[400, 110, 110],
    );
}

#[test]
fn two_requests_queue_and_the_owner_keeps_the_line_between() {
    // CPU 1 takes the line of CPU 0 in 110 ns. CPU 2 asks 10 ns later: after CPU 1 has it (100), 0.5 to 1.5 times half
    // of 210 (the keep), and half of 210 (the rest).
    let mut seen = std::collections::BTreeSet::new();
    for seed in 1..=8 {
        let mut config = config(machine());
        config.seed = seed;
        let results = time_table(config, &[(0, 0, Store(1), 0), (1000, 1, Add(1), 0), (1010, 2, Add(1), 0)]);
        assert_eq!(results[1], (110, 1));
        let (duration, value) = results[2];
        assert!((100 + 52 + 105..=100 + 158 + 106).contains(&duration), "seed {seed}: {duration}");
        assert_eq!(value, 2);
        seen.insert(duration);
    }
    assert!(seen.len() > 2, "the keep is drawn: {seen:?}");
}

#[test]
fn an_owner_that_keeps_the_line_has_real_hits_and_one_that_does_not_has_none() {
    // CPU 1 adds three times in a row, while CPU 4 requests the line.
    let steps = [(0, 0, Store(0), 0), (1000, 1, Adds(3), 0), (1010, 4, Add(100), 0)];
    let kept = time_table(config(machine()), &steps);
    assert_eq!(kept[1].0, 110 + 10 + 10, "two hits");
    assert_eq!(kept[2].1, 3, "all three before the other");
    let lost = time_table(config(machine().with_queue(0.0, 0.5)), &steps);
    assert!(lost[1].0 > 300, "the line leaves at once and comes back: {lost:?}");
    assert!(lost[2].1 < 3, "{lost:?}");
}

#[test]
fn an_operation_takes_effect_when_its_line_arrives_not_when_it_is_asked_for() {
    // CPU 1 has the line on its way; CPU 4 asks, then CPU 0, of the owner's node. If that may overtake, it is first,
    // though it asked last.
    let steps = [(0, 2, Store(0), 0), (1000, 1, Add(1), 0), (1010, 4, Add(10), 0), (1020, 0, Add(100), 0)];
    for (overtake, found) in [(0, [0, 1, 11]), (1, [0, 101, 1])] {
        let mut machine = machine();
        machine.queue.overtake = overtake;
        let values: Vec<u64> = time_table(config(machine), &steps)[1..].iter().map(|result| result.1).collect();
        assert_eq!(values, found, "{overtake} may overtake");
    }
}

#[test]
fn overtaking_ends_after_as_many_as_may() {
    // CPUs 0 and 1 fetch the line from each other as often as they like; CPU 4 waits for one or for three.
    let steps = [
        (0, 0, Store(0), 0),
        (1000, 1, Add(1), 0),
        (1010, 4, Add(100), 0),
        (1020, 0, Adds(40), 0),
        (1170, 1, Adds(40), 0),
    ];
    let waits: Vec<u64> = [0, 1, 3]
        .map(|overtake| {
            let mut machine = machine().with_queue(0.1, 0.5);
            machine.queue.overtake = overtake;
            time_table(config(machine), &steps)[2].0
        })
        .to_vec();
    assert!(waits[0] < waits[1] && waits[1] < waits[2], "{waits:?}");
}

#[test]
fn one_fetch_serves_a_node_that_shares_a_cache_and_reads_of_other_nodes_take_turns_at_the_home() {
    // Node 0 has the line shared. Readers of nodes 1, 2 and 3 come at once, then the second CPUs of nodes 1 and 2.
    let steps: Vec<Step> = [(0, 0, Store(1), 0), (1000, 1, Load, 0)]
        .into_iter()
        .chain([(2000, 2, Load, 0), (2001, 4, Load, 0), (2002, 6, Load, 0), (2010, 3, Load, 0), (2011, 5, Load, 0)])
        .collect();
    let durations =
        |machine| time_table(config(machine), &steps)[2..].iter().map(|result| result.0).collect::<Vec<_>>();
    let shared = durations(machine());
    // The first at once; the second after 60 ns of the home; the third after 60 more, from node 2 by then.
    assert_eq!(shared[..3], [150, 59 + 250, 118 + 150], "{shared:?}");
    assert_eq!(shared[3], 140 + 50, "the fetch of CPU 2 serves CPU 3");
    let busy_home =
        [(0, 0, Store(1), 0), (1000, 1, Load, 0), (2000, 2, Load, 0), (3000, 4, Load, 0), (3001, 3, Load, 0)];
    check("a node that has the line does not wait for the home", &busy_home, &[400, 100, 150, 250, 50]);
    let mut machine = machine();
    machine.queue.shared_cache = false;
    let alone = durations(machine);
    assert!(alone[3] > shared[3], "without a shared cache CPU 3 waits for its turn at the home: {alone:?}");
}

#[test]
fn a_line_that_the_private_cache_has_no_room_for_comes_from_the_shared_cache_or_from_memory() {
    // 4 KiB are 64 lines; 256 others go through the cache in between.
    let mut steps = vec![(0, 0, Load, 0)];
    steps.extend((1..257).map(|line| (1000 * line, 0, Load, line as usize * 8)));
    steps.push((1_000_000, 0, Load, 0));
    steps.push((1_001_000, 0, Load, 0));
    for (shared_cache, finite, wanted) in [(true, true, 50), (false, true, 400), (true, false, 1)] {
        let mut machine = machine();
        machine.queue.shared_cache = shared_cache;
        let mut config = config(machine);
        config.finite_caches = finite;
        let results = time_table(config, &steps);
        let last: Vec<u64> = results[257..].iter().map(|result| result.0).collect();
        assert_eq!(last, [wanted, 1], "shared cache: {shared_cache}, finite: {finite}");
    }
}

#[test]
fn a_modified_line_that_was_evicted_is_nobodys_and_costs_the_others_no_transfer_from_a_cpu() {
    let mut steps = vec![(0, 0, Store(7), 0)];
    steps.extend((1..257).map(|line| (1000 * line, 0, Load, line as usize * 8)));
    steps.push((1_000_000, 2, Load, 0));
    for (shared_cache, wanted) in [(true, 150), (false, 500)] {
        let mut machine = machine();
        machine.queue.shared_cache = shared_cache;
        let results = time_table(config(machine), &steps);
        assert_eq!(results[257], (wanted, 7), "shared cache: {shared_cache}");
    }
}

#[test]
fn a_line_in_use_survives_a_stream_through_the_cache() {
    let mut steps = vec![(0, 0, Load, 0)];
    steps.extend(
        (1..400).flat_map(|line| [(2000 * line, 0, Load, line as usize * 8), (2000 * line + 1000, 0, Load, 0)]),
    );
    let results = time_table(config(machine()), &steps);
    let misses = results[1..].iter().skip(1).step_by(2).filter(|result| result.0 > 1).count();
    assert!(misses <= 2, "{misses} of 399 uses missed");
}
