//! A bounded count whose units are handed out by CPU index.
//!
//! # What it is
//! [`PerCpuCredits`] has `bound` units. A thread takes units from the *store* of its CPU index, and
//! returns them to the store. An empty store is filled from the shared rest, many units at a time.
//! Before a request is refused, all stores are closed and their units collected, so the bound is
//! exact: [`PerCpuCredits::take`] fails only if there are not enough units at that moment, and
//! never succeeds beyond the bound.
//!
//! A caller that cannot be refused takes [anyway](PerCpuCredits::take_anyway). Units that it takes
//! beyond the bound are a *debt*, and returned units pay the debt first.
//!
//! # What it is not
//! An order for other memory: counts only. The guard of the counted things orders them.
//!
//! # State of a store
//! | word | meaning |
//! |---|---|
//! | `CLOSED` | its owner must take the lock; the state at first |
//! | any other | so many units |
//!
//! # How it is locked
//! The owner of the CPU index takes units from the index's store, and returns them, by
//! compare-exchange. Under the mutex any thread may close the store, and the owner may open it. The
//! mutex also covers the rest and the debt.
//!
//! # Invariants
//! 1. Units taken = bound - (rest + units in stores) + debt, but for calls under way.
//! 2. With a debt, the rest is 0 and every store is closed: a debt is made only after all stores were closed under the mutex, and a
//!    store is opened only under the mutex without a debt. A store that is made meanwhile is closed at first. So no unit
//!    can be taken before the debt is paid.
//!
//! # Where it comes from
//! Linux's `percpu_counter`, reversed: it sums up what was taken, and is not exact near the limit.
//! The stores are as in `mm/memcontrol.c` (`memcg_stock`), which keeps no debt.

use crate::mutex::{Mutex, MutexGuard};
use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};

/// A store whose owner must take the lock.
const CLOSED: u64 = u64::MAX;

/// A store is filled with at most this part of the shared rest, so that little is left in stores when the rest ends.
const PART: u64 = if cfg!(loom) { 2 } else { 64 };

/// See the [module documentation](self).
///
/// ```
/// use lightfoot_sync::PerCpuCredits;
///
/// let credits = PerCpuCredits::new(100, 8);
/// assert!(credits.take(99) && !credits.take(2));
/// credits.take_anyway(2);
/// assert_eq!((credits.used(), credits.free()), (101, 0));
/// credits.give(1);
/// assert!(!credits.take(1));
/// credits.give(1);
/// assert!(credits.take(1));
/// ```
#[derive(Debug)]
pub struct PerCpuCredits {
    bound: u64,
    /// The most that a store is filled with.
    fill: u64,
    shared: Apart,
    stores: PerCpu<Store>,
}

/// Apart from the words that every call loads.
#[derive(Debug)]
#[repr(align(128))]
struct Apart {
    account: Mutex<Account>,
}

#[derive(Debug)]
struct Account {
    rest: u64,
    debt: u64,
}

/// The units of one CPU index.
#[derive(Debug)]
#[repr(align(128))]
struct Store {
    units: AtomicU64,
    /// The rest when a thread of the index last held the lock.
    rest: AtomicU64,
}

impl Store {
    fn new() -> Self {
        Self { units: AtomicU64::new(CLOSED), rest: AtomicU64::new(u64::MAX) }
    }

    /// Closes it. Returns its units.
    fn close(&self) -> u64 {
        // Relaxed, here and below: see "What it is not".
        let units = self.units.swap(CLOSED, Relaxed);
        if units == CLOSED { 0 } else { units }
    }

    fn units(&self) -> u64 {
        let units = self.units.load(Relaxed);
        if units == CLOSED { 0 } else { units }
    }
}

impl PerCpuCredits {
    /// `bound` units, of which the stores get at most `fill` at a time, for an object of which a process may have thousands.
    #[must_use]
    pub fn new(bound: u64, fill: u64) -> Self {
        let account = Mutex::new(Account { rest: bound, debt: 0 });
        Self { bound, fill, shared: Apart { account }, stores: PerCpu::sized(Store::new, true) }
    }

    /// Returns all units, taken or not.
    #[must_use]
    pub fn bound(&self) -> u64 {
        self.bound
    }

    /// Takes so many units, or none.
    #[inline(always)]
    #[must_use = "a refused caller has none"]
    pub fn take(&self, units: u64) -> bool {
        self.take_own(units) || self.take_shared(units)
    }

    /// Takes so many units, beyond the bound if there are fewer.
    #[inline]
    pub fn take_anyway(&self, units: u64) {
        if !self.take_own(units) {
            self.borrow(units);
        }
    }

    /// Gives back units that were taken.
    #[inline(always)]
    pub fn give(&self, units: u64) {
        let own = &self.stores.this().units;
        let mut has = own.load(Relaxed);
        while has != CLOSED && has + units <= 2 * self.fill {
            match own.compare_exchange(has, has + units, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => has = now,
            }
        }
        self.give_shared(units);
    }

    /// Units that are not taken; exact unless threads take or give meanwhile. Reads every store.
    #[must_use]
    pub fn free(&self) -> u64 {
        let account = self.shared.account.lock();
        account.rest + self.stores.iter().map(Store::units).sum::<u64>()
    }

    /// Units that are taken, perhaps more than the bound; exact unless threads take or give meanwhile. Reads every store.
    #[must_use]
    pub fn used(&self) -> u64 {
        let account = self.shared.account.lock();
        let free = account.rest + self.stores.iter().map(Store::units).sum::<u64>();
        self.bound.saturating_sub(free) + account.debt
    }

    /// Units that were neither taken nor in a store when a thread of this CPU index last had to look at the shared rest: before
    /// that all. Writes and reads no line of another index.
    #[inline]
    #[must_use]
    pub fn rest_seen(&self) -> u64 {
        self.stores.this().rest.load(Relaxed).min(self.bound)
    }

    /// Takes from the thread's store.
    #[inline(always)]
    fn take_own(&self, units: u64) -> bool {
        let own = &self.stores.this().units;
        let mut has = own.load(Relaxed);
        while has != CLOSED && has >= units {
            match own.compare_exchange(has, has - units, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => has = now,
            }
        }
        false
    }

    #[cold]
    fn take_shared(&self, units: u64) -> bool {
        let mut account = self.shared.account.lock();
        let has = self.collect(&mut account, units) >= units;
        if has {
            account.rest -= units;
            self.fill_own(&mut account);
        }
        self.end(account);
        has
    }

    #[cold]
    fn borrow(&self, units: u64) {
        let mut account = self.shared.account.lock();
        if self.collect(&mut account, units) >= units {
            account.rest -= units;
            self.fill_own(&mut account);
        } else {
            account.debt += units - account.rest;
            account.rest = 0;
        }
        self.end(account);
    }

    #[cold]
    fn give_shared(&self, units: u64) {
        let mut account = self.shared.account.lock();
        let units = units + self.stores.this().close();
        let paid = units.min(account.debt);
        account.debt -= paid;
        account.rest += units - paid;
        self.fill_own(&mut account);
        self.end(account);
    }

    /// Adds the units of the thread's store to the rest and, if these are fewer than `wanted`, the
    /// units of all stores. Returns the rest.
    fn collect(&self, account: &mut Account, wanted: u64) -> u64 {
        account.rest += self.stores.this().close();
        if account.rest < wanted {
            // Once: all stores are closed, so units that are returned after this wait for the lock.
            account.rest += self.stores.iter().map(Store::close).sum::<u64>();
        }
        account.rest
    }

    /// Opens the thread's store, unless there is a debt.
    fn fill_own(&self, account: &mut Account) {
        if account.debt == 0 {
            let fill = self.fill.min(account.rest / PART);
            account.rest -= fill;
            let before = self.stores.this().units.swap(fill, Relaxed);
            debug_assert_eq!(before, CLOSED, "only its owner opens a store");
        }
    }

    fn end(&self, account: MutexGuard<'_, Account>) {
        self.stores.this().rest.store(account.rest, Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn everything_up_to_the_bound_can_be_taken() {
        for bound in [0, 1, 63, 64, 65, 5000, 1 << 30] {
            let credits = PerCpuCredits::new(bound, 1024);
            let mut taken = 0;
            for units in [1, bound / 3, bound / 2] {
                taken += if credits.take(units) { units } else { 0 };
            }
            assert_eq!((credits.free(), credits.used()), (bound - taken, taken));
            assert!(!credits.take(bound - taken + 1));
            assert!(credits.take(bound - taken));
            assert_eq!((credits.free(), credits.rest_seen()), (0, 0));
            credits.give(bound);
            assert_eq!(credits.free(), bound);
        }
    }

    #[test]
    fn units_in_the_store_of_another_thread_can_be_taken() {
        let credits = PerCpuCredits::new(1 << 20, 1024);
        let (before, after) = (Barrier::new(2), Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(credits.take(1));
                credits.give(1);
                // The thread stays alive, so that its store stays its own.
                before.wait();
                after.wait();
            });
            before.wait();
            assert_eq!((credits.rest_seen(), credits.free()), (1 << 20, 1 << 20));
            let taken = (credits.take(1 << 20), credits.take(1));
            after.wait();
            assert_eq!(taken, (true, false));
        });
    }

    #[test]
    fn a_debt_is_paid_before_anything_can_be_taken() {
        let credits = PerCpuCredits::new(1000, 8);
        assert!(credits.take(1000));
        credits.take_anyway(5);
        assert_eq!((credits.used(), credits.free()), (1005, 0));
        for left in (0..5).rev() {
            assert!(!credits.take(1), "{left}");
            credits.give(1);
            assert_eq!((credits.used(), credits.free()), (1000 + left, 0));
        }
        assert!(!credits.take(1));
        credits.give(1000);
        assert!(credits.take(1000));
    }

    #[test]
    fn of_64_threads_none_takes_beyond_the_bound() {
        const BOUND: u64 = 5_000;
        let credits = PerCpuCredits::new(BOUND, 64);
        // At least so many units are taken, and at most so many of them anyway.
        let counts = Mutex::new((0, 0));
        std::thread::scope(|scope| {
            for thread in 0..64_u64 {
                let (credits, counts) = (&credits, &counts);
                scope.spawn(move || {
                    let (mut state, mut held) = (thread + 1, 0);
                    let mut below = |most: u64| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                        (state >> 33) % most
                    };
                    let give = |units| {
                        counts.lock().0 -= units;
                        credits.give(units);
                    };
                    for _ in 0..2_000 {
                        let units = 1 + below(19);
                        if below(16) == 0 {
                            counts.lock().1 += units;
                            credits.take_anyway(units);
                            counts.lock().0 += units;
                            give(units);
                            counts.lock().1 -= units;
                        } else if below(2) == 0 && credits.take(units) {
                            held += units;
                            let mut counts = counts.lock();
                            counts.0 += units;
                            let (used, owed) = *counts;
                            assert!(used <= BOUND + owed, "{used} of {BOUND} and {owed}");
                        } else {
                            let units = units.min(held);
                            held -= units;
                            give(units);
                        }
                    }
                    give(held);
                });
            }
        });
        assert_eq!((credits.used(), credits.free()), (0, BOUND));
    }
}
