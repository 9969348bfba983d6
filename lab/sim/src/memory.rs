//! Memory straight from the system: the fixed region in which the simulated program lives, and the engine's tables.
//!
//! # What it is
//! [`Region`]: one range of addresses, the same in every process, that holds the [arena](crate::Arena) and the stacks
//! of the simulated threads; so addresses, and values computed from them (line numbers, hashes),
//! are the same in every run. [`Table`]: a large zeroed array of which only touched pages take
//! room.
//!
//! # How it is locked
//! The region is used by one simulation at a time; `crate::run` holds the process-wide lock.
//!
//! # Invariants
//! 1. The region is mapped once and never unmapped; its heap is readable and writable after that.
//! 2. A table's memory is mapped, zeroed, large enough for its items, and unmapped when it is dropped.

use core::ffi::c_void;
use core::ops::Deref;
use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};
use std::sync::OnceLock;

/// Where the region begins, in every process.
pub(crate) const BASE: usize = 0x2000_0000_0000;
/// Bytes of the arena.
pub(crate) const HEAP_BYTES: usize = 4 << 30;
/// Bytes of one stack's place, its guard page included.
pub(crate) const STACK_BYTES: usize = 256 << 10;
/// Stacks that there is room for.
pub(crate) const STACKS: usize = 4096 + 512;
/// Bytes of the whole region.
pub(crate) const BYTES: usize = HEAP_BYTES + STACKS * STACK_BYTES;
/// Below each stack, so that one that runs over faults.
const GUARD_BYTES: usize = 4096;

/// The proof that the region is mapped.
#[derive(Clone, Copy)]
pub(crate) struct Region(());

impl Region {
    /// Maps the region, the first time.
    ///
    /// # Panics
    /// If other memory is mapped there.
    pub(crate) fn get() -> Self {
        static MAPPED: OnceLock<Result<(), String>> = OnceLock::new();
        match MAPPED.get_or_init(Self::map) {
            Ok(()) => Self(()),
            Err(error) => panic!("cannot map the {BYTES} bytes at {BASE:#x} that every simulation lives in: {error}"),
        }
    }

    fn map() -> Result<(), String> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE;
        let wanted = core::ptr::without_provenance_mut::<c_void>(BASE);
        // SAFETY: FIXED_NOREPLACE maps nothing over existing memory.
        let start = unsafe { mmap_anonymous(wanted, BYTES, ProtFlags::empty(), flags) }.map_err(|e| e.to_string())?;
        if start.addr() != BASE {
            // A kernel before 4.17 takes the address for a hint.
            // SAFETY: just mapped, and not used yet.
            let _ = unsafe { munmap(start, BYTES) };
            return Err("the range is taken".into());
        }
        protect(0, HEAP_BYTES)?;
        for stack in 0..STACKS {
            protect(HEAP_BYTES + stack * STACK_BYTES + GUARD_BYTES, STACK_BYTES - GUARD_BYTES)?;
        }
        Ok(())
    }

    /// Gives the heap and the stacks back, so that they are zero again. Nobody may use them any more.
    pub(crate) fn reset(self) {
        for (start, len) in [(BASE, HEAP_BYTES), (BASE + HEAP_BYTES, STACKS * STACK_BYTES)] {
            let start = core::ptr::without_provenance_mut::<c_void>(start);
            // SAFETY: invariant 1; no simulation runs (the caller holds the lock), so nothing in there has an owner.
            let done = unsafe { madvise(start, len, Advice::LinuxDontNeed) };
            assert!(done.is_ok(), "the arena of the simulation before could not be given back: {done:?}");
        }
    }
}

fn protect(offset: usize, len: usize) -> Result<(), String> {
    let start = core::ptr::without_provenance_mut::<c_void>(BASE + offset);
    // SAFETY: inside the mapping just made, which is not used yet.
    unsafe { mprotect(start, len, MprotectFlags::READ | MprotectFlags::WRITE) }.map_err(|e| e.to_string())
}

/// Returns whether `address` is in the arena.
#[inline(always)]
pub(crate) fn is_heap(address: usize) -> bool {
    address.wrapping_sub(BASE) < HEAP_BYTES
}

/// Returns the highest and the lowest address of a stack, guard page included.
pub(crate) fn stack(index: usize) -> (usize, usize) {
    assert!(index < STACKS, "more than {STACKS} simulated threads");
    let limit = BASE + HEAP_BYTES + index * STACK_BYTES;
    (limit + STACK_BYTES, limit)
}

/// A type of which all-zero bytes are a value.
///
/// # Safety
/// All-zero bytes are a valid value, and values need not be dropped.
pub(crate) unsafe trait Zeroed {}

// SAFETY: a number in a cell.
unsafe impl Zeroed for core::cell::Cell<u64> {}
// SAFETY: a number in a cell.
unsafe impl Zeroed for core::cell::Cell<u32> {}

/// A zeroed array of which only touched pages take room.
pub(crate) struct Table<T: Zeroed + 'static> {
    items: &'static [T],
}

impl<T: Zeroed> Table<T> {
    /// `len` items, all zero.
    ///
    /// # Panics
    /// If the system has no addresses left.
    pub(crate) fn new(len: usize) -> Self {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let bytes = (len * size_of::<T>()).max(1);
        // SAFETY: a new mapping, at an address of the system's choice.
        let start = unsafe { mmap_anonymous(core::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags) };
        let start = start.unwrap_or_else(|error| panic!("no {bytes} bytes of addresses for a table: {error}"));
        // SAFETY: invariant 2: mapped, zeroed, page-aligned, `len` items long; `Zeroed` makes zeros values.
        let items = unsafe { core::slice::from_raw_parts(start.cast::<T>(), len) };
        Self { items }
    }
}

impl<T: Zeroed> Deref for Table<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        self.items
    }
}

impl<T: Zeroed> Drop for Table<T> {
    fn drop(&mut self) {
        let bytes = size_of_val(self.items).max(1);
        // SAFETY: invariant 2; `items` is not used again and its values need no drop.
        let _ = unsafe { munmap(self.items.as_ptr().cast_mut().cast(), bytes) };
    }
}
