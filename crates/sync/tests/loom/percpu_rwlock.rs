//! loom models of `PerCpuRwLock`. Its data is a tracked cell, so an overlap, or a section that does not see the one
//! before, is a data race for loom. Each thread's slot joins in the model, which is also how a slot made late does.
//! (With two preemptions, loom lets two of three threads yield to each other for ever.)

use lightfoot_sync::PerCpuRwLock;
use loom::sync::Arc;
use loom::thread;

type Shared = PerCpuRwLock<u32>;

/// Runs each of `bodies` in a thread, the first in the model's.
fn check(preemptions: Option<usize>, bodies: &'static [fn(&Shared)], writes: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 5_000;
    model.check(move || {
        let shared = Arc::new(PerCpuRwLock::new(0));
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|body| {
                let shared = shared.clone();
                thread::spawn(move || body(&shared))
            })
            .collect();
        bodies[0](&shared);
        others.into_iter().for_each(|t| t.join().unwrap());
        assert_eq!(*shared.read(), writes);
    });
}

const WRITE: fn(&Shared) = |lock| *lock.write() += 1;
const READ: fn(&Shared) = |lock| assert!(*lock.read() <= 2);

#[test]
fn a_reader_that_joins_and_a_writer_exclude_and_follow_one_another() {
    check(None, &[READ, WRITE], 1);
}

#[test]
fn a_reader_that_has_joined_and_a_writer_exclude_and_follow_one_another() {
    const READ_TWICE: fn(&Shared) = |lock| {
        let first = *lock.read();
        assert!(*lock.read() >= first);
    };
    check(Some(3), &[READ_TWICE, WRITE], 1);
}

#[test]
fn a_reader_of_each_of_two_slots_is_excluded() {
    check(Some(1), &[READ, WRITE, READ], 1);
}

#[test]
fn a_reader_and_two_writers_exclude_and_follow_one_another() {
    check(Some(1), &[READ, WRITE, WRITE], 2);
}

#[test]
fn a_nested_reader_comes_in_although_a_writer_waits_for_the_outer_one() {
    const NESTED: fn(&Shared) = |lock| {
        drop(lock.read());
        let outer = lock.read();
        assert_eq!(*lock.read(), *outer);
    };
    check(Some(3), &[NESTED, WRITE], 1);
}

#[test]
fn a_thread_that_writes_and_reads_sees_what_was_written() {
    const BOTH: fn(&Shared) = |lock| {
        let before = *lock.read();
        *lock.write() += 1;
        assert!(*lock.read() > before);
    };
    check(Some(2), &[BOTH, BOTH], 2);
}
