//! A spinlock and a reference count in one word.
//!
//! # What it is
//! One fetch-add or fetch-sub moves the count, whether the lock is held or not: a get and a put shared by two threads
//! took 29 ns, and 73 ns as a compare-exchange loop (2 CPUs). The lock serialises its holders. An object is *alive* or
//! *dead*; a thread kills it by one compare-exchange that names the count.
//!
//! # What it is not
//! Linux's lockref in one point: Linux's count does not change while the lock is held; **here the
//! count may change while the lock is held**. The lock does stop death: [`LockRef::try_kill`]
//! requires the lock to be free, so an object that was alive under its lock stays alive until the
//! lock is released (or its holder calls [`mark_dead`](LockRefGuard::mark_dead)). It frees nothing
//! either: the caller decides what zero means. An alive object with count zero is usual (a cached
//! dentry without users).
//! # State
//! | bits 63..32 | bits 31..2 | bit 1 `ALIVE`                | bit 0 `LOCKED` |
//! |-------------|------------|------------------------------|----------------|
//! | count       | zero       | a thread can get a reference | the lock       |
//!
//! | from                      | by                     | to                             |
//! |---------------------------|------------------------|--------------------------------|
//! | alive, n                  | `get`, `get_not_dead`; `get_not_zero` if n > 0 | alive, n + 1 |
//! | alive, n                  | `put`; `put_or_lock` if n > 1 | alive, n - 1            |
//! | alive, 1, free            | `put_or_lock`          | alive, 1, locked by the caller |
//! | alive, expected, free     | `try_kill(expected)`   | dead, 0                        |
//! | alive, expected, own lock | `mark_dead(expected)`  | dead, 0, still locked          |
//! | dead, s                   | `get_not_dead`         | dead, s + 1, and back at once  |
//! | dead, s                   | `revive(n)`            | alive, s + n                   |
//!
//! # Strays
//! `get_not_dead` learns that the object is dead only after it has added one to the count, and
//! subtracts it again. So the count of a dead object is the number of such *strays*. Objects live
//! in type-stable memory and may be revived at once, before all strays are subtracted. So `revive`
//! adds and never stores, and a stray counts as a reference of the revived object until it is
//! subtracted. As long as there are strays `try_kill` and `mark_dead` fail; `DeadLast` reports the
//! last stray.
//!
//! # Being last
//! `put` returns `true` when it took the count of an alive object to zero. That describes the past:
//! since then another thread may have got and put a reference and received `true` too, or killed
//! (and revived) the object. So a caller that receives `true` acts only through
//! [`try_kill`](LockRef::try_kill)`(0)`, or under its own lock that getters take. A killer owns the
//! object *as it is after the kill*: read its state afterwards. If all references come from `get`,
//! `true` is final.
//!
//! # Orderings
//! Every change is a read-modify-write, so each continues the release sequences before it.
//!
//! | here                                | partner                                                         |
//! |-------------------------------------|-----------------------------------------------------------------|
//! | `put`, `put_or_lock`: Release       | `put` and `undo` at zero: fence Acquire                         |
//! | the same                            | `put_or_lock` taking the lock, `try_kill`, `mark_dead`: Acquire |
//! | `revive`: Release                   | `get_not_dead`, `get_not_zero`, `is_dead`, both kills: Acquire  |
//! | `try_kill`, `mark_dead`: Release    | `get_not_dead`, `is_dead`: Acquire                              |
//! | `LockRefGuard::drop`: Release       | `lock`, `put_or_lock`, `try_kill`: Acquire                      |
//!
//! # Source
//! Waiman Long and Linus Torvalds, "lockref: Implement lockless reference count updates using cmpxchg()" (Linux 3.12,
//! 2013). Counting by fetch-add and reading the state from what it returns: Linux's `rcuref` (Thomas Gleixner, 2023).
//!
//! # Limitations
//! Waiters for the lock are not queued. A call that would make a count exceed 2^31, or that puts a reference which does
//! not exist, panics and leaves the count as it was.
//!
//! ```
//! use lightfoot_sync::{GetNotDead, LockRef};
//!
//! let d = LockRef::new(1);
//! d.get();
//! assert!(!d.put());
//! assert!(d.put()); // the count is zero, the object alive
//! assert_eq!(d.get_not_dead(), GetNotDead::Got);
//! assert!(d.put());
//! assert!(d.try_kill(0));
//! assert_eq!(d.get_not_dead(), GetNotDead::Dead);
//! d.revive(1);
//! assert_eq!(d.count(), 1);
//! ```

mod many;

use core::marker::PhantomData;
use prim::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence,
};
use prim::hint::spin_until;
use prim::lockstat;

const LOCKED: u64 = 1;
const ALIVE: u64 = 2;
/// One reference.
const ONE: u64 = 1 << 32;
/// Counts from here on are refused. The other half is room for gets that are about to be refused.
const LIMIT: u64 = 1 << 63;
const OVERFLOW: &str = "overflow: 2^31 references to one object";
const UNDERFLOW: &str = "underflow: a reference was put twice";

#[inline(always)]
fn count_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// Source: Linux's `struct lockref`; the module's description lists the differences.
///
/// Source: Linux's `struct lockref`; the first section lists the differences.
#[derive(Debug)]
#[repr(transparent)]
pub struct LockRef(AtomicU64);

/// The result of [`LockRef::get_not_dead`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reference that was got must be put, and the last user must act on it"]
pub enum GetNotDead {
    /// The caller holds a reference.
    Got,
    /// The object was dead. The caller holds nothing.
    Dead,
    /// The object was dead and the caller holds nothing. But meanwhile the object was revived and
    /// its references were put, so the caller took the count to zero when it subtracted its stray.
    /// It must act as after a [`put`](LockRef::put) that returned `true`: no other thread received
    /// this zero.
    DeadLast,
}

impl LockRef {
    /// Alive, not locked, with `count` references. Panics with 2^31 or more.
    #[inline]
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self(AtomicU64::new(references(count) | ALIVE))
    }

    /// Dead, not locked: an object not made yet, for [`revive`](Self::revive). Its bytes are zeros.
    #[inline]
    #[must_use]
    pub fn new_dead() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Adds a reference. The caller holds one already, so the object stays alive. Panics at 2^31 references.
    #[inline(always)]
    pub fn get(&self) {
        // Relaxed: the caller's own reference orders everything before this one.
        let old = self.0.fetch_add(ONE, Relaxed);
        if old >= LIMIT {
            self.refuse(ONE.wrapping_neg(), OVERFLOW);
        }
        debug_assert!(old & ALIVE != 0, "get of a dead object");
    }

    /// Gets a reference, unless the object is dead. It may be locked. Panics at 2^31 references.
    #[inline(always)]
    pub fn get_not_dead(&self) -> GetNotDead {
        // ORDERING: Acquire pairs with the Release in `revive` (a thread with a reference sees the revived object) and
        // with that in `try_kill` and `mark_dead` (a refused thread sees what the killer did before).
        let old = self.0.fetch_add(ONE, Acquire);
        if old & (ALIVE | LIMIT) == ALIVE {
            return GetNotDead::Got;
        }
        self.undo(old)
    }

    /// Subtracts the stray that `get_not_dead` added to `old`.
    #[cold]
    fn undo(&self, old: u64) -> GetNotDead {
        if old & ALIVE != 0 {
            self.refuse(ONE.wrapping_neg(), OVERFLOW);
        }
        // Relaxed: a stray read nothing of the object; as a read-modify-write it continues the release sequence.
        let old = self.0.fetch_sub(ONE, Relaxed);
        if old & ALIVE == 0 || count_of(old) != 1 {
            return GetNotDead::Dead;
        }
        // ORDERING: the Acquire fence pairs with the Release in `put` and `put_or_lock`: the last user sees what all
        // others did.
        fence(Acquire);
        GetNotDead::DeadLast
    }

    /// Gets a reference, if the object is alive and its count is not zero. A stray counts as a reference here: the
    /// caller's reference is sound, but it may be the only one. Panics at 2^31 references.
    #[inline]
    #[must_use = "a reference that was got must be put"]
    pub fn get_not_zero(&self) -> bool {
        // Relaxed: a guess, which the compare-exchange checks; a refused caller gets nothing.
        let mut old = self.0.load(Relaxed);
        loop {
            if old & ALIVE == 0 || count_of(old) == 0 {
                return false;
            }
            if old >= LIMIT {
                self.refuse(0, OVERFLOW);
            }
            // ORDERING: Acquire pairs with the Release in `revive`: a thread with a reference sees the revived object.
            match self.0.compare_exchange_weak(old, old + ONE, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
    }

    /// Puts the caller's reference. Returns whether that took the count to zero; see "Being last" at the module. Panics
    /// if the count was zero.
    #[inline(always)]
    #[must_use = "the last user must act on it"]
    pub fn put(&self) -> bool {
        // ORDERING: Release pairs with the Acquire fence in `put` and `undo` at zero, and with the Acquire in
        // `put_or_lock`, `try_kill` and `mark_dead`: a thread that has the object alone sees what this holder did.
        let old = self.0.fetch_sub(ONE, Release);
        if old < 2 * ONE { self.put_last(old) } else { false }
    }

    #[inline]
    fn put_last(&self, old: u64) -> bool {
        if count_of(old) == 0 {
            self.refuse(ONE, UNDERFLOW);
        }
        debug_assert!(old & ALIVE != 0, "put of a dead object");
        // ORDERING: the Acquire fence pairs with the Release in `put` and `put_or_lock`: the last user sees what all
        // others did.
        fence(Acquire);
        true
    }

    /// Puts the caller's reference, unless it is the only one: then it takes the lock instead, and the caller still
    /// holds the reference. Other threads may get references while the caller has the lock; `mark_dead(1)` fails if
    /// they did. Panics if the count was zero.
    #[must_use = "with a guard, the caller still holds the reference"]
    pub fn put_or_lock(&self) -> Option<LockRefGuard<'_>> {
        loop {
            // Relaxed: a guess, which the compare-exchanges check.
            let old = self.0.load(Relaxed);
            match count_of(old) {
                0 => self.refuse(0, UNDERFLOW),
                1 if old & LOCKED != 0 => {
                    lockstat::contended(self);
                    // Relaxed: only a hint; the next turn decides.
                    spin_until(|| !self.is_locked() || self.count() > 1);
                }
                1 => {
                    // ORDERING: Acquire pairs with the Release in `LockRefGuard::drop` (this section follows the last
                    // one) and in `put` and `put_or_lock` (a thread that has the object alone sees what the others
                    // did).
                    if self.0.compare_exchange_weak(old, old | LOCKED, Acquire, Relaxed).is_ok() {
                        return Some(self.locked());
                    }
                }
                _ => {
                    // ORDERING: Release pairs with the Acquire in `put_or_lock`, `try_kill` and `mark_dead` and the
                    // fences in `put` and `undo` at zero: a thread that has the object alone sees what this holder did.
                    if self.0.compare_exchange_weak(old, old - ONE, Release, Relaxed).is_ok() {
                        return None;
                    }
                }
            }
        }
    }

    /// Takes the lock, spinning. The object may be dead; [`LockRefGuard::is_dead`] returns whether it is. An object
    /// that is alive stays alive until the lock is released, but its count may move.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn lock(&self) -> LockRefGuard<'_> {
        loop {
            // ORDERING: Acquire pairs with the Release in `LockRefGuard::drop`: this section follows the last one.
            if self.0.fetch_or(LOCKED, Acquire) & LOCKED == 0 {
                return self.locked();
            }
            lockstat::contended(self);
            // Relaxed: only a hint; the next turn decides.
            spin_until(|| !self.is_locked());
        }
    }

    #[inline]
    fn locked(&self) -> LockRefGuard<'_> {
        lockstat::acquired(self);
        LockRefGuard { lock: self, not_send: PhantomData }
    }

    /// Kills the object if it is alive, not locked, and has exactly `expected` references, all of
    /// them the caller's. The kill consumes them. One attempt: it may fail because of a stray.
    #[inline]
    #[must_use]
    pub fn try_kill(&self, expected: u32) -> bool {
        // ORDERING: AcqRel. Acquire pairs with the Release in `put`, `put_or_lock`, `revive` and `LockRefGuard::drop`:
        // the killer sees what its maker and former holders did. Release pairs with the Acquire in `get_not_dead` and
        // `is_dead`: a thread that finds the object dead sees what the killer did before.
        self.0.compare_exchange(u64::from(expected) << 32 | ALIVE, 0, AcqRel, Relaxed).is_ok()
    }

    /// Makes a dead object alive, with `count` references for the caller (plus the strays). Only the thread that killed
    /// or made the object may call this. Panics with 2^31 or more.
    #[inline]
    pub fn revive(&self, count: u32) {
        // ALIVE is not set, so adding it carries nothing into its neighbours.
        let change = references(count) | ALIVE;
        // ORDERING: Release pairs with the Acquire in `get_not_dead`, `get_not_zero`, `is_dead`, `try_kill` and
        // `mark_dead`: a thread that gets a reference, or kills, sees the object as it was made.
        let old = self.0.fetch_add(change, Release);
        debug_assert!(old & ALIVE == 0, "revive of an object that is alive");
    }

    /// Returns the references now, strays included; for display, or for a caller that excludes the
    /// threads that change it.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        // Relaxed: orders nothing.
        count_of(self.0.load(Relaxed))
    }

    /// Returns whether the object is dead. It stays dead until its killer revives it.
    #[inline]
    #[must_use]
    pub fn is_dead(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `try_kill` and `mark_dead` (a thread that finds it dead sees what
        // the killer did before) and in `revive` (a thread that finds it alive sees it as it was made).
        self.0.load(Acquire) & ALIVE == 0
    }

    /// Returns whether a thread holds the lock now.
    #[inline]
    #[must_use]
    pub fn is_locked(&self) -> bool {
        // Relaxed: orders nothing.
        self.0.load(Relaxed) & LOCKED != 0
    }

    /// Panics, after it has corrected the count by adding `change`.
    #[cold]
    #[inline(never)]
    fn refuse(&self, change: u64, why: &str) -> ! {
        self.0.fetch_add(change, Relaxed); // Relaxed: takes back a change that gave access to nothing.
        panic!("reference count {why}");
    }
}

/// `count` references, at their position in the word.
#[inline]
fn references(count: u32) -> u64 {
    assert!(count < 1 << 31, "reference count {OVERFLOW}");
    u64::from(count) << 32
}

/// The guard of a locked [`LockRef`]; its drop, also during a panic, releases the lock.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct LockRefGuard<'a> {
    lock: &'a LockRef,
    /// The thread that took a spinning lock releases it.
    not_send: PhantomData<*const ()>,
}

impl LockRefGuard<'_> {
    /// Returns the references at this moment; the lock does not stop them from changing.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.lock.count()
    }

    /// Returns whether the object is dead. `false` holds until the lock is released.
    #[inline]
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock.is_dead()
    }

    /// Kills the object if it is alive and has exactly `expected` references, all of them the
    /// caller's. The kill consumes them. The lock stays held. `false`: another thread has a
    /// reference (or there is a stray), or it was dead.
    #[inline]
    #[must_use]
    pub fn mark_dead(&mut self, expected: u32) -> bool {
        let alive = u64::from(expected) << 32 | ALIVE | LOCKED;
        // ORDERING: AcqRel. Acquire pairs with the Release in `put`, `put_or_lock` and `revive`: the killer sees what
        // its maker and former holders did. Release pairs with the Acquire in `get_not_dead` and `is_dead`: a thread
        // that finds the object dead sees what the killer did before.
        self.lock.0.compare_exchange(alive, LOCKED, AcqRel, Relaxed).is_ok()
    }
}

impl Drop for LockRefGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        lockstat::released(self.lock);
        // ORDERING: Release pairs with the Acquire in `lock`, `put_or_lock` and `try_kill`: the next section, or the
        // killer, follows this section. (A read-modify-write: the count moves meanwhile.)
        self.lock.0.fetch_and(!LOCKED, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn check(d: &LockRef, count: u32, dead: bool, locked: bool) {
        assert_eq!((d.count(), d.is_dead(), d.is_locked()), (count, dead, locked));
    }

    const _: () = assert!(size_of::<LockRef>() == 8);

    #[test]
    fn references_come_and_go_whether_locked_or_not() {
        let d = LockRef::new(1);
        d.get();
        let guard = d.lock();
        assert_eq!(d.get_not_dead(), GetNotDead::Got);
        assert!(d.get_not_zero());
        check(&d, 4, false, true);
        assert_eq!(guard.count(), 4);
        assert!(!d.put() && !d.put() && !d.put() && d.put());
        assert!(!d.get_not_zero(), "no references");
        drop(guard);
        check(&d, 0, false, false);
    }

    #[test]
    fn a_kill_requires_the_lock_free_and_the_count_exact() {
        let d = LockRef::new(2);
        assert!(!d.try_kill(1));
        let guard = d.lock();
        assert!(!d.try_kill(2), "locked");
        drop(guard);
        assert!(d.try_kill(2));
        check(&d, 0, true, false);
        assert!(!d.try_kill(0), "dead already");
        assert_eq!(d.get_not_dead(), GetNotDead::Dead);
        assert!(!d.get_not_zero());
        check(&d, 0, true, false);
    }

    #[test]
    fn the_holder_of_the_lock_may_kill() {
        let d = LockRef::new(1);
        let mut guard = d.lock();
        assert!(!guard.mark_dead(0) && !guard.is_dead());
        assert!(guard.mark_dead(1) && guard.is_dead());
        assert!(!guard.mark_dead(0), "dead already");
        check(&d, 0, true, true);
        drop(guard);
        check(&d, 0, true, false);
    }

    #[test]
    fn put_or_lock_puts_all_but_the_last() {
        let d = LockRef::new(2);
        assert!(d.put_or_lock().is_none());
        let mut guard = d.put_or_lock().expect("the last");
        check(&d, 1, false, true);
        assert!(guard.mark_dead(1));
    }

    #[test]
    fn put_or_lock_waiting_for_the_lock_sees_that_it_is_not_the_last_any_more() {
        let d = LockRef::new(1);
        std::thread::scope(|s| {
            let guard = d.lock();
            let waiter = s.spawn(|| d.put_or_lock().is_none());
            d.get(); // the lock stays held: the waiter leaves because of this
            assert!(waiter.join().unwrap() && guard.count() == 1);
        });
        check(&d, 1, false, false);
    }

    #[test]
    fn a_revived_object_keeps_its_strays_and_reports_the_last_of_them() {
        let d = LockRef::new_dead();
        let before = d.0.fetch_add(ONE, Relaxed); // a stray, caught in the middle of `get_not_dead`
        let guard = d.lock();
        d.revive(1);
        check(&d, 2, false, true);
        drop(guard);
        assert!(!d.try_kill(1), "the stray is in the way");
        assert!(!d.put(), "the stray is last");
        assert_eq!(d.undo(before), GetNotDead::DeadLast);
        assert!(d.try_kill(0));

        let before = d.0.fetch_add(ONE, Relaxed);
        d.revive(1);
        assert_eq!(d.undo(before), GetNotDead::Dead, "one holder remains");
        check(&d, 1, false, false);
    }

    #[test]
    fn an_overflow_or_underflow_is_refused_and_leaves_the_count() {
        let refused = |d: &LockRef, f: fn(&LockRef)| {
            let before = d.count();
            assert!(catch_unwind(AssertUnwindSafe(|| f(d))).is_err());
            check(d, before, false, false);
        };
        let d = LockRef(AtomicU64::new(LIMIT | ALIVE));
        refused(&d, LockRef::get);
        refused(&d, |d| assert_eq!(d.get_not_dead(), GetNotDead::Got));
        refused(&d, |d| assert!(d.get_not_zero()));
        assert!(!d.put());
        d.get();
        check(&d, 1 << 31, false, false);
        let none = LockRef::new(0);
        refused(&none, |d| assert!(d.put()));
        refused(&none, |d| drop(d.put_or_lock()));
        assert!(catch_unwind(|| LockRef::new(1 << 31)).is_err());
    }
}
