//! A sequence lock with a second kind of reader, one that keeps writers out.
//!
//! # What it is
//! A [`SeqCount`] and a fair spinning reader/writer lock around its write sections. Three parties:
//!
//! | party             | takes                                 | keeps out                 | stores to shared memory |
//! |-------------------|---------------------------------------|---------------------------|-------------------------|
//! | optimistic reader | [`raw_begin`](SeqRwLock::raw_begin)   | no thread; reads again    | never                   |
//! | blocking reader   | [`read_lock`](SeqRwLock::read_lock)   | writers                   | one word, twice         |
//! | writer            | [`write_lock`](SeqRwLock::write_lock) | writers, blocking readers | that word and the count |
//!
//! [`read_seq_or_lock`](SeqRwLock::read_seq_or_lock) combines both readers: a pass that stores
//! nothing, and, if a write disturbed it, a second one that cannot be disturbed. This function is
//! for long reads, such as a walk from a node up to the root: under a stream of writers an
//! optimistic reader may never end, and a reader with the writers' lock would keep out all other
//! readers.
//!
//! All waiting is by spinning, so the lock may be taken under spinlocks; keep sections short, and do not sleep in them.
//!
//! # What it is not
//! A container: as with [`SeqLock`](crate::SeqLock), the data of optimistic readers is Relaxed
//! atomics or is behind RCU. Not recursive either: a thread that read-locks twice deadlocks if a
//! writer queues in between.
//!
//! # Fairness
//! A thread that cannot get in at once draws a ticket. The thread whose turn it is waits on the
//! word, and no thread overtakes it for long. A waiting reader has its share in the word already,
//! and writers respect it. A waiting writer sets `WAITING`, which sends new readers and writers to
//! the queue. So each of `n` threads passes a waiter about once, and neither kind starves.
//!
//! # State
//! | bits of the word | 31     | 30..2                                | 1 `WAITING`               | 0 `WRITER`     |
//! |------------------|--------|--------------------------------------|---------------------------|----------------|
//! | meaning          | panics | blocking readers, and tries to be one | a writer is next: queue   | a writer is in |
//!
//! | `next`                    | `serving`                     |
//! |---------------------------|-------------------------------|
//! | the next ticket to draw   | the ticket whose turn it is   |
//!
//! # Orderings
//! | here                                        | partner                                           |
//! |---------------------------------------------|---------------------------------------------------|
//! | `read_lock`: add, Acquire                   | `SeqRwWriteGuard::drop`: subtract, Release        |
//! | `try_read_lock`: exchange, Acquire          | `SeqRwWriteGuard::drop`                           |
//! | `read_slow`: load without writer, Acquire   | `SeqRwWriteGuard::drop`                           |
//! | `try_take`: exchange, Acquire               | both guards' drops: subtract, Release             |
//! | `write_slow`: exchange, Acquire             | both guards' drops                                |
//! | `draw`: load of the own ticket, Acquire     | `pass_on`: store, Release                         |
//! | for optimistic readers                      | as in [`SeqCount`]                                |
//!
//! # Invariants
//! 1. `WRITER` is set by an exchange from a word without readers, and cleared by that writer's guard.
//! 2. A reader is in when its share is in the word and it saw `WRITER` unset after that. From that
//!    moment on, invariant 1 keeps writers out. A share that found a writer is subtracted before
//!    its thread draws a ticket, or waits as in `read_slow`.
//! 3. Only the writer whose turn it is sets `WAITING`, and clears it in the exchange that lets it in.
//! 4. The count is odd only while `WRITER` is set.
//!
//! # Source
//! Waiman Long's `seqrwlock` patches for reverse paths (2013), which became
//! `read_seqbegin_or_lock`, and his queue `rwlock` (2014). It differs from `read_seqbegin_or_lock`
//! in that the first pass waits for at most one write to end: if another one has begun at its end,
//! the blocking pass follows at once, so that the wait is bounded.
//!
//! # Limitations
//! As for the sequence count: exactly 2^31 writes between sample and check are not noticed. Waiters
//! spin, in order of their tickets: a waiter that is not running delays all behind it.
//!
//! ```
//! use prim::atomic::{AtomicU32, Ordering::Relaxed};
//! use lightfoot_sync::SeqRwLock;
//!
//! let (lock, a, b) = (SeqRwLock::new(), AtomicU32::new(0), AtomicU32::new(0));
//! {
//!     let _writer = lock.write_lock();
//!     a.store(1, Relaxed);
//!     b.store(1, Relaxed);
//! }
//! // The closure may run twice, so it begins anew.
//! let path = lock.read_seq_or_lock(|_| [a.load(Relaxed), b.load(Relaxed)]);
//! assert_eq!(path, [1, 1]);
//! ```

use crate::seqcount::SeqCount;
use crate::zeroed::Zeroes;
use core::hint::cold_path;
use core::marker::PhantomData;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};

/// A writer is in.
const WRITER: u32 = 1;
/// The next thread to wait is a writer.
const WAITING: u32 = 2;
/// One blocking reader.
const READER: u32 = 4;
/// Readers at which it panics, before the count overflows: only forgotten guards can be so many.
const FULL: u32 = 1 << 31;

/// A sequence lock with readers that block writers; see the module's description.
///
/// 256 bytes: blocking readers do not take the count's lines away from optimistic ones.
#[derive(Debug, Default)]
#[repr(C)]
pub struct SeqRwLock {
    count: Lines<SeqCount>,
    lock: Lines<Lock>,
}

// SAFETY: atomics, of which zeros are the free lock and the count 0.
unsafe impl Zeroes for SeqRwLock {}

/// Two cache lines, for the prefetcher fetches in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Lines<T>(T);

impl SeqRwLock {
    /// Returns a free lock.
    #[inline]
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Samples the count without waiting; while a writer is in, the count before it, so that
    /// [`read_retry`](Self::read_retry) returns `true`.
    #[inline(always)]
    #[must_use]
    pub fn raw_begin(&self) -> u32 {
        self.count.0.raw_begin()
    }

    /// Samples the count, waiting while a writer is in.
    #[inline]
    #[must_use]
    pub fn read_begin(&self) -> u32 {
        self.count.0.begin()
    }

    /// Returns whether the values read since the sample `start` must be thrown away: a writer was
    /// at work then, or has come since.
    #[inline(always)]
    #[must_use]
    pub fn read_retry(&self, start: u32) -> bool {
        self.count.0.retry(start)
    }

    /// Calls `f` once as an optimistic reader, and if a writer came, once more as a blocking one. Returns the result of
    /// the last pass. A long `f` may check [whether the pass still counts](ReadPass::is_disturbed), and return early if
    /// not.
    ///
    /// The first pass waits for a write that is under way; it is left out if another write follows
    /// at once. In the first pass `f` may see torn data, so `f` must only read, and must collect
    /// its result from the start in each pass. If `f` panics, the lock is released if it is held.
    ///
    /// Source: Linux's `read_seqbegin_or_lock`, `need_seqretry`, `done_seqretry`.
    #[inline]
    pub fn read_seq_or_lock<R>(&self, mut f: impl FnMut(&ReadPass<'_>) -> R) -> R {
        if let Some(start) = self.sample() {
            let pass = ReadPass { count: &self.count.0, start: Some(start) };
            let value = f(&pass);
            if !pass.is_disturbed() {
                return value;
            }
        }
        cold_path();
        let _guard = self.read_lock();
        f(&ReadPass { count: &self.count.0, start: None })
    }

    /// Returns the count for an optimistic pass, or `None` if one writer follows another.
    #[inline]
    fn sample(&self) -> Option<u32> {
        let seen = self.count.0.current();
        if seen & 1 != 0 {
            cold_path();
            let _scope = scope(Tag::SeqLock);
            spin_until(|| self.count.0.current() != seen);
            if self.count.0.current() & 1 != 0 {
                return None;
            }
        }
        Some(self.count.0.raw_begin())
    }

    /// Comes in as a blocking reader, spinning: keeps writers out, not readers. Not recursive.
    ///
    /// # Panics
    /// With half a billion readers, which only forgotten guards can be.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn read_lock(&self) -> SeqRwReadGuard<'_> {
        let _scope = scope(Tag::SeqLock);
        // ORDERING: Acquire pairs with the Release in `SeqRwWriteGuard::drop`: this section follows the last writer's.
        let before = self.lock.0.word.fetch_add(READER, Acquire);
        if before & (WRITER | WAITING | FULL) != 0 {
            lockstat::contended(self);
            self.lock.0.read_slow(before);
        }
        SeqRwReadGuard { lock: self, not_send: PhantomData }
    }

    /// As [`read_lock`](Self::read_lock), if no writer is in or next.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_read_lock(&self) -> Option<SeqRwReadGuard<'_>> {
        let _scope = scope(Tag::SeqLock);
        let word = &self.lock.0.word;
        // Relaxed: a guess, which the exchange checks.
        let mut seen = word.load(Relaxed);
        while seen & (WRITER | WAITING | FULL) == 0 {
            // ORDERING: Acquire pairs with the Release in `SeqRwWriteGuard::drop`, as in `read_lock`.
            match word.compare_exchange_weak(seen, seen + READER, Acquire, Relaxed) {
                Ok(_) => return Some(SeqRwReadGuard { lock: self, not_send: PhantomData }),
                Err(now) => seen = now,
            }
        }
        None
    }

    /// Comes in as the writer, spinning: keeps out writers and blocking readers, and makes optimistic readers read
    /// again.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn write_lock(&self) -> SeqRwWriteGuard<'_> {
        let _scope = scope(Tag::SeqLock);
        if !self.lock.0.try_take() {
            lockstat::contended(self);
            self.lock.0.write_slow();
        }
        self.begin_write()
    }

    /// As [`write_lock`](Self::write_lock), if no thread is in or next.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn try_write_lock(&self) -> Option<SeqRwWriteGuard<'_>> {
        let _scope = scope(Tag::SeqLock);
        self.lock.0.try_take().then(|| self.begin_write())
    }

    /// With `WRITER` taken.
    #[inline]
    fn begin_write(&self) -> SeqRwWriteGuard<'_> {
        lockstat::acquired(self);
        self.count.0.write_begin();
        SeqRwWriteGuard { lock: self, not_send: PhantomData }
    }
}

/// The reader/writer lock: its word, and the queue of threads that did not get in at once.
#[derive(Debug, Default)]
struct Lock {
    word: AtomicU32,
    next: AtomicU32,
    serving: AtomicU32,
}

impl Lock {
    /// Sets `WRITER` in a word that holds nothing else.
    #[inline]
    fn try_take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `SeqRwReadGuard::drop` and that in `SeqRwWriteGuard::drop`: this
        // section follows those of all readers and of the last writer.
        self.word.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok()
    }

    /// Waits as a reader whose share, just added to `before`, does not lock.
    #[cold]
    #[inline(never)]
    fn read_slow(&self, before: u32) {
        // Relaxed: nothing was read under this share.
        self.word.fetch_sub(READER, Relaxed);
        assert!(before & FULL == 0, "half a billion readers");
        let ticket = self.draw();
        // Relaxed: only keeps writers out (invariant 1); the load below orders.
        self.word.fetch_add(READER, Relaxed);
        // ORDERING: Acquire pairs with the Release in `SeqRwWriteGuard::drop`: this section follows the last writer's.
        spin_until(|| self.word.load(Acquire) & WRITER == 0);
        self.pass_on(ticket);
    }

    #[cold]
    #[inline(never)]
    fn write_slow(&self) {
        let ticket = self.draw();
        // Relaxed: only sends others to the queue; the exchange below orders.
        self.word.fetch_or(WAITING, Relaxed);
        loop {
            // Relaxed: only a hint; the exchange decides.
            spin_until(|| self.word.load(Relaxed) == WAITING);
            // ORDERING: Acquire pairs with the Release in `SeqRwReadGuard::drop` and that in `SeqRwWriteGuard::drop`:
            // as in `try_take`. It fails when a newcomer's share is there for a moment.
            if self.word.compare_exchange(WAITING, WRITER, Acquire, Relaxed).is_ok() {
                break;
            }
        }
        self.pass_on(ticket);
    }

    /// Queues; returns when it is the caller's turn to wait on the word.
    fn draw(&self) -> u32 {
        // Relaxed: the number alone matters.
        let ticket = self.next.fetch_add(1, Relaxed);
        // ORDERING: Acquire pairs with the Release in `pass_on`: `WAITING` is set after the writer before cleared its
        // own. (not visible to loom: it does not let a read-modify-write overtake another)
        spin_until(|| self.serving.load(Acquire) == ticket);
        ticket
    }

    /// Ends the caller's turn.
    fn pass_on(&self, ticket: u32) {
        // ORDERING: Release pairs with the Acquire in `draw`. (not visible to loom: as there)
        self.serving.store(ticket.wrapping_add(1), Release);
    }
}

/// One pass of [`SeqRwLock::read_seq_or_lock`].
#[derive(Debug)]
pub struct ReadPass<'a> {
    count: &'a SeqCount,
    /// The sample of an optimistic pass.
    start: Option<u32>,
}

impl ReadPass<'_> {
    /// Returns whether this pass keeps writers out, so that it can read nothing torn.
    #[inline]
    #[must_use]
    pub fn is_blocking(&self) -> bool {
        self.start.is_none()
    }

    /// Returns whether a writer has come since the pass began: its values may be torn, and the pass
    /// will not count, so it may as well end. Never in a blocking pass. Once true, true for the
    /// rest of the pass.
    #[inline]
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.start.is_some_and(|start| self.count.retry(start))
    }
}

/// The guard of a [`SeqRwLock`] held against writers; its drop, also during a panic, releases the
/// lock.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct SeqRwReadGuard<'a> {
    lock: &'a SeqRwLock,
    /// The thread that took a spinning lock releases it.
    not_send: PhantomData<*const ()>,
}

impl Drop for SeqRwReadGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `try_take` and that in `write_slow`: the next writer follows.
        self.lock.lock.0.word.fetch_sub(READER, Release);
    }
}

/// The guard of a [`SeqRwLock`] held for writing; its drop, also during a panic, releases the lock.
#[derive(Debug)]
#[must_use = "the lock is released when the guard is dropped"]
pub struct SeqRwWriteGuard<'a> {
    lock: &'a SeqRwLock,
    /// The thread that took a spinning lock releases it.
    not_send: PhantomData<*const ()>,
}

impl Drop for SeqRwWriteGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        lockstat::released(self.lock);
        self.lock.count.0.write_end();
        // ORDERING: Release pairs with the Acquire in `read_lock`, `try_read_lock`, `read_slow`, `try_take` and
        // `write_slow`: the next section follows this one. A subtraction, for shares may be in the word for a moment.
        self.lock.lock.0.word.fetch_sub(WRITER, Release);
    }
}
