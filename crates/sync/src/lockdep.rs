//! Lock ranks, checked in debug builds.
//!
//! # What it is
//! Each crate has one table of ranks, an enum that implements [`Rank`]: a thread that holds a lock may take only locks
//! further down the table. A [`Checker`] belongs to an instance and records which ranks of that instance each thread
//! holds. A lock taken against the order panics at once, with both names, whether or not it would have blocked. Release
//! builds and loom do not check. All builds but loom's count the waits for locks that a thread found taken
//! ([`Checker::waits`]).
//!
//! # What it is not
//! A search for cycles among lock classes seen at run time, as Linux's lockdep is: here the order is written down
//! beforehand. It sees neither locks taken without a checker nor the order between locks of two instances.
//!
//! # How it is locked
//! Each thread counts in its CPU index's slot.
//!
//! # Source
//! Ranks: the lock hierarchies of multiprocessor UNIX, e.g. C. Schimmel, "UNIX Systems for Modern Architectures"
//! (1994), chapter 9. The name: Linux's `Documentation/locking/lockdep-design.rst`.
//!
//! ```
//! use lightfoot_sync::lockdep::{Checker, Rank};
//!
//! #[derive(Clone, Copy)]
//! enum Order { Outer, Inner }
//!
//! impl Rank for Order {
//!     const NAMES: &'static [&'static str] = &["outer", "inner"];
//!
//!     fn level(self) -> usize {
//!         self as usize
//!     }
//! }
//!
//! let checker = Checker::new();
//! let (outer, inner) = (lightfoot_sync::Mutex::new(1), lightfoot_sync::SpinLock::new(2));
//! let held = checker.lock(Order::Outer, &outer);
//! assert_eq!(**held + **checker.lock(Order::Inner, &inner), 3);
//! ```

#[cfg(not(loom))]
mod waits;

#[cfg(not(loom))]
pub use waits::RankWaits;

use crate::lock::{Lock, LockGuard, RawLock};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

#[cfg(all(debug_assertions, not(loom)))]
use held::HeldRanks;

/// A position in a crate's order of locks.
pub trait Rank: Copy {
    /// The names of the ranks, outermost first.
    const NAMES: &'static [&'static str];

    /// Returns the index of this rank in [`NAMES`](Self::NAMES).
    fn level(self) -> usize;
}

/// The ranks of one instance that each thread holds; see the module's description. At most 16 ranks.
pub struct Checker<R> {
    #[cfg(not(loom))]
    waits: waits::Waits,
    #[cfg(all(debug_assertions, not(loom)))]
    held: prim::PerCpu<HeldRanks>,
    ranks: PhantomData<fn(R)>,
}

impl<R: Rank> Checker<R> {
    /// Returns a checker with no rank held.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(not(loom))]
        const {
            assert!(R::NAMES.len() <= waits::RANKS, "at most 16 ranks")
        };
        Self {
            #[cfg(not(loom))]
            waits: waits::Waits::new(),
            #[cfg(all(debug_assertions, not(loom)))]
            held: prim::uncharged(|| prim::PerCpu::new(HeldRanks::default)),
            ranks: PhantomData,
        }
    }

    /// Records that the calling thread is about to take a lock of rank `rank`, and holds it until the result is
    /// dropped.
    ///
    /// # Panics
    /// In debug builds, if the thread holds a lock of the same rank or a rank further down.
    #[inline(always)]
    pub fn acquire(&self, rank: R) -> Held<'_, R> {
        self.check(rank, rank.level());
        prim::lockstat::named(|| R::NAMES[rank.level()]);
        self.hold(rank)
    }

    /// As [`acquire`](Self::acquire), for a lock beside others of the same rank, which the caller takes in order:
    /// ancestors first, else by address.
    ///
    /// # Panics
    /// In debug builds, if the thread holds a lock of a rank further down.
    #[inline(always)]
    pub fn acquire_nested(&self, rank: R) -> Held<'_, R> {
        self.check(rank, rank.level() + 1);
        self.hold(rank)
    }

    /// Takes `lock`, which has rank `rank`.
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[inline(always)]
    pub fn lock<'a, L: RawLock, T>(&'a self, rank: R, lock: &'a Lock<L, T>) -> Ranked<'a, R, LockGuard<'a, L, T>> {
        let held = self.acquire(rank);
        Ranked { guard: self.take(rank, lock), _held: held }
    }

    /// Takes `lock`, which has rank `rank`, beside others of its rank.
    ///
    /// # Panics
    /// As [`acquire_nested`](Self::acquire_nested).
    #[inline(always)]
    pub fn lock_nested<'a, L: RawLock, T>(
        &'a self,
        rank: R,
        lock: &'a Lock<L, T>,
    ) -> Ranked<'a, R, LockGuard<'a, L, T>> {
        let held = self.acquire_nested(rank);
        prim::lockstat::named(|| R::NAMES[rank.level()]);
        Ranked { guard: self.take(rank, lock), _held: held }
    }

    /// Takes `lock`, whose rank `rank` the caller has [acquired](Self::acquire) or adds [later](Self::taken): only
    /// counts the wait, if the lock is taken.
    #[inline(always)]
    pub fn take<'a, L: RawLock, T>(&self, rank: R, lock: &'a Lock<L, T>) -> LockGuard<'a, L, T> {
        self.take_by(rank, || lock.try_lock(), || lock.lock_taken())
    }

    /// As [`take`](Self::take), for locks of other types: `attempt` takes the lock if it is free,
    /// `wait` waits for it.
    #[inline(always)]
    pub fn take_by<G>(&self, rank: R, attempt: impl FnOnce() -> Option<G>, wait: impl FnOnce() -> G) -> G {
        match attempt() {
            Some(guard) => guard,
            None => self.count_wait(rank, wait),
        }
    }

    #[cold]
    #[inline(never)]
    fn count_wait<G>(&self, rank: R, wait: impl FnOnce() -> G) -> G {
        #[cfg(not(loom))]
        return self.waits.count(rank.level(), wait);
        #[cfg(loom)]
        {
            let _ = rank;
            wait()
        }
    }

    /// Returns how threads waited for the locks of each rank so far, the outermost rank first.
    #[cfg(not(loom))]
    pub fn waits(&self) -> impl Iterator<Item = RankWaits> {
        self.waits.sums(R::NAMES)
    }

    /// Adds its rank, `rank`, to the `guard` of a lock that the thread took before, without waiting.
    ///
    /// # Panics
    /// As [`acquire`](Self::acquire).
    #[inline(always)]
    pub fn taken<G>(&self, rank: R, guard: G) -> Ranked<'_, R, G> {
        Ranked { guard, _held: self.acquire(rank) }
    }

    /// As [`taken`](Self::taken), beside other locks of the rank.
    ///
    /// # Panics
    /// As [`acquire_nested`](Self::acquire_nested).
    #[inline(always)]
    pub fn taken_nested<G>(&self, rank: R, guard: G) -> Ranked<'_, R, G> {
        Ranked { guard, _held: self.acquire_nested(rank) }
    }

    /// Panics if the thread holds a lock of `first_refused` or further down.
    #[inline(always)]
    fn check(&self, rank: R, first_refused: usize) {
        #[cfg(all(debug_assertions, not(loom)))]
        if let Some(level) = prim::uncharged(|| self.held.this().innermost()).filter(|&level| level >= first_refused) {
            panic!("lock order: {} taken under {}", R::NAMES[rank.level()], R::NAMES[level]);
        }
        #[cfg(not(all(debug_assertions, not(loom))))]
        let _ = (rank, first_refused);
    }

    #[inline(always)]
    fn hold(&self, rank: R) -> Held<'_, R> {
        #[cfg(all(debug_assertions, not(loom)))]
        prim::uncharged(|| self.held.this().add(rank.level()));
        let _ = rank;
        Held {
            #[cfg(all(debug_assertions, not(loom)))]
            checker: self,
            #[cfg(all(debug_assertions, not(loom)))]
            rank,
            of: PhantomData,
        }
    }
}

impl<R: Rank> Default for Checker<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: Rank> core::fmt::Debug for Checker<R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Checker").field("ranks", &R::NAMES).finish_non_exhaustive()
    }
}

/// The calling thread holds a lock of this rank until this is dropped.
#[must_use = "the rank is held as long as this exists"]
pub struct Held<'a, R: Rank> {
    #[cfg(all(debug_assertions, not(loom)))]
    checker: &'a Checker<R>,
    #[cfg(all(debug_assertions, not(loom)))]
    rank: R,
    /// Counted for the thread: `!Send`.
    of: PhantomData<(&'a Checker<R>, *const ())>,
}

impl<R: Rank> Drop for Held<'_, R> {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(all(debug_assertions, not(loom)))]
        prim::uncharged(|| self.checker.held.this().remove(self.rank.level()));
    }
}

impl<R: Rank> core::fmt::Debug for Held<'_, R> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}

/// The guard of a lock, and its rank.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Ranked<'a, R: Rank, G> {
    /// Before `_held`: fields drop in order.
    guard: G,
    _held: Held<'a, R>,
}

impl<R: Rank, G> Deref for Ranked<'_, R, G> {
    type Target = G;

    #[inline(always)]
    fn deref(&self) -> &G {
        &self.guard
    }
}

impl<R: Rank, G> DerefMut for Ranked<'_, R, G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut G {
        &mut self.guard
    }
}

impl<R: Rank, G: core::fmt::Debug> core::fmt::Debug for Ranked<'_, R, G> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.guard.fmt(f)
    }
}

#[cfg(all(debug_assertions, not(loom)))]
mod held {
    use prim::atomic::{AtomicU32, Ordering::Relaxed};

    /// How many locks of each rank a thread holds. Relaxed throughout: only that thread reads and writes them.
    #[derive(Debug, Default)]
    #[repr(align(64))]
    pub(super) struct HeldRanks([AtomicU32; 16]);

    impl HeldRanks {
        /// Returns the level furthest down of which the thread holds a lock.
        pub(super) fn innermost(&self) -> Option<usize> {
            self.0.iter().rposition(|count| count.load(Relaxed) != 0)
        }

        pub(super) fn add(&self, level: usize) {
            self.0[level].store(self.0[level].load(Relaxed) + 1, Relaxed);
        }

        pub(super) fn remove(&self, level: usize) {
            self.0[level].store(self.0[level].load(Relaxed) - 1, Relaxed);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug)]
    enum Order {
        Top,
        Middle,
        Bottom,
    }
    use Order::{Bottom, Middle, Top};

    impl Rank for Order {
        const NAMES: &'static [&'static str] = &["top", "middle", "bottom"];

        fn level(self) -> usize {
            self as usize
        }
    }

    /// Takes the ranks one after another (`true`: beside others of its rank). Returns the message of the last one's
    /// panic, if it panicked; the others must not.
    fn take(ranks: &[(Order, bool)]) -> Option<String> {
        let checker = Checker::new();
        let acquire = |&(rank, nested): &(Order, bool)| match nested {
            true => checker.acquire_nested(rank),
            false => checker.acquire(rank),
        };
        let (last, before) = ranks.split_last().expect("one at least");
        let held: Vec<_> = before.iter().map(acquire).collect();
        let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(acquire(last)))).err();
        drop(held);
        // Whatever happened, nothing is held any more.
        drop(checker.acquire(Top));
        said.map(|said| *said.downcast::<String>().expect("a message"))
    }

    #[test]
    fn locks_are_taken_down_the_table_only() {
        let refused =
            |asked: &str, held: &str| cfg!(debug_assertions).then(|| format!("lock order: {asked} taken under {held}"));
        type Case = (&'static [(Order, bool)], Option<String>);
        let cases: [Case; 8] = [
            (&[(Top, false), (Middle, false), (Bottom, false)], None),
            (&[(Top, false), (Bottom, false)], None),
            (&[(Bottom, false), (Middle, false)], refused("middle", "bottom")),
            (&[(Top, false), (Bottom, false), (Top, false)], refused("top", "bottom")),
            (&[(Middle, false), (Middle, false)], refused("middle", "middle")),
            (&[(Middle, false), (Middle, true)], None),
            (&[(Middle, false), (Middle, true), (Middle, false)], refused("middle", "middle")),
            (&[(Bottom, false), (Middle, true)], refused("middle", "bottom")),
        ];
        for (ranks, want) in cases {
            assert_eq!(take(ranks), want, "{ranks:?}");
        }
    }

    #[test]
    fn a_rank_is_free_again_whatever_the_order_of_the_guards() {
        let checker = Checker::new();
        let (top, bottom) = (checker.acquire(Top), checker.acquire(Bottom));
        drop(top);
        drop(bottom);
        drop(checker.acquire(Top));
    }

    #[test]
    fn threads_and_instances_do_not_see_each_others_ranks() {
        let (checker, other) = (Checker::new(), Checker::new());
        let _held = checker.acquire(Bottom);
        drop(other.acquire(Top));
        std::thread::scope(|s| {
            s.spawn(|| drop(checker.acquire(Top)));
        });
    }

    #[test]
    fn a_wait_is_counted_for_the_rank_of_the_lock() {
        let (checker, lock) = (Checker::new(), crate::Mutex::new(()));
        drop(checker.lock(Middle, &lock));
        assert!(checker.waits().all(|waits| waits.waits == 0), "a free lock");
        let mut held = Some(checker.take(Middle, &lock));
        // The waiter finds the lock taken at its first try, and gets it in `wait`.
        let attempt = || lock.try_lock();
        drop(checker.take_by(Middle, attempt, || {
            drop(held.take());
            lock.lock()
        }));
        let waits: Vec<_> = checker.waits().collect();
        assert_eq!(
            waits.iter().map(|of| (of.name, of.waits)).collect::<Vec<_>>(),
            [("top", 0), ("middle", 1), ("bottom", 0)]
        );
        assert_eq!(waits[1].waited_ns, waits[1].longest_ns);
    }

    #[test]
    fn a_ranked_lock_is_released_with_its_rank() {
        let (checker, lock) = (Checker::new(), crate::Mutex::new(1));
        **checker.lock(Middle, &lock) += 1;
        drop(checker.lock_nested(Middle, &lock));
        drop(checker.acquire(Top));
        assert_eq!(lock.into_inner(), 2);
    }
}
