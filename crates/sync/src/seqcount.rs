//! A sequence count: readers that store nothing, validated after the fact.
//!
//! # What it is
//! One 32-bit count. A writer makes it odd, changes the data, makes it even. A reader samples the count, reads the
//! data, and checks by [`SeqCount::retry`] whether the count is still the one it sampled.
//!
//! # What it is not
//! A lock: the caller serialises writers (a dentry's lock does). [`SeqLock`](crate::SeqLock) has
//! its own lock. It protects no memory either: values read inside may be torn until `retry`
//! returned `false`, so they must be Relaxed atomics or be behind RCU. Before that a reader must
//! not act on them, nor follow a pointer that RCU does not keep valid.
//!
//! # State
//! | bits 31..1          | bit 0                      |
//! |---------------------|----------------------------|
//! | finished writes     | 1: a write is under way    |
//!
//! # Orderings
//! | here                              | partner                                                            | reads no data  |
//! |-----------------------------------|--------------------------------------------------------------------|----------------|
//! | `raw_begin`, `begin`: load, Acquire | `write_end`: store of the even count, Release                    | older than it  |
//! | `retry`: fence Acquire, then load | `write_begin`, `try_write_begin`: odd count, then fence Release    | newer than it  |
//! | `try_write_begin`: cmpxchg, Acquire | `write_end`: Release (of the writer before)                      | older than it  |
//!
//! # Source
//! Stephen Hemminger's `frlock` (2003) and Linux's `Documentation/locking/seqlock.rst`. The fences
//! are from Hans Boehm, "Can seqlocks get along with programming language memory models?" (MSPC
//! 2012).
//!
//! # Limitations
//! A reader that sleeps through exactly 2^31 writes between sample and check, or a multiple of
//! that, does not notice them. Each write of a dentry takes a lock and some 100 ns. So the reader
//! must be stopped for minutes while one thread does nothing but write, and must continue at
//! exactly one count in 2^31. The reader then returns one old answer: RCU and the slab protect
//! memory, not the count. Linux's counts have the same 31 bits.
//!
//! ```
//! use prim::atomic::{AtomicU64, Ordering::Relaxed};
//! use lightfoot_sync::SeqCount;
//!
//! let (count, low, high) = (SeqCount::new(), AtomicU64::new(1), AtomicU64::new(2));
//! {
//!     let _write = count.write(); // the caller excludes other writers
//!     low.store(3, Relaxed);
//!     high.store(4, Relaxed);
//! }
//! let pair = loop {
//!     let start = count.begin();
//!     let pair = (low.load(Relaxed), high.load(Relaxed));
//!     if !count.retry(start) {
//!         break pair;
//!     }
//! };
//! assert_eq!(pair, (3, 4));
//! ```

use prim::atomic::{
    AtomicU32,
    Ordering::{self, Acquire, Relaxed, Release},
    fence,
};
use prim::hint::spin_until;
use prim::profile::{Tag, scope};

/// A sequence count; see the module's description. 4 bytes.
///
/// Source: Linux's `seqcount_t`.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct SeqCount(AtomicU32);

impl SeqCount {
    /// Returns a count of zero, no write under way.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Samples the count without waiting. While a write is under way the sample is the count before it, so that
    /// [`retry`](Self::retry) returns `true` (Linux's `raw_seqcount_begin`).
    #[inline(always)]
    #[must_use]
    pub fn raw_begin(&self) -> u32 {
        // ORDERING: Acquire pairs with the Release in `write_end`: the reads that follow see the data of this count.
        self.0.load(Acquire) & !1
    }

    /// Samples the count, waiting while a write is under way.
    #[inline]
    #[must_use]
    pub fn begin(&self) -> u32 {
        // ORDERING: Acquire pairs with the Release in `write_end`, as in `raw_begin`.
        let start = self.0.load(Acquire);
        if start & 1 == 0 { start } else { self.wait() }
    }

    /// Waits until no write is under way, and samples the count.
    #[cold]
    #[inline(never)]
    fn wait(&self) -> u32 {
        let _scope = scope(Tag::SeqLock);
        self.await_even();
        self.raw_begin()
    }

    /// Waits until no write is under way, or none was for a moment.
    pub(crate) fn await_even(&self) {
        // Relaxed: only waits; the later accesses order.
        spin_until(|| self.current() & 1 == 0);
    }

    /// Returns whether the values read since the sample `start` must be thrown away: a write was
    /// under way then, or has begun since.
    #[inline(always)]
    #[must_use]
    pub fn retry(&self, start: u32) -> bool {
        // ORDERING: the Acquire fence pairs with the Release fence in `write_begin` and `try_write_begin`: data of a
        // write read before it brings that write's odd count to the load after it.
        fence(Acquire);
        // Relaxed: ordered by the fence above.
        self.0.load(Relaxed) != start
    }

    /// Returns the count now, for a caller that excludes writers, and for display.
    #[inline(always)]
    #[must_use]
    pub fn current(&self) -> u32 {
        // Relaxed: orders nothing; a caller that excludes writers has the count by that lock.
        self.0.load(Relaxed)
    }

    /// Makes the count an even one above `count`, unless it is. The caller is the only user: no write is under way.
    pub fn raise_above(&self, count: u32) {
        let above = (count | 1).wrapping_add(1);
        // Relaxed: the caller publishes the guarded data. (The difference is signed: counts wrap.)
        if (self.current().wrapping_sub(above) as i32) < 0 {
            self.0.store(above, Relaxed);
        }
    }

    /// Begins a write: readers that sampled before will retry. The caller excludes other writers until
    /// [`write_end`](Self::write_end). Between the two, readers in [`begin`](Self::begin) wait: do not sleep.
    #[inline(always)]
    pub fn write_begin(&self) {
        // Relaxed: ordered by the fence below.
        let old = self.step(Relaxed);
        debug_assert!(old & 1 == 0, "two writers in one sequence count");
        // ORDERING: the Release fence pairs with the Acquire fence in `retry`: a thread that reads data stored after it
        // sees the odd count stored before it.
        fence(Release);
    }

    /// Begins a write, unless one is under way. Returns whether it did. Of writers that all begin
    /// so, one is at work at a time, and each sees the writes of the last one.
    #[inline]
    pub(crate) fn try_write_begin(&self) -> bool {
        // Relaxed: a guess, which the compare-exchange checks.
        let even = self.0.load(Relaxed) & !1;
        // ORDERING: Acquire pairs with the Release in `write_end`: this writer sees what the last one wrote.
        let begun = self.0.compare_exchange(even, even | 1, Acquire, Relaxed).is_ok();
        // ORDERING: the Release fence pairs with the Acquire fence in `retry`, as in `write_begin`. (The exchange's
        // Acquire alone would let the data go first.)
        fence(Release);
        begun
    }

    /// Ends the write begun by [`write_begin`](Self::write_begin).
    #[inline(always)]
    pub fn write_end(&self) {
        // ORDERING: Release pairs with the Acquire in `raw_begin`, `begin` and `try_write_begin`: a thread that samples
        // this count, or begins a write from it, sees the data.
        let old = self.step(Release);
        debug_assert!(old & 1 != 0, "the end of a write that was not begun");
    }

    /// Begins a write section that ends when the guard is dropped. As [`write_begin`](Self::write_begin) otherwise.
    #[inline(always)]
    #[must_use = "the write section ends when the guard is dropped"]
    pub fn write(&self) -> SeqWrite<'_> {
        self.write_begin();
        SeqWrite(self)
    }

    /// Adds one and returns the value before. Writers are serialised, so a load and a store are enough, at a twentieth
    /// of the cost of a read-modify-write. loom gets the read-modify-write: two writers that race must not look like
    /// one.
    #[inline(always)]
    fn step(&self, order: Ordering) -> u32 {
        #[cfg(not(loom))]
        {
            // Relaxed: only writers change the count, and the caller's lock orders them.
            let old = self.0.load(Relaxed);
            self.0.store(old.wrapping_add(1), order);
            old
        }
        #[cfg(loom)]
        self.0.fetch_add(1, order)
    }
}

/// A write section of a [`SeqCount`]; the drop, also during a panic, ends the section.
#[derive(Debug)]
#[must_use = "the write section ends when the guard is dropped"]
pub struct SeqWrite<'a>(&'a SeqCount);

impl Drop for SeqWrite<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.write_end();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    impl SeqCount {
        /// Returns a count that is about to wrap, for example.
        pub(crate) fn at(count: u32) -> Self {
            Self(AtomicU32::new(count))
        }
    }

    #[test]
    fn it_is_four_bytes() {
        assert_eq!(size_of::<SeqCount>(), 4);
    }

    #[test]
    fn a_reader_retries_exactly_when_a_write_touched_it() {
        let count = SeqCount::new();
        let start = count.begin();
        assert!(!count.retry(start));
        count.write_begin();
        assert!(count.retry(start));
        let during = count.raw_begin();
        assert_eq!(during, 0);
        assert!(count.retry(during), "a sample taken during a write is never good");
        count.write_end();
        assert!(count.retry(start) && count.retry(during));
        let start = count.begin();
        assert_eq!((start, count.current()), (2, 2));
        assert!(!count.retry(start));
    }

    #[test]
    fn a_write_section_ends_when_its_guard_is_dropped_by_a_panic() {
        let count = SeqCount::new();
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _write = count.write();
            panic!("on purpose");
        }));
        assert!(unwound.is_err());
        assert_eq!(count.current(), 2);
    }

    #[test]
    fn a_count_is_raised_and_never_lowered() {
        for (from, above, to) in [(0, 6, 8), (0, 7, 8), (8, 7, 8), (10, 7, 10), (0, u32::MAX, 0), (u32::MAX - 1, 3, 4)]
        {
            let count = SeqCount::at(from);
            count.raise_above(above);
            assert_eq!(count.current(), to, "{from} above {above}");
        }
    }

    #[test]
    fn the_count_wraps() {
        let count = SeqCount::at(u32::MAX - 1);
        let start = count.begin();
        drop(count.write());
        assert_eq!(count.current(), 0);
        assert!(count.retry(start));
    }
}
