//! Count and lock in one word: lockref, in its first form and in the one that was merged.
//!
//! # What it is
//! One word that holds both, so that the count does not change while the lock is held.
//!
//! | rule                                          | tries   | a get without the lock | a put without the lock |
//! |-----------------------------------------------|---------|------------------------|------------------------|
//! | [`Lockref2013`], the first form               | 2       | from a count above 1   | from a count above 2   |
//! | [`Lockref312`], Linux 3.12                    | while the lock is free | from any count | from a count above 1 |
//!
//! The first has the rule of [`super::lockless`]. In one word that is worse where it matters: once one of many falls back
//! to the lock, the others find it held and fall back too. In the merged form, a get may count an entry that has none left;
//! so an entry that ends is marked dead under its lock, and a dead one is not counted.
//!
//! # What it is not
//! [`sync::LockRef`] of Lightfoot: there the count moves by fetch-add whether the lock is held or not.
//!
//! # State
//! | bits 63..48      | bits 47..32                          | bit 31 | bits 30..0 |
//! |------------------|--------------------------------------|--------|------------|
//! | next ticket      | ticket being served; equal: free     | dead   | count      |
//!
//! `next` is on top, so that its overflow falls off; only the holder steps `served`, and takes its carry back.
//!
//! # Orderings
//! | here                                              | partner                                     |
//! |---------------------------------------------------|---------------------------------------------|
//! | `lock`: load of the own ticket, Acquire           | `Held::drop`: add, Release                  |
//! | `try_move`: exchange, AcqRel                      | `lock`: Acquire (of the next holder); `reset`: Release |
//!
//! # Source
//! Waiman Long, "Lockless update of reference count protected by spinlock" (linux-kernel, summer of 2013); Linus
//! Torvalds's `lockref` of Linux 3.12.

use super::count::{Count, FineCount};
use core::marker::PhantomData;
use prim::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};

const SERVED: u64 = 1 << 32;
const NEXT: u64 = 1 << 48;
/// The entry has ended.
const DEAD: u64 = 1 << 31;

/// When a count moves without the lock.
pub(crate) trait LockrefRule: Send + Sync + 'static {
    /// Tries before the lock, as long as that is free.
    const TRIES: u32;
    /// The least count that a get without the lock begins from.
    const GET_FROM: u32;
    /// The least count that a put without the lock begins from.
    const PUT_FROM: u32;
}

/// The rule of [`Lockref2013`].
#[derive(Debug)]
pub(crate) struct TwoTries;

/// The rule of [`Lockref312`].
#[derive(Debug)]
pub(crate) struct WhileFree;

impl LockrefRule for TwoTries {
    const TRIES: u32 = 2;
    const GET_FROM: u32 = 2;
    const PUT_FROM: u32 = 3;
}

impl LockrefRule for WhileFree {
    const TRIES: u32 = u32::MAX;
    const GET_FROM: u32 = 0;
    const PUT_FROM: u32 = 2;
}

/// The first form, of summer 2013.
pub(crate) type Lockref2013 = Lockref<TwoTries>;

/// Linux 3.12's.
pub(crate) type Lockref312 = Lockref<WhileFree>;

/// See the [module documentation](self). 8 bytes.
#[derive(Debug)]
#[repr(transparent)]
pub(crate) struct Lockref<R>(AtomicU64, PhantomData<R>);

/// The lock, held.
pub(crate) struct Held<'a, R> {
    lockref: &'a Lockref<R>,
    /// A spinning lock must be released by the thread that took it.
    _not_send: core::marker::PhantomData<*const ()>,
}

fn count_of(word: u64) -> u32 {
    (word & (DEAD - 1)) as u32
}

fn served(word: u64) -> u16 {
    (word >> 32) as u16
}

fn next(word: u64) -> u16 {
    (word >> 48) as u16
}

impl<R: LockrefRule> Lockref<R> {
    /// Moves the count by one, up or down, if the lock is free and the count at least `from`.
    fn try_move(&self, is_up: bool, from: u32) -> bool {
        for _ in 0..R::TRIES {
            // Relaxed: a guess, which the exchange checks.
            let old = self.0.load(Relaxed);
            if served(old) != next(old) || count_of(old) < from || old & DEAD != 0 {
                return false;
            }
            let new = if is_up { old + 1 } else { old - 1 };
            // ORDERING: AcqRel. Release pairs with the Acquire in `lock`: a thread that takes the lock, and finds the
            // count at zero, sees what this holder did. Acquire pairs with the Release in `reset`: a thread that gets a
            // reference, and then checks that the entry is still the one it found, sees that it became another.
            if self.0.compare_exchange(old, new, AcqRel, Relaxed).is_ok() {
                return true;
            }
        }
        false
    }
}

impl<R: LockrefRule> Count for Lockref<R> {
    type Guard<'a> = Held<'a, R>;

    fn new() -> Self {
        Self(AtomicU64::new(0), PhantomData)
    }

    fn lock(&self) -> Held<'_, R> {
        let _scope = scope(Tag::SpinLock);
        lockstat::named(|| "d_lock");
        // Relaxed: a ticket is a number; the load of the own one orders.
        let ticket = next(self.0.fetch_add(NEXT, Relaxed));
        // ORDERING: Acquire pairs with the Release in `Held::drop` (this section follows the last one) and that in
        // `try_move` (what threads did before they put their references).
        let is_served = || served(self.0.load(Acquire)) == ticket;
        if !is_served() {
            lockstat::contended(self);
            spin_until(is_served);
        }
        lockstat::acquired(self);
        Held { lockref: self, _not_send: core::marker::PhantomData }
    }

    fn get(&self) {
        let _scope = scope(Tag::Ref);
        if !self.try_move(true, R::GET_FROM) {
            let held = self.lock();
            self.get_locked(&held);
        }
    }

    fn value(&self) -> u32 {
        count_of(self.0.load(Relaxed))
    }

    fn reset(&self, count: u32) {
        // Relaxed: a dead count does not move. Only the count: a stray that still looks at the entry's former life may hold
        // the lock.
        self.0.fetch_and(!DEAD, Relaxed);
        // ORDERING: Release pairs with the Acquire in `try_move`: a thread that gets a reference sees to which entry.
        self.0.fetch_add(u64::from(count.wrapping_sub(self.value())), Release);
    }
}

impl<R: LockrefRule> FineCount for Lockref<R> {
    fn get_locked(&self, _held: &Held<'_, R>) {
        // Relaxed: the lock orders. Others draw tickets in this word meanwhile, so it is a read-modify-write.
        self.0.fetch_add(1, Relaxed);
    }

    fn try_get(&self) -> bool {
        let _scope = scope(Tag::Ref);
        self.try_move(true, R::GET_FROM)
    }

    fn put(&self) -> Option<Held<'_, R>> {
        let _scope = scope(Tag::Ref);
        if self.try_move(false, R::PUT_FROM) {
            return None;
        }
        let held = self.lock();
        // Relaxed: as in `get_locked`.
        let old = self.0.fetch_sub(1, Relaxed);
        debug_assert!(count_of(old) != 0, "a reference was put twice");
        (count_of(old) == 1).then_some(held)
    }

    fn kill(&self, _held: &Held<'_, R>) {
        // Relaxed: the lock orders; a read-modify-write as in `get_locked`.
        self.0.fetch_or(DEAD, Relaxed);
    }
}

impl<R> Drop for Held<'_, R> {
    fn drop(&mut self) {
        lockstat::released(self.lockref);
        // Relaxed: only the holder changes the ticket that is served.
        let is_last = served(self.lockref.0.load(Relaxed)) == u16::MAX;
        let step = if is_last { SERVED.wrapping_sub(NEXT) } else { SERVED };
        // ORDERING: Release pairs with the Acquire in `lock`: the next section follows this one.
        self.lockref.0.fetch_add(step, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_edges<R: LockrefRule>(count: u32, get_is_lockless: bool, put_is_lockless: bool) {
        let tickets = |lockref: &Lockref<R>| next(lockref.0.load(Relaxed));
        let lockref = Lockref::<R>::new();
        lockref.reset(count);
        lockref.get();
        assert_eq!((lockref.value(), tickets(&lockref) == 0), (count + 1, get_is_lockless), "get at {count}");
        if count == 0 {
            return;
        }
        let lockref = Lockref::<R>::new();
        lockref.reset(count);
        let is_zero = lockref.put().is_some();
        assert_eq!((lockref.value(), is_zero), (count - 1, count == 1), "put at {count}");
        assert_eq!(tickets(&lockref) == 0, put_is_lockless, "put at {count}");
    }

    #[test]
    fn the_lock_is_taken_at_the_edge_of_zero_only() {
        check_edges::<TwoTries>(0, false, false);
        check_edges::<TwoTries>(1, false, false);
        check_edges::<TwoTries>(2, true, false);
        check_edges::<TwoTries>(3, true, true);
        check_edges::<TwoTries>(1000, true, true);
        check_edges::<WhileFree>(0, true, true);
        check_edges::<WhileFree>(1, true, false);
        check_edges::<WhileFree>(2, true, true);
        check_edges::<WhileFree>(1000, true, true);
    }

    #[test]
    fn a_dead_entry_is_counted_again_once_it_is_another() {
        let lockref = Lockref312::new();
        lockref.reset(1);
        let held = lockref.put().expect("the last");
        lockref.kill(&held);
        drop(held);
        assert!(!lockref.try_get());
        lockref.reset(2);
        assert!(lockref.try_get());
        assert_eq!((lockref.value(), served(lockref.0.load(Relaxed))), (3, 1));
    }

    #[test]
    fn while_the_lock_is_held_only_its_holder_moves_the_count() {
        let lockref = Lockref2013::new();
        lockref.reset(5);
        let held = lockref.lock();
        assert!(!lockref.try_get());
        lockref.get_locked(&held);
        drop(held);
        assert!(lockref.try_get());
        assert_eq!(lockref.value(), 7);
    }

    #[test]
    fn tickets_wrap_and_leave_the_count_alone() {
        let lockref = Lockref2013::new();
        lockref.0.store(u64::from(u16::MAX) * (SERVED + NEXT) + 9, Relaxed);
        for _ in 0..3 {
            drop(lockref.lock());
        }
        let word = lockref.0.load(Relaxed);
        assert_eq!((next(word), served(word), count_of(word)), (2, 2, 9));
    }

    #[test]
    fn the_lock_excludes_and_no_reference_is_lost() {
        let lockref = Lockref2013::new();
        let (a, b) = (AtomicU64::new(0), AtomicU64::new(0));
        lockref.reset(2);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..2_000 {
                        lockref.get();
                        let held = lockref.lock();
                        a.store(a.load(Relaxed) + 1, Relaxed);
                        assert_eq!(a.load(Relaxed), b.load(Relaxed) + 1);
                        b.store(b.load(Relaxed) + 1, Relaxed);
                        drop(held);
                        assert!(lockref.put().is_none());
                    }
                });
            }
        });
        assert_eq!((lockref.value(), a.into_inner()), (2, 8_000));
    }
}
