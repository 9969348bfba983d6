//! Waiting: no wake is lost, no thread spins in the host's time, and the physical traffic stays.

use super::small::{buffered, config, machine, wait_until};
use lightfoot_sim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use lightfoot_sim::hint::{spin_until, spin_until_bounded};
use lightfoot_sim::{Machine, Report, Schedule};
use std::cell::Cell;
use std::rc::Rc;

#[test]
fn a_spinner_sees_a_write_after_the_invalidation_and_one_fetch() {
    let waited = Rc::new(Cell::new(0));
    let result = Rc::clone(&waited);
    let report = lightfoot_sim::run(
        config(machine()),
        || AtomicU32::new(0),
        move |flag, thread| match thread {
            0 => {
                wait_until(100_000);
                flag.store(1, Relaxed);
            }
            2 => {
                spin_until(|| flag.load(Relaxed) == 1);
                result.set(lightfoot_sim::now_ns());
            }
            _ => {}
        },
    );
    // The store is issued at 100 000; half of 204 for the invalidation; at most 10 of a turn; the line is on its way to the
    // writer until 204, which then keeps it for half to one and a half of 105, and 0.5 of 200 bring it back; one hit.
    let late = waited.get() - 100_000;
    assert!((204 + 52 + 100..204 + 158 + 100 + 2).contains(&late), "{late}");
    let counters = &report.counters;
    assert_eq!((counters.conditions, counters.spinner_wakes), (1, 1), "{counters:?}");
    assert!(counters.resumes < 40, "100 us of spinning are not executed: {counters:?}");
}

/// All threads pass a token round; each waits on a condition of two lines.
fn token_ring(machine: Machine, seed: u64, schedule: Schedule, threads: usize) -> Report {
    let mut config = config(machine);
    (config.seed, config.schedule, config.threads) = (seed, schedule, threads);
    config.run_ns = 100_000;
    lightfoot_sim::run(
        config,
        || ([const { AtomicU64::new(0) }; 16], AtomicU64::new(0)),
        move |(turns, stop), thread| {
            let turn = &turns[0];
            loop {
                spin_until(|| turn.load(Relaxed) % threads as u64 == thread as u64 || stop.load(Relaxed) != 0);
                if stop.load(Relaxed) != 0 {
                    break;
                }
                if !lightfoot_sim::running() {
                    stop.store(1, Relaxed);
                }
                lightfoot_sim::cost(turn.load(Relaxed) % 97);
                turns[9].fetch_add(1, Relaxed);
                turn.fetch_add(1, Relaxed);
                lightfoot_sim::count_op(0);
            }
        },
    )
}

#[test]
fn no_wake_is_lost_in_any_of_many_orders() {
    // A lost wake is a deadlock, which panics.
    for seed in 1..=30 {
        for (schedule, threads) in
            [(Schedule::Exact, 8), (Schedule::Shuffled, 8), (Schedule::Exact, 19), (Schedule::Shuffled, 19)]
        {
            for machine in [machine(), buffered(4, 2)] {
                let report = token_ring(machine, seed, schedule, threads);
                assert!(report.operations[0] > 0, "seed {seed}, {schedule:?}, {threads} threads: {report:?}");
            }
        }
    }
}

#[test]
fn a_line_that_changed_and_came_back_while_the_condition_was_evaluated_is_noticed() {
    // The spinner reads `a`, waits 300 ns for `b`, while CPU 1 writes to `a`, and reads `a` again: it has a copy of all
    // lines then, but judged by an old value.
    lightfoot_sim::run(
        config(machine()),
        || [const { AtomicU64::new(0) }; 16],
        |words, thread| {
            let (a, b) = (&words[0], &words[8]);
            match thread {
                0 => {
                    a.load(Relaxed);
                    wait_until(20_000);
                    spin_until(|| a.load(Relaxed) == 1 || b.load(Relaxed) == 1 || a.load(Relaxed) == 2);
                }
                1 => {
                    wait_until(20_050);
                    a.store(1, Relaxed);
                }
                4 => b.store(2, Relaxed),
                _ => {}
            }
        },
    );
}

#[test]
fn a_write_by_another_thread_of_the_same_cpu_is_noticed() {
    // The spinner loses its CPU after its first load, at one offset or another, to the writer, whose store is a hit.
    for offset in (0..4_000).step_by(50) {
        let mut config = config(machine());
        (config.cpus, config.threads) = (1, 2);
        config.machine.system.slice_ns = 300.0;
        lightfoot_sim::run(
            config,
            || [const { AtomicU64::new(0) }; 16],
            move |words, thread| {
                if thread == 0 {
                    lightfoot_sim::cost(5_000 + offset);
                    spin_until(|| words[0].load(Relaxed) == 1 || words[8].load(Relaxed) == 1);
                } else {
                    lightfoot_sim::cost(6_000);
                    words[0].store(1, Relaxed);
                }
            },
        );
    }
}

#[test]
fn a_condition_that_looks_at_the_clock_is_asked_again_though_no_line_changes() {
    let report = lightfoot_sim::run(
        config(machine()),
        || AtomicU32::new(0),
        |flag, _| {
            let begin = lightfoot_sim::clock::monotonic_ns();
            spin_until(|| flag.load(Relaxed) == 1 || lightfoot_sim::clock::monotonic_ns() > begin + 5_000);
            assert!((5_000..5_100).contains(&(lightfoot_sim::clock::monotonic_ns() - begin)));
            lightfoot_sim::count_op(0);
        },
    );
    assert_eq!(report.operations[0], 8);
}

#[test]
fn a_bounded_wait_takes_its_turns_and_no_more() {
    lightfoot_sim::run(
        config(machine()),
        || AtomicU32::new(0),
        |flag, thread| {
            if thread == 0 {
                flag.load(Relaxed);
                let begin = lightfoot_sim::now_ns();
                assert!(!spin_until_bounded(100, || flag.load(Relaxed) == 1));
                assert_eq!(lightfoot_sim::now_ns() - begin, 100 * (1 + 5) + 1);
            }
        },
    );
}

#[test]
fn an_uncharged_write_wakes_who_waits_for_it() {
    lightfoot_sim::run(
        config(machine()),
        || AtomicU32::new(0),
        |flag, thread| {
            if thread == 0 {
                wait_until(50_000);
                lightfoot_sim::uncharged(|| flag.store(1, Relaxed));
            } else {
                spin_until(|| flag.load(Relaxed) == 1);
            }
        },
    );
}

#[test]
fn one_of_two_cpus_at_least_sees_the_others_store() {
    // Store buffering: at many distances in time, also where a buffer delays stores.
    for (offset, machine) in (0..600).step_by(7).flat_map(|offset| [(offset, machine()), (offset, buffered(4, 2))]) {
        let seen = Rc::new([Cell::new(9), Cell::new(9)]);
        let result = Rc::clone(&seen);
        lightfoot_sim::run(
            config(machine),
            || [const { AtomicU64::new(0) }; 16],
            move |words, thread| {
                let (mine, other) = if thread == 0 { (&words[0], &words[8]) } else { (&words[8], &words[0]) };
                if thread < 2 {
                    other.load(Relaxed);
                    wait_until(5_000 + thread as u64 * offset);
                    mine.store(1, Relaxed);
                    result[thread].set(other.load(Relaxed));
                }
            },
        );
        assert!(seen[0].get() + seen[1].get() > 0, "{offset} ns apart");
    }
}
