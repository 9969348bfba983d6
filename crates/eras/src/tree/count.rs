//! The count of references to an entry and the lock in it, by the rules there have been.
//!
//! | rule             | get                       | put                                                     |
//! |------------------|---------------------------|---------------------------------------------------------|
//! | [`AtomicCount`]  | an atomic increment       | decrement unless that gives zero; zero under another lock |
//! | [`LockedCount`]  | under the entry's lock    | under the entry's lock                                  |
//! | [`LocklessCount`](super::lockless::LocklessCount) | compare-exchange, else the lock | the same       |
//! | [`Lockref2013`](super::lockref::Lockref2013) | the same, on one word with the lock | the same        |
//!
//! # How it is locked
//! An entry of count zero may be freed by whoever holds the lock under which it became zero and finds it without a name.
//! So who gets a count has one already, or holds that lock and has seen a name.
//!
//! # Source
//! `atomic_dec_and_lock` (2.4); "fs: dcache scale d_count" (Nick Piggin, 2009; Linux 2.6.38); those of 2013 are
//! named in their files.

use prim::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Relaxed, Release},
};
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

    /// One more, for who has one or keeps the entry alive otherwise.
    fn get(&self);

    /// The count now.
    fn value(&self) -> u32;

    /// Sets the count of an entry that nobody knows yet.
    fn reset(&self, count: u32);
}

/// A count that some other lock protects where it becomes zero.
pub(crate) trait LooseCount: Count {
    /// One less, unless this is the last one.
    fn put_unless_last(&self) -> bool;

    /// One less, under the lock that makes zero final; says whether it is zero now.
    fn put_last(&self) -> bool;
}

/// A count that its own lock protects.
pub(crate) trait FineCount: Count {
    /// One more, for who holds the lock.
    fn get_locked(&self, held: &Self::Guard<'_>);

    /// One more without the lock, where the rule has such a way and it is open.
    fn try_get(&self) -> bool;

    /// One less; the lock, if the count is zero now.
    fn put(&self) -> Option<Self::Guard<'_>>;
}

/// `atomic_t d_count` beside `spinlock_t d_lock`: until 2.6.37.
#[repr(C)]
pub(crate) struct AtomicCount<R: RawLock> {
    count: AtomicU32,
    lock: Lock<R, ()>,
}

impl<R: RawLock> Count for AtomicCount<R> {
    type Guard<'a>
        = LockGuard<'a, R, ()>
    where
        R: 'a;

    fn new() -> Self {
        Self { count: AtomicU32::new(0), lock: Lock::new(()) }
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock.lock()
    }

    fn get(&self) {
        let _scope = scope(Tag::Ref);
        // Relaxed: who has a reference, or the lock, sees the entry already.
        self.count.fetch_add(1, Relaxed);
    }

    fn value(&self) -> u32 {
        self.count.load(Relaxed)
    }

    fn reset(&self, count: u32) {
        self.count.store(count, Relaxed);
    }
}

impl<R: RawLock> LooseCount for AtomicCount<R> {
    fn put_unless_last(&self) -> bool {
        let _scope = scope(Tag::Ref);
        // Relaxed: a guess, which the exchange checks.
        let mut count = self.count.load(Relaxed);
        while count > 1 {
            // ORDERING: Release pairs with the Acquire in `put_last`: who frees sees what this holder did.
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
        // ORDERING: AcqRel. Acquire pairs with the Release in `put_unless_last` and here: who frees sees what the others did.
        self.count.fetch_sub(1, AcqRel) == 1
    }
}

/// `int d_count` under `d_lock`: vfs-scale, and Linux 2.6.38 to 3.11.
#[repr(C)]
pub(crate) struct LockedCount<R: RawLock> {
    count: AtomicU32,
    lock: Lock<R, ()>,
}

impl<R: RawLock> LockedCount<R> {
    /// Under the lock, so a load and a store do.
    fn add(&self, by: u32) -> u32 {
        let count = self.count.load(Relaxed).wrapping_add(by);
        self.count.store(count, Relaxed);
        count
    }
}

impl<R: RawLock> Count for LockedCount<R> {
    type Guard<'a>
        = LockGuard<'a, R, ()>
    where
        R: 'a;

    fn new() -> Self {
        Self { count: AtomicU32::new(0), lock: Lock::new(()) }
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock.lock()
    }

    fn get(&self) {
        let _scope = scope(Tag::Ref);
        let held = self.lock();
        self.get_locked(&held);
    }

    fn value(&self) -> u32 {
        self.count.load(Relaxed)
    }

    fn reset(&self, count: u32) {
        self.count.store(count, Relaxed);
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
