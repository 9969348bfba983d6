//! A type-stable slab: memory that, once it holds a `T`, holds a `T` until the slab is dropped.
//!
//! # What it is
//! An allocator of one type for structures that lock-free readers walk (`SLAB_TYPESAFE_BY_RCU` in Linux). A freed item
//! may be handed out again at once, without a grace period, and a reader that is still on it reads a valid `T` of
//! another identity. So a `&T` never dangles while the slab lives, whatever the readers do; to notice the change of
//! identity they need their own protocol (a sequence count that is never reset, a check of the chain's end). Reuse
//! without a grace period keeps the working set hot. A clock can go round all items ([`Slab::scan`]), and their number
//! can be limited ([`Slab::try_alloc`]).
//!
//! # Layout
//! An object has two parts: the *item* `T`, which readers walk over, and its *side* `T::Side`, the
//! rest. A chunk is 2 MiB at a multiple of 2 MiB: first all items, side by side, then all sides. So
//! the memory that readers walk over is dense (64 dentries to a page of 4 KiB instead of 16), and
//! the address of either part gives the address of the other.
//!
//! # What it is not
//! A general allocator: items are never moved, and the addresses of chunks stay taken until the slab is dropped.
//!
//! # How it is locked
//! Each CPU index has a magazine of free items that only its owner touches (plain loads and stores). Magazines trade
//! items with the depot, which is behind a [`Mutex`]. Under that lock parts of fresh memory are only reserved; the
//! thread that reserved them writes them without the lock. A thread that visits all items takes the lock once, to read
//! how many are reserved, and skips parts that are not written yet.
//!
//! A magazine trades 32 items at a time; the first refill of a slab takes 16 (`PART`). After threads often waited for the depot, all magazines
//! trade twice as many, up to 256, if the slab has no limit.
//!
//! # Return of memory
//! The depot has one bit for each item that is free there, in words of `GROUP` items. A slab without a limit, of a
//! type that allows it ([`Item::RETURNS`]), returns memory to the system. It returns whole groups that are free, and keeps
//! one for each sixteen groups in use, and at least `KEPT`. The steps:
//!
//! 1. Under the lock, a thread that frees takes at most 64 groups out of the depot. Now no thread can allocate
//!    from them.
//! 2. A grace period passes ([`RcuDomain::defer`]). It waits for the readers that found the item
//!    before it was freed, for readers that would follow the item's chain link, and for readers
//!    between the two steps of a [stray](crate::LockRef).
//! 3. The callback notes the highest count of these items ([`Item::count`]) and discards their
//!    pages. The pages now hold zeros, and the type guarantees that zeros are a vacant item. So the
//!    memory still holds `T`s, and a thread that visits all items, or has a stale address, reads
//!    vacant items.
//! 4. Under the lock the groups become *bare*: free, and the last ones to be taken. A thread that
//!    refills a magazine raises the counts of the items above the noted one, so that no count
//!    decreases from one user of an item to the next. (In between a bare item has the count 0,
//!    which an item that was used and freed never has.)
//!
//! While a reader stays in its section, at most half of all groups wait for it; the others can be used again at once.
//!
//! A thread that is not a user of an item, and did not find the item in its current read section,
//! must not write to the item, except by an operation that fails on a vacant item, such as
//! [`LockRef::try_kill`](crate::LockRef).
//!
//! # Invariants
//! 1. Every item ever handed out is in a chunk on `Depot::chunks`. [`Item::vacant`] wrote the item
//!    and its side before the item was first handed out. Item and side are neither moved nor
//!    dropped before the slab's own drop. Zeros that replace a free item are a value of its type.
//! 2. Only the owner of a magazine's CPU index writes the magazine and its links; `prim::cpu` orders owners.
//! 3. `Depot::reserved` grows by multiples of `PART`. The thread that made it grow owns the parts of items from
//!    the old value on: only this thread writes a part's objects, and then the part's flag in
//!    `Chunk::written`. A thread that sees the flag set finds the objects. (If [`Item::vacant`]
//!    panics the flag stays unset and the part is lost.)
//! 4. A chunk is made by `Depot::reserve`, and stays until the depot's drop. All chunks but the last are fully reserved.
//! 5. An item is in at most one magazine, or has its bit set in the depot, or is in a group that returns; and only
//!    while it has no user: the contracts of [`Slab::free`] and [`Item`]. A slab has only its own free items.
//!
//! # Where it comes from
//! J. Bonwick and J. Adams, "Magazines and Vmem" (USENIX 2001); `Documentation/RCU/rculist_nulls.rst` in Linux for the
//! reuse rule; F. J. Corbato, "A Paging Experiment with the Multics System" (1968) for the clock; E. Berger et al.,
//! "Hoard" (ASPLOS 2000) for a limit of free memory relative to that in use. Return under a type-stable reader is new.
//!
//! # Limitations
//! A chunk is taken from the system under the depot's lock, once in some 8000 items of 256 bytes.
//!
//! An item in a magazine keeps the memory of its group: at most 63 groups for each CPU index (511 where threads often
//! wait for the depot), in practice a few, since a magazine keeps the items that were freed last. Where a group is not a multiple of the system's page size (pages of
//! 16 or 64 KiB), nothing returns.

mod chunk;
mod depot;
mod free;
mod magazine;

pub use chunk::{item, side, side_address};

use crate::mutex::Mutex;
use crate::rcu::RcuDomain;
use chunk::{Chunk, used};
use core::mem::size_of;
use depot::Depot;
use magazine::{Magazine, Span};
use prim::PerCpu;
use prim::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use prim::shared::Arc;

/// Half of the most that a magazine holds at first: so many items it takes at a time, but for the first ones of a slab.
const BATCH: usize = if cfg!(loom) { 2 } else { 32 };

/// Items of fresh memory that are written together. The first magazine of a slab takes one part, so that a slab of few items
/// takes little memory: of dentries, a page of items and one of sides.
const PART: usize = BATCH / 2;

/// Half of the most that a magazine ever holds.
const MAX_BATCH: usize = if cfg!(loom) { 4 } else { 256 };

/// Items that an index claims at a time for [`Slab::step`].
const SPAN: usize = 8 * BATCH;

/// The requirements on a type that lives in a [`Slab`].
///
/// # Safety
/// For one side [`Item::free_link`] always returns the same word, a different one for each side, which lives as long as
/// the side; and while the item is free nothing but the slab reads or writes that word.
///
/// With [`Item::RETURNS`]:
/// - Item and side consist of atomics.
/// - Bytes of zero are a valid item and side, with the meaning of [`Item::vacant`].
/// - A free item and its side own nothing.
///
/// ```
/// # use core::sync::atomic::AtomicPtr;
/// # use lightfoot_sync::{Item, Slab, rcu::RcuDomain};
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
/// let (slab, domain) = (Slab::<Entry>::new(), RcuDomain::new());
/// let entry = slab.alloc();
/// // SAFETY: it came from this slab, is returned once, and has no readers.
/// unsafe { slab.free(&domain, entry) };
/// ```
///
/// An item cannot be returned, nor the trait be implemented, without `unsafe`:
///
/// ```compile_fail
/// # use core::sync::atomic::AtomicPtr;
/// # use lightfoot_sync::{Item, Slab, rcu::RcuDomain};
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
/// let (slab, domain) = (Slab::<Entry>::new(), RcuDomain::new());
/// let entry = slab.alloc();
/// slab.free(&domain, entry);
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
pub unsafe trait Item: Send + Sync + Sized + 'static {
    /// The object's other part.
    type Side: Send + Sync + 'static;

    /// Whether the memory of free items may go back to the system; see the trait's safety section.
    const RETURNS: bool = false;

    /// Returns an object without users: the content of the memory before its first use.
    fn vacant() -> (Self, Self::Side);

    /// Returns the word that links the item into a free list while it is free. The slab owns it
    /// then, and only then.
    fn free_link(side: &Self::Side) -> &AtomicPtr<Self>;

    /// Returns the count by which readers notice that the item has another user; 0 if it has none.
    fn count(&self) -> u32 {
        0
    }

    /// Raises that count above `_count`, unless it is. The item is free.
    fn raise_above(&self, _count: u32) {}

    /// Stores zeros to all words, as the return of the memory does. (The bytes of a loom atomic are not its value. A
    /// type that does nothing here is one whose memory the system did not take.)
    #[cfg(loom)]
    fn clear(&self, _side: &Self::Side) {}
}

/// See the [module documentation](self).
pub struct Slab<T: Item> {
    magazines: PerCpu<Magazine<T>>,
    /// Items in a magazine from which on half of them go to the depot. It changes under the depot's lock, with the limit,
    /// and when threads wait for that lock.
    full: AtomicUsize,
    /// Shared with callbacks that return memory.
    depot: Arc<Apart<Mutex<Depot<T>>>>,
}

/// On separate cache lines, so that the lock does not share one with the words that every `free` loads.
#[repr(align(128))]
struct Apart<T>(T);

/// The hand of a clock that passes over the items of one slab; see [`Slab::scan`].
#[derive(Debug, Default)]
pub struct SlabCursor(AtomicUsize);

impl<T: Item> Slab<T> {
    /// Returns an empty slab, whose chunks are requested as huge pages. Takes no memory for items
    /// yet.
    #[must_use]
    pub fn new() -> Self {
        Self::with_huge_from(0)
    }

    /// As [`Slab::new`], but the first chunk is not requested as a huge page, so that a small instance stays small.
    #[must_use]
    pub fn small() -> Self {
        Self::with_huge_from(1)
    }

    fn with_huge_from(huge_from: usize) -> Self {
        Self {
            magazines: PerCpu::sized(Magazine::default, huge_from > 0),
            full: AtomicUsize::new(2 * BATCH),
            depot: Arc::new(Apart(Mutex::new(Depot::new(huge_from)))),
        }
    }

    /// Sets the number of items, free or not, from which on [`Slab::try_alloc`] refuses: `items`,
    /// rounded up to a multiple of 32; `usize::MAX` for no limit. Items above the limit stay. With
    /// a limit magazines keep at most 31 items, without a limit 63 and more.
    pub fn set_limit(&self, items: usize) {
        let mut depot = self.depot.0.lock();
        depot.limit = items.checked_next_multiple_of(BATCH).unwrap_or(usize::MAX);
        // Relaxed: it may be seen late. Stored under the lock, so that it changes with the limit.
        self.full.store(if items == usize::MAX { 2 * BATCH } else { BATCH }, Relaxed);
    }

    /// Takes an item out of the slab: a new item as [`Item::vacant`] made it, a used item as its
    /// last user left it. Ignores the limit, though the item counts towards the limit.
    #[inline(always)]
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
    /// identity. Its memory may go back to the system after a grace period of `domain`.
    ///
    /// # Safety
    /// The item came from [`Slab::alloc`] or [`Slab::try_alloc`] of this slab, and was not freed
    /// since. The caller was its only user: other threads may still read it, as the type allows,
    /// but not free it. They need the item's former value only until the end of a read section of
    /// `domain` that is open at this call.
    #[inline(always)]
    pub unsafe fn free(&self, domain: &RcuDomain, item: &T) {
        let magazine = self.magazines.this();
        // Relaxed: invariant 2: this thread owns the magazine, and so a free item's link.
        link_of(item).store(magazine.head.load(Relaxed), Relaxed);
        magazine.head.store(core::ptr::from_ref(item).cast_mut(), Relaxed);
        let len = magazine.len.load(Relaxed) + 1;
        magazine.len.store(len, Relaxed);
        // Relaxed: see `set_limit`.
        if len >= self.full.load(Relaxed) {
            self.flush(domain, magazine);
        }
    }

    /// Bytes of all objects handed out or ready to be, without those whose memory was returned.
    #[must_use]
    pub fn touched_bytes(&self) -> usize {
        let depot = self.depot.0.lock();
        (depot.reserved - depot.free.bare_items()) * (size_of::<T>() + size_of::<T::Side>())
    }

    /// Calls `f` with every item that was handed out or is ready to be.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a T)) {
        let (chunks, reserved) = {
            let depot = self.depot.0.lock();
            (depot.chunks.iter().map(|place| place.chunk).collect::<Vec<_>>(), depot.reserved)
        };
        for first in (0..reserved).step_by(PART) {
            // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
            let chunk: &'a Chunk<T> = unsafe { chunks[first / const { used::<T>() }].as_ref() };
            chunk.items(first % const { used::<T>() }, PART).into_iter().flatten().for_each(&mut f);
        }
    }

    /// Returns the number of an item of this slab, by which [`Slab::numbered`] finds it. It never
    /// changes.
    ///
    /// # Panics
    /// If the item is not one of this slab.
    #[must_use]
    pub fn number_of(&self, item: &T) -> usize {
        self.depot.0.lock().number_of(item)
    }

    /// Returns the item with this number, used or free: `None` if there is none yet.
    #[must_use]
    pub fn numbered(&self, number: usize) -> Option<&T> {
        let chunk = {
            let depot = self.depot.0.lock();
            depot.chunks.get(number / const { used::<T>() }).filter(|_| number < depot.reserved)?.chunk
        };
        // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
        let chunk: &Chunk<T> = unsafe { chunk.as_ref() };
        chunk.items(number % const { used::<T>() }, 1)?.first()
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

    /// As [`Slab::scan`], for few items at a time: a thread claims up to 256 items behind the hand
    /// at once. It visits them in this call and in the next calls with its CPU index. So threads
    /// seldom meet at the hand. Visits at least one item if there is one, and perhaps fewer than
    /// `count`.
    pub fn step<'a>(&'a self, hand: &SlabCursor, count: usize, f: impl FnMut(&'a T)) -> usize {
        let span = &self.magazines.this().span;
        // Relaxed, here and below: invariant 2: this thread owns the span.
        if span.at.load(Relaxed) == span.end.load(Relaxed) && !self.claim_span(span, hand) {
            return 0;
        }
        let at = span.at.load(Relaxed);
        let len = count.min(span.end.load(Relaxed) - at).min(PART - at % PART);
        // Before the calls, which may come here again.
        span.at.store(at + len, Relaxed);
        // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed, and the span is one of this slab.
        let chunk: &'a Chunk<T> = unsafe { &*span.chunk.load(Relaxed) };
        chunk.items(at, len).into_iter().flatten().for_each(f);
        len
    }

    /// Claims the next items behind the hand, up to the end of a chunk. `false`: there are none.
    #[cold]
    fn claim_span(&self, span: &Span<T>, hand: &SlabCursor) -> bool {
        let depot = self.depot.0.lock();
        let total = depot.reserved;
        // Relaxed: under the lock, as in `next_spans`.
        let Some(at) = hand.0.load(Relaxed).checked_rem(total) else { return false };
        let first = at % const { used::<T>() };
        let len = SPAN.min(const { used::<T>() } - first).min(total - at);
        hand.0.store((at + len) % total, Relaxed);
        span.chunk.store(depot.chunks[at / const { used::<T>() }].chunk.as_ptr(), Relaxed);
        span.at.store(first, Relaxed);
        span.end.store(first + len, Relaxed);
        true
    }

    /// Returns the items that `scan` must visit, in runs of at most a part.
    fn next_spans<'a>(&'a self, hand: &SlabCursor, count: usize) -> Vec<&'a [T]> {
        let depot = self.depot.0.lock();
        let total = depot.reserved;
        let mut spans = Vec::with_capacity(count.min(total).div_ceil(PART) + 1);
        // Relaxed: under the lock. (A hand may have passed over a larger slab.)
        let mut at = hand.0.load(Relaxed).checked_rem(total).unwrap_or(0);
        let (mut seen, mut left) = (0, count);
        while seen < total && left > 0 {
            let len = (PART - at % PART).min(left).min(total - seen);
            // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
            let chunk: &'a Chunk<T> = unsafe { depot.chunks[at / const { used::<T>() }].chunk.as_ref() };
            if let Some(items) = chunk.items(at % const { used::<T>() }, len) {
                spans.push(items);
                left -= len;
            }
            (seen, at) = (seen + len, (at + len) % total);
        }
        hand.0.store(at, Relaxed);
        spans
    }
}

impl<T: Item> Default for Slab<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Item> core::fmt::Debug for Slab<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Slab").field("touched_bytes", &self.touched_bytes()).finish_non_exhaustive()
    }
}

/// Returns the word that links a free item of a slab.
#[inline(always)]
fn link_of<T: Item>(item: &T) -> &AtomicPtr<T> {
    // SAFETY: every caller's item is in the slab that it works on (invariant 5).
    T::free_link(unsafe { side(item) })
}

#[cfg(all(test, not(loom)))]
mod tests;
