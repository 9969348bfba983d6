//! loom models of `SeqRwLock`. What blocking readers and writers exclude is a tracked cell, so an overlap, or a section
//! that does not see the one before, is a data race for loom; a waiter that is forgotten is a deadlock or a livelock.
#![allow(unsafe_code, reason = "it uses unsafe functions of `sync`")]

use lightfoot_sync::SeqRwLock;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

/// A cell for threads that exclude one another, and two words, equal outside of write sections, for optimistic readers.
struct Shared {
    lock: SeqRwLock,
    cell: UnsafeCell<u32>,
    a: AtomicU32,
    b: AtomicU32,
}

impl Shared {
    fn write(&self) {
        let _writer = self.lock.write_lock();
        self.change();
    }

    fn change(&self) {
        // SAFETY: called under the writers' lock only.
        self.cell.with_mut(|cell| unsafe { *cell += 1 });
        let next = self.a.load(Relaxed) + 1;
        self.a.store(next, Relaxed);
        self.b.store(next, Relaxed);
    }

    fn read_blocking(&self) -> u32 {
        let _reader = self.lock.read_lock();
        self.look()
    }

    fn look(&self) -> u32 {
        // SAFETY: called under the readers' lock only.
        self.cell.with(|cell| unsafe { *cell })
    }

    /// Either kind of pass; the pair that counts.
    fn read_either(&self) -> (u32, u32) {
        self.lock.read_seq_or_lock(|pass| {
            let pair = (self.a.load(Relaxed), self.b.load(Relaxed));
            assert!(!pass.is_blocking() || pair.0 == pair.1);
            pair
        })
    }
}

/// Runs each of `bodies` in a thread, the first in the model's.
fn check(preemptions: Option<usize>, bodies: &'static [fn(&Shared)], end: fn(&Shared)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.max_branches = 20_000;
    model.check(move || {
        let zero = || AtomicU32::new(0);
        let shared = Arc::new(Shared { lock: SeqRwLock::new(), cell: UnsafeCell::new(0), a: zero(), b: zero() });
        let others: Vec<_> = bodies[1..]
            .iter()
            .map(|body| {
                let shared = shared.clone();
                thread::spawn(move || body(&shared))
            })
            .collect();
        bodies[0](&shared);
        others.into_iter().for_each(|t| t.join().unwrap());
        end(&shared);
    });
}

const WRITE: fn(&Shared) = |shared| shared.write();
const READ: fn(&Shared) = |shared| assert!(shared.read_blocking() <= 2);
const READ_EITHER: fn(&Shared) = |shared| {
    let (a, b) = shared.read_either();
    assert_eq!(a, b);
};

#[test]
fn writers_exclude_and_follow_one_another() {
    check(None, &[WRITE, WRITE], |shared| assert_eq!(shared.read_blocking(), 2));
}

#[test]
fn blocking_readers_and_a_writer_exclude_and_follow_one_another() {
    check(None, &[READ, WRITE], |shared| assert_eq!(shared.read_blocking(), 1));
    check(Some(2), &[READ, WRITE, READ], |shared| assert_eq!(shared.read_blocking(), 1));
}

#[test]
fn two_writers_and_a_blocking_reader_queue_and_all_come_in() {
    check(Some(2), &[READ, WRITE, WRITE], |shared| assert_eq!(shared.read_blocking(), 2));
}

#[test]
fn a_pass_that_counts_has_no_torn_pair() {
    check(None, &[READ_EITHER, WRITE], |shared| assert_eq!(shared.read_either(), (1, 1)));
    check(Some(2), &[READ_EITHER, WRITE, WRITE], |shared| assert_eq!(shared.read_either(), (2, 2)));
}

#[test]
fn blocking_readers_are_in_together() {
    // Each waits inside for the other, which would never end if they excluded one another.
    const MEET: fn(&Shared) = |shared| {
        let _reader = shared.lock.read_lock();
        shared.a.fetch_add(1, Relaxed);
        while shared.a.load(Relaxed) != 2 {
            thread::yield_now();
        }
    };
    check(None, &[MEET, MEET], |shared| assert!(shared.lock.try_write_lock().is_some()));
}

#[test]
fn a_try_that_succeeds_excludes_and_follows() {
    const TRY_READ: fn(&Shared) = |shared| {
        if let Some(_reader) = shared.lock.try_read_lock() {
            assert!(shared.look() <= 1);
        }
    };
    const TRY_WRITE: fn(&Shared) = |shared| {
        if let Some(_writer) = shared.lock.try_write_lock() {
            shared.change();
        }
    };
    check(None, &[TRY_READ, WRITE], |shared| assert_eq!(shared.read_blocking(), 1));
    check(None, &[TRY_READ, TRY_WRITE], |_| {});
}
