//! The rules of the store buffer, each by a time-table that comes out differently without it.

use super::small::Do::{Add, Fence, Load, Store};
use super::small::{Step, buffered, config, machine, time_table, wait_until};
use lightfoot_sim::Machine;
use lightfoot_sim::atomic::{AtomicU64, Ordering::Relaxed};
use lightfoot_sim::hint::spin_until;
use std::cell::Cell;
use std::rc::Rc;

/// What the steps take.
fn durations(machine: Machine, steps: &[Step]) -> Vec<u64> {
    time_table(config(machine), steps).iter().map(|result| result.0).collect()
}

/// Words of four lines; the second and the third word are of one line.
const A: usize = 0;
const B: usize = 8;
const B_TOO: usize = 9;
const C: usize = 16;
const D: usize = 24;

/// The time of a step before the others.
const BEFORE: u64 = u64::MAX;

/// CPU 0 has written to A, B, C and D; CPU 4 is in another node, at distance 2: a store takes 304 ns there.
fn then(more: &[Step]) -> Vec<Step> {
    let mut steps: Vec<Step> = [A, B, C, D].iter().zip(0..).map(|(&word, at)| (1000 * at, 0, Store(1), word)).collect();
    let later = |at| if at == BEFORE { 5000 } else { at + 10_000 };
    steps.extend(more.iter().map(|&(at, cpu, what, word)| (later(at), cpu, what, word)));
    steps
}

fn check(what: &str, stores: usize, misses: usize, more: &[Step], wanted: &[u64]) {
    let found = durations(buffered(stores, misses), &then(more));
    assert_eq!(found[4..], *wanted, "{what}: {more:?}");
}

#[test]
fn a_store_does_not_wait_for_its_line_and_loads_of_its_word_do_not_either() {
    let store = (0, 4, Store(7), B);
    check("goes on at once", 4, 4, &[store], &[2]);
    check("no buffer", 0, 1, &[store], &[304]);
    check("the word is forwarded", 4, 4, &[store, (10, 4, Load, B)], &[2, 1]);
    check("another word of the line has to arrive", 4, 4, &[store, (10, 4, Load, B_TOO)], &[2, 294 + 1]);
    check("another line does not wait for the store", 4, 4, &[store, (10, 4, Load, C)], &[2, 300]);
    let values = time_table(config(buffered(4, 4)), &then(&[store, (10, 4, Load, B)]));
    assert_eq!(values[5].1, 7, "the value that was stored");
}

#[test]
fn a_locked_instruction_and_a_fence_wait_until_all_stores_have_retired() {
    let store = (0, 4, Store(7), B);
    check("a fence", 4, 4, &[store, (10, 4, Fence, B)], &[2, 294 + 20]);
    check("an add elsewhere", 4, 4, &[(BEFORE, 4, Add(1), D), store, (10, 4, Add(1), D)], &[310, 2, 294 + 10]);
    check("an add to the line", 4, 4, &[store, (10, 4, Add(1), B)], &[2, 294 + 10]);
    check("nothing to wait for", 4, 4, &[store, (500, 4, Fence, B)], &[2, 20]);
}

#[test]
fn a_store_waits_when_the_buffer_is_full_or_no_miss_is_free() {
    let stores = [(0, 4, Store(7), A), (10, 4, Store(7), B), (20, 4, Store(7), C)];
    check("room for all", 4, 4, &stores, &[2, 2, 2]);
    check("room for two: until the first retires", 2, 4, &stores, &[2, 2, 284 + 2]);
    check("two misses: until the first arrives", 4, 2, &stores, &[2, 2, 284 + 2]);
    let then_load = [stores[0], stores[1], (20, 4, Load, C)];
    check("a load is a miss too", 4, 2, &then_load, &[2, 2, 284 + 300]);
}

#[test]
fn a_line_that_a_store_hit_does_not_leave_before_older_stores_have_retired() {
    // CPU 4 owns D and stores to B, 304 ns away, and then to D. CPU 5 of its node wants D: 100 ns, once B is there.
    let own = (BEFORE, 4, Store(1), D);
    let steps = [own, (0, 4, Store(7), B), (10, 4, Store(8), D), (50, 5, Load, D)];
    check("in order", 4, 4, &steps, &[2, 2, 2, 304 - 50 + 50]);
    let found = time_table(config(buffered(4, 4)), &then(&steps));
    assert_eq!(found[7].1, 8);
    check("nothing older", 4, 4, &[own, (10, 4, Store(8), D), (50, 5, Load, D)], &[2, 2, 100]);
}

#[test]
fn other_cpus_get_the_line_when_they_get_it_without_a_buffer() {
    let steps = then(&[(0, 4, Store(7), B), (50, 2, Load, B), (70, 6, Add(1), B)]);
    let (with, without) = (time_table(config(buffered(4, 4)), &steps), time_table(config(machine()), &steps));
    assert_eq!(with[5..], without[5..]);
    assert_eq!((with[4].0, without[4].0), (2, 304));
}

#[test]
fn a_store_that_queues_waits_for_its_turn_and_not_for_the_line() {
    // CPU 1's add has the line on its way; CPU 2's store comes 10 ns later, and its transfer takes 0.5 of 204 ns.
    let steps = then(&[(0, 1, Add(1), B), (10, 2, Store(7), B)]);
    let (with, without) = (durations(buffered(4, 4), &steps), durations(machine(), &steps));
    assert_eq!(with[5], without[5] - 102 + 2);
}

#[test]
fn stores_put_off_those_that_wait_for_a_line_once_and_no_more() {
    // CPU 4 stores to a far line and to D, again and again; CPU 6, of another node, wants D.
    let waited = Rc::new(Cell::new(0));
    let result = Rc::clone(&waited);
    lightfoot_sim::run(
        config(buffered(8, 8)),
        || (0..512).map(|_| Default::default()).collect::<Box<[[AtomicU64; 8]]>>(),
        move |lines, thread| match thread {
            0 => lines[100..400].iter().for_each(|line| line[0].store(1, Relaxed)),
            4 => {
                wait_until(200_000);
                for far in &lines[100..200] {
                    far[0].store(2, Relaxed);
                    lines[0][0].store(2, Relaxed);
                    lightfoot_sim::cost(40);
                }
            }
            6 => {
                wait_until(201_000);
                lines[0][0].load(Relaxed);
                result.set(lightfoot_sim::now_ns() - 201_000);
            }
            _ => {}
        },
    );
    assert!((200..1500).contains(&waited.get()), "{}", waited.get());
}

#[test]
fn what_was_stored_first_is_seen_first() {
    // Message passing, with the data's line far away and the flag's line near or far.
    for offset in (0..700).step_by(11) {
        lightfoot_sim::run(
            config(buffered(8, 8)),
            || [const { AtomicU64::new(0) }; 24],
            move |words, thread| match thread {
                0 => words[8].store(0, Relaxed),
                2 => {
                    words[16].store(0, Relaxed);
                    wait_until(20_000 + offset);
                    words[8].store(1, Relaxed);
                    words[16].store(1, Relaxed);
                }
                3 => {
                    wait_until(20_300);
                    spin_until(|| words[16].load(Relaxed) == 1);
                    assert_eq!(words[8].load(Relaxed), 1, "{offset}");
                }
                _ => {}
            },
        );
    }
}
