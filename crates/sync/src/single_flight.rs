//! Single flight: of threads that need the same result at once, one computes it and the others wait for it.
//!
//! # What it is
//! A table of keys in progress. A thread that [enters](SingleFlight::enter) with a key that no
//! thread works on *leads*: it does the work and delivers the result by [`Leader::finish`]. A
//! thread that enters with a key in progress *waits* and gets a clone. Work for different keys runs
//! in parallel. A leader may be [detached](Leader::detach) and moved to another thread that does
//! the work, while the thread that entered waits like the others, with a deadline.
//!
//! # What it is not
//! A cache: when a flight has landed its key is forgotten, and the next thread that enters leads anew. (A leader that
//! puts the result into a cache does so before it finishes.) It does not run anything either: the caller does the work.
//!
//! # How it is locked
//! Flights are on the list of their key's shard, behind the shard's [`Mutex`], taken once to enter and once to land. No
//! lock is held during the work or a wait. Keys are compared, and made, under the shard's lock.
//!
//! # State
//! | word | meaning | next |
//! |---|---|---|
//! | 0 | flying, no sleepers | 1 by a waiter, 2 or 3 by the leader |
//! | 1 | flying, maybe with sleepers: landing wakes them | 2 or 3 by the leader |
//! | 2 | done, the value is there | |
//! | 3 | abandoned, without a value | |
//!
//! # Orderings
//! | here | partner |
//! |---|---|
//! | `Waiter::wait`: load, Acquire | `Leader::drop`: swap, Release |
//!
//! No wake is lost: a sleeper parks while the word is 1, and the swap that takes the 1 out wakes all. The key is off
//! its list before the word changes, so a thread that learns of an abandoned flight and enters again does not find it.
//!
//! # Invariants
//! 1. A flight has one [`Leader`]. Only the leader writes the value, before it swaps the word to 2;
//!    after the swap it only wakes waiters. So a thread that sees 2 finds the value, which does not
//!    change any more.
//! 2. A flight is on its shard's list from its making until its leader is dropped. No other flight
//!    on the list has its key.
//!
//! # Source
//! `singleflight` of groupcache (Brad Fitzpatrick, 2013); `d_alloc_parallel` in Linux (Al Viro, 2016) does it for
//! lookups.
//!
//! # Limitations
//! A leader that is forgotten (`core::mem::forget`) leaves its key in flight, and waiters without a deadline asleep.

use crate::mutex::Mutex;
use core::fmt;
use core::ops::Deref;
use core::time::Duration;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::shared::Arc;
use prim::{PerCpu, clock, park};

const FLYING: u32 = 0;
const AWAITED: u32 = 1;
const DONE: u32 = 2;
const ABANDONED: u32 = 3;

/// See the [module documentation](self).
///
/// ```
/// use lightfoot_sync::single_flight::{Entry, SingleFlight, Waited};
///
/// let flights = SingleFlight::<String, u32>::new(512);
/// let enter = || flights.enter((1, 17), |key| key == "a", || "a".to_owned());
/// let Entry::Lead(leader) = enter() else { panic!("the key is in flight") };
/// let Entry::Wait(waiter) = enter() else { panic!("the key is not in flight") };
/// leader.finish(5);
/// assert_eq!(waiter.wait(None), Waited::Done(5));
/// ```
pub struct SingleFlight<K, V> {
    /// By the regions' hashes, not by CPU: most of them are made at first use.
    shards: PerCpu<Arc<Shard<K, V>>>,
    count: usize,
}

/// Has a cache line for itself. Its `Arc` keeps the count of references on another line, and only a [detached](Leader::detach) leader
/// changes that count.
#[repr(align(64))]
struct Shard<K, V> {
    flights: Mutex<Vec<Arc<Flight<K, V>>>>,
}

struct Flight<K, V> {
    state: AtomicU32,
    hash: u64,
    key: K,
    value: UnsafeCell<Option<V>>,
}

// SAFETY: invariant 1: one thread writes the value before others read it; they read it at the same time (`V: Sync`),
// and the last one drops key and value (`Send`).
unsafe impl<K: Send + Sync, V: Send + Sync> Sync for Flight<K, V> {}

/// The result of [`SingleFlight::enter`].
#[must_use = "a leader that is dropped has abandoned the work"]
pub enum Entry<'s, K, V> {
    /// The caller must do the work.
    Lead(Leader<'s, K, V>),
    /// Another thread does it.
    Wait(Waiter<K, V>),
}

/// The duty to do the work for one key. Dropped without [`Leader::finish`] it abandons the work: all waiters get
/// [`Waited::Abandoned`], and the next thread that enters leads. It borrows the table, unless it is [detached](Leader::detach).
#[must_use = "dropped, it has abandoned the work"]
pub struct Leader<'s, K, V> {
    shard: ShardRef<'s, K, V>,
    flight: Arc<Flight<K, V>>,
    /// The state at the end; [`FLYING`] of one that was detached, whose drop does nothing.
    outcome: u32,
}

/// A shard that stays as long as its table, or as long as this.
enum ShardRef<'s, K, V> {
    Borrowed(&'s Arc<Shard<K, V>>),
    Owned(Arc<Shard<K, V>>),
}

impl<K, V> Deref for ShardRef<'_, K, V> {
    type Target = Arc<Shard<K, V>>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Borrowed(shard) => shard,
            Self::Owned(shard) => shard,
        }
    }
}

/// A right to the result of another thread's work.
pub struct Waiter<K, V> {
    flight: Arc<Flight<K, V>>,
}

/// The result of [`Waiter::wait`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waited<V> {
    /// The leader's result.
    Done(V),
    /// The leader ended without a result. A thread that still needs one enters again.
    Abandoned,
    /// The deadline has passed, and the work continues.
    TimedOut,
}

impl<K, V> SingleFlight<K, V> {
    /// Nothing in flight, in so many shards, each with a lock.
    #[must_use]
    pub fn new(shards: usize) -> Self {
        let shard = || Arc::new(Shard { flights: Mutex::new(Vec::new()) });
        Self { shards: PerCpu::sized(shard, true), count: shards }
    }

    /// Leads the work for the key that `make` returns and `is` recognises, or waits for its leader. `(region, hash)` are
    /// the caller's hashes of the part that a thread's keys mostly have in common, and of the rest: equal for equal keys. The
    /// region chooses the shard: threads whose regions differ seldom touch a line of each other's.
    pub fn enter(
        &self,
        (region, hash): (u64, u64),
        is: impl Fn(&K) -> bool,
        make: impl FnOnce() -> K,
    ) -> Entry<'_, K, V> {
        let shard = self.shard(region);
        let mut flights = shard.flights.lock();
        if let Some(flight) = flights.iter().find(|flight| flight.hash == hash && is(&flight.key)) {
            return Entry::Wait(Waiter { flight: flight.clone() });
        }
        let flight =
            Arc::new(Flight { state: AtomicU32::new(FLYING), hash, key: make(), value: UnsafeCell::new(None) });
        flights.push(flight.clone());
        drop(flights);
        Entry::Lead(Leader { shard: ShardRef::Borrowed(shard), flight, outcome: ABANDONED })
    }

    /// Returns how many keys are in flight. Exact if no thread enters or lands meanwhile.
    fn in_flight(&self) -> usize {
        self.shards.iter().map(|shard| shard.flights.lock().len()).sum()
    }

    /// Returns the shard of a region, by the high bits after a multiplication: callers' hashes may
    /// have few good bits.
    fn shard(&self, region: u64) -> &Arc<Shard<K, V>> {
        let mixed = region.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        self.shards.get(mixed as usize & (self.count - 1))
    }
}

impl<K, V> Leader<'_, K, V> {
    /// Returns this duty without a borrow of the table: for another thread, which may outlive the
    /// borrow.
    #[cold]
    pub fn detach(mut self) -> Leader<'static, K, V> {
        self.outcome = FLYING;
        Leader { shard: ShardRef::Owned(Arc::clone(&self.shard)), flight: self.flight.clone(), outcome: ABANDONED }
    }

    /// Returns a right to the result, for a caller that gives the leader away.
    #[must_use]
    pub fn waiter(&self) -> Waiter<K, V> {
        Waiter { flight: self.flight.clone() }
    }

    /// Delivers `value` to all waiters. After its return the next thread that enters with the key leads anew.
    pub fn finish(mut self, value: V) {
        // SAFETY: invariant 1: this is the one leader, and the word is not 2.
        self.flight.value.with_mut(|cell| unsafe { *cell = Some(value) });
        self.outcome = DONE;
    }
}

impl<K, V> Drop for Leader<'_, K, V> {
    /// Lands the flight.
    fn drop(&mut self) {
        if self.outcome == FLYING {
            return;
        }
        let mut flights = self.shard.flights.lock();
        let at = flights.iter().position(|other| Arc::ptr_eq(other, &self.flight));
        let listed = at.map(|at| flights.swap_remove(at));
        drop(flights);
        drop(listed);
        // ORDERING: Release pairs with the Acquire in `Waiter::wait`: a thread that sees the outcome sees the value.
        if self.flight.state.swap(self.outcome, Release) == AWAITED {
            park::unpark_all(&self.flight.state);
        }
    }
}

impl<K, V: Clone> Waiter<K, V> {
    /// Sleeps until the work is done or abandoned, or `deadline_ns` of `prim::clock::monotonic_ns` has come. Returns an
    /// outcome that exists whatever the time. May be called again.
    #[must_use]
    pub fn wait(&self, deadline_ns: Option<i64>) -> Waited<V> {
        let word = &self.flight.state;
        loop {
            // ORDERING: Acquire pairs with the Release in `Leader::drop`: the value comes with the outcome.
            match word.load(Acquire) {
                DONE => return self.value(),
                ABANDONED => return Waited::Abandoned,
                // Relaxed: if it fails the load above orders, and if it succeeds nothing was delivered.
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

    /// Returns a clone of the value. The word is 2.
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

impl<K, V> fmt::Debug for SingleFlight<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleFlight").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for Entry<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if matches!(self, Self::Lead(_)) { "Lead" } else { "Wait" })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicUsize;

    fn lead<K, V>(entry: Entry<'_, K, V>) -> Leader<'_, K, V> {
        match entry {
            Entry::Lead(leader) => leader,
            Entry::Wait(_) => panic!("the key is in flight"),
        }
    }

    fn wait<K, V>(entry: Entry<'_, K, V>) -> Waiter<K, V> {
        match entry {
            Entry::Wait(waiter) => waiter,
            Entry::Lead(_) => panic!("the key is not in flight"),
        }
    }

    /// Enters with a key of one part.
    fn enter<K: Clone + PartialEq, V>(flights: &SingleFlight<K, V>, hash: u64, key: K) -> Entry<'_, K, V> {
        flights.enter((hash, hash), |other| *other == key, || key.clone())
    }

    #[test]
    fn keys_of_one_hash_do_not_wait_for_each_other() {
        let flights = SingleFlight::<&str, u32>::new(4);
        let a = lead(enter(&flights, 1, "a"));
        let b = lead(enter(&flights, 1, "b"));
        assert_eq!((a.flight.key, b.flight.key, flights.in_flight()), ("a", "b", 2));
        let waiters = [wait(enter(&flights, 1, "a")), wait(enter(&flights, 1, "b"))];
        a.finish(7);
        let again = lead(enter(&flights, 1, "a"));
        assert_eq!(waiters[0].wait(None), Waited::Done(7));
        assert_eq!(waiters[1].wait(Some(clock::monotonic_ns())), Waited::TimedOut);
        b.finish(8);
        assert_eq!(waiters[1].wait(Some(i64::MIN)), Waited::Done(8));
        assert_eq!(waiters[1].clone().wait(Some(i64::MAX)), Waited::Done(8));
        drop((again, waiters));
        assert_eq!(flights.in_flight(), 0);
    }

    #[test]
    fn a_waiter_for_abandoned_work_is_notified_and_may_lead() {
        let flights = SingleFlight::<u64, u32>::new(4);
        let leader = lead(enter(&flights, 3, 3));
        let waiter = wait(enter(&flights, 3, 3));
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _leader = leader;
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        assert_eq!(waiter.wait(None), Waited::Abandoned);
        lead(enter(&flights, 3, 3)).finish(1);
    }

    #[test]
    fn a_leader_may_do_its_work_elsewhere_and_outlive_the_table() {
        let flights = SingleFlight::<(u64, String), Vec<u8>>::new(4);
        let key = (4, String::from("name"));
        let leader = lead(enter(&flights, 4, key.clone()));
        let other = wait(enter(&flights, 4, key));
        let waiter = leader.waiter();
        let leader = leader.detach();
        drop(flights);
        let helper = std::thread::spawn(move || leader.finish(b"found".to_vec()));
        assert_eq!(waiter.wait(None), Waited::Done(b"found".to_vec()));
        assert_eq!(other.wait(Some(i64::MAX)), Waited::Done(b"found".to_vec()));
        helper.join().unwrap();
    }

    #[test]
    fn for_a_key_one_thread_at_a_time_does_the_work() {
        const KEYS: usize = 3;
        let flights = SingleFlight::<usize, usize>::new(4);
        let working: [AtomicUsize; KEYS] = Default::default();
        let results: [AtomicUsize; KEYS] = Default::default();
        std::thread::scope(|s| {
            for thread in 0..4 {
                let (flights, working, results) = (&flights, &working, &results);
                s.spawn(move || {
                    for turn in 0..3000 {
                        let key = (turn * (thread + 1)) % KEYS;
                        let before = results[key].load(Relaxed);
                        match enter(flights, key as u64, key) {
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
