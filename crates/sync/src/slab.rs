//! A type-stable slab: memory that, once it holds a `T`, holds a `T` until the slab is dropped.
//!
//! # What it is
//! An allocator of one type for structures that lock-free readers walk (`SLAB_TYPESAFE_BY_RCU` in Linux). A freed item
//! may be handed out again at once, without a grace period, and a reader that is still on it reads a valid `T` of
//! another identity. So a `&T` never dangles while the slab lives, whatever the readers do; to notice the change of
//! identity they need their own protocol (a sequence count that is never reset, a check of the chain's end). Reuse
//! without a grace period keeps the working set hot and the memory bounded: nothing waits for readers. A clock can go
//! round all items ([`Slab::scan`]), and their number can be limited ([`Slab::try_alloc`]).
//!
//! # Layout
//! An object has two parts: the *item* `T`, which readers walk over, and its *side* `T::Side`, the rest. A chunk is
//! 2 MiB at a multiple of 2 MiB: first all items, side by side, then all sides. So the memory that readers walk over is
//! dense (64 dentries to a page of 4 KiB instead of 16), and the address of either part gives that of the other.
//!
//! # What it is not
//! A general allocator: items are never moved, and neither they nor their chunks are freed before the slab is dropped.
//!
//! # How it is locked
//! Each CPU index has a magazine of free items that only its owner touches (plain loads and stores). Magazines trade
//! whole batches with the depot, which is behind a [`Mutex`]. Under that lock a batch of fresh memory is only reserved;
//! the thread that reserved it writes it without the lock. A thread that visits all items takes the lock once, to read
//! how many are reserved, and skips batches that are not written yet.
//!
//! # Invariants
//! 1. Every item ever handed out lies in a chunk on `Depot::chunks`, was written by [`Item::vacant`] with its side
//!    before it was first handed out, and neither is moved or dropped before the slab's own drop.
//! 2. Only the owner of a magazine's CPU index writes the magazine and its links; `prim::cpu` orders owners.
//! 3. `Depot::reserved` grows by `BATCH`. The thread that grew it owns the batch at the old value: only it writes the
//!    batch's objects, and then its flag in `Chunk::written`. A thread that sees the flag set finds the objects. (If
//!    [`Item::vacant`] panics the flag stays unset and the batch is lost.)
//! 4. A chunk is made by `Depot::reserve`, and stays until the slab's drop. All chunks but the last are fully reserved.
//! 5. An item is on at most one free list, and on one only while it has no user: the contracts of [`Slab::free`] and
//!    [`Item`]. Free lists hold items of their slab only.
//!
//! # Where it comes from
//! J. Bonwick and J. Adams, "Magazines and Vmem" (USENIX 2001); `Documentation/RCU/rculist_nulls.rst` in Linux for the
//! reuse rule; F. J. Corbato, "A Paging Experiment with the Multics System" (1968) for the clock.
//!
//! # Limitations
//! A chunk is taken from the system under the depot's lock, once in some 8000 items of 256 bytes.

mod chunk;

pub use chunk::{item, side, side_address};

use crate::mutex::Mutex;
use chunk::{CHUNK, Chunk, used};
use core::mem::size_of;
use core::ptr::NonNull;
use prim::PerCpu;
use prim::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Items that are taken from fresh memory at once, and half of the most that a magazine holds.
const BATCH: usize = 32;

/// What a type needs to live in a [`Slab`].
///
/// # Safety
/// For one side [`Item::free_link`] always returns the same word, a different one for each side, which lives as long as
/// the side; and while the item is free nothing but the slab reads or writes that word.
///
/// ```
/// # use core::sync::atomic::AtomicPtr;
/// # use lightfoot_sync::{Item, Slab};
/// struct Entry([u64; 4]);
///
/// // SAFETY: the side is the word, and only the slab uses it.
/// unsafe impl Item for Entry {
///     type Side = AtomicPtr<Self>;
///     fn vacant() -> (Self, Self::Side) {
///         (Self([0; 4]), AtomicPtr::default())
///     }
///     fn free_link(side: &Self::Side) -> &AtomicPtr<Self> {
///         side
///     }
/// }
///
/// let slab = Slab::<Entry>::new();
/// let entry = slab.alloc();
/// // SAFETY: it came from this slab, and is returned once.
/// unsafe { slab.free(entry) };
/// ```
///
/// An item cannot be returned, nor the trait be implemented, without `unsafe`:
///
/// ```compile_fail
/// # use core::sync::atomic::AtomicPtr;
/// # use lightfoot_sync::{Item, Slab};
/// # struct Entry([u64; 4]);
/// # unsafe impl Item for Entry {
/// #     type Side = AtomicPtr<Self>;
/// #     fn vacant() -> (Self, Self::Side) {
/// #         (Self([0; 4]), AtomicPtr::default())
/// #     }
/// #     fn free_link(side: &Self::Side) -> &AtomicPtr<Self> {
/// #         side
/// #     }
/// # }
/// let slab = Slab::<Entry>::new();
/// let entry = slab.alloc();
/// slab.free(entry);
/// ```
///
/// ```compile_fail
/// # use core::sync::atomic::AtomicPtr;
/// # use lightfoot_sync::{Item, Slab};
/// # struct Entry([u64; 4]);
/// impl Item for Entry {
///     type Side = AtomicPtr<Self>;
///     fn vacant() -> (Self, Self::Side) {
///         (Self([0; 4]), AtomicPtr::default())
///     }
///     fn free_link(side: &Self::Side) -> &AtomicPtr<Self> {
///         side
///     }
/// }
/// ```
///
/// A side that would not be aligned behind the items is not compiled:
///
/// ```compile_fail
/// # use core::sync::atomic::AtomicPtr;
/// # use lightfoot_sync::{Item, Slab};
/// struct Entry([u64; 33]);
/// #[repr(align(64))]
/// struct Rest(AtomicPtr<Entry>);
///
/// // SAFETY: the side has one word, and only the slab uses it.
/// unsafe impl Item for Entry {
///     type Side = Rest;
///     fn vacant() -> (Self, Rest) {
///         (Self([0; 33]), Rest(AtomicPtr::default()))
///     }
///     fn free_link(rest: &Rest) -> &AtomicPtr<Self> {
///         &rest.0
///     }
/// }
///
/// Slab::<Entry>::new().alloc();
/// ```
pub unsafe trait Item: Send + Sync + Sized {
    /// The object's other part.
    type Side: Send + Sync;

    /// An object without users: the content of the memory before its first use.
    fn vacant() -> (Self, Self::Side);

    /// The word that links the item into a free list while it is free. The slab owns it then, and only then.
    fn free_link(side: &Self::Side) -> &AtomicPtr<Self>;
}

/// See the [module documentation](self).
pub struct Slab<T: Item> {
    magazines: PerCpu<Magazine<T>>,
    /// Items in a magazine from which on half of them go to the depot. Only the limit changes it.
    full: AtomicUsize,
    depot: Apart<Mutex<Depot<T>>>,
}

/// On separate cache lines, so that the lock does not share one with the words that every `free` loads.
#[repr(align(128))]
struct Apart<T>(T);

/// Free items of one CPU index: a list through [`Item::free_link`].
#[repr(align(128))]
struct Magazine<T> {
    head: AtomicPtr<T>,
    len: AtomicUsize,
}

/// A list of free items.
struct Batch<T> {
    head: NonNull<T>,
    len: usize,
}

struct Depot<T: Item> {
    batches: Vec<Batch<T>>,
    /// Each has its own `Box`, so that a thread can refer to it without the lock.
    chunks: Vec<NonNull<Chunk<T>>>,
    /// Items reserved so far, in the order of the chunks: a multiple of `BATCH`.
    reserved: usize,
    /// How far `reserved` may grow for `try_alloc`.
    limit: usize,
    /// Chunks from this one on are requested as huge pages.
    huge_from: usize,
}

/// The hand of a clock that goes round the items of one slab; see [`Slab::scan`].
#[derive(Debug, Default)]
pub struct SlabCursor(AtomicUsize);

impl SlabCursor {
    /// A hand before the first item.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

// SAFETY: invariants 1 and 2: the raw pointers are links between items that the slab owns, and `T: Send + Sync`.
unsafe impl<T: Item> Send for Slab<T> {}
// SAFETY: as above; the depot is behind its mutex, a magazine is its owner's.
unsafe impl<T: Item> Sync for Slab<T> {}

impl<T: Item> Slab<T> {
    /// An empty slab, whose chunks are requested as huge pages. Takes no memory for items yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_huge_from(0)
    }

    /// As [`Slab::new`], but the first chunk is not requested as a huge page, so that a small instance stays small.
    #[must_use]
    pub fn small() -> Self {
        Self::with_huge_from(1)
    }

    /// As [`Slab::new`], with a [limit](Slab::set_limit) of `items`.
    #[must_use]
    pub fn with_limit(items: usize) -> Self {
        let slab = Self::new();
        slab.set_limit(items);
        slab
    }

    fn with_huge_from(huge_from: usize) -> Self {
        let magazines = if huge_from == 0 { PerCpu::new } else { PerCpu::small };
        let depot = Depot { batches: Vec::new(), chunks: Vec::new(), reserved: 0, limit: usize::MAX, huge_from };
        Self {
            magazines: magazines(|| Magazine { head: AtomicPtr::new(core::ptr::null_mut()), len: AtomicUsize::new(0) }),
            full: AtomicUsize::new(2 * BATCH),
            depot: Apart(Mutex::new(depot)),
        }
    }

    /// Sets how many items there may be, free or not, before [`Slab::try_alloc`] refuses: `items`, rounded up to a
    /// multiple of 32; `usize::MAX` for no limit. Items above the limit stay. From now on magazines keep half as many
    /// items as without a limit (31 instead of 63).
    pub fn set_limit(&self, items: usize) {
        let mut depot = self.depot.0.lock();
        depot.limit = items.checked_next_multiple_of(BATCH).unwrap_or(usize::MAX);
        // Relaxed: it may be seen late. Stored under the lock, so that it changes with the limit.
        self.full.store(if items == usize::MAX { 2 * BATCH } else { BATCH }, Relaxed);
    }

    /// Takes an item out of the slab: a new one as [`Item::vacant`] made it, a used one as its last user left it.
    /// Ignores the limit, though the item counts towards it.
    #[inline]
    pub fn alloc(&self) -> &T {
        let magazine = self.magazines.this();
        if magazine.len.load(Relaxed) == 0 {
            self.refill(magazine, false);
        }
        // SAFETY: invariant 1; a magazine that is not empty has an item at its head.
        unsafe { magazine.pop() }
    }

    /// As [`Slab::alloc`], within the [limit](Slab::set_limit): `None` if neither the calling thread's magazine nor the
    /// depot has a free item and the limit is reached. Free items in other threads' magazines (up to 31 each) do not
    /// help.
    #[inline]
    pub fn try_alloc(&self) -> Option<&T> {
        let magazine = self.magazines.this();
        if magazine.len.load(Relaxed) == 0 && !self.refill(magazine, true) {
            return None;
        }
        // SAFETY: invariant 1; a magazine that is not empty has an item at its head.
        Some(unsafe { magazine.pop() })
    }

    /// Returns `item` to the slab, which may hand it out again at once: a thread that still reads it must check its
    /// identity.
    ///
    /// # Safety
    /// The item came from [`Slab::alloc`] or [`Slab::try_alloc`] of this slab, and was not freed since. The caller was
    /// its only user: other threads may still read it, as the type allows, but not free it.
    #[inline]
    pub unsafe fn free(&self, item: &T) {
        let magazine = self.magazines.this();
        // Relaxed: invariant 2: this thread owns the magazine, and so a free item's link.
        link_of(item).store(magazine.head.load(Relaxed), Relaxed);
        magazine.head.store(core::ptr::from_ref(item).cast_mut(), Relaxed);
        let len = magazine.len.load(Relaxed) + 1;
        magazine.len.store(len, Relaxed);
        // Relaxed: see `set_limit`.
        if len >= self.full.load(Relaxed) {
            self.flush(magazine);
        }
    }

    /// Bytes of memory taken from the system for items, used or not.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.depot.0.lock().chunks.len() * CHUNK
    }

    /// Bytes of all objects handed out or ready to be: the part of the reserved memory that was touched.
    #[must_use]
    pub fn touched_bytes(&self) -> usize {
        self.depot.0.lock().reserved * (size_of::<T>() + size_of::<T::Side>())
    }

    /// Calls `f` with every item that was handed out or is ready to be.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a T)) {
        let (chunks, reserved) = {
            let depot = self.depot.0.lock();
            (depot.chunks.clone(), depot.reserved)
        };
        for first in (0..reserved).step_by(BATCH) {
            // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
            let chunk: &'a Chunk<T> = unsafe { chunks[first / const { used::<T>() }].as_ref() };
            chunk.items(first % const { used::<T>() }, BATCH).into_iter().flatten().for_each(&mut f);
        }
    }

    /// Calls `f` with the next `count` items behind `hand`, in the order in which they were made and from the last on
    /// to the first, and moves the hand behind them. Visits none twice in one call, so fewer than `count` if there are
    /// fewer. Returns how many it visited.
    ///
    /// Threads that use one hand at once visit different items. No lock is held while `f` runs.
    pub fn scan<'a>(&'a self, hand: &SlabCursor, count: usize, mut f: impl FnMut(&'a T)) -> usize {
        let spans: Vec<&'a [T]> = self.next_spans(hand, count);
        spans.iter().copied().flatten().for_each(&mut f);
        spans.iter().map(|span| span.len()).sum()
    }

    /// The items that `scan` must visit, in runs of at most a batch.
    fn next_spans<'a>(&'a self, hand: &SlabCursor, count: usize) -> Vec<&'a [T]> {
        let depot = self.depot.0.lock();
        let total = depot.reserved;
        let mut spans = Vec::with_capacity(count.min(total).div_ceil(BATCH) + 1);
        // Relaxed: under the lock. (A hand may have gone round a larger slab.)
        let mut at = hand.0.load(Relaxed).checked_rem(total).unwrap_or(0);
        let (mut seen, mut left) = (0, count);
        while seen < total && left > 0 {
            let len = (BATCH - at % BATCH).min(left).min(total - seen);
            // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
            let chunk: &'a Chunk<T> = unsafe { depot.chunks[at / const { used::<T>() }].as_ref() };
            if let Some(items) = chunk.items(at % const { used::<T>() }, len) {
                spans.push(items);
                left -= len;
            }
            (seen, at) = (seen + len, (at + len) % total);
        }
        hand.0.store(at, Relaxed);
        spans
    }

    /// Moves one batch from the depot, or from fresh memory, into an empty magazine. `false`, with nothing done, if
    /// there is none and, with `limited`, the limit is reached.
    #[cold]
    fn refill(&self, magazine: &Magazine<T>, limited: bool) -> bool {
        let mut depot = self.depot.0.lock();
        let batch = if let Some(batch) = depot.batches.pop() {
            batch
        } else if let Some((chunk, first)) = depot.reserve(limited) {
            drop(depot);
            // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
            let chunk = unsafe { chunk.as_ref() };
            // SAFETY: reserved above, and written here only.
            Batch { head: unsafe { chunk.write_batch(first) }, len: BATCH }
        } else {
            return false;
        };
        magazine.head.store(batch.head.as_ptr(), Relaxed);
        magazine.len.store(batch.len, Relaxed);
        true
    }

    /// Moves half of a full magazine to the depot.
    #[cold]
    fn flush(&self, magazine: &Magazine<T>) {
        let held = magazine.len.load(Relaxed);
        let len = held / 2;
        let Some(head) = NonNull::new(magazine.head.load(Relaxed)) else { return };
        let mut last = head.as_ptr();
        for _ in 1..len {
            // SAFETY: invariant 1, and the magazine holds more than `len` items.
            last = link_of(unsafe { &*last }).load(Relaxed);
        }
        // SAFETY: as above.
        let rest = link_of(unsafe { &*last }).load(Relaxed);
        magazine.head.store(rest, Relaxed);
        magazine.len.store(held - len, Relaxed);
        self.depot.0.lock().batches.push(Batch { head, len });
    }
}

impl<T: Item> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item> core::fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slab").field("reserved_bytes", &self.reserved_bytes()).finish_non_exhaustive()
    }
}

impl<T: Item> Magazine<T> {
    /// # Safety
    /// The magazine is the calling thread's and not empty; its items lie in a slab that outlives the borrow.
    #[inline(always)]
    unsafe fn pop<'a>(&self) -> &'a T {
        // SAFETY: this function's contract.
        let item = unsafe { &*self.head.load(Relaxed) };
        // Relaxed: invariant 2: this thread owns the magazine.
        self.head.store(link_of(item).load(Relaxed), Relaxed);
        self.len.store(self.len.load(Relaxed) - 1, Relaxed);
        item
    }
}

impl<T: Item> Depot<T> {
    /// Reserves a batch of memory never used before, for the caller to write. Returns its chunk, and its first index
    /// there. With `limited`, only if the limit allows it.
    fn reserve(&mut self, limited: bool) -> Option<(NonNull<Chunk<T>>, usize)> {
        if limited && self.reserved >= self.limit {
            return None;
        }
        let first = self.reserved % const { used::<T>() };
        if first == 0 {
            let chunk = Box::new(Chunk::new(self.chunks.len() >= self.huge_from));
            self.chunks.push(NonNull::from(Box::leak(chunk)));
        }
        self.reserved += BATCH;
        self.chunks.last().map(|&chunk| (chunk, first))
    }
}

impl<T: Item> Drop for Depot<T> {
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            // SAFETY: invariant 4: it came from a box, and the slab is being dropped, so it has no user.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}

/// The word that links a free item of a slab.
#[inline(always)]
fn link_of<T: Item>(item: &T) -> &AtomicPtr<T> {
    // SAFETY: every caller's item lies in the slab it works on (invariant 5).
    T::free_link(unsafe { side(item) })
}

#[cfg(all(test, not(loom)))]
mod tests;
