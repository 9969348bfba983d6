//! The chunks of a slab: the places of an item and its side, and which parts of its items have been
//! written.
//!
//! # What it is
//! Address arithmetic, and [`Chunk`]: 2 MiB of raw memory with one flag for each part of items.
//!
//! # What it is not
//! The state of items: the depot records which items are reserved, the magazines which items are
//! free.
//!
//! # How it is locked
//! Without a lock. The thread that reserved a part writes it and then sets the part's flag; a
//! thread that sees the flag may read the items. The [slab](super) has the invariants.
//!
//! # Provenance
//! A reference to an item gives no right to touch its neighbours or its side. So the address of a chunk is exposed when
//! the chunk is made, and the address of a side or an item becomes a pointer with the chunk's provenance.
//!
//! # Where it comes from
//! The object slabs of J. Bonwick, "The Slab Allocator" (USENIX Summer 1994), without their headers.

use super::free::GROUP;
use super::{Item, PART, link_of};
use core::mem::size_of;
use core::ops::Range;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::mem::Mapping;
use std::alloc::{Layout, handle_alloc_error};

/// Flags of parts in a word.
const BITS: usize = usize::BITS as usize;

/// Size and alignment of a chunk: the system can back it by one huge page. (Small under loom, which tracks each flag.)
pub(super) const CHUNK: usize = if cfg!(loom) { 1 << 16 } else { 2 << 20 };

#[inline(always)]
fn offset_in_chunk(address: usize) -> usize {
    address & (CHUNK - 1)
}

/// Returns the offset of the first side in a chunk. Evaluated for each type at compile time: a type
/// whose items and sides would not be aligned, apart from each other and inside the chunk is not
/// compiled.
const fn first_side<T: Item>() -> usize {
    assert!(size_of::<T>() > 0 && size_of::<T::Side>() > 0, "an item and its side have a size");
    assert!(CHUNK.is_multiple_of(align_of::<T>()), "a chunk is aligned for its items");
    let capacity = CHUNK / (size_of::<T>() + size_of::<T::Side>());
    let first_side = capacity * size_of::<T>();
    assert!(CHUNK.is_multiple_of(align_of::<T::Side>()), "a chunk is aligned for its sides");
    assert!(first_side.is_multiple_of(align_of::<T::Side>()), "the sides lie aligned behind the items");
    assert!(first_side + capacity * size_of::<T::Side>() <= CHUNK);
    first_side
}

/// Objects of a chunk that are used: whole groups.
pub(super) const fn used<T: Item>() -> usize {
    let used = first_side::<T>() / size_of::<T>() / GROUP * GROUP;
    assert!(used > 0, "a chunk has room for a group of objects");
    used
}

/// Returns whether the items of a group, and its sides, have their own pages.
pub(super) fn is_returnable<T: Item>() -> bool {
    let page = if cfg!(loom) { 1 } else { prim::mem::page_size() };
    [GROUP * size_of::<T>(), GROUP * size_of::<T::Side>(), const { first_side::<T>() }]
        .iter()
        .all(|bytes| bytes.is_multiple_of(page))
}

/// Returns the address of an item's chunk, and its index there.
pub(super) fn place_of<T: Item>(item: *const T) -> (usize, usize) {
    let offset = offset_in_chunk(item.addr());
    (item.addr() - offset, offset / size_of::<T>())
}

/// Returns the address of the side of the item at `item`. Arithmetic only; `item` need not be the
/// address of an item.
#[inline(always)]
#[must_use]
pub fn side_address<T: Item>(item: *const T) -> *const T::Side {
    let offset = offset_in_chunk(item.addr());
    let index = offset / size_of::<T>();
    let behind = const { first_side::<T>() } + index * size_of::<T::Side>();
    core::ptr::with_exposed_provenance((item.addr() - offset).wrapping_add(behind))
}

/// Returns the side of an item.
///
/// # Safety
/// `item` is in a slab that outlives the borrow.
#[inline(always)]
#[must_use]
pub unsafe fn side<T: Item>(item: &T) -> &T::Side {
    // SAFETY: invariant 1: the side was written with the item.
    unsafe { &*side_address(item) }
}

/// Returns the item of a side.
///
/// # Safety
/// `side` is in a slab of `T` that outlives the borrow.
#[must_use]
pub unsafe fn item<T: Item>(side: &T::Side) -> &T {
    let address = core::ptr::from_ref(side).addr();
    let offset = offset_in_chunk(address);
    let index = (offset - const { first_side::<T>() }) / size_of::<T::Side>();
    let item = core::ptr::with_exposed_provenance::<T>(address - offset + index * size_of::<T>());
    // SAFETY: invariant 1: the item was written with the side.
    unsafe { &*item }
}

/// Raw memory that becomes objects, part by part.
///
/// A mapping: the allocator would take twice the addresses for the alignment, and may keep freed
/// memory.
pub(super) struct Chunk<T: Item> {
    start: NonNull<T>,
    memory: Mapping,
    /// For each part, one bit: whether its objects are written.
    written: Box<[AtomicUsize]>,
}

impl<T: Item> Chunk<T> {
    pub(super) fn new(huge: bool) -> Self {
        let Some(memory) = Mapping::new(CHUNK, CHUNK) else { handle_alloc_error(Layout::new::<[u8; CHUNK]>()) };
        let start = memory.start();
        // See "Provenance" above.
        start.as_ptr().expose_provenance();
        if huge {
            prim::mem::advise_huge(start.as_ptr(), CHUNK);
        }
        let written = (0..(const { used::<T>() } / PART).div_ceil(BITS)).map(|_| AtomicUsize::new(0)).collect();
        Self { start: start.cast(), memory, written }
    }

    /// Returns the address of the item with this index.
    pub(super) fn at(&self, index: usize) -> *mut T {
        self.start.as_ptr().wrapping_add(index)
    }

    /// Returns the memory of the group whose first object has index `first` to the system, if that takes it. The
    /// objects are vacant then. Returns their highest count before.
    ///
    /// # Safety
    /// - The type allows the call ([`Item::RETURNS`] and [`is_returnable`]).
    /// - The objects are written and free, and no thread can take one during the call.
    /// - No read section is open in which a thread may have found an object before it was freed.
    pub(super) unsafe fn discard(&self, first: usize) -> u32 {
        let items = first..first + GROUP;
        // SAFETY: invariant 1; the caller's promise.
        let count = items.map(|index| unsafe { &*self.at(index) }.count()).max().unwrap_or(0);
        #[cfg(loom)]
        for index in first..first + GROUP {
            // SAFETY: as above.
            let item = unsafe { &*self.at(index) };
            // SAFETY: as above.
            item.clear(unsafe { side(item) });
        }
        // SAFETY: the caller's promise: whole pages of atomics for which zeros are a value, and which only threads read
        // that accept a vacant item.
        unsafe { self.discard_bytes(first..first + GROUP) };
        count
    }

    /// Returns the memory of all objects from index `first` on, which begins a group.
    ///
    /// # Safety
    /// The type allows it, and the objects were never reserved.
    pub(super) unsafe fn discard_rest(&self, first: usize) {
        // SAFETY: invariant 3: no thread has them.
        unsafe { self.discard_bytes(first..const { used::<T>() }) };
    }

    /// # Safety
    /// As [`Mapping::discard`], for these objects, which are whole groups.
    unsafe fn discard_bytes(&self, objects: Range<usize>) {
        if cfg!(loom) {
            return;
        }
        for (offset, size) in [(0, size_of::<T>()), (const { first_side::<T>() }, size_of::<T::Side>())] {
            // A refusal changes nothing: free objects stay as they were.
            // SAFETY: this function's contract.
            let _ = unsafe { self.memory.discard(offset + objects.start * size..offset + objects.end * size) };
        }
    }

    /// Requests huge pages for the chunk, or small ones.
    pub(super) fn advise_huge(&self, is_huge: bool) {
        let advise = if is_huge { prim::mem::advise_huge } else { prim::mem::advise_small };
        advise(self.memory.start().as_ptr(), CHUNK);
    }

    /// Writes the part whose first object has index `first`, links its items before the list
    /// `head`, and publishes them to all threads. Returns the head of the list.
    ///
    /// # Safety
    /// The caller reserved the part (invariant 3), and calls this once.
    pub(super) unsafe fn write_part(&self, first: usize, mut head: *mut T) -> NonNull<T> {
        for index in first..first + PART {
            let item = self.start.as_ptr().wrapping_add(index);
            let (item_value, side_value) = T::vacant();
            // SAFETY: invariant 3: the item is inside the chunk, aligned, and no other thread has
            // its address yet.
            unsafe { item.write(item_value) };
            // SAFETY: as above, for the side.
            unsafe { side_address(item).cast_mut().write(side_value) };
            // SAFETY: just written. Relaxed: the owner of a free item owns its link.
            link_of(unsafe { &*item }).store(head, Relaxed);
            head = item;
        }
        // ORDERING: Release pairs with the Acquire in `items`: a thread that sees the flag sees the objects.
        self.written[first / PART / BITS].fetch_or(1 << (first / PART % BITS), Release);
        NonNull::new(head).expect("items lie inside a chunk")
    }

    /// Returns the `len` items from index `first` on, which are in one part, if they are written.
    pub(super) fn items(&self, first: usize, len: usize) -> Option<&[T]> {
        debug_assert!(len > 0 && first / PART == (first + len - 1) / PART);
        // ORDERING: Acquire pairs with the Release in `write_part`: a thread that sees the flag sees the objects.
        let written = self.written[first / PART / BITS].load(Acquire) >> (first / PART % BITS) & 1 != 0;
        // SAFETY: invariant 3: the flag of their part is set, so the items stay until the slab is dropped.
        written.then(|| unsafe { core::slice::from_raw_parts(self.start.as_ptr().wrapping_add(first), len) })
    }
}

impl<T: Item> Drop for Chunk<T> {
    fn drop(&mut self) {
        let parts = (0..const { used::<T>() }).step_by(PART);
        for first in parts.filter(|&first| self.items(first, PART).is_some()) {
            let first = self.at(first);
            let sides = core::ptr::slice_from_raw_parts_mut(side_address(first).cast_mut(), PART);
            // SAFETY: invariant 3: the sides of the part are written, and they have no user any more.
            unsafe { sides.drop_in_place() };
            // SAFETY: as above, for the items.
            unsafe { core::ptr::slice_from_raw_parts_mut(first, PART).drop_in_place() };
        }
    }
}
