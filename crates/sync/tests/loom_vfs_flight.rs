//! loom models of a miss that several walks have at once: one looks up in the file system, and all find the entry.
//!
//! `crates/vfs/tests/loom_tree.rs` runs the source itself, with one preemption; here a copy of the few steps that matter has
//! more of them.
//!
//! Mirrors of `crates/vfs/src/walk/lookup.rs: find_held, look, single_flight, fetch, settle`, on the flights of
//! `lightfoot_sync::SingleFlight`. The cache is a cell behind the directory's lock. (See also `loom_single_flight.rs`.)
#![cfg(loom)]

use lightfoot_sync::Mutex;
use lightfoot_sync::single_flight::{Entry, SingleFlight, Waited};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering::Relaxed};
use loom::thread;

struct Directory {
    /// What is cached of the one name.
    cached: Mutex<Option<u32>>,
    /// Without the lock, as a walk in rcu-walk looks; 0: nothing.
    seen: AtomicU32,
    flights: SingleFlight<u32, bool>,
    asked: AtomicU32,
}

impl Directory {
    fn new() -> Arc<Self> {
        let zero = || AtomicU32::new(0);
        Arc::new(Self { cached: Mutex::new(None), seen: zero(), flights: SingleFlight::new(), asked: zero() })
    }

    fn look(&self) -> Option<u32> {
        *self.cached.lock()
    }

    /// `walk/lookup.rs: fetch`: a lookup that ended before this flight began may have brought the entry.
    fn ask(&self) {
        if self.look().is_some() {
            return;
        }
        self.asked.fetch_add(1, Relaxed);
        *self.cached.lock() = Some(7);
        self.seen.store(7, Relaxed);
    }

    /// `walk/lookup.rs: find_held`; a waiter that is notified finds the entry without a second lookup.
    fn find(&self) -> u32 {
        if let Some(entry) = self.look() {
            return entry;
        }
        match self.flights.enter(1, &1) {
            Entry::Lead(leader) => {
                self.ask();
                leader.finish(true);
            }
            Entry::Wait(waiter) => {
                assert_eq!(waiter.wait(None), Waited::Done(true));
                // What the leader stored before it finished is seen, lock or no lock.
                assert_eq!(self.seen.load(Relaxed), 7);
            }
        }
        self.look().expect("the entry is there when the flight has landed")
    }
}

fn check(askers: usize, preemptions: usize) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 20_000;
    builder.check(move || {
        let directory = Directory::new();
        let spawn = |_| {
            let directory = directory.clone();
            thread::spawn(move || directory.find())
        };
        let others: Vec<_> = (1..askers).map(spawn).collect();
        assert_eq!(directory.find(), 7);
        others.into_iter().for_each(|other| assert_eq!(other.join().unwrap(), 7));
        assert_eq!(directory.asked.load(Relaxed), 1);
    });
}

#[test]
fn two_who_miss_a_name_ask_once_and_both_find_the_entry() {
    check(2, 3);
}

#[test]
fn three_who_miss_a_name_ask_once_and_all_find_the_entry() {
    check(3, 2);
}
