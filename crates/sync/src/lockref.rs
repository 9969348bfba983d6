//! A spinlock and a reference count in one word.
//!
//! # What it is
//! The count is moved by one fetch-add or fetch-sub, whether the lock is held or not: 29 ns for a get and put shared by
//! two threads, where a compare-exchange loop takes 73 ns (performance.md). The lock serialises its holders. An object
//! is *alive* or *dead*; who has it alive in its last state kills it by one compare-exchange that names the count.
//!
//! # What it is not
//! Linux's lockref in one point: there the count stands still while the lock is held; **here the count may move while
//! the lock is held**. What the lock does stop is death: [`LockRef::try_kill`] wants the lock free, so an object that
//! was alive under its lock stays alive until the lock is given back (or its holder says
//! [`mark_dead`](LockRefGuard::mark_dead)). Nor does it free anything: what zero means is the caller's business. An
//! alive object with count zero is usual (a cached dentry nobody uses).
//!
//! # State
//! | bits 63..32 | bits 31..2 | bit 1 `DEAD`             | bit 0 `LOCKED` |
//! |-------------|------------|--------------------------|----------------|
//! | count       | zero       | nobody gets a reference  | the lock       |
//!
//! | from                      | by                     | to                             |
//! |---------------------------|------------------------|--------------------------------|
//! | alive, n                  | `get`, `get_not_dead`; `get_not_zero` if n > 0 | alive, n + 1 |
//! | alive, n                  | `put`; `put_or_lock` if n > 1 | alive, n - 1            |
//! | alive, 1, free            | `put_or_lock`          | alive, 1, locked by the caller |
//! | alive, expected, free     | `try_kill(expected)`   | dead, 0                        |
//! | alive, expected, own lock | `mark_dead(expected)`  | dead, 0, locked still          |
//! | dead, s                   | `get_not_dead`         | dead, s + 1, and back at once  |
//! | dead, s                   | `revive(n)`            | alive, s + n                   |
//!
//! # Strays
//! `get_not_dead` learns that the object is dead only after it has counted itself, and takes the count back. So the
//! count of a dead object is the number of such *strays*. Objects live in type-stable memory and may be revived at
//! once, with strays still out; `revive` therefore adds, never stores, and for the moment until it is taken back a
//! stray counts as a reference of the revived object. It does no harm while it is there: `try_kill` and `mark_dead`
//! fail, as with any reference more. And it may be the last to leave, as [`GetNotDead::DeadLast`] tells.
//!
//! # Being last
//! `put` says `true` when it took the count of an alive object to zero. That is news of the past: by now another may
//! have got, put and been told the same, or killed the object, or killed and revived it. So who is told acts only
//! through [`try_kill`](LockRef::try_kill)`(0)`, or under a lock of its own that getters take too. Who kills owns the
//! object *as it then is*: read what it is after the kill, do not remember it from before. (Where references come by
//! `get` alone, `true` is final, as in an `Arc`.)
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
//! Waiters for the lock are not queued. Who would make a count exceed 2^31, or puts a reference that
//! is not there, panics; the count stays as it was.
//!
//! ```
//! use sync::{GetNotDead, LockRef};
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

use core::marker::PhantomData;
use prim::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    fence,
};
use prim::hint::spin_until;
use prim::lockstat;

const LOCKED: u64 = 1;
const DEAD: u64 = 2;
/// One reference.
const ONE: u64 = 1 << 32;
/// Counts from here on are refused. The other half is room for the gets that are on their way to being refused.
const LIMIT: u64 = 1 << 63;
const OVERFLOW: &str = "overflow: 2^31 references to one object";
const UNDERFLOW: &str = "underflow: a reference was put twice";

#[inline(always)]
fn count_of(word: u64) -> u32 {
    (word >> 32) as u32
}

/// A spinlock and a reference count in one word; see the module's description. 8 bytes.
///
/// Source: Linux's `struct lockref`; the differences are under "What it is not".
#[derive(Debug)]
#[repr(transparent)]
pub struct LockRef(AtomicU64);

/// What [`LockRef::get_not_dead`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reference that was got must be put, and who is last must act on it"]
pub enum GetNotDead {
    /// The caller holds a reference.
    Got,
    /// The object was dead. The caller holds nothing.
    Dead,
    /// The object was dead and the caller holds nothing; but meanwhile the object was revived and its references were
    /// put, so that the caller, taking back its stray count, took the count to zero. It must do what it would do after
    /// a [`put`](LockRef::put) that said `true`: nobody else was told of this zero.
    DeadLast,
}

impl LockRef {
    /// Alive, not locked, with `count` references. Panics with 2^31 or more.
    #[inline]
    #[must_use]
    pub fn new(count: u32) -> Self {
        Self(AtomicU64::new(references(count)))
    }

    /// Dead, not locked: an object not made yet, for [`revive`](Self::revive).
    #[inline]
    #[must_use]
    pub fn new_dead() -> Self {
        Self(AtomicU64::new(DEAD))
    }

    /// One reference more. The caller holds one already, so the object stays alive. Panics at 2^31 references.
    #[inline(always)]
    pub fn get(&self) {
        // Relaxed: the caller's own reference orders everything before this one.
        let old = self.0.fetch_add(ONE, Relaxed);
        if old >= LIMIT {
            self.refuse(ONE.wrapping_neg(), OVERFLOW);
        }
        debug_assert!(old & DEAD == 0, "get of a dead object");
    }

    /// A reference, unless the object is dead. Whether it is locked does not matter. Panics at 2^31 references.
    #[inline(always)]
    pub fn get_not_dead(&self) -> GetNotDead {
        // ORDERING: Acquire pairs with the Release in `revive` (a reference sees the object it is to) and with that in
        // `try_kill` and `mark_dead` (who is refused sees what the killer did before).
        let old = self.0.fetch_add(ONE, Acquire);
        if old & (DEAD | LIMIT) == 0 {
            return GetNotDead::Got;
        }
        self.undo(old)
    }

    /// Takes back the count that `get_not_dead` added to `old`.
    #[cold]
    fn undo(&self, old: u64) -> GetNotDead {
        if old & DEAD == 0 {
            self.refuse(ONE.wrapping_neg(), OVERFLOW);
        }
        // Relaxed: a stray touched nothing of the object; as a read-modify-write it passes on what others released.
        let old = self.0.fetch_sub(ONE, Relaxed);
        if old & DEAD != 0 || count_of(old) != 1 {
            return GetNotDead::Dead;
        }
        // ORDERING: the Acquire fence pairs with the Release in `put` and `put_or_lock`: who is last sees what all
        // others did.
        fence(Acquire);
        GetNotDead::DeadLast
    }

    /// A reference, if the object is alive and somebody has one. A stray count passes for a reference here: what the
    /// caller then has is sound, only less exclusive than it hoped. Panics at 2^31 references.
    #[inline]
    #[must_use = "a reference that was got must be put"]
    pub fn get_not_zero(&self) -> bool {
        // Relaxed: a guess, which the compare-exchange checks; a refusal gives the caller nothing.
        let mut old = self.0.load(Relaxed);
        loop {
            if old & DEAD != 0 || count_of(old) == 0 {
                return false;
            }
            if old >= LIMIT {
                self.refuse(0, OVERFLOW);
            }
            // ORDERING: Acquire pairs with the Release in `revive`: a reference sees the object it is to.
            match self.0.compare_exchange_weak(old, old + ONE, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => old = now,
            }
        }
    }

    /// Gives back the caller's reference; says whether that took the count to zero. See "Being last" at
    /// the module. Panics when there was none.
    #[inline(always)]
    #[must_use = "who is last must act on it"]
    pub fn put(&self) -> bool {
        // ORDERING: Release pairs with the Acquire fence in `put` and `undo` at zero, and with the Acquire in
        // `put_or_lock`, `try_kill` and `mark_dead`: who has the object alone sees what this holder did.
        let old = self.0.fetch_sub(ONE, Release);
        if old < 2 * ONE { self.put_last(old) } else { false }
    }

    #[inline]
    fn put_last(&self, old: u64) -> bool {
        if count_of(old) == 0 {
            self.refuse(ONE, UNDERFLOW);
        }
        debug_assert!(old & DEAD == 0, "put of a dead object");
        // ORDERING: the Acquire fence pairs with the Release in `put` and `put_or_lock`: who is last sees what all
        // others did.
        fence(Acquire);
        true
    }

    /// Gives back the caller's reference, unless it is the only one: then takes the lock instead and the caller still
    /// holds the reference. Others may get references while the caller has the lock; `mark_dead(1)` says whether they
    /// did. Panics when there was none.
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
                    // one) and in `put` and `put_or_lock` (who has the object alone sees what the others did).
                    if self.0.compare_exchange_weak(old, old | LOCKED, Acquire, Relaxed).is_ok() {
                        return Some(self.locked());
                    }
                }
                _ => {
                    // ORDERING: Release pairs with the Acquire in `put_or_lock`, `try_kill` and `mark_dead` and the
                    // fences in `put` and `undo` at zero: who has the object alone sees what this holder did.
                    if self.0.compare_exchange_weak(old, old - ONE, Release, Relaxed).is_ok() {
                        return None;
                    }
                }
            }
        }
    }

    /// Takes the lock, spinning. The object may be dead: ask the guard. If it is not, it stays alive until the lock is
    /// given back. The count may move all the same.
    #[inline]
    #[must_use = "the lock is given back when the guard is dropped"]
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

    /// Kills the object if it is alive, not locked, and has exactly `expected` references, all of them the caller's;
    /// they are gone then. One attempt: a refusal may be due to a stray.
    #[inline]
    #[must_use]
    pub fn try_kill(&self, expected: u32) -> bool {
        // ORDERING: AcqRel. Acquire pairs with the Release in `put`, `put_or_lock`, `revive` and `LockRefGuard::drop`:
        // the killer sees what its maker and former holders did. Release pairs with the Acquire in `get_not_dead`
        // and `is_dead`: who finds the object dead sees what the killer did before.
        self.0.compare_exchange(u64::from(expected) << 32, DEAD, AcqRel, Relaxed).is_ok()
    }

    /// Makes a dead object alive, with `count` references for the caller (and the strays that are out). Only whoever
    /// killed or made it may. Panics with 2^31 or more.
    #[inline]
    pub fn revive(&self, count: u32) {
        // DEAD is set, so taking it off borrows nothing from its neighbours.
        let change = references(count).wrapping_sub(DEAD);
        // ORDERING: Release pairs with the Acquire in `get_not_dead`, `get_not_zero`, `is_dead`, `try_kill` and
        // `mark_dead`: who gets a reference, or kills, sees the object as it was made.
        let old = self.0.fetch_add(change, Release);
        debug_assert!(old & DEAD != 0, "revival of what is alive");
    }

    /// The references now, strays included; for show, or for those whom the caller excludes from moving it.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        // Relaxed: orders nothing.
        count_of(self.0.load(Relaxed))
    }

    /// Whether the object is dead. It stays so until its killer revives it.
    #[inline]
    #[must_use]
    pub fn is_dead(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `try_kill` and `mark_dead` (who finds it dead sees what the
        // killer did before) and in `revive` (who finds it alive sees it as it was made).
        self.0.load(Acquire) & DEAD != 0
    }

    /// Whether somebody holds the lock now.
    #[inline]
    #[must_use]
    pub fn is_locked(&self) -> bool {
        // Relaxed: orders nothing.
        self.0.load(Relaxed) & LOCKED != 0
    }

    /// Panics, after the count was put right by adding `change`.
    #[cold]
    #[inline(never)]
    fn refuse(&self, change: u64, why: &str) -> ! {
        self.0.fetch_add(change, Relaxed); // Relaxed: takes back a change that gave access to nothing.
        panic!("reference count {why}");
    }
}

/// `count` references as they stand in the word.
#[inline]
fn references(count: u32) -> u64 {
    assert!(count < 1 << 31, "reference count {OVERFLOW}");
    u64::from(count) << 32
}

/// The lock of a [`LockRef`], held; given back on drop, also when unwinding.
#[derive(Debug)]
#[must_use = "the lock is given back when the guard is dropped"]
pub struct LockRefGuard<'a> {
    lock: &'a LockRef,
    /// Whoever took a spinning lock gives it back.
    not_send: PhantomData<*const ()>,
}

impl LockRefGuard<'_> {
    /// The references at this moment; the lock does not stop them from moving.
    #[inline]
    #[must_use]
    pub fn count(&self) -> u32 {
        self.lock.count()
    }

    /// Whether the object is dead. `false` holds until the lock is given back.
    #[inline]
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.lock.is_dead()
    }

    /// Kills the object if it is alive and has exactly `expected` references, all of them the caller's; they are gone
    /// then. The lock stays held. `false`: somebody else has a reference (or a stray is out), or it was dead.
    #[inline]
    #[must_use]
    pub fn mark_dead(&mut self, expected: u32) -> bool {
        let alive = u64::from(expected) << 32 | LOCKED;
        // ORDERING: AcqRel. Acquire pairs with the Release in `put`, `put_or_lock` and `revive`: the killer sees what
        // its maker and former holders did. Release pairs with the Acquire in `get_not_dead` and `is_dead`: who
        // finds the object dead sees what the killer did before.
        self.lock.0.compare_exchange(alive, DEAD | LOCKED, AcqRel, Relaxed).is_ok()
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
        assert!(!d.get_not_zero(), "nobody has one");
        drop(guard);
        check(&d, 0, false, false);
    }

    #[test]
    fn a_kill_wants_the_lock_free_and_the_count_exact() {
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
            d.get(); // the lock is not given back: the waiter leaves because of this
            assert!(waiter.join().unwrap() && guard.count() == 1);
        });
        check(&d, 1, false, false);
    }

    #[test]
    fn a_revived_object_keeps_its_strays_and_tells_the_last_of_them() {
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
        assert_eq!(d.undo(before), GetNotDead::Dead, "a holder is left");
        check(&d, 1, false, false);
    }

    #[test]
    fn an_overflow_or_underflow_is_refused_and_leaves_the_count() {
        let refused = |d: &LockRef, f: fn(&LockRef)| {
            let before = d.count();
            assert!(catch_unwind(AssertUnwindSafe(|| f(d))).is_err());
            check(d, before, false, false);
        };
        let d = LockRef(AtomicU64::new(LIMIT));
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
