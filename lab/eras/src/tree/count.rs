//! The count of references to an entry and the lock in it, by the rules there have been.
//!
//! | rule             | get                       | put                                                     |
//! |------------------|---------------------------|---------------------------------------------------------|
//! | [`AtomicCount`]  | an atomic increment       | decrement unless that gives zero; zero under another lock |
//! | [`LockedCount`]  | under the entry's lock    | under the entry's lock                                  |
//! | [`LocklessCount`](super::lockless::LocklessCount) | compare-exchange, else the lock | the same       |
//! | [`Lockref`](super::lockref::Lockref) | the same, on one word with the lock | the same        |
//!
//! # How it is locked
//! The thread that holds the lock under which a count became zero may free the entry, if the entry has no name. So a thread
//! takes a count only if it has one already, or if it holds that lock and has seen a name.
//!
//! # Source
//! `atomic_dec_and_lock` (2.4); "fs: dcache scale d_count" (Nick Piggin, 2009; Linux 2.6.38); the
//! files of the 2013 counts name their sources.

use core::marker::PhantomData;
use prim::atomic::{
    AtomicU32, Ordering,
    Ordering::{AcqRel, Relaxed, Release},
};
use prim::lockstat;
use prim::profile::{Tag, scope};
use sync::{Lock, LockGuard, RawLock};

/// A count and a lock.
pub(crate) trait Count: Send + Sync {
    /// The lock, held.
    type Guard<'a>
    where
        Self: 'a;

    fn new() -> Self;

    /// Takes the entry's lock (`d_lock`).
    fn lock(&self) -> Self::Guard<'_>;

    /// Adds one. The caller has a count, or keeps the entry alive otherwise.
    fn get(&self);

    /// Returns the count now.
    fn value(&self) -> u32;

    /// Sets the count of an entry that no other thread can reach yet.
    fn reset(&self, count: u32);
}

/// A count that some other lock protects where it becomes zero.
pub(crate) trait LooseCount: Count {
    /// Subtracts one, unless this count is the last.
    fn put_unless_last(&self) -> bool;

    /// Subtracts one, under the lock that makes zero final. Returns whether the count is zero now.
    fn put_last(&self) -> bool;
}

/// A count that its own lock protects.
pub(crate) trait FineCount: Count {
    /// Adds one. The caller holds the lock.
    fn get_locked(&self, held: &Self::Guard<'_>);

    /// Adds one without the lock, if the rule allows it at this count. Returns whether it did.
    fn try_get(&self) -> bool;

    /// Subtracts one. Returns the lock, if the count is zero now.
    fn put(&self) -> Option<Self::Guard<'_>>;

    /// Notes that the entry ends, with a count of zero: a get without the lock must not count the
    /// entry any more.
    fn kill(&self, _held: &Self::Guard<'_>) {}
}

/// A count beside a lock, on one line. `Rule` is how the count moves.
#[repr(C)]
pub(crate) struct CountAndLock<R: RawLock, Rule> {
    pub(super) count: AtomicU32,
    lock: Lock<R, ()>,
    rule: PhantomData<Rule>,
}

/// How a count beside a lock moves.
pub(crate) trait CountRule: Send + Sync + Sized {
    /// Orders the store of [`Count::reset`].
    const RESET: Ordering;

    /// Adds one to the count `of`, as the rule requires; see [`Count::get`].
    fn get<R: RawLock>(of: &CountAndLock<R, Self>);
}

impl<R: RawLock, Rule: CountRule> Count for CountAndLock<R, Rule> {
    type Guard<'a>
        = LockGuard<'a, R, ()>
    where
        R: 'a,
        Rule: 'a;

    fn new() -> Self {
        Self { count: AtomicU32::new(0), lock: Lock::new(()), rule: PhantomData }
    }

    fn lock(&self) -> Self::Guard<'_> {
        lockstat::named(|| "d_lock");
        self.lock.lock()
    }

    fn get(&self) {
        let _scope = scope(Tag::Ref);
        Rule::get(self);
    }

    fn value(&self) -> u32 {
        self.count.load(Relaxed)
    }

    fn reset(&self, count: u32) {
        self.count.store(count, Rule::RESET);
    }
}

/// The rule of [`AtomicCount`].
pub(crate) struct ByAtomic;

/// `atomic_t d_count` beside `spinlock_t d_lock`: until 2.6.37.
pub(crate) type AtomicCount<R> = CountAndLock<R, ByAtomic>;

impl CountRule for ByAtomic {
    const RESET: Ordering = Relaxed;

    fn get<R: RawLock>(of: &AtomicCount<R>) {
        // Relaxed: a thread with a reference, or with the lock, already sees the entry.
        of.count.fetch_add(1, Relaxed);
    }
}

impl<R: RawLock> LooseCount for AtomicCount<R> {
    fn put_unless_last(&self) -> bool {
        let _scope = scope(Tag::Ref);
        // Relaxed: a guess, which the exchange checks.
        let mut count = self.count.load(Relaxed);
        while count > 1 {
            // ORDERING: Release pairs with the Acquire in `put_last`: the thread that frees sees what this holder did.
            match self.count.compare_exchange_weak(count, count - 1, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => count = now,
            }
        }
        debug_assert!(count == 1, "a reference was put twice");
        false
    }

    fn put_last(&self) -> bool {
        let _scope = scope(Tag::Ref);
        // ORDERING: AcqRel. Acquire pairs with the Release in `put_unless_last` and here: the thread that frees sees what the others did.
        self.count.fetch_sub(1, AcqRel) == 1
    }
}

/// The rule of [`LockedCount`].
pub(crate) struct ByLock;

/// `int d_count` under `d_lock`: vfs-scale, and Linux 2.6.38 to 3.11.
pub(crate) type LockedCount<R> = CountAndLock<R, ByLock>;

impl CountRule for ByLock {
    const RESET: Ordering = Relaxed;

    fn get<R: RawLock>(of: &LockedCount<R>) {
        let held = of.lock();
        of.get_locked(&held);
    }
}

impl<R: RawLock> LockedCount<R> {
    /// Adds `by` under the lock, so a load and a store do.
    fn add(&self, by: u32) -> u32 {
        let count = self.count.load(Relaxed).wrapping_add(by);
        self.count.store(count, Relaxed);
        count
    }
}

impl<R: RawLock> FineCount for LockedCount<R> {
    fn get_locked(&self, _held: &Self::Guard<'_>) {
        self.add(1);
    }

    fn try_get(&self) -> bool {
        false
    }

    fn put(&self) -> Option<Self::Guard<'_>> {
        let _scope = scope(Tag::Ref);
        let held = self.lock();
        debug_assert!(self.value() != 0, "a reference was put twice");
        (self.add(u32::MAX) == 0).then_some(held)
    }
}
