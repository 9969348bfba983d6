//! The count of 2013: moved by compare-exchange, without a look at the lock beside it.
//!
//! # What it is
//! The rule under which the AIM7 figures were measured: two tries, then the lock; a get without the lock only from a count
//! above 1, a put only from a count above 2. So a count that is zero, or is at most one put away from zero, moves only under
//! the entry's lock, and code that frees or lists an entry under its lock need not change.
//!
//! # What it is not
//! A lockref: the lock is another word on the same line, and the count moves while a thread holds the lock. So a thread that
//! counts under the lock uses a read-modify-write as well. The form in which both are one word is [`super::lockref`].
//!
//! # Orderings
//! | here                           | partner                                                               |
//! |--------------------------------|-----------------------------------------------------------------------|
//! | `try_move`: exchange, AcqRel   | `put`: subtract, AcqRel (to zero); `reset`: Release      |
//!
//! # Source
//! Waiman Long, "dcache: Don't take unnecessary lock in d_count update" (linux-kernel, spring 2013, for Linux 3.10).

use super::count::{Count, CountAndLock, CountRule, FineCount};
use prim::atomic::{
    Ordering,
    Ordering::{AcqRel, Relaxed, Release},
};
use prim::profile::{Tag, scope};
use sync::RawLock;

/// Tries before the lock.
const TRIES: u32 = 2;
/// A get without the lock needs a count above this.
const GET_ABOVE: u32 = 1;
/// A put without the lock needs a count above this.
const PUT_ABOVE: u32 = 2;

/// The rule of [`LocklessCount`].
pub(crate) struct ByExchange;

/// See the [module documentation](self).
pub(crate) type LocklessCount<R> = CountAndLock<R, ByExchange>;

impl<R: RawLock> LocklessCount<R> {
    /// Moves the count by one, up or down, if it is above `above`.
    fn try_move(&self, is_up: bool, above: u32) -> bool {
        for _ in 0..TRIES {
            // Relaxed: a guess, which the exchange checks.
            let old = self.count.load(Relaxed);
            if old <= above {
                return false;
            }
            let new = if is_up { old + 1 } else { old - 1 };
            // ORDERING: AcqRel. Release pairs with the Acquire in `put`: the thread that takes the count to zero sees what
            // this holder did. Acquire pairs with the Release in `reset`: a thread that gets a reference and then checks
            // whether the entry is still the one that it found sees that it became another.
            if self.count.compare_exchange(old, new, AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
        false
    }
}

impl CountRule for ByExchange {
    // ORDERING: Release, in `reset`, pairs with the Acquire in `try_move`: a thread that gets a reference sees which entry it
    // is to.
    const RESET: Ordering = Release;

    fn get<R: RawLock>(of: &LocklessCount<R>) {
        if !of.try_move(true, GET_ABOVE) {
            let held = of.lock();
            of.get_locked(&held);
        }
    }
}

impl<R: RawLock> FineCount for LocklessCount<R> {
    fn get_locked(&self, _held: &Self::Guard<'_>) {
        // Relaxed: the lock orders. Others move the count meanwhile, so it is a read-modify-write.
        self.count.fetch_add(1, Relaxed);
    }

    fn try_get(&self) -> bool {
        let _scope = scope(Tag::Ref);
        self.try_move(true, GET_ABOVE)
    }

    fn put(&self) -> Option<Self::Guard<'_>> {
        let _scope = scope(Tag::Ref);
        if self.try_move(false, PUT_ABOVE) {
            return None;
        }
        let held = self.lock();
        // ORDERING: AcqRel. Acquire pairs with the Release in `try_move` and here: the thread that takes the count to zero sees
        // what the others did.
        let old = self.count.fetch_sub(1, AcqRel);
        debug_assert!(old != 0, "a reference was put twice");
        (old == 1).then_some(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use locks::TicketLock;

    /// Checks the effect of `f` on a count of `count`, and whether it needs the lock for it: with
    /// the lock held, it must wait.
    fn check(count: u32, f: fn(&LocklessCount<TicketLock>), want: u32, is_lockless: bool) {
        let lockless = LocklessCount::<TicketLock>::new();
        lockless.reset(count);
        std::thread::scope(|s| {
            let held = lockless.lock();
            let moved = s.spawn(|| f(&lockless));
            if is_lockless {
                moved.join().unwrap();
                assert_eq!(lockless.value(), want, "at {count}");
            } else {
                assert_eq!(lockless.value(), count, "at {count}");
            }
            drop(held);
        });
        assert_eq!(lockless.value(), want, "at {count}");
    }

    #[test]
    fn the_lock_is_needed_at_the_edge_of_zero_only() {
        let get = |count: &LocklessCount<TicketLock>| count.get();
        let put = |count: &LocklessCount<TicketLock>| drop(count.put());
        check(0, get, 1, false);
        check(1, get, 2, false);
        check(2, get, 3, true);
        check(100, get, 101, true);
        check(1, put, 0, false);
        check(2, put, 1, false);
        check(3, put, 2, true);
        check(100, put, 99, true);
    }

    #[test]
    fn the_last_put_returns_the_lock() {
        let lockless = LocklessCount::<TicketLock>::new();
        lockless.reset(2);
        assert!(lockless.put().is_none());
        let held = lockless.put();
        assert!(held.is_some() && lockless.value() == 0 && !lockless.try_get());
    }
}
