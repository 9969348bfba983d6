//! The allocator of the simulated program: a slab allocator for each simulated thread, at fixed addresses, free of
//! charge.
//!
//! # What it is
//! [`Arena`], for `#[global_allocator]`. While a simulated thread runs, memory comes from the
//! arena, otherwise from the system; the address of a freed object shows where it is returned. Line
//! numbers, and with them false sharing, are then the same in every run, and a line is found by a
//! subtraction instead of a hash lookup. Each thread carves objects of one size from its own pages,
//! so threads share a line only where the program puts data of two threads side by side; a freed
//! object stays with the thread that freed it, as in a kernel's per-CPU caches.
//!
//! # What it is not
//! Necessary: without the arena all works, but lines of the heap then depend on the addresses of
//! the system's allocator. Permanent: the next simulation begins with an empty arena, so the caller
//! must read the allocations of a simulated thread (also a push to the caller's vector) before the
//! next simulation, and must not free them after its start.
//!
//! # How it is locked
//! A [`Heap`] belongs to one simulation, which runs on one host thread.
//!
//! # Invariants
//! 1. `HEAP` points at a living heap or is null.
//! 2. A free list holds unused blocks of its class; a block's first word is its link.

use crate::memory::{BASE, HEAP_BYTES, Region, STACKS, Table, is_heap};
use core::cell::Cell;
use std::alloc::{GlobalAlloc, Layout, System};

/// The unit from which one thread carves small objects.
const PAGE: usize = 4096;
/// Classes: multiples of 16 up to 512, then powers of two.
const CLASSES: usize = 64;
const LAST_FINE: usize = 32;
/// Words of one class of one thread: head of the free list, next byte of the page, end of the page.
const WORDS: usize = 3;

thread_local! {
    static HEAP: Cell<*const Heap> = const { Cell::new(core::ptr::null()) };
}

/// The global allocator of programs that simulate; see `lab/docs/simulator.md`.
#[derive(Debug)]
pub struct Arena;

/// The arena of one simulation.
pub(crate) struct Heap {
    top: Cell<usize>,
    owner: Cell<usize>,
    words: Table<Cell<u64>>,
}

impl Heap {
    /// Returns an empty one. The memory of the heap before is released.
    pub(crate) fn new(region: Region) -> Self {
        region.reset();
        Self { top: Cell::new(BASE + PAGE), owner: Cell::new(0), words: Table::new((STACKS + 1) * CLASSES * WORDS) }
    }

    /// After this call the calling host thread's allocations belong to simulated thread `owner`.
    pub(crate) fn enter(&self, owner: usize) {
        self.owner.set(owner);
        HEAP.set(self);
    }

    /// From here on the host thread's allocations are its own again.
    pub(crate) fn leave() {
        HEAP.set(core::ptr::null());
    }

    /// Bytes carved so far.
    pub(crate) fn used(&self) -> usize {
        self.top.get() - BASE
    }

    #[inline]
    fn class(layout: Layout) -> (usize, usize) {
        let size = layout.size().max(16);
        let size = size.next_multiple_of(layout.align().max(16));
        if size <= LAST_FINE * 16 && layout.align() <= 16 {
            (size / 16, size)
        } else {
            let size = size.next_power_of_two().max(16);
            (LAST_FINE + size.trailing_zeros() as usize - 4, size)
        }
    }

    #[inline]
    fn word(&self, class: usize, word: usize) -> &Cell<u64> {
        &self.words[(self.owner.get() * CLASSES + class) * WORDS + word]
    }

    fn alloc(&self, layout: Layout) -> *mut u8 {
        let (class, size) = Self::class(layout);
        let head = self.word(class, 0);
        let block = head.get() as usize;
        if block != 0 && block.is_multiple_of(layout.align()) {
            // SAFETY: invariant 2.
            head.set(unsafe { core::ptr::with_exposed_provenance::<u64>(block).read() });
            return core::ptr::with_exposed_provenance_mut(block);
        }
        if size > PAGE / 2 {
            return core::ptr::with_exposed_provenance_mut(self.carve(size, layout.align()));
        }
        let (next, end) = (self.word(class, 1), self.word(class, 2));
        if next.get() + size as u64 > end.get() {
            let page = self.carve(PAGE, PAGE);
            next.set(page as u64);
            end.set((page + PAGE) as u64);
        }
        let block = next.get();
        next.set(block + size as u64);
        core::ptr::with_exposed_provenance_mut(block as usize)
    }

    /// Memory never used before; 0 if there is none.
    fn carve(&self, size: usize, align: usize) -> usize {
        // Naturally aligned as far as that is worth it, so that every block of a class serves every alignment of it.
        let start = self.top.get().next_multiple_of(align.max(size.min(2 << 20)).max(PAGE));
        if start.saturating_add(size) > BASE + HEAP_BYTES {
            return 0;
        }
        self.top.set(start + size);
        start
    }

    fn free(&self, block: *mut u8, layout: Layout) {
        let (class, _) = Self::class(layout);
        let head = self.word(class, 0);
        // SAFETY: the caller of `dealloc` gives the block back, and a block has at least 16 bytes.
        unsafe { block.cast::<u64>().write(head.get()) };
        head.set(block.expose_provenance() as u64);
    }
}

/// Until it is dropped, allocations are the host's: the engine's own, made on a simulated thread's stack.
pub(crate) struct Outside(*const Heap);

/// Leaves the arena for a while.
#[inline]
pub(crate) fn outside() -> Outside {
    Outside(HEAP.replace(core::ptr::null()))
}

impl Drop for Outside {
    #[inline]
    fn drop(&mut self) {
        HEAP.set(self.0);
    }
}

/// Returns the heap of the running simulation, if a simulated thread allocates.
#[inline]
fn heap<'a>() -> Option<&'a Heap> {
    let heap = HEAP.get();
    // SAFETY: invariant 1.
    unsafe { heap.as_ref() }
}

// SAFETY: blocks of a heap are disjoint, inside the mapped arena, and aligned; everything else is the system's.
unsafe impl GlobalAlloc for Arena {
    // SAFETY: as the trait requires.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match heap() {
            Some(heap) => heap.alloc(layout),
            // SAFETY: the caller's promise.
            None => unsafe { System.alloc(layout) },
        }
    }

    // SAFETY: as the trait requires.
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if heap().is_none() {
            // SAFETY: the caller's promise. The system does not touch memory that is zero already.
            return unsafe { System.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's promise.
        let block = unsafe { self.alloc(layout) };
        if !block.is_null() {
            // SAFETY: the block has so many bytes.
            unsafe { core::ptr::write_bytes(block, 0, layout.size()) };
        }
        block
    }

    // SAFETY: as the trait requires.
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_heap(block.addr()) {
            // SAFETY: the caller's promise; a block outside of the arena is the system's.
            unsafe { System.dealloc(block, layout) }
        } else if let Some(heap) = heap() {
            heap.free(block, layout);
        }
    }

    // SAFETY: as the trait requires.
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !is_heap(block.addr()) {
            // SAFETY: the caller's promise; a block that began as the system's stays the system's.
            return unsafe { System.realloc(block, layout, size) };
        }
        // SAFETY: the caller promises that `size`, rounded up to the alignment, is a size.
        let grown = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller promises that `size` is above zero.
        let new = unsafe { self.alloc(grown) };
        if !new.is_null() {
            // SAFETY: both blocks have that many bytes, and a new block overlaps no other.
            unsafe { core::ptr::copy_nonoverlapping(block, new, layout.size().min(size)) };
            // SAFETY: the caller gives the block up.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}
