//! The lock word of the reader/writer semaphore, and the decision which threads come in.
//!
//! # What it is
//! [`RawRwSem`]: one count to which each thread adds a share, a queue for threads whose share was not good, and the one
//! function that gives the lock to queued threads ([`grant`](RawRwSem::grant)). See [`rwsem`](super) for the whole.
//!
//! # What it is not
//! The list of waiters and their sleep; `queue.rs` has those.
//!
//! # State of the count
//! | bits    | 63     | 62..24                       | 23..2                           | 1 `HANDOFF`  | 0 `WAITERS` |
//! |---------|--------|------------------------------|---------------------------------|--------------|-------------|
//! | meaning | panics | readers, and tries to be one | the writer, and tries to be one | no spinning in | some queue |
//!
//! A thread adds its share first, and the value before decides: a reader's share is good if there was neither a
//! writer's share nor `WAITERS`, a writer's if there was nothing. A share that is not good is a *stray* until it is
//! subtracted.
//!
//! # Orderings
//! | here                                                     | partner                                       |
//! |----------------------------------------------------------|-----------------------------------------------|
//! | `read_lock`: add, Acquire                                | `write_unlock`, `downgrade`: Release          |
//! | `try_read`: exchange, Acquire                            | the same                                      |
//! | `read_slow`: load without writer, Acquire                | the same                                      |
//! | `write_lock`: add, Acquire                               | `read_unlock`, `write_unlock`: Release        |
//! | `try_write`: exchange, Acquire                           | the same                                      |
//! | `spin`: exchange, Acquire                                | the same                                      |
//! | `grant`: exchange, Acquire                               | all three; the waiter has it from `queue.rs`  |
//!
//! Every change of the count is a read-modify-write, so strays do not hide the Release of a holder.
//!
//! # Invariants
//! 1. A writer is in if its share was added to a count without any share, until the share is
//!    subtracted. So at most one writer is in, and while it is in, other shares are strays.
//! 2. A reader is in while its share is in and, at some moment since it was added, the count had no
//!    writer's share. After that moment 1 keeps writers out.
//! 3. `WAITERS` is set exactly while the queue has waiters, as seen under the wait lock. `HANDOFF` is set only with it.
//! 4. While the queue has waiters, a thread is bound to call `grant`: a holder that subtracts its share and leaves no
//!    other behind (it sees `WAITERS` then); a thread with a stray, which ends as a holder or queues; a thread between
//!    either and the call; a thread that has the wait lock and has queued or removed a waiter. And `grant` leaves the
//!    head waiting only where a share keeps it out.
//!
//! # Source
//! As [`rwsem`](super).

use super::queue::{Granted, Kind, Queue, Waiter};
use super::{EarlyExit, RwSemStats, SlowPath};
use crate::lock::Lock;
use core::fmt;
use core::time::Duration;
use prim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until_bounded;
use prim::lockstat;
use prim::profile::{Tag, scope};

/// The queue has waiters.
const WAITERS: u64 = 1;
/// A thread passed over the head of the queue: spinning writers may not come in before it.
const HANDOFF: u64 = 2;
/// One writer's share.
const WRITER: u64 = 4;
/// All writers' shares: as many as Linux has thread ids, so strays cannot overflow.
const WRITERS: u64 = READER - WRITER;
/// One reader's share.
const READER: u64 = 1 << 24;
/// Readers at which it panics, before the count overflows: only forgotten guards can be so many.
const FULL: u64 = 1 << 63;

/// How often a writer waits for the lock to look free before it queues, and the pauses it spends each time. (Under loom
/// it looks once: each pause is a branch.)
const ROUNDS: u32 = if cfg!(loom) { 1 } else { 4 };
const TURNS: u32 = if cfg!(loom) { 0 } else { 100 };

/// A reader/writer semaphore without data, for use inside other objects; see [`rwsem`](super).
///
/// A thread that calls an `unlock` must keep the semaphore alive until that returns.
pub struct RawRwSem<P: SlowPath = EarlyExit> {
    count: AtomicU64,
    /// Writers that came in by spinning; the other counters are under the wait lock.
    spun: AtomicU64,
    queue: Lock<P::WaitLock, Queue>,
}

impl RawRwSem {
    /// Returns a free semaphore. (`default()` makes one with another slow path.)
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl<P: SlowPath> RawRwSem<P> {
    /// Comes in as a reader, sleeping if need be. Not recursive: a thread that is in already may deadlock.
    ///
    /// # Panics
    /// With 2^39 readers, which only forgotten guards can be.
    #[inline]
    pub fn read_lock(&self) {
        self.read_until(None);
    }

    /// As [`read_lock`](Self::read_lock), for about `timeout` at most. Returns whether it came in.
    #[inline]
    #[must_use]
    pub fn try_read_lock_for(&self, timeout: Duration) -> bool {
        self.read_until(Some(timeout))
    }

    #[inline]
    fn read_until(&self, timeout: Option<Duration>) -> bool {
        // ORDERING: Acquire pairs with the Release in `write_unlock` and that in `downgrade`: this section follows the
        // last writer's.
        let before = self.count.fetch_add(READER, Acquire);
        before & (WAITERS | WRITERS | FULL) == 0 || self.read_slow(before, timeout)
    }

    /// Comes in as a reader if that needs no waiting. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn try_read_lock(&self) -> bool {
        // Relaxed: a guess, which the exchange checks.
        let mut seen = self.count.load(Relaxed);
        while seen & (WAITERS | WRITERS | FULL) == 0 {
            // ORDERING: Acquire pairs with the Release in `write_unlock` and that in `downgrade`, as in `read_until`.
            match self.count.compare_exchange_weak(seen, seen + READER, Acquire, Relaxed) {
                Ok(_) => return true,
                Err(now) => seen = now,
            }
        }
        false
    }

    /// Comes in as the writer, sleeping if need be. A thread that is in already deadlocks.
    #[inline]
    pub fn write_lock(&self) {
        self.write_until(None);
    }

    /// As [`write_lock`](Self::write_lock), for about `timeout` at most. Returns whether it came in.
    #[inline]
    #[must_use]
    pub fn try_write_lock_for(&self, timeout: Duration) -> bool {
        self.write_until(Some(timeout))
    }

    #[inline]
    fn write_until(&self, timeout: Option<Duration>) -> bool {
        // ORDERING: Acquire pairs with the Release in `read_unlock` and that in `write_unlock`: this section follows
        // those of all readers and of the last writer.
        let before = self.count.fetch_add(WRITER, Acquire);
        if before == 0 {
            lockstat::acquired(self);
        }
        before == 0 || self.write_slow(timeout)
    }

    /// Comes in as the writer if no thread is in or waits. Returns whether it did.
    #[inline]
    #[must_use]
    pub fn try_write_lock(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `read_unlock` and that in `write_unlock`, as in `write_until`.
        let taken = self.count.compare_exchange(0, WRITER, Acquire, Relaxed).is_ok();
        if taken {
            lockstat::acquired(self);
        }
        taken
    }

    /// Leaves as a reader.
    ///
    /// # Safety
    /// The calling thread came in as a reader, and has not left since.
    #[inline]
    pub unsafe fn read_unlock(&self) {
        // ORDERING: Release pairs with the Acquire in `write_until`, `try_write_lock`, `spin` and `grant`: the next
        // writer's section follows this one.
        let left = self.count.fetch_sub(READER, Release) - READER;
        self.after(left);
    }

    /// Leaves as the writer.
    ///
    /// # Safety
    /// The calling thread came in as the writer, and has not left since.
    #[inline]
    pub unsafe fn write_unlock(&self) {
        lockstat::released(self);
        // ORDERING: Release pairs with the Acquire in `read_until`, `try_read_lock`, `read_slow`, `write_until`,
        // `try_write_lock`, `spin` and `grant`: the next section follows this one.
        let left = self.count.fetch_sub(WRITER, Release) - WRITER;
        self.after(left);
    }

    /// Makes the writer a reader, without letting another writer in. Readers at the head of the queue come in.
    ///
    /// # Safety
    /// The calling thread came in as the writer, and has not left since. From here on it is in as a reader.
    pub unsafe fn downgrade(&self) {
        lockstat::released(self);
        // ORDERING: Release pairs with the Acquire in `read_until`, `try_read_lock`, `read_slow` and `grant`: readers
        // see what the writer did.
        let left = self.count.fetch_add(READER - WRITER, Release);
        if left & WAITERS != 0 {
            self.pass(false);
        }
    }

    /// Counts of events on the slow paths so far; takes the wait lock.
    #[must_use]
    pub fn stats(&self) -> RwSemStats {
        let stats = self.queue.lock().stats;
        // Relaxed: a counter.
        RwSemStats { spun: self.spun.load(Relaxed), ..stats }
    }

    /// Called when a share was subtracted and `left` remains: if those are only waiters, lets them in (invariant 4).
    #[inline(always)]
    fn after(&self, left: u64) {
        if left & WAITERS != 0 && left < WRITER {
            self.pass(true);
        }
    }

    /// Waits as a reader whose share, just added to `before`, does not lock.
    #[cold]
    #[inline(never)]
    fn read_slow(&self, before: u64, timeout: Option<Duration>) -> bool {
        let _scope = scope(Tag::RwSem);
        lockstat::contended(self);
        if before & FULL != 0 {
            // Relaxed: nothing was read under this share.
            let left = self.count.fetch_sub(READER, Relaxed) - READER;
            self.after(left);
            panic!("2^39 readers");
        }
        let waiter = Waiter::new(Kind::Read);
        let mut queue = self.queue.lock();
        queue.stats.read_slow += 1;
        // ORDERING: Acquire pairs with the Release in `write_unlock` and that in `downgrade`: the writer that was in
        // the way is gone.
        if P::EARLY_EXIT && queue.is_empty() && self.count.load(Acquire) & WRITERS == 0 {
            queue.stats.early_exits += 1;
            return true;
        }
        // One access to the contended cache line subtracts the stray and sets the mark.
        let mark = if queue.is_empty() { WAITERS } else { 0 };
        // Relaxed: nothing was read under this share, and `grant` below checks the shares that are in.
        self.count.fetch_add(mark.wrapping_sub(READER), Relaxed);
        // SAFETY: `waiter` stays here until `wait` has returned.
        unsafe { queue.push(&waiter) };
        let granted = self.grant(&mut queue, false);
        drop(queue);
        granted.wake();
        self.wait(&waiter, timeout)
    }

    /// Waits as a writer whose share, just added, does not lock.
    #[cold]
    #[inline(never)]
    fn write_slow(&self, timeout: Option<Duration>) -> bool {
        let _scope = scope(Tag::RwSem);
        lockstat::contended(self);
        // Relaxed: nothing was done under this share. If only waiters remain, this thread comes in before them or
        // queues; either way a thread calls `grant` for them.
        self.count.fetch_sub(WRITER, Relaxed);
        let came_in = self.spin() || self.write_queued(timeout);
        if came_in {
            lockstat::acquired(self);
        }
        came_in
    }

    /// Waits for a moment for a writer that is in, which may be about to leave, and comes in if no
    /// share is left: even before queued threads, unless the head of the queue has been passed
    /// over. Does not wait for readers: they may stay long, and others may join them.
    fn spin(&self) -> bool {
        for _ in 0..ROUNDS {
            // Relaxed: only a hint; the exchange decides.
            spin_until_bounded(TURNS, || {
                let seen = self.count.load(Relaxed);
                seen & WRITERS == 0 || seen & HANDOFF != 0 || seen >= READER
            });
            let seen = self.count.load(Relaxed);
            if seen >= READER || seen & HANDOFF != 0 {
                return false;
            }
            let free = seen & WAITERS;
            // ORDERING: Acquire pairs with the Release in `read_unlock` and that in `write_unlock`, as in
            // `write_until`.
            if self.count.compare_exchange(free, free + WRITER, Acquire, Relaxed).is_ok() {
                // Relaxed: a counter.
                self.spun.fetch_add(1, Relaxed);
                return true;
            }
        }
        false
    }

    fn write_queued(&self, timeout: Option<Duration>) -> bool {
        let waiter = Waiter::new(Kind::Write);
        let mut queue = self.queue.lock();
        queue.stats.write_slow += 1;
        if queue.is_empty() {
            // Relaxed: sends other threads to the queue, whose lock orders.
            self.count.fetch_or(WAITERS, Relaxed);
        }
        // SAFETY: `waiter` stays here until `wait` has returned.
        unsafe { queue.push(&waiter) };
        let granted = self.grant(&mut queue, false);
        drop(queue);
        granted.wake();
        self.wait(&waiter, timeout)
    }

    /// Sleeps until the lock is granted to `waiter`, or the time is over. Returns whether it was granted.
    fn wait(&self, waiter: &Waiter, timeout: Option<Duration>) -> bool {
        let deadline_ns = timeout.map(|timeout| {
            let timeout_ns = i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX);
            prim::clock::monotonic_ns().saturating_add(timeout_ns)
        });
        waiter.sleep(deadline_ns, || self.give_up(waiter))
    }

    /// Removes `waiter` from the queue, and lets in those it kept out. `false`: the lock was granted to it.
    fn give_up(&self, waiter: &Waiter) -> bool {
        let mut queue = self.queue.lock();
        if !queue.remove(waiter) {
            return false;
        }
        queue.stats.timed_out += 1;
        if queue.is_empty() {
            // Relaxed: lets others take the fast path, which has its own ordering.
            self.count.fetch_and(!(WAITERS | HANDOFF), Relaxed);
        }
        let granted = self.grant(&mut queue, false);
        drop(queue);
        granted.wake();
        true
    }

    /// Lets in the waiters at the head of the queue. `has_left`: because a holder released the lock.
    #[cold]
    #[inline(never)]
    fn pass(&self, has_left: bool) {
        let mut queue = self.queue.lock();
        let granted = self.grant(&mut queue, has_left);
        drop(queue);
        granted.wake();
    }

    /// Gives the lock to the waiters at the head of the queue if the shares that are in allow it: to one writer, or to
    /// all readers up to the next writer. If they do not although the lock `has_left` its holder, a spinning writer was
    /// faster: the head has been passed over, once.
    fn grant(&self, queue: &mut Queue, has_left: bool) -> Granted {
        let Some(batch) = queue.batch() else { return Granted::default() };
        let (in_the_way, shares) = match batch.kind {
            Kind::Read => (WRITERS, READER * batch.len),
            Kind::Write => (!(WAITERS | HANDOFF), WRITER),
        };
        let mark = if batch.len == queue.len() { 0 } else { WAITERS };
        // Relaxed: a guess, which the exchange checks.
        let mut seen = self.count.load(Relaxed);
        loop {
            let is_blocked = seen & in_the_way != 0;
            if is_blocked && (!has_left || seen & HANDOFF != 0) {
                return Granted::default();
            }
            let next = if is_blocked { seen | HANDOFF } else { ((seen & !(WAITERS | HANDOFF)) | mark) + shares };
            // ORDERING: Acquire pairs with the Release in `read_unlock`, `write_unlock` and `downgrade`: the granted
            // sections follow, by way of `Granted::wake`.
            match self.count.compare_exchange(seen, next, Acquire, Relaxed) {
                Ok(_) if is_blocked => return Granted::default(),
                Ok(_) => break,
                Err(now) => seen = now,
            }
        }
        match batch.kind {
            Kind::Read => {
                queue.stats.read_batches += 1;
                queue.stats.reads_granted += batch.len;
            }
            Kind::Write => queue.stats.writes_granted += 1,
        }
        queue.cut(&batch)
    }
}

impl<P: SlowPath> Default for RawRwSem<P> {
    fn default() -> Self {
        Self { count: AtomicU64::new(0), spun: AtomicU64::new(0), queue: Lock::default() }
    }
}

impl<P: SlowPath> fmt::Debug for RawRwSem<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Relaxed: for display.
        let count = self.count.load(Relaxed);
        f.debug_struct("RawRwSem")
            .field("readers", &(count / READER))
            .field("writers", &((count & WRITERS) / WRITER))
            .field("has_waiters", &(count & WAITERS != 0))
            .finish_non_exhaustive()
    }
}
