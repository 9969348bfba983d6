//! A reader/writer lock whose readers write only to their own cache line.
//!
//! # What it is
//! One slot for each CPU index. A reader takes its own slot: one read-modify-write on a cache line
//! that no other thread writes while there is no writer. A writer takes all slots, in the order of
//! the indexes. For data that every thread reads often and that hardly ever changes.
//!
//! All waiting is by spinning, so the lock may be taken under spinlocks; keep sections short, and do not sleep in them.
//!
//! # What it is not
//! Fair to readers: they wait for as long as writers follow one another. Cheap to write: a writer takes the cache line
//! of every CPU index that ever read. Small: 4 KiB, and 128 bytes for each index beyond the thirty-second. For readers
//! that should not write at all there is [`rcu`](crate::rcu).
//!
//! # State
//! | bits of a slot | 31     | 30..2            | 1 `JOINED`               | 0 `WRITER`                      |
//! |----------------|--------|------------------|--------------------------|---------------------------------|
//! | meaning        | panics | readers that are in | writers take the slot    | a writer is in, or next         |
//!
//! A slot begins as 0. Its first reader joins it: sets `JOINED` under the writers' lock. Writers skip slots that have
//! not joined.
//!
//! # Orderings
//! | here                                      | partner                                  |
//! |-------------------------------------------|------------------------------------------|
//! | `read`: exchange, Acquire                 | `PerCpuWriteGuard::drop`: store, Release   |
//! | `read_slow`: exchange, Acquire            | the same                                   |
//! | `write`: load without readers, Acquire    | `PerCpuReadGuard::drop`: subtract, Release |
//! | writer after writer; joining              | as in the writers' [`SpinLock`]            |
//!
//! # Invariants
//! 1. Only the holder of `writers` sets and clears `WRITER`, and sets `JOINED`. `JOINED` stays.
//! 2. A reader is in when it has added its share to a slot that had `JOINED` and not `WRITER`, or
//!    that had a reader already (an outer section of the same thread, or the guard of a thread that
//!    had the index before).
//! 3. A writer is in when it has set `WRITER` in each slot that has joined and has then seen each
//!    without readers. After that no reader comes in. Not into a slot that has joined, by 2: a slot
//!    that was seen empty has no reader that a second could follow. Nor into another slot: it would
//!    have to join first, which takes `writers`, and the writer holds that until it is out.
//! 4. A writer sees every slot that joined before the writer took `writers`, even a slot in a new
//!    segment: the thread that joined found the segment made, and `writers` orders this before the
//!    writer reads the segments. A segment made while a writer is in holds slots that have not
//!    joined; the writer skips it on the way in and on the way out.
//!
//! # Source
//! Linux's `brlock` (Ingo Molnar, 1999) and the `vfsmount` lock of Nick Piggin's scalability work (2009), later
//! `lglock`. It differs in that a slot belongs to a thread and not to a CPU; so slots are added while the lock is in
//! use, and reading nests.
//!
//! # Limitations
//! A thread that nests its sections so that it never leaves the outermost one keeps writers out. So does a guard that
//! is forgotten (`mem::forget`).
//!
//! ```
//! let mounts = lightfoot_sync::PerCpuRwLock::new(vec!["/"]);
//! mounts.write().push("/proc");
//! let outer = mounts.read();
//! assert_eq!(mounts.read().len(), outer.len());
//! ```

use crate::tas::{SpinLock, SpinLockGuard};
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use prim::PerCpu;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::cell::UnsafeCell;
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};

/// A writer has the slot, or waits for its readers to leave.
const WRITER: u32 = 1;
/// Writers take the slot.
const JOINED: u32 = 2;
/// One reader.
const READER: u32 = 4;

/// Readers in one slot at which it panics, before the count overflows: only forgotten guards can be so many.
const FULL: u32 = 1 << 31;

/// One index's share; two cache lines, so that the adjacent-line prefetcher does not make neighbours share.
#[derive(Default)]
#[repr(align(128))]
struct Slot(AtomicU32);

impl Slot {
    fn has_joined(&self) -> bool {
        // Relaxed: the caller holds `writers`, which orders it (invariant 1).
        self.0.load(Relaxed) & JOINED != 0
    }
}

/// A reader/writer lock around a `T`, with a cache line for each reader; see the module's description. Alone on its lines: each reader
/// loads its first words, and its neighbours in memory may be written.
#[repr(align(128))]
pub struct PerCpuRwLock<T> {
    slots: PerCpu<Slot>,
    /// Held by a writer for its whole section, and by a slot that joins.
    writers: SpinLock<()>,
    data: UnsafeCell<T>,
}

// SAFETY: by invariants 2 and 3 the data is shared by readers (`T: Sync`) or reached by one writer, which may take the
// `T` out (`T: Send`).
unsafe impl<T: Send + Sync> Sync for PerCpuRwLock<T> {}

impl<T> PerCpuRwLock<T> {
    /// Returns a free lock around `data`.
    #[must_use]
    pub fn new(data: T) -> Self {
        Self { slots: PerCpu::sized(Slot::default, true), writers: SpinLock::new(()), data: UnsafeCell::new(data) }
    }

    /// Comes in as a reader, spinning while a writer is in. Sections of one thread nest.
    ///
    /// # Panics
    /// With half a billion readers in one thread, which only forgotten guards can be.
    #[inline]
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn read(&self) -> PerCpuReadGuard<'_, T> {
        let _scope = scope(Tag::RwLock);
        let slot = self.slots.this();
        // ORDERING: Acquire pairs with the Release in `PerCpuWriteGuard::drop`: this section follows the last writer's.
        if let Err(seen) = slot.0.compare_exchange(JOINED, JOINED + READER, Acquire, Relaxed) {
            self.read_slow(slot, seen);
        }
        PerCpuReadGuard { slot, data: &self.data, not_send: PhantomData }
    }

    /// Comes in through a slot that holds `seen`, which is not `JOINED` alone.
    #[cold]
    #[inline(never)]
    fn read_slow(&self, slot: &Slot, mut seen: u32) {
        loop {
            assert!(seen & FULL == 0, "half a billion readers");
            if seen >= READER || seen == JOINED {
                // ORDERING: Acquire pairs with the Release in `PerCpuWriteGuard::drop`, as in `read`.
                match slot.0.compare_exchange(seen, seen + READER, Acquire, Relaxed) {
                    Ok(_) => return,
                    Err(now) => seen = now,
                }
                continue;
            }
            lockstat::contended(self);
            if seen & JOINED == 0 {
                let _no_writer = self.writers.lock();
                // Relaxed: for writers, which the lock orders.
                slot.0.fetch_or(JOINED, Relaxed);
            }
            // Relaxed: only waits; the exchange orders.
            spin_until(|| slot.0.load(Relaxed) & WRITER == 0);
            seen = slot.0.load(Relaxed);
        }
    }

    /// Comes in as the writer, spinning: one at a time, and with no reader. A thread that reads already deadlocks.
    #[must_use = "the lock is released when the guard is dropped"]
    pub fn write(&self) -> PerCpuWriteGuard<'_, T> {
        let _scope = scope(Tag::RwLock);
        let writers = self.writers.lock();
        for slot in self.joined() {
            // Relaxed: only stops readers; the load below orders.
            slot.0.fetch_or(WRITER, Relaxed);
            // ORDERING: Acquire pairs with the Release in `PerCpuReadGuard::drop`: this section follows all readers'.
            spin_until(|| slot.0.load(Acquire) < READER);
        }
        lockstat::acquired(self);
        PerCpuWriteGuard { lock: self, _writers: writers }
    }

    /// Returns the slots that writers take, for the holder of `writers`.
    fn joined(&self) -> impl Iterator<Item = &Slot> {
        self.slots.iter().filter(|slot| slot.has_joined())
    }
}

/// The guard of a [`PerCpuRwLock`] held for reading; its drop, also during a panic, releases the
/// lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct PerCpuReadGuard<'a, T> {
    /// The slot that was taken; its index may have another owner when the guard is dropped.
    slot: &'a Slot,
    data: &'a UnsafeCell<T>,
    /// The thread that took a spinning lock releases it.
    not_send: PhantomData<*const ()>,
}

// SAFETY: a shared guard lends `&T` only.
unsafe impl<T: Sync> Sync for PerCpuReadGuard<'_, T> {}

impl<T> Deref for PerCpuReadGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 3: while this guard's share is in its slot no writer is in.
        self.data.with(|data| unsafe { &*data })
    }
}

impl<T> Drop for PerCpuReadGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // ORDERING: Release pairs with the Acquire in `write`: the next writer's section follows this one.
        self.slot.0.fetch_sub(READER, Release);
    }
}

/// The guard of a [`PerCpuRwLock`] held for writing; its drop, also during a panic, releases the
/// lock.
#[must_use = "the lock is released when the guard is dropped"]
pub struct PerCpuWriteGuard<'a, T> {
    lock: &'a PerCpuRwLock<T>,
    /// Released after the slots; makes the guard `!Send`.
    _writers: SpinLockGuard<'a, ()>,
}

// SAFETY: a shared guard lends `&T` only.
unsafe impl<T: Sync> Sync for PerCpuWriteGuard<'_, T> {}

impl<T> Deref for PerCpuWriteGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: invariant 3: no reader and no other writer is in, and this guard is only shared here.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T> DerefMut for PerCpuWriteGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: invariant 3: no reader and no other writer is in, and this guard is borrowed alone.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T> Drop for PerCpuWriteGuard<'_, T> {
    fn drop(&mut self) {
        lockstat::released(self.lock);
        for slot in self.lock.joined() {
            // ORDERING: Release pairs with the Acquire in `read` and that in `read_slow`: the next reader's section
            // follows this one.
            slot.0.store(JOINED, Release);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuReadGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: fmt::Debug> fmt::Debug for PerCpuWriteGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T> fmt::Debug for PerCpuRwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerCpuRwLock").field("slots", &self.slots).finish_non_exhaustive()
    }
}
