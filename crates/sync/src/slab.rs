//! A type-stable slab: memory that, once it holds a `T`, holds a `T` until the slab is dropped.
//!
//! # What it is
//! An allocator of one type for structures that lock-free readers walk (`SLAB_TYPESAFE_BY_RCU` in Linux). A freed item
//! may be handed out again at once, without a grace period, and a reader that still stands on it reads a valid `T` of
//! another identity. So a `&T` never dangles while the slab lives, whatever the readers do; that they notice the change
//! of identity is their own protocol (a sequence count that is never reset, a check of the chain's end).
//! Reuse without a grace period keeps the working set hot and the memory bounded: nothing waits for readers.
//!
//! # What it is not
//! Not a general allocator: items are never moved, never dropped before the slab is, and chunks never go back to the
//! system before that.
//!
//! # How it is locked
//! Each CPU index has a magazine of free items that only its owner touches (plain loads and stores). Magazines trade
//! whole batches with the depot, which sits behind a [`Mutex`] that is taken once per [`BATCH`] items.
//!
//! # Invariants
//! 1. Every item ever handed out lies in a chunk on `Depot::chunks`, was written by [`Item::vacant`] before it was
//!    first handed out, and is neither moved nor dropped before the slab's own drop.
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

/// The largest chunk, and the alignment that lets the system back it by one huge page.
const HUGE: usize = 2 << 20;

/// The first chunk, so that a small instance stays small; each further one is twice the last, up to [`HUGE`].
const FIRST_CHUNK: usize = 64 << 10;

/// What a type needs to live in a [`Slab`].
pub trait Item: Send + Sync + Sized {
    /// A `T` that nothing refers to: what the memory holds before its first use.
    fn vacant() -> Self;

    /// The word that links the item into a free list while it is free. It is the slab's then and only then.
    fn free_link(&self) -> &AtomicPtr<Self>;
}

/// See the [module documentation](self).
pub struct Slab<T: Item> {
    magazines: PerCpu<Magazine<T>>,
    depot: Mutex<Depot<T>>,
}

/// Free items of one CPU index: a list through [`Item::free_link`].
#[repr(align(64))]
struct Magazine<T> {
    head: AtomicPtr<T>,
    len: AtomicUsize,
}

struct Depot<T> {
    /// Heads of lists of exactly [`BATCH`] free items.
    batches: Vec<NonNull<T>>,
    chunks: Vec<Chunk<T>>,
}

struct Chunk<T> {
    start: NonNull<T>,
    /// Items written so far; the rest of the chunk is raw memory.
    carved: usize,
    layout: Layout,
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
        magazine.head.store(item.free_link().load(Relaxed), Relaxed);
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
        item.free_link().store(magazine.head.load(Relaxed), Relaxed);
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
        self.depot.lock().chunks.iter().map(|chunk| chunk.layout.size()).sum()
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
            last = unsafe { &*last }.free_link().load(Relaxed);
        }
        // SAFETY: as above.
        let rest = unsafe { &*last }.free_link().load(Relaxed);
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
    /// A list of [`BATCH`] items out of memory never used before.
    fn carve_batch(&mut self) -> NonNull<T> {
        if self.chunks.last().is_none_or(|chunk| chunk.capacity() - chunk.carved < BATCH) {
            let bytes = self.chunks.last().map_or(FIRST_CHUNK, |chunk| (2 * chunk.layout.size()).min(HUGE));
            self.chunks.push(Chunk::new(bytes));
        }
        let chunk = self.chunks.last_mut().expect("a chunk was just made sure of");
        let mut head = core::ptr::null_mut();
        for _ in 0..BATCH {
            head = chunk.carve(head);
        }
        NonNull::new(head).expect("items lie inside a chunk")
    }
}

impl<T: Item> Chunk<T> {
    fn new(bytes: usize) -> Self {
        let bytes = bytes.max(BATCH * size_of::<T>());
        let align = if bytes >= HUGE { HUGE } else { 4096 }.max(align_of::<T>());
        let layout = Layout::from_size_align(bytes, align).expect("a chunk is at most a few MiB");
        // SAFETY: `layout` has a size above zero.
        let start = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        if bytes >= HUGE {
            prim::mem::advise_huge(start.as_ptr(), bytes);
        }
        Self { start: start.cast(), carved: 0, layout }
    }

    fn capacity(&self) -> usize {
        self.layout.size() / size_of::<T>()
    }

    /// Writes the next item and links it before `next`.
    fn carve(&mut self, next: *mut T) -> *mut T {
        assert!(self.carved < self.capacity(), "the caller checked that a batch fits");
        // SAFETY: `carved < capacity`, so the item lies inside the chunk.
        let item = unsafe { self.start.add(self.carved) };
        // SAFETY: as above; the memory is aligned for `T` and nobody has seen it yet.
        unsafe { item.write(T::vacant()) };
        self.carved += 1;
        // SAFETY: just written.
        unsafe { item.as_ref() }.free_link().store(next, Relaxed);
        item.as_ptr()
    }
}

impl<T> Drop for Chunk<T> {
    fn drop(&mut self) {
        let items = core::ptr::slice_from_raw_parts_mut(self.start.as_ptr(), self.carved);
        // SAFETY: invariant 1: the first `carved` items are valid, and the slab is being dropped, so nobody refers to them.
        unsafe { items.drop_in_place() };
        // SAFETY: `start` came from `alloc` with this layout.
        unsafe { dealloc(self.start.as_ptr().cast(), self.layout) };
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU64;
    use std::collections::HashSet;

    struct Thing {
        owner: AtomicU64,
        link: AtomicPtr<Thing>,
        _pad: [u64; 6],
    }

    impl Item for Thing {
        fn vacant() -> Self {
            Self { owner: AtomicU64::new(0), link: AtomicPtr::default(), _pad: [0; 6] }
        }
        fn free_link(&self) -> &AtomicPtr<Self> {
            &self.link
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
