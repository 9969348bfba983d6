//! A type-stable slab: memory that, once it holds a `T`, holds a `T` until the slab is dropped.
//!
//! # What it is
//! An allocator of one type for structures that lock-free readers walk (`SLAB_TYPESAFE_BY_RCU` in Linux). A freed item
//! may be handed out again at once, without a grace period, and a reader that still stands on it reads a valid `T` of
//! another identity. So a `&T` never dangles while the slab lives, whatever the readers do; that they notice the change
//! of identity is their own protocol (a sequence count that is never reset, a check of the chain's end).
//! Reuse without a grace period keeps the working set hot and the memory bounded: nothing waits for readers.
//!
//! # Layout
//! An object has two parts: the *item* `T`, which readers walk over, and its *side* `T::Side`, the rest. A chunk is 2 MiB at a
//! multiple of 2 MiB: first all items, side by side, then all sides. So what readers walk over is dense (64 dentries to a page of
//! 4 KiB instead of 16), and from the address of either part follows that of the other.
//!
//! # What it is not
//! Not a general allocator: items are never moved, never dropped before the slab is, and chunks never go back to the
//! system before that.
//!
//! # How it is locked
//! Each CPU index has a magazine of free items that only its owner touches (plain loads and stores). Magazines trade
//! whole batches with the depot, which sits behind a [`Mutex`] that is taken once per `BATCH` items.
//!
//! # Invariants
//! 1. Every item ever handed out lies in a chunk on `Depot::chunks`, was written by [`Item::vacant`] with its side before
//!    it was first handed out, and neither is moved or dropped before the slab's own drop.
//! 2. A magazine and its links are written by the owner of its CPU index only; `prim::cpu` orders owners.
//!
//! # Where it comes from
//! J. Bonwick and J. Adams, "Magazines and Vmem" (USENIX 2001); `Documentation/RCU/rculist_nulls.rst` in Linux for the
//! reuse rule.

use crate::mutex::Mutex;
use core::mem::size_of;
use core::ptr::NonNull;
use prim::PerCpu;
use prim::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};

/// Items that a magazine trades with the depot at once.
const BATCH: usize = 32;

/// Size and alignment of a chunk: what the system can back by one huge page.
const CHUNK: usize = 2 << 20;

/// What a type needs to live in a [`Slab`].
pub trait Item: Send + Sync + Sized {
    /// The object's other part.
    type Side: Send + Sync;

    /// An object that nothing refers to: what the memory holds before its first use.
    fn vacant() -> (Self, Self::Side);

    /// The word that links the item into a free list while it is free. It is the slab's then and only then.
    fn free_link(side: &Self::Side) -> &AtomicPtr<Self>;
}

/// Where an address lies in its chunk.
#[inline(always)]
fn offset_in_chunk(address: usize) -> usize {
    address & (CHUNK - 1)
}

/// Objects in a chunk.
const fn capacity<T: Item>() -> usize {
    assert!(CHUNK.is_multiple_of(align_of::<T>()) && align_of::<T::Side>() <= size_of::<T>());
    CHUNK / (size_of::<T>() + size_of::<T::Side>())
}

/// The address of the side of the item at `item`: arithmetic alone, right for an address that is no item's too.
#[inline(always)]
#[must_use]
pub fn side_address<T: Item>(item: *const T) -> *const T::Side {
    let offset = offset_in_chunk(item as usize);
    let index = offset / size_of::<T>();
    item.wrapping_byte_sub(offset)
        .wrapping_byte_add(const { capacity::<T>() } * size_of::<T>() + index * size_of::<T::Side>())
        .cast()
}

/// The side of an item.
///
/// # Safety
/// `item` lies in a slab that outlives the borrow.
#[inline(always)]
#[must_use]
pub unsafe fn side<T: Item>(item: &T) -> &T::Side {
    // SAFETY: invariant 1: the side was written with the item.
    unsafe { &*side_address(item) }
}

/// The item of a side.
///
/// # Safety
/// `side` lies in a slab of `T` that outlives the borrow.
#[must_use]
pub unsafe fn item<T: Item>(side: &T::Side) -> &T {
    let side = core::ptr::from_ref(side);
    let offset = offset_in_chunk(side as usize);
    let index = (offset - const { capacity::<T>() } * size_of::<T>()) / size_of::<T::Side>();
    let item = side.wrapping_byte_sub(offset).cast::<T>().wrapping_add(index);
    // SAFETY: invariant 1: the item was written with the side.
    unsafe { &*item }
}

/// See the [module documentation](self).
pub struct Slab<T: Item> {
    magazines: PerCpu<Magazine<T>>,
    depot: Mutex<Depot<T>>,
}

/// Free items of one CPU index: a list through [`Item::free_link`].
#[repr(align(128))]
struct Magazine<T> {
    head: AtomicPtr<T>,
    len: AtomicUsize,
}

struct Depot<T: Item> {
    /// Heads of lists of exactly `BATCH` free items.
    batches: Vec<NonNull<T>>,
    chunks: Vec<Chunk<T>>,
}

struct Chunk<T: Item> {
    start: NonNull<T>,
    /// Objects written so far; the rest of the chunk is raw memory.
    carved: usize,
}

// SAFETY: invariants 1 and 2: the raw pointers are links between items that the slab owns, and `T: Send + Sync`.
unsafe impl<T: Item> Send for Slab<T> {}
// SAFETY: as above; the depot is behind its mutex, a magazine is its owner's.
unsafe impl<T: Item> Sync for Slab<T> {}

impl<T: Item> Slab<T> {
    /// An empty slab. Takes no memory for items yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            magazines: PerCpu::new(|| Magazine {
                head: AtomicPtr::new(core::ptr::null_mut()),
                len: AtomicUsize::new(0),
            }),
            depot: Mutex::new(Depot { batches: Vec::new(), chunks: Vec::new() }),
        }
    }

    /// Takes an item out of the slab: one never used before as [`Item::vacant`] made it, another as its last user left it.
    #[inline]
    pub fn alloc(&self) -> &T {
        let magazine = self.magazines.this();
        if magazine.len.load(Relaxed) == 0 {
            self.refill(magazine);
        }
        let item = magazine.head.load(Relaxed);
        // SAFETY: invariant 1; a magazine that is not empty has an item at its head.
        let item = unsafe { &*item };
        // Relaxed: invariant 2, the magazine is this thread's own.
        magazine.head.store(link_of(item).load(Relaxed), Relaxed);
        magazine.len.store(magazine.len.load(Relaxed) - 1, Relaxed);
        item
    }

    /// Gives `item` back. It may be handed out again at once: whoever still reads it must check its identity.
    ///
    /// The item must have come from this slab and not be free already; otherwise the free lists go wrong (an item is
    /// then handed out twice), though no memory rule is broken.
    #[inline]
    pub fn free(&self, item: &T) {
        let magazine = self.magazines.this();
        // Relaxed: invariant 2, the magazine is this thread's own, and so is a free item's link.
        link_of(item).store(magazine.head.load(Relaxed), Relaxed);
        magazine.head.store(core::ptr::from_ref(item).cast_mut(), Relaxed);
        let len = magazine.len.load(Relaxed) + 1;
        magazine.len.store(len, Relaxed);
        if len >= 2 * BATCH {
            self.flush(magazine);
        }
    }

    /// Bytes of memory taken from the system for items, used or not.
    #[must_use]
    pub fn reserved_bytes(&self) -> usize {
        self.depot.lock().chunks.len() * CHUNK
    }

    /// Bytes of all objects ever handed out or ready to be: what of the reserved memory was touched.
    #[must_use]
    pub fn touched_bytes(&self) -> usize {
        let objects: usize = self.depot.lock().chunks.iter().map(|chunk| chunk.carved).sum();
        objects * (size_of::<T>() + size_of::<T::Side>())
    }

    /// Calls `f` with every item that was ever handed out or is ready to be.
    pub fn for_each<'a>(&'a self, mut f: impl FnMut(&'a T)) {
        let spans: Vec<(NonNull<T>, usize)> =
            self.depot.lock().chunks.iter().map(|chunk| (chunk.start, chunk.carved)).collect();
        for (start, carved) in spans {
            // SAFETY: invariant 1: the first `carved` items of a chunk are valid until the slab is dropped.
            let items = unsafe { core::slice::from_raw_parts(start.as_ptr(), carved) };
            items.iter().for_each(&mut f);
        }
    }

    /// Moves one batch from the depot, or from fresh memory, into an empty magazine.
    #[cold]
    fn refill(&self, magazine: &Magazine<T>) {
        let mut depot = self.depot.lock();
        let head = match depot.batches.pop() {
            Some(head) => head,
            None => depot.carve_batch(),
        };
        magazine.head.store(head.as_ptr(), Relaxed);
        magazine.len.store(BATCH, Relaxed);
    }

    /// Moves one batch from a full magazine to the depot.
    #[cold]
    fn flush(&self, magazine: &Magazine<T>) {
        let head = magazine.head.load(Relaxed);
        let mut last = head;
        for _ in 1..BATCH {
            // SAFETY: invariant 1, and the magazine holds at least 2 * BATCH items.
            last = link_of(unsafe { &*last }).load(Relaxed);
        }
        // SAFETY: as above.
        let rest = link_of(unsafe { &*last }).load(Relaxed);
        magazine.head.store(rest, Relaxed);
        magazine.len.store(magazine.len.load(Relaxed) - BATCH, Relaxed);
        self.depot.lock().batches.extend(NonNull::new(head));
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

impl<T: Item> Depot<T> {
    /// A list of `BATCH` items out of memory never used before.
    fn carve_batch(&mut self) -> NonNull<T> {
        if self.chunks.last().is_none_or(|chunk| const { capacity::<T>() } - chunk.carved < BATCH) {
            // The first chunk is not asked to be one huge page, so that a small instance stays small.
            self.chunks.push(Chunk::new(true));
        }
        let chunk = self.chunks.last_mut().expect("a chunk was just made sure of");
        let mut head = core::ptr::null_mut();
        for _ in 0..BATCH {
            head = chunk.carve(head);
        }
        NonNull::new(head).expect("items lie inside a chunk")
    }
}

/// The word that links a free item of a slab.
#[inline(always)]
fn link_of<T: Item>(item: &T) -> &AtomicPtr<T> {
    // SAFETY: every caller's item lies in the slab it works on.
    T::free_link(unsafe { side(item) })
}

/// What a chunk is to the allocator.
fn chunk_layout() -> Layout {
    Layout::from_size_align(CHUNK, CHUNK).expect("a size and a power of two")
}

impl<T: Item> Chunk<T> {
    fn new(huge: bool) -> Self {
        // SAFETY: the layout has a size above zero.
        let start = unsafe { alloc(chunk_layout()) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(chunk_layout()) };
        if huge {
            prim::mem::advise_huge(start.as_ptr(), CHUNK);
        }
        Self { start: start.cast(), carved: 0 }
    }

    /// Writes the next object and links it before `next`.
    fn carve(&mut self, next: *mut T) -> *mut T {
        assert!(self.carved < const { capacity::<T>() }, "the caller checked that a batch fits");
        let item = self.start.as_ptr().wrapping_add(self.carved);
        let (item_value, side_value) = T::vacant();
        // SAFETY: `carved < capacity`, so the item lies inside the chunk, aligned, and nobody has seen it yet.
        unsafe { item.write(item_value) };
        // SAFETY: as above, for the side.
        unsafe { side_address(item).cast_mut().write(side_value) };
        self.carved += 1;
        // SAFETY: just written.
        link_of(unsafe { &*item }).store(next, Relaxed);
        item
    }
}

impl<T: Item> Drop for Chunk<T> {
    fn drop(&mut self) {
        let sides = core::ptr::slice_from_raw_parts_mut(side_address(self.start.as_ptr()).cast_mut(), self.carved);
        // SAFETY: invariant 1: the first `carved` sides are valid, and the slab is being dropped, so nobody refers to them.
        unsafe { sides.drop_in_place() };
        let items = core::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.carved);
        // SAFETY: as above, for the items.
        unsafe { items.drop_in_place() };
        // SAFETY: `start` came from `alloc` with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), chunk_layout()) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::collections::HashSet;

    struct Thing {
        owner: AtomicU64,
        _pad: [u64; 7],
    }

    struct Rest {
        link: AtomicPtr<Thing>,
        _pad: [u64; 2],
    }

    impl Item for Thing {
        type Side = Rest;
        fn vacant() -> (Self, Rest) {
            (Self { owner: AtomicU64::new(0), _pad: [0; 7] }, Rest { link: AtomicPtr::default(), _pad: [0; 2] })
        }
        fn free_link(rest: &Rest) -> &AtomicPtr<Self> {
            &rest.link
        }
    }

    #[test]
    fn an_item_and_its_side_lead_to_each_other() {
        let slab = Slab::<Thing>::new();
        for _ in 0..50_000 {
            let thing = slab.alloc();
            // SAFETY: both lie in `slab`.
            let rest = unsafe { side(thing) };
            // SAFETY: as above.
            assert!(core::ptr::eq(unsafe { item::<Thing>(rest) }, thing));
        }
    }

    #[test]
    fn live_items_are_distinct_and_freed_ones_come_back() {
        let slab = Slab::<Thing>::new();
        let items: Vec<&Thing> = (0..100_000).map(|_| slab.alloc()).collect();
        let addresses: HashSet<_> = items.iter().map(|&item| core::ptr::from_ref(item)).collect();
        assert_eq!(addresses.len(), items.len());
        let reserved = slab.reserved_bytes();
        items.iter().for_each(|item| slab.free(item));
        for _ in 0..100_000 {
            assert!(addresses.contains(&core::ptr::from_ref(slab.alloc())));
        }
        assert_eq!(slab.reserved_bytes(), reserved);
    }

    #[test]
    fn the_item_freed_last_is_handed_out_first() {
        let slab = Slab::<Thing>::new();
        let item = slab.alloc();
        slab.free(item);
        assert!(core::ptr::eq(item, slab.alloc()));
    }

    #[test]
    fn threads_never_own_one_item_together() {
        let slab = Slab::<Thing>::new();
        std::thread::scope(|s| {
            for me in 1..=3u64 {
                let slab = &slab;
                s.spawn(move || {
                    let mut held = Vec::new();
                    for round in 0..50_000u64 {
                        if (round * me) % 7 < 4 {
                            let item = slab.alloc();
                            assert_eq!(item.owner.swap(me, Relaxed), 0);
                            held.push(item);
                        } else if let Some(item) = held.pop() {
                            assert_eq!(item.owner.swap(0, Relaxed), me);
                            slab.free(item);
                        }
                    }
                });
            }
        });
        let mut carved = 0;
        slab.for_each(|_| carved += 1);
        assert!(carved > 0);
    }
}
