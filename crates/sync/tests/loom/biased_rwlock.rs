//! loom models of `BiasedRwLock`. Its data is a tracked cell, so an overlap, or a section that does not see the one before,
//! is a data race for loom. In each model the bias is set first; readers of several threads set it again.

use lightfoot_sync::{BiasedReaders, BiasedRwLock};
use loom::sync::Arc;
use loom::thread;

struct Shared {
    readers: BiasedReaders,
    lock: BiasedRwLock<u32>,
}

/// Runs each of `bodies` in a thread, the first in the model's, on a lock with its bias set.
fn check(preemptions: usize, bodies: &'static [fn(&Shared)], writes: u32) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 5_000;
    model.check(move || {
        let readers = BiasedReaders::new();
        let lock = BiasedRwLock::biased(&readers, 0);
        let shared = Arc::new(Shared { readers, lock });
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|body| {
                let shared = shared.clone();
                thread::spawn(move || body(&shared))
            })
            .collect();
        bodies[0](&shared);
        others.into_iter().for_each(|other| other.join().unwrap());
        assert_eq!(*shared.lock.read(&shared.readers), writes);
    });
}

const WRITE: fn(&Shared) = |shared| *shared.lock.write(&shared.readers) += 1;
const READ: fn(&Shared) = |shared| assert!(*shared.lock.read(&shared.readers) <= 2);
const READ_TWICE: fn(&Shared) = |shared| {
    let first = *shared.lock.read(&shared.readers);
    assert!(*shared.lock.read(&shared.readers) >= first);
};

const WRITE_THEN_READ: fn(&Shared) = |shared| {
    WRITE(shared);
    READ(shared);
};

#[test]
fn an_announced_reader_and_a_writer_exclude_and_follow_one_another() {
    check(3, &[READ_TWICE, WRITE], 1);
}

#[test]
fn a_reader_that_sets_the_bias_again_passes_on_what_was_written() {
    check(2, &[READ_TWICE, WRITE, READ], 1);
}

#[test]
fn a_reader_and_two_writers_exclude_and_follow_one_another() {
    check(2, &[READ, WRITE, WRITE], 2);
}

/// The announced reader has not had the mutex since the writer had it: it sees what was written only by way of the bias, which
/// the second reader that takes the mutex sets.
#[test]
fn a_reader_that_never_takes_the_mutex_sees_what_was_written_before_the_bias_was_set_again() {
    check(2, &[READ, WRITE_THEN_READ, READ], 1);
}
