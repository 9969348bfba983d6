//! A small reader/writer lock whose readers, while none writes, store only to their thread's line.
//!
//! # What it is
//! A [`Mutex`](crate::Mutex) and a *bias*. While the bias is set, a reader announces itself: it stores the lock's address to the
//! slot of its CPU index, looks whether the bias is still set, and reads. A writer takes the mutex, clears the bias, and
//! waits for the slots that name the lock. The slots are in a [`BiasedReaders`], which many locks share.
//!
//! Without the bias a reader takes the mutex. It sets the bias if another thread has read before: so a lock that one thread
//! reads costs what a mutex costs. After a writer has cleared the bias, no reader sets it for nine times as long as that took:
//! so a lock that is written often costs at most a tenth more than a mutex.
//!
//! # What it is not
//! Recursive: a thread that reads or writes must not take the same lock again. Fair. For sections that sleep: a writer
//! waits for announced readers by spinning and yielding.
//!
//! # State
//! | bias | meaning |
//! |---|---|
//! | 0 | not set; it may be set at once |
//! | 1 | set: readers announce themselves |
//! | other | not set, and must not be set before this time (in units of 1024 ns, which wrap) |
//!
//! | slot | meaning |
//! |---|---|
//! | 0 | its index announces nothing |
//! | other | the address of the lock that its thread reads, or is about to look at |
//!
//! # Orderings
//! | here | partner |
//! |---|---|
//! | `read`: store of the slot, fence, load of the bias | `clear_bias`: store of the bias, fence, load of the slot |
//! | `read`: load of the bias, Acquire | `set_bias`: store, Release |
//! | `clear_bias`: load of the slot, Acquire | `BiasedReadGuard::drop`: store, Release |
//! | reader or writer with the mutex | as in [`RawMutex`] |
//!
//! # Invariants
//! 1. The bias is changed only by the holder of the mutex.
//! 2. An announced reader is in if it saw the bias set after its fence. Then a writer that clears the bias later sees the slot, or
//!    this reader's fence comes after the writer's, and the reader sees the bias cleared. So after `clear_bias` no announced
//!    reader is in, and none comes in before the writer has given the mutex back.
//! 3. Readers and writers of one lock use one `BiasedReaders`: its address is compared.
//!
//! # Source
//! D. Dice, A. Kogan, "BRAVO: Biased Locking for Reader-Writer Locks" (USENIX ATC 2019). In BRAVO
//! one table of the process has the slots, found by hashes, and any reader sets the bias. Here each
//! instance has its slots, one for each CPU index, and a lock that only one thread reads is not
//! biased.
//!
//! ```
//! use lightfoot_sync::{BiasedReaders, BiasedRwLock};
//!
//! let readers = BiasedReaders::new();
//! let lock = BiasedRwLock::new(&readers, vec![1]);
//! lock.write(&readers).push(2);
//! assert_eq!(lock.read(&readers).len(), 2);
//! ```

use crate::lock::RawLock;
use crate::mutex::RawMutex;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use prim::PerCpu;
use prim::atomic::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use prim::cell::UnsafeCell;
use prim::clock::monotonic_ns;
use prim::hint::spin_until;

/// Readers announce themselves.
const SET: u32 = 1;

/// No index has read with the mutex.
const NOBODY: u32 = u32::MAX;

/// Times as long as it took to clear the bias in which it must not be set: the most that writers lose is a tenth.
const PATIENCE: i64 = 9;

/// The lock that a CPU index reads; two cache lines, as in [`crate::percpu_rwlock`].
#[derive(Default)]
#[repr(align(128))]
struct Slot(AtomicUsize);

/// The slots in which readers of an instance's locks announce themselves.
pub struct BiasedReaders {
    slots: Box<PerCpu<Slot>>,
    /// loom does not switch threads at a fence; a step on this word before the fence makes it.
    #[cfg(loom)]
    step: AtomicU32,
}

impl BiasedReaders {
    /// Slots that announce nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            slots: Box::new(PerCpu::sized(Slot::default, true)),
            #[cfg(loom)]
            step: AtomicU32::new(0),
        }
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(&*self.slots).addr()
    }

    #[inline(always)]
    fn full_fence(&self) {
        #[cfg(loom)]
        self.step.fetch_add(1, Relaxed);
        // ORDERING: SeqCst pairs with itself: `read` and `clear_bias` both come here, between their store and their load. So one
        // of the two sees the other's store.
        fence(SeqCst);
    }
}

impl Default for BiasedReaders {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for BiasedReaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedReaders").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// See the [module documentation](self).
pub struct BiasedRwLock<T> {
    mutex: RawMutex,
    bias: AtomicU32,
    /// The index that last read with the mutex.
    last: AtomicU32,
    /// The address of the slots (invariant 3).
    readers: usize,
    data: UnsafeCell<T>,
}

// SAFETY: by invariant 2 and the mutex, the data is shared by readers (`T: Sync`) or reached by one writer, which may take
// the `T` out (`T: Send`).
unsafe impl<T: Send + Sync> Sync for BiasedRwLock<T> {}

impl<T> BiasedRwLock<T> {
    /// Returns a free lock around `data`, whose readers announce themselves in `readers`.
    #[must_use]
    pub fn new(readers: &BiasedReaders, data: T) -> Self {
        let (bias, last) = (AtomicU32::new(0), AtomicU32::new(NOBODY));
        Self { mutex: RawMutex::new(), bias, last, readers: readers.address(), data: UnsafeCell::new(data) }
    }

    /// As [`new`](Self::new), with the bias set.
    #[cfg(loom)]
    #[must_use]
    pub fn biased(readers: &BiasedReaders, data: T) -> Self {
        let lock = Self::new(readers, data);
        lock.set_bias();
        lock
    }

    /// Comes in as a reader, waiting while a writer is in.
    ///
    /// # Panics
    /// If `readers` are not those that the lock was made with.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn read<'a>(&'a self, readers: &'a BiasedReaders) -> BiasedReadGuard<'a, T> {
        self.check(readers);
        // Relaxed: a guess; the load after the fence decides.
        if self.bias.load(Relaxed) == SET
            && let Some(guard) = self.announce(readers)
        {
            return guard;
        }
        self.mutex.lock();
        let own = prim::cpu::id() as u32;
        // Relaxed, here and below: under the mutex.
        if self.last.load(Relaxed) != own {
            self.note_reader(own);
        }
        BiasedReadGuard { lock: self, slot: None, not_send: PhantomData }
    }

    /// Comes in by the slot of the calling thread. `None`: the bias was cleared, or the thread reads another lock.
    #[inline]
    fn announce<'a>(&'a self, readers: &'a BiasedReaders) -> Option<BiasedReadGuard<'a, T>> {
        let slot = readers.slots.this();
        // Relaxed: the owner reads its own store.
        if slot.0.load(Relaxed) != 0 {
            return None;
        }
        // Relaxed: the fence orders.
        slot.0.store(self.address(), Relaxed);
        readers.full_fence();
        let guard = BiasedReadGuard { lock: self, slot: Some(slot), not_send: PhantomData };
        // ORDERING: Acquire pairs with the Release in `set_bias`: this section follows that of the last writer.
        (self.bias.load(Acquire) == SET).then_some(guard)
    }

    /// Notes which index reads, and sets the bias if another one has read before. The caller has the mutex as a reader.
    #[cold]
    fn note_reader(&self, own: u32) {
        let is_shared = self.last.load(Relaxed) != NOBODY;
        self.last.store(own, Relaxed);
        let until = self.bias.load(Relaxed);
        if is_shared && (until == 0 || (until != SET && units(monotonic_ns()).wrapping_sub(until).cast_signed() >= 0)) {
            self.set_bias();
        }
    }

    /// Lets readers in that announce themselves. The caller has the mutex as a reader.
    fn set_bias(&self) {
        // ORDERING: Release pairs with the Acquire in `announce`: what the last writer did, whose mutex this thread has taken.
        self.bias.store(SET, Release);
    }

    /// Comes in as the writer, waiting for readers and other writers.
    ///
    /// # Panics
    /// If `readers` are not those that the lock was made with.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn write<'a>(&'a self, readers: &BiasedReaders) -> BiasedWriteGuard<'a, T> {
        self.check(readers);
        self.mutex.lock();
        // Relaxed: under the mutex (invariant 1).
        if self.bias.load(Relaxed) == SET {
            self.clear_bias(readers);
        }
        BiasedWriteGuard { lock: self, not_send: PhantomData }
    }

    /// Waits until no announced reader is in, and keeps others out. The caller has the mutex.
    #[cold]
    fn clear_bias(&self, readers: &BiasedReaders) {
        let begin = monotonic_ns();
        // Relaxed: the fence orders; the time follows below.
        self.bias.store(0, Relaxed);
        readers.full_fence();
        for slot in readers.slots.iter() {
            // ORDERING: Acquire pairs with the Release in `BiasedReadGuard::drop`: this section follows that reader's.
            spin_until(|| slot.0.load(Acquire) != self.address());
        }
        let now = monotonic_ns();
        let until = units(now.saturating_add(now.saturating_sub(begin).saturating_mul(PATIENCE)));
        if !cfg!(loom) {
            // Relaxed: under the mutex (invariant 1). Not a value that has another meaning.
            self.bias.store(until.max(SET + 1), Relaxed);
        }
    }

    #[inline(always)]
    fn address(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    #[inline(always)]
    fn check(&self, readers: &BiasedReaders) {
        assert!(self.readers == readers.address(), "the readers of another lock");
    }
}

/// Nanoseconds in the units of the bias.
fn units(ns: i64) -> u32 {
    (ns >> 10) as u32
}

impl<T> fmt::Debug for BiasedRwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BiasedRwLock").field("mutex", &self.mutex).field("bias", &self.bias).finish_non_exhaustive()
    }
}

/// The guard of a [`BiasedRwLock`] held for reading; its drop, also during a panic, releases the
/// lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct BiasedReadGuard<'a, T> {
    lock: &'a BiasedRwLock<T>,
    /// The slot that names the lock. `None`: the reader has the mutex.
    slot: Option<&'a Slot>,
    /// The slot is the thread's.
    not_send: PhantomData<*const ()>,
}

impl<T> Deref for BiasedReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 2, or the mutex: no writer is in.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T> Drop for BiasedReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.slot {
            // ORDERING: Release pairs with the Acquire in `clear_bias`: the next writer's section follows this one.
            Some(slot) => slot.0.store(0, Release),
            // SAFETY: this thread took the mutex in `read`, and the guard ends here.
            None => unsafe { self.lock.mutex.unlock() },
        }
    }
}

/// The guard of a [`BiasedRwLock`] held for writing; its drop, also during a panic, releases the
/// lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct BiasedWriteGuard<'a, T> {
    lock: &'a BiasedRwLock<T>,
    /// The thread that took the mutex releases it.
    not_send: PhantomData<*const ()>,
}

impl<T> Deref for BiasedWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 2 and the mutex: no reader and no other writer is in, and this guard is only shared here.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T> DerefMut for BiasedWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariant 2 and the mutex: no reader and no other writer is in, and this guard is borrowed alone.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T> Drop for BiasedWriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread took the mutex in `write`, and the guard ends here.
        unsafe { self.lock.mutex.unlock() };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicBool;

    /// Has two threads read, which sets the bias unless that is forbidden.
    fn meet(lock: &BiasedRwLock<u64>, readers: &BiasedReaders) {
        drop(lock.read(readers));
        std::thread::scope(|scope| {
            scope.spawn(|| drop(lock.read(readers)));
        });
    }

    impl BiasedRwLock<u64> {
        fn is_biased(&self) -> bool {
            self.bias.load(Relaxed) == SET
        }
    }

    #[test]
    fn it_is_a_mutex_until_readers_meet() {
        let readers = BiasedReaders::new();
        let lock = BiasedRwLock::new(&readers, 1);
        for _ in 0..100 {
            assert!(lock.read(&readers).slot.is_none());
            *lock.write(&readers) += 1;
        }
        assert!(!lock.is_biased());
        meet(&lock, &readers);
        assert!(lock.is_biased());
        assert!(lock.read(&readers).slot.is_some());
        *lock.write(&readers) += 1;
        assert!(!lock.is_biased());
        assert_eq!(*lock.read(&readers), 102);
    }

    #[test]
    fn a_thread_reads_two_locks_at_once() {
        let readers = BiasedReaders::new();
        let locks = [BiasedRwLock::new(&readers, 1), BiasedRwLock::new(&readers, 2)];
        locks.iter().for_each(|lock| meet(lock, &readers));
        let outer = locks[0].read(&readers);
        let inner = locks[1].read(&readers);
        assert_eq!((outer.slot.is_some(), inner.slot.is_some(), *outer + *inner), (true, false, 3));
    }

    #[test]
    fn a_bias_that_a_writer_cleared_is_not_set_at_once() {
        let readers = BiasedReaders::new();
        let lock = BiasedRwLock::new(&readers, 1);
        let far = units(monotonic_ns()).wrapping_add(1 << 30);
        for (until, is_set) in [(far, false), (far.wrapping_add(1 << 31), true), (0, true)] {
            lock.bias.store(until, Relaxed);
            meet(&lock, &readers);
            assert_eq!(lock.is_biased(), is_set, "{until}");
        }
    }

    #[test]
    #[should_panic(expected = "the readers of another lock")]
    fn readers_of_another_lock_are_refused() {
        let (readers, others) = (BiasedReaders::new(), BiasedReaders::new());
        let lock = BiasedRwLock::new(&readers, 1);
        drop(lock.read(&others));
    }

    #[test]
    fn readers_see_each_write_as_a_whole() {
        let readers = BiasedReaders::new();
        let lock = BiasedRwLock::new(&readers, [0_u64; 64]);
        let is_done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while !is_done.load(Relaxed) {
                        let values = lock.read(&readers);
                        assert!(values.iter().all(|value| *value == values[0]) && values[0] >= last);
                        last = values[0];
                    }
                });
            }
            for value in 1..=2_000 {
                lock.write(&readers).fill(value);
                if value % 50 == 0 {
                    std::thread::yield_now();
                }
            }
            is_done.store(true, Relaxed);
        });
        assert_eq!(lock.read(&readers)[63], 2_000);
    }
}
