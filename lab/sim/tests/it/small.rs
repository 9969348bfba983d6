//! A machine with round numbers, and a time-table of accesses on it.

use lightfoot_sim::Machine;
use lightfoot_sim::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, fence};
use lightfoot_sim::machine::{Hit, Miss, Queue, System, Window};
use std::cell::Cell;
use std::rc::Rc;

/// Four nodes of two CPUs each; nodes 0 and 1 are a pair, 2 and 3 another.
pub(crate) fn machine() -> Machine {
    Machine {
        name: "small".into(),
        description: "round numbers".into(),
        nodes: 4,
        cpus_per_node: 2,
        groups: vec![2],
        line_bytes: 64,
        cache_kib: 4,
        cache_ways: 4,
        hit: Hit { load_ns: 1.0, store_ns: 2.0, rmw_ns: 10.0, fence_ns: 20.0, pause_ns: 5.0, spin_turn_ns: 10.0 },
        miss: Miss {
            load_modified_ns: vec![100.0, 200.0, 300.0],
            load_shared_ns: vec![50.0, 150.0, 250.0],
            store_ns: vec![104.0, 204.0, 304.0],
            rmw_ns: vec![110.0, 210.0, 310.0],
            memory_ns: vec![400.0, 500.0, 600.0],
        },
        queue: Queue {
            shared_cache: true,
            local_occupancy_ns: 10.0,
            home_occupancy_ns: 60.0,
            keep: 0.5,
            rest: 0.5,
            overtake: 0,
        },
        window: Window::default(),
        system: System {
            call_ns: 100.0,
            wake_ns: 500.0,
            wake_latency_ns: 2000.0,
            sleep_ns: 1000.0,
            switch_ns: 1500.0,
            slice_ns: 1_000_000.0,
        },
    }
}

/// The same with a buffer for so many stores and so many misses in flight.
pub(crate) fn buffered(stores: usize, misses: usize) -> Machine {
    machine().with_window(stores, misses)
}

/// What a step does to its word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Do {
    Load,
    Store(u64),
    Add(u64),
    /// A full fence; the word does not matter.
    Fence,
    /// Adds so often in a row; the duration is of all.
    Adds(u64),
}

/// At a time (in nanoseconds, from a common start), on a CPU, to a word; each eighth word begins a line.
pub(crate) type Step = (u64, usize, Do, usize);

/// What each step took, in nanoseconds, and the value that it found.
pub(crate) fn time_table(config: lightfoot_sim::Config, steps: &[Step]) -> Vec<(u64, u64)> {
    let found: Rc<Vec<Cell<(u64, u64)>>> = Rc::new(steps.iter().map(|_| Cell::new((0, 0))).collect());
    let (results, steps) = (Rc::clone(&found), Rc::new(steps.to_vec()));
    lightfoot_sim::run(
        config,
        || {
            let words: Box<[[AtomicU64; 8]]> = (0..512).map(|_| Default::default()).collect();
            assert!(words.as_ptr().addr().is_multiple_of(64), "the arena aligns large blocks");
            words
        },
        move |lines, thread| {
            let mine = steps.iter().zip(results.iter()).filter(|((_, cpu, _, _), _)| *cpu == thread);
            for (&(at, _, what, word), result) in mine {
                wait_until(10_000 + at);
                let (word, begin) = (&lines[word / 8][word % 8], lightfoot_sim::now_ns());
                let value = match what {
                    Do::Load => word.load(Relaxed),
                    Do::Store(value) => {
                        word.store(value, Relaxed);
                        value
                    }
                    Do::Add(value) => word.fetch_add(value, Relaxed),
                    Do::Fence => {
                        fence(SeqCst);
                        0
                    }
                    Do::Adds(times) => (0..times).map(|_| word.fetch_add(1, Relaxed)).max().unwrap_or(0),
                };
                result.set((lightfoot_sim::now_ns() - begin, value));
            }
        },
    );
    found.iter().map(Cell::get).collect()
}

/// Spends private time until `ns` after the beginning.
pub(crate) fn wait_until(ns: u64) {
    lightfoot_sim::cost(ns.checked_sub(lightfoot_sim::now_ns()).expect("a step begins after the one before has ended"));
}

/// One thread on each CPU, no warm-up, one millisecond.
pub(crate) fn config(machine: Machine) -> lightfoot_sim::Config {
    let mut config = lightfoot_sim::Config::new(machine, 8, 1000);
    config.warm_ns = 0;
    config
}
