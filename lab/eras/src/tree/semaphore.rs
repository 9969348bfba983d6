//! A file's semaphore, `i_rwsem`, as Linux had it from 4.8 to 4.18: a count that readers and writers add to, and a queue
//! under a queued spinlock.
//!
//! # What it is
//! A reader adds [`ACTIVE`], a writer [`WRITE`]; the sign of the sum shows whether that was enough. A thread that cannot
//! come in takes the wait lock and queues. A thread that leaves wakes the head of the queue: readers have the semaphore
//! when they wake, a writer does not: it **competes** for it with newcomers, under the wait lock again. A writer that
//! finds another writer in spins first, one such writer at a time.
//!
//! While the queue has a member the count is negative, which sends each newcomer to the slow path
//! and so to the wait lock. A reader may arrive on the slow path after the writer that kept it out
//! has left; the rule `P` decides whether the reader then queues or leaves at once
//! ([`SlowPath::EARLY_EXIT`]).
//!
//! Count, wait lock and owner are on one cache line, as there: a thread that spins on the wait lock takes the line from
//! threads that add to the count.
//!
//! # How it is locked
//! The wait lock is a qspinlock with statistics: class `wait_lock`, in which the time that threads spend spinning on it can be
//! read. It protects the queue, and with it the sign of an idle count.
//!
//! # State of the count
//! | bits 63..32                                      | bits 31..0                              |
//! |--------------------------------------------------|-----------------------------------------|
//! | minus one for the queue, minus one for each writer | threads that are in, and tries to be   |
//!
//! # Orderings
//! | here                                       | partner                                            |
//! |--------------------------------------------|----------------------------------------------------|
//! | `read`, `write`, `try_*`, `grant`: Acquire | `leave`: subtract, Release                         |
//! | `Waiter::sleep`: load, Acquire             | `Waiter::release`: add, Release                    |
//!
//! # Source
//! `kernel/locking/rwsem-xadd.c` as its publications describe it; Waiman Long, "locking/rwsem: Exit read lock slowpath if
//! queue empty & no writer" (linux-kernel, July 2018; Linux 4.20).
//!
//! # Limitations
//! A spinning writer cannot find out whether the owner runs, so it spins for a bounded time.

use core::marker::PhantomData;
use locks::lockstat::{Class, Measured};
use locks::{McsLock, QueuedLock};
use prim::atomic::{
    AtomicI64, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until_bounded;
use prim::park;
use prim::profile::{Tag, scope};
use prim::shared::Arc;
use std::collections::VecDeque;
use sync::Lock;
use sync::rwsem::SlowPath;

/// A thread that is in, or tries to be.
const ACTIVE: i64 = 1;
/// The queue has members.
const WAITING: i64 = -(1 << 32);
/// A writer.
const WRITE: i64 = WAITING + ACTIVE;
/// The threads that are in.
const IN: i64 = (1 << 32) - 1;

/// No writer is in.
const NO_WRITER: u32 = 0;
/// A writer is in.
const WRITER: u32 = 1;
/// Readers came in last.
const READERS: u32 = 2;

/// Turns for which a writer watches the owner, and how often it looks again.
const TURNS: u32 = 200;
const ROUNDS: u32 = 16;

/// See the [module documentation](self).
#[repr(C)]
pub(crate) struct Semaphore<P> {
    count: AtomicI64,
    owner: AtomicU32,
    queue: Lock<Measured<QueuedLock>, Queue>,
    /// `osq`: writers that spin.
    spinners: Lock<McsLock, ()>,
    rule: PhantomData<P>,
}

/// The counts of a semaphore.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SemaphoreStats {
    /// Readers that took the wait lock.
    pub(crate) slow_readers: u64,
    /// Of those, the ones that left it at once.
    pub(crate) early_exits: u64,
    /// Readers that were woken with the semaphore.
    pub(crate) queued_readers: u64,
    pub(crate) queued_writers: u64,
    /// Times that a woken writer found the semaphore taken and slept again.
    pub(crate) lost_writers: u64,
}

#[derive(Default)]
struct Queue {
    waiters: VecDeque<Arc<Waiter>>,
    stats: SemaphoreStats,
}

struct Waiter {
    is_writer: bool,
    /// Steps when the waiter is woken.
    state: AtomicU32,
    /// The list's link, which its neighbours write.
    link: AtomicU32,
}

impl Waiter {
    fn new(is_writer: bool) -> Arc<Self> {
        Arc::new(Self { is_writer, state: AtomicU32::new(0), link: AtomicU32::new(0) })
    }

    fn release(&self) {
        // ORDERING: Release pairs with the Acquire in `sleep`: what the waker saw of former sections comes with it.
        self.state.fetch_add(1, Release);
    }

    /// Sleeps until the state is another than `seen`; gives it.
    fn sleep(&self, seen: u32) -> u32 {
        loop {
            // ORDERING: Acquire pairs with the Release in `release`.
            let now = self.state.load(Acquire);
            if now != seen {
                return now;
            }
            park::park(&self.state, seen);
        }
    }
}

impl Queue {
    fn push(&mut self, waiter: &Arc<Waiter>) {
        if let Some(last) = self.waiters.back() {
            // Relaxed: under the wait lock. Stands for the pointer in the node before.
            last.link.store(1, Relaxed);
        }
        self.waiters.push_back(waiter.clone());
    }
}

/// Wakes the waiters that [`Semaphore::mark`] chose, without the wait lock.
fn wake(chosen: Vec<Arc<Waiter>>) {
    for waiter in chosen {
        if waiter.is_writer {
            waiter.release();
        }
        park::unpark_one(&waiter.state);
    }
}

impl<P: SlowPath> Semaphore<P> {
    /// Returns a free one, whose wait lock counts for `class`.
    pub(crate) fn new(class: &Arc<Class>) -> Self {
        Self {
            count: AtomicI64::new(0),
            owner: AtomicU32::new(NO_WRITER),
            queue: Lock::with_raw(Measured::of(class), Queue::default()),
            spinners: Lock::new(()),
            rule: PhantomData,
        }
    }

    /// Returns the counts so far.
    pub(crate) fn stats(&self) -> SemaphoreStats {
        self.queue.lock().stats
    }

    /// Comes in as a reader.
    pub(crate) fn read(&self) -> SemaphoreRead<'_, P> {
        // ORDERING: Acquire pairs with the Release in `leave`: this section follows the last writer's.
        if self.count.fetch_add(ACTIVE, Acquire) + ACTIVE <= 0 {
            self.read_slow();
        }
        self.set_readers();
        SemaphoreRead(self)
    }

    /// Comes in as the writer.
    pub(crate) fn write(&self) -> SemaphoreWrite<'_, P> {
        // ORDERING: Acquire pairs with the Release in `leave`: this section follows those before it.
        if self.count.fetch_add(WRITE, Acquire) != 0 {
            self.write_slow();
        }
        // Relaxed: a hint for spinning writers.
        self.owner.store(WRITER, Relaxed);
        SemaphoreWrite(self)
    }

    fn set_readers(&self) {
        // Relaxed: a hint for spinning writers.
        if self.owner.load(Relaxed) != READERS {
            self.owner.store(READERS, Relaxed);
        }
    }

    #[cold]
    fn read_slow(&self) {
        let _scope = scope(Tag::RwSem);
        let waiter = Waiter::new(false);
        let mut queue = self.queue.lock();
        queue.stats.slow_readers += 1;
        let mut by = -ACTIVE;
        if queue.waiters.is_empty() {
            // ORDERING: Acquire pairs with the Release in `leave`: the writer that was in the way has left.
            if P::EARLY_EXIT && self.count.load(Acquire) >= 0 {
                queue.stats.early_exits += 1;
                return;
            }
            by += WAITING;
        }
        queue.push(&waiter);
        // Relaxed: `mark` orders.
        let count = self.count.fetch_add(by, Relaxed) + by;
        let is_free = count == WAITING || (count > WAITING && by != -ACTIVE);
        let chosen = if is_free { self.mark(&mut queue, true) } else { Vec::new() };
        drop(queue);
        wake(chosen);
        waiter.sleep(0);
    }

    #[cold]
    fn write_slow(&self) {
        let _scope = scope(Tag::RwSem);
        // Relaxed: nothing was done under this share.
        self.count.fetch_sub(WRITE, Relaxed);
        if self.spin() {
            return;
        }
        let waiter = Waiter::new(true);
        let mut queue = self.queue.lock();
        queue.stats.queued_writers += 1;
        let has_others = !queue.waiters.is_empty();
        queue.push(&waiter);
        // Relaxed, all: `try_write` orders.
        let mut count =
            if has_others { self.count.load(Relaxed) } else { self.count.fetch_add(WAITING, Relaxed) + WAITING };
        if has_others && count > WAITING {
            // No writer is in, so readers are: those in front of this writer may join them.
            let chosen = self.mark(&mut queue, false);
            drop(queue);
            wake(chosen);
            queue = self.queue.lock();
            count = self.count.load(Relaxed);
        }
        let (mut seen, mut wakes) = (waiter.state.load(Relaxed), 0_u64);
        while !self.try_write(count, queue.waiters.len() == 1) {
            drop(queue);
            loop {
                seen = waiter.sleep(seen);
                wakes += 1;
                count = self.count.load(Relaxed);
                if count & IN == 0 {
                    break;
                }
            }
            queue = self.queue.lock();
            count = self.count.load(Relaxed);
        }
        queue.stats.lost_writers += wakes.saturating_sub(1);
        queue.waiters.retain(|other| !Arc::ptr_eq(other, &waiter));
    }

    /// Takes the semaphore for a queued writer, if no thread is in. Under the wait lock.
    fn try_write(&self, count: i64, is_alone: bool) -> bool {
        let taken = if is_alone { WRITE } else { WRITE + WAITING };
        // ORDERING: Acquire pairs with the Release in `leave`, as in `write`.
        count == WAITING && self.count.compare_exchange(WAITING, taken, Acquire, Relaxed).is_ok()
    }

    /// Tries to take the semaphore for a writer that has not queued, past the queue, while or soon
    /// after another writer is in. Returns whether the writer has the semaphore.
    fn spin(&self) -> bool {
        if self.owner.load(Relaxed) == READERS {
            return false;
        }
        let _spinner = self.spinners.lock();
        for _ in 0..ROUNDS {
            // Relaxed, all: hints; the exchange decides.
            spin_until_bounded(TURNS, || self.owner.load(Relaxed) != WRITER);
            if self.owner.load(Relaxed) == READERS {
                return false;
            }
            let count = self.count.load(Relaxed);
            let is_free = count == 0 || count == WAITING;
            // ORDERING: Acquire pairs with the Release in `leave`, as in `write`.
            if is_free && self.count.compare_exchange(count, count + WRITE, Acquire, Relaxed).is_ok() {
                return true;
            }
        }
        false
    }

    /// Chooses the waiters to wake: the writer at the head (if `with_writer`), which stays in the
    /// queue and has nothing yet; or all readers at the head, which now have the semaphore. Under
    /// the wait lock.
    fn mark(&self, queue: &mut Queue, with_writer: bool) -> Vec<Arc<Waiter>> {
        let Some(first) = queue.waiters.front() else { return Vec::new() };
        if first.is_writer {
            return if with_writer { vec![first.clone()] } else { Vec::new() };
        }
        let granted = if with_writer { ACTIVE } else { 0 };
        if with_writer && !self.grant() {
            return Vec::new();
        }
        self.set_readers();
        let mut chosen = Vec::new();
        while queue.waiters.front().is_some_and(|waiter| !waiter.is_writer) {
            chosen.extend(queue.waiters.pop_front());
        }
        queue.stats.queued_readers += chosen.len() as u64;
        let left = if queue.waiters.is_empty() { WAITING } else { 0 };
        // Relaxed: the readers follow by way of `Waiter::release`.
        self.count.fetch_add(ACTIVE * chosen.len() as i64 - granted - left, Relaxed);
        chosen.iter().for_each(|waiter| waiter.release());
        chosen
    }

    /// Keeps writers out for readers that are about to be woken, unless one is in.
    fn grant(&self) -> bool {
        loop {
            // ORDERING: Acquire pairs with the Release in `leave`: the readers' sections follow the last writer's.
            if self.count.fetch_add(ACTIVE, Acquire) >= WAITING {
                return true;
            }
            // Relaxed: nothing was done under this share.
            if self.count.fetch_sub(ACTIVE, Relaxed) - ACTIVE < WAITING {
                return false;
            }
            // The last one left in between.
        }
    }

    /// Gives a share back, and wakes the head of the queue if no other thread is in.
    fn leave(&self, share: i64) {
        // ORDERING: Release pairs with the Acquires of those that come in: their sections follow this one.
        let left = self.count.fetch_sub(share, Release) - share;
        if left < 0 && left & IN == 0 {
            let _scope = scope(Tag::RwSem);
            let mut queue = self.queue.lock();
            let chosen = self.mark(&mut queue, true);
            drop(queue);
            wake(chosen);
        }
    }
}

/// A semaphore that a reader is in.
pub(crate) struct SemaphoreRead<'a, P: SlowPath>(&'a Semaphore<P>);

impl<P: SlowPath> Drop for SemaphoreRead<'_, P> {
    fn drop(&mut self) {
        self.0.leave(ACTIVE);
    }
}

/// A semaphore that a writer is in.
pub(crate) struct SemaphoreWrite<'a, P: SlowPath>(&'a Semaphore<P>);

impl<P: SlowPath> Drop for SemaphoreWrite<'_, P> {
    fn drop(&mut self) {
        // Relaxed: a hint for spinning writers.
        self.0.owner.store(NO_WRITER, Relaxed);
        self.0.leave(WRITE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sync::{AlwaysQueue, EarlyExit};

    /// Readers and writers of two words that a writer makes equal.
    fn check<P: SlowPath + Send + Sync>() {
        let semaphore = Semaphore::<P>::new(&Class::new("wait_lock"));
        let (a, b) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| {
                    for _ in 0..2_000 {
                        let _held = semaphore.write();
                        a.store(a.load(Relaxed) + 1, Relaxed);
                        b.store(b.load(Relaxed) + 1, Relaxed);
                    }
                });
            }
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..2_000 {
                        let _held = semaphore.read();
                        assert_eq!(a.load(Relaxed), b.load(Relaxed));
                    }
                });
            }
        });
        assert_eq!((a.into_inner(), semaphore.count.load(Relaxed)), (4_000, 0));
        assert!(semaphore.queue.lock().waiters.is_empty());
    }

    #[test]
    fn readers_share_and_a_writer_is_alone() {
        check::<AlwaysQueue>();
        check::<EarlyExit>();
    }

    /// Returns the counts for a reader that came while a writer was in, and has the wait lock after
    /// the writer has left.
    fn late_reader<P: SlowPath + Send + Sync>() -> [u64; 3] {
        let semaphore = Semaphore::<P>::new(&Class::new("wait_lock"));
        std::thread::scope(|s| {
            let (writer, queue) = (semaphore.write(), semaphore.queue.lock());
            let reader = s.spawn(|| drop(semaphore.read()));
            while semaphore.count.load(Relaxed) != WRITE + ACTIVE {
                std::thread::yield_now();
            }
            drop(writer);
            drop(queue);
            reader.join().expect("no panic");
        });
        let stats = semaphore.stats();
        [stats.slow_readers, stats.early_exits, stats.queued_readers]
    }

    #[test]
    fn a_reader_that_came_in_vain_queues_or_leaves_at_once() {
        assert_eq!(late_reader::<AlwaysQueue>(), [1, 0, 1]);
        assert_eq!(late_reader::<EarlyExit>(), [1, 1, 0]);
    }
}
