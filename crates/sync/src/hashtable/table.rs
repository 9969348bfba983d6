//! The words of a hash table: buckets, links, and the array of one size.
//!
//! The part of [`crate::hashtable`] that knows bits, not policy. The head of that module has the meaning of the words,
//! how they are locked, the invariants named here, and the sources.

use super::HashNode;
use core::ptr::NonNull;
use prim::atomic::{
    AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// The word holds a node's address plus one.
pub(super) const PTR: usize = 1;
/// A writer holds the bucket.
pub(super) const LOCK: usize = 2;
/// The bucket's nodes are in the next table.
pub(super) const MOVED: usize = 4;

/// The buckets of one size.
pub(super) struct Table {
    pub(super) buckets: NonNull<AtomicUsize>,
    pub(super) mask: usize,
    /// The memory behind `buckets`, larger than needed so that a big array can start on a huge page. From
    /// `Box::into_raw`; the table owns it. (A box would claim alone what readers share.)
    memory: *mut [AtomicUsize],
    pub(super) next: AtomicPtr<Table>,
    /// The next bucket to move, and the number of buckets not moved yet.
    pub(super) cursor: AtomicUsize,
    pub(super) left: AtomicUsize,
}

/// How a search of one chain ended.
pub(super) enum End {
    /// At the end of the chain that was searched.
    Own,
    /// The bucket was moved to the next table.
    Moved,
    /// In another chain: a node was moved or reused under the reader.
    Foreign,
}

// SAFETY: `buckets` points into `memory`, which the table owns.
unsafe impl Send for Table {}
// SAFETY: as above; the buckets are atomics.
unsafe impl Sync for Table {}

impl Table {
    pub(super) fn new(buckets: usize) -> *mut Table {
        const HUGE: usize = 2 << 20;
        let large = buckets * size_of::<usize>() >= HUGE;
        let memory = Box::into_raw(zeroed(buckets + if large { HUGE / size_of::<usize>() } else { 0 }));
        let start = memory.cast::<AtomicUsize>();
        let skip = if large { start.align_offset(HUGE) } else { 0 };
        let first = NonNull::new(start.wrapping_add(skip)).expect("inside the memory");
        if large {
            prim::mem::advise_huge(first.as_ptr().cast(), buckets * size_of::<usize>());
        }
        Box::into_raw(Box::new(Table {
            buckets: first,
            mask: buckets - 1,
            memory,
            next: AtomicPtr::new(core::ptr::null_mut()),
            cursor: AtomicUsize::new(0),
            left: AtomicUsize::new(buckets),
        }))
    }

    /// Frees a table.
    ///
    /// # Safety
    /// `table` came from [`Table::new`], and has no other user any more.
    pub(super) unsafe fn free(table: *mut ()) {
        // SAFETY: this function's contract.
        drop(unsafe { Box::from_raw(table.cast::<Table>()) });
    }

    /// Bytes of the bucket array.
    pub(super) fn bytes(&self) -> usize {
        self.memory.len() * size_of::<AtomicUsize>()
    }

    #[inline]
    pub(super) fn at(&self, index: usize) -> &AtomicUsize {
        debug_assert!(index <= self.mask);
        let bucket = self.buckets.as_ptr().wrapping_add(index);
        // SAFETY: `index` is at most `mask`, and `memory` holds `mask + 1` buckets from `buckets` on.
        unsafe { &*bucket }
    }

    #[inline]
    pub(super) fn bucket(&self, hash: u64) -> &AtomicUsize {
        self.at(hash as usize & self.mask)
    }

    #[inline]
    pub(super) fn successor(&self) -> Option<&Table> {
        // ORDERING: Acquire, pairs with the Release store of `next` in `start_resize`.
        let next = self.next.load(Acquire);
        // SAFETY: invariant 4: the next table is freed after this one.
        unsafe { next.as_ref() }
    }

    pub(super) fn search<'g, N: HashNode>(
        &'g self,
        hash: u64,
        matches: &mut impl FnMut(&'g N) -> bool,
    ) -> Result<&'g N, End> {
        let bucket = self.bucket(hash);
        // ORDERING: Acquire, pairs with the Release stores of `set`, as in `View::find`.
        match scan(bucket.load(Acquire) & !LOCK, matches) {
            Ok(node) => Ok(node),
            Err(0) => Err(End::Own),
            Err(MOVED) => Err(End::Moved),
            Err(word) if word == end_of(bucket) => Err(End::Own),
            Err(_) => Err(End::Foreign),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw` in `new`; the table is being dropped, so its buckets have no user.
        drop(unsafe { Box::from_raw(self.memory) });
    }
}

/// Walks a chain from `word` on. `Err` is the word at which it ended.
#[inline(always)]
pub(super) fn scan<'g, N: HashNode>(mut word: usize, mut matches: impl FnMut(&'g N) -> bool) -> Result<&'g N, usize> {
    while word & PTR != 0 {
        // SAFETY: invariant 1, the caller is in a read section; `word` is a node's address plus PTR.
        let node = unsafe { &*((word - PTR) as *const N) };
        if matches(node) {
            return Ok(node);
        }
        // ORDERING: Acquire, pairs with the Release stores of `set` in `insert`, `remove` and `move_bucket`.
        word = node.next().load(Acquire);
    }
    Err(word)
}

/// Takes a bucket's lock bit. Returns its word without the bit. `None`: the bucket was moved, there is nothing to lock.
#[inline]
pub(super) fn lock_bucket(bucket: &AtomicUsize) -> Option<usize> {
    loop {
        // Relaxed: a guess; the exchange decides.
        let word = bucket.load(Relaxed);
        if word == MOVED {
            // ORDERING: Acquire, pairs with the Release store of MOVED by `set` in `move_bucket`: the nodes are in the
            // next table.
            bucket.load(Acquire);
            return None;
        }
        if word & LOCK != 0 {
            prim::hint::spin_until(|| bucket.load(Relaxed) & LOCK == 0);
            continue;
        }
        // ORDERING: Acquire, pairs with the Release store of `set` by the last holder.
        if bucket.compare_exchange(word, word | LOCK, Acquire, Relaxed).is_ok() {
            return Some(word);
        }
    }
}

/// Stores a word of a chain. In a bucket this also releases the lock, since `word` has no [`LOCK`] bit.
#[inline]
pub(super) fn set(place: &AtomicUsize, word: usize) {
    // ORDERING: Release, pairs with the Acquire loads of `View::find`, `scan` and `search` (readers see what the nodes
    // held) and of `lock_bucket` (the next writer sees this one's work).
    place.store(word, Release);
}

#[inline]
pub(super) fn word_of<N>(node: &N) -> usize {
    core::ptr::from_ref(node) as usize + PTR
}

pub(super) fn node_of<'g, N>(word: usize) -> &'g N {
    debug_assert!(word & PTR != 0);
    // SAFETY: invariants 1 and 2: the word was read from a chain under its bucket's lock.
    unsafe { &*((word - PTR) as *const N) }
}

/// The word that ends a bucket's chain.
#[inline]
pub(super) fn end_of(bucket: &AtomicUsize) -> usize {
    core::ptr::from_ref(bucket) as usize
}

#[cfg(not(loom))]
fn zeroed(len: usize) -> Box<[AtomicUsize]> {
    // SAFETY: all-zero bytes are a valid AtomicUsize.
    unsafe { Box::<[AtomicUsize]>::new_zeroed_slice(len).assume_init() }
}

#[cfg(loom)]
fn zeroed(len: usize) -> Box<[AtomicUsize]> {
    (0..len).map(|_| AtomicUsize::new(0)).collect()
}
