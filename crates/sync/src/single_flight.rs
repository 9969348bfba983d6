//! One does the work for a key, the others who ask for it meanwhile sleep and get what it found.
//!
//! # What it is
//! A table of what is being worked on. Who [enters](SingleFlight::enter) with a key that nobody works on *leads*: it
//! does the work and hands the result over by [`Leader::finish`]. Who enters with a key that somebody works on *waits*
//! and gets a clone. Work for different keys goes on in parallel. A leader owns all it needs, so it may be moved to a
//! thread that does the work, while the one that entered waits like the others, with a deadline.
//!
//! # What it is not
//! A cache: when a flight has landed its key is forgotten, and who enters then leads anew. (Who puts the result into a
//! cache does so before it finishes.) Nor does it run anything: the work is its caller's.
//!
//! # How it is locked
//! Flights are on the list of their key's shard, behind the shard's [`Mutex`], taken once to enter and once to land. No
//! lock is held while the work is done, nor while one waits. Keys are compared, and made, under the shard's lock.
//!
//! # State
//! | word | meaning | next |
//! |---|---|---|
//! | 0 | flying, nobody sleeps | 1 by a waiter, 2 or 3 by the leader |
//! | 1 | flying, somebody may sleep: who lands it wakes | 2 or 3 by the leader |
//! | 2 | done, the value is there | |
//! | 3 | abandoned, there is no value | |
//!
//! # Orderings
//! | here | partner |
//! |---|---|
//! | `Waiter::wait`: load, Acquire | `Leader::drop`: swap, Release |
//!
//! No wake is lost: a sleeper parks while the word is 1, and the swap that takes the 1 out wakes all. The key is off
//! its list before the word changes, so that who is told of an abandoned flight and enters again does not find it.
//!
//! # Invariants
//! 1. A flight has one [`Leader`], which alone writes the value, before it swaps the word to 2, which is the last it
//!    does to the flight but waking. So where 2 is seen the value is there and stays as it is.
//! 2. A flight is on its shard's list from its making until its leader is dropped, and no other with its key is.
//!
//! # Source
//! `singleflight` of groupcache (Brad Fitzpatrick, 2013); `d_alloc_parallel` in Linux (Al Viro, 2016) does it for
//! lookups.
//!
//! # Limitations
//! A leader that is forgotten (`core::mem::forget`) leaves its key in flight, and who waits without a deadline asleep.

use crate::mutex::Mutex;
use core::borrow::Borrow;
use core::fmt;
use core::time::Duration;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::shared::Arc;
use prim::{clock, park};

const FLYING: u32 = 0;
const AWAITED: u32 = 1;
const DONE: u32 = 2;
const ABANDONED: u32 = 3;

/// Lists of flights. (loom tracks every lock.)
const SHARDS: usize = if cfg!(loom) { 1 } else { 64 };

/// See the [module documentation](self).
///
/// ```
/// use sync::single_flight::{Entry, SingleFlight, Waited};
///
/// let flights = SingleFlight::<String, u32>::new();
/// let Entry::Lead(leader) = flights.enter(17, "a") else { panic!("nobody works on it") };
/// let Entry::Wait(waiter) = flights.enter(17, "a") else { panic!("somebody does") };
/// leader.finish(5);
/// assert_eq!(waiter.wait(None), Waited::Done(5));
/// ```
pub struct SingleFlight<K, V> {
    shards: Arc<Shards<K, V>>,
}

struct Shards<K, V>([Shard<K, V>; SHARDS]);

#[repr(align(128))]
struct Shard<K, V> {
    flights: Mutex<Vec<Arc<Flight<K, V>>>>,
}

struct Flight<K, V> {
    state: AtomicU32,
    hash: u64,
    key: K,
    value: UnsafeCell<Option<V>>,
}

// SAFETY: invariant 1: the value is written by one thread before others read it; they read it at once (`V: Sync`), and
// whoever is last drops key and value (`Send`).
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Flight<K, V> {}

/// What [`SingleFlight::enter`] answers.
#[must_use = "a leader that is dropped has abandoned the work"]
pub enum Entry<K, V> {
    /// The caller is to do the work.
    Lead(Leader<K, V>),
    /// Somebody does it.
    Wait(Waiter<K, V>),
}

/// The duty to do the work for one key. Dropped without [`Leader::finish`] it abandons the work: all who wait are told,
/// and the next who enters leads.
#[must_use = "dropped, it has abandoned the work"]
pub struct Leader<K, V> {
    shards: Arc<Shards<K, V>>,
    flight: Arc<Flight<K, V>>,
    outcome: u32,
}

/// A right to the result of work that somebody does.
pub struct Waiter<K, V> {
    flight: Arc<Flight<K, V>>,
}

/// What [`Waiter::wait`] answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited<V> {
    /// What the work's leader found.
    Done(V),
    /// The leader is gone without a result. Who still wants one enters again.
    Abandoned,
    /// The deadline has come, and the work goes on.
    TimedOut,
}

impl<K, V> SingleFlight<K, V> {
    /// Nothing in flight; 64 shards.
    #[must_use]
    pub fn new() -> Self {
        let shards = core::array::from_fn(|_| Shard { flights: Mutex::new(Vec::new()) });
        Self { shards: Arc::new(Shards(shards)) }
    }

    /// Leads the work for `key`, or waits for who does. `hash` is the caller's hash of the key: equal for equal keys.
    pub fn enter<Q>(&self, hash: u64, key: &Q) -> Entry<K, V>
    where
        K: Borrow<Q>,
        Q: Eq + ToOwned<Owned = K> + ?Sized,
    {
        self.enter_with(hash, |other| other.borrow() == key, || key.to_owned())
    }

    /// As [`SingleFlight::enter`], for the key that `make` makes and `is` recognises: for keys of several parts, which
    /// cannot be borrowed.
    pub fn enter_with(&self, hash: u64, is: impl Fn(&K) -> bool, make: impl FnOnce() -> K) -> Entry<K, V> {
        let mut flights = self.shards.of(hash).flights.lock();
        if let Some(flight) = flights.iter().find(|flight| flight.hash == hash && is(&flight.key)) {
            return Entry::Wait(Waiter { flight: flight.clone() });
        }
        let flight =
            Arc::new(Flight { state: AtomicU32::new(FLYING), hash, key: make(), value: UnsafeCell::new(None) });
        flights.push(flight.clone());
        drop(flights);
        Entry::Lead(Leader { shards: self.shards.clone(), flight, outcome: ABANDONED })
    }

    /// How many keys are worked on. Exact if nobody enters or lands meanwhile.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.shards.0.iter().map(|shard| shard.flights.lock().len()).sum()
    }
}

impl<K, V> Shards<K, V> {
    /// The shard of a hash, by its high bits after a multiplication: callers' hashes may have few good bits.
    fn of(&self, hash: u64) -> &Shard<K, V> {
        let mixed = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.0[mixed as usize % SHARDS]
    }
}

impl<K, V> Leader<K, V> {
    /// The key whose work this is.
    #[must_use]
    pub fn key(&self) -> &K {
        &self.flight.key
    }

    /// A right to the result, for who gives the leader away.
    #[must_use]
    pub fn waiter(&self) -> Waiter<K, V> {
        Waiter { flight: self.flight.clone() }
    }

    /// Hands `value` to all who wait. From its return on who enters with the key leads anew.
    pub fn finish(mut self, value: V) {
        // SAFETY: invariant 1: this is the one leader, and the word is not 2.
        self.flight.value.with_mut(|cell| unsafe { *cell = Some(value) });
        self.outcome = DONE;
    }
}

impl<K, V> Drop for Leader<K, V> {
    /// Lands the flight.
    fn drop(&mut self) {
        let mut flights = self.shards.of(self.flight.hash).flights.lock();
        let at = flights.iter().position(|flight| Arc::ptr_eq(flight, &self.flight));
        let listed = at.map(|at| flights.swap_remove(at));
        drop(flights);
        drop(listed);
        // ORDERING: Release pairs with the Acquire in `Waiter::wait`: who sees the outcome sees the value.
        if self.flight.state.swap(self.outcome, Release) == AWAITED {
            park::unpark_all(&self.flight.state);
        }
    }
}

impl<K, V: Clone> Waiter<K, V> {
    /// Sleeps until the work is done or abandoned, or `deadline_ns` of `prim::clock::monotonic_ns` has come. An outcome
    /// that is there is answered whatever the time. May be called again.
    #[must_use]
    pub fn wait(&self, deadline_ns: Option<i64>) -> Waited<V> {
        let word = &self.flight.state;
        loop {
            // ORDERING: Acquire pairs with the Release in `Leader::drop`: the value comes with the outcome.
            match word.load(Acquire) {
                DONE => return self.value(),
                ABANDONED => return Waited::Abandoned,
                // Relaxed: if it fails the load above orders, and if not nothing was handed over.
                FLYING if word.compare_exchange(FLYING, AWAITED, Relaxed, Relaxed).is_err() => continue,
                _ => {}
            }
            let Some(deadline_ns) = deadline_ns else {
                park::park(word, AWAITED);
                continue;
            };
            let left_ns = deadline_ns.saturating_sub(clock::monotonic_ns());
            if left_ns <= 0 {
                return Waited::TimedOut;
            }
            park::park_timeout(word, AWAITED, Duration::from_nanos(left_ns.unsigned_abs()));
        }
    }

    /// A clone of the value. The word is 2.
    fn value(&self) -> Waited<V> {
        // SAFETY: invariant 1.
        let value = self.flight.value.with(|cell| unsafe { &*cell }.clone());
        value.map_or(Waited::Abandoned, Waited::Done)
    }
}

impl<K, V> Clone for Waiter<K, V> {
    fn clone(&self) -> Self {
        Self { flight: self.flight.clone() }
    }
}

impl<K, V> Default for SingleFlight<K, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for Entry<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Lead(_)) { "Lead" } else { "Wait" })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;

    fn lead<K, V>(entry: Entry<K, V>) -> Leader<K, V> {
        match entry {
            Entry::Lead(leader) => leader,
            Entry::Wait(_) => panic!("somebody works on it"),
        }
    }

    fn wait<K, V>(entry: Entry<K, V>) -> Waiter<K, V> {
        match entry {
            Entry::Wait(waiter) => waiter,
            Entry::Lead(_) => panic!("nobody works on it"),
        }
    }

    #[test]
    fn keys_of_one_hash_do_not_wait_for_each_other() {
        let flights = SingleFlight::<String, u32>::new();
        let a = lead(flights.enter(1, "a"));
        let b = lead(flights.enter(1, "b"));
        assert_eq!((a.key().as_str(), b.key().as_str(), flights.in_flight()), ("a", "b", 2));
        let waiters = [wait(flights.enter(1, "a")), wait(flights.enter(1, "b"))];
        a.finish(7);
        let again = lead(flights.enter(1, "a"));
        assert_eq!(waiters[0].wait(None), Waited::Done(7));
        assert_eq!(waiters[1].wait(Some(clock::monotonic_ns())), Waited::TimedOut);
        b.finish(8);
        assert_eq!(waiters[1].wait(Some(i64::MIN)), Waited::Done(8));
        assert_eq!(waiters[1].clone().wait(Some(i64::MAX)), Waited::Done(8));
        drop((again, waiters));
        assert_eq!(flights.in_flight(), 0);
    }

    #[test]
    fn who_waits_for_abandoned_work_is_told_and_may_lead() {
        let flights = SingleFlight::<u64, u32>::new();
        let leader = lead(flights.enter(3, &3));
        let waiter = wait(flights.enter(3, &3));
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _leader = leader;
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        assert_eq!(waiter.wait(None), Waited::Abandoned);
        lead(flights.enter(3, &3)).finish(1);
    }

    #[test]
    fn a_leader_may_do_its_work_elsewhere_and_outlive_the_table() {
        let flights = SingleFlight::<(u64, String), Vec<u8>>::new();
        let key = (4, String::from("name"));
        let leader = lead(flights.enter_with(4, |other| *other == key, || key.clone()));
        let other = wait(flights.enter(4, &key));
        let waiter = leader.waiter();
        drop(flights);
        let helper = std::thread::spawn(move || leader.finish(b"found".to_vec()));
        assert_eq!(waiter.wait(None), Waited::Done(b"found".to_vec()));
        assert_eq!(other.wait(Some(i64::MAX)), Waited::Done(b"found".to_vec()));
        helper.join().unwrap();
    }

    #[test]
    fn for_a_key_one_thread_at_a_time_does_the_work() {
        const KEYS: usize = 3;
        let flights = SingleFlight::<usize, usize>::new();
        let working: [AtomicUsize; KEYS] = Default::default();
        let results: [AtomicUsize; KEYS] = Default::default();
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (flights, working, results) = (&flights, &working, &results);
                s.spawn(move || {
                    for turn in 0..3000 {
                        let key = (turn * (thread + 1)) % KEYS;
                        let before = results[key].load(Relaxed);
                        match flights.enter(key as u64, &key) {
                            Entry::Lead(leader) => {
                                assert_eq!(working[key].fetch_add(1, Relaxed), 0);
                                std::thread::yield_now();
                                let result = results[key].fetch_add(1, Relaxed) + 1;
                                assert_eq!(working[key].fetch_sub(1, Relaxed), 1);
                                if turn % 5 != 0 {
                                    leader.finish(result);
                                }
                            }
                            Entry::Wait(waiter) => match waiter.wait((turn % 3 == 0).then(clock::monotonic_ns)) {
                                Waited::Done(result) => assert!(result >= before, "of an older flight"),
                                Waited::Abandoned => {}
                                Waited::TimedOut => assert_eq!(turn % 3, 0),
                            },
                        }
                    }
                });
            }
        });
        assert_eq!(flights.in_flight(), 0);
    }
}
