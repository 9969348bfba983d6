//! The words of a hash table: buckets, links, and the array of one size.
//!
//! The part of [`crate::hashtable`] that handles bits, not policy. The head of that module has the
//! meaning of the words, how they are locked, the invariants named here, and the sources.

use super::HashNode;
use crate::seqcount::SeqCount;
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

/// The buckets of one size. Every operation reads the first line, which is written once, when the next table is linked;
/// movers write the others.
#[repr(C)]
pub(super) struct Table {
    pub(super) buckets: NonNull<AtomicUsize>,
    pub(super) mask: usize,
    /// The memory behind `buckets`, larger than needed so that a big array can start on a huge
    /// page. From `Box::into_raw`; the table owns it. (A box would claim sole ownership of memory
    /// that readers share.)
    memory: *mut [AtomicUsize],
    pub(super) next: AtomicPtr<Table>,
    /// The next bucket to move.
    pub(super) cursor: OwnLine,
    /// The number of buckets not moved yet.
    pub(super) left: OwnLine,
}

/// A number on a line that it shares with nothing.
#[repr(align(128))]
pub(super) struct OwnLine(pub(super) AtomicUsize);

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
            cursor: OwnLine(AtomicUsize::new(0)),
            left: OwnLine(AtomicUsize::new(buckets)),
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

    #[inline]
    pub(super) fn search<'g, N: HashNode>(
        &'g self,
        hash: u64,
        matches: &mut impl FnMut(&'g N) -> bool,
    ) -> Result<&'g N, End> {
        let bucket = self.bucket(hash);
        // ORDERING: Acquire, pairs with the Release stores of `set`, as in `View::find`.
        let mut word = bucket.load(Acquire) & !LOCK;
        // The node that the reader is on, with a count, and its sample. None: the reader is at the
        // bucket, or there are no counts.
        let mut at: Option<(&'g N, &'g SeqCount, u32)> = None;
        while word & PTR != 0 {
            // SAFETY: invariant 1, the caller is in a read section; `word` is a node's address plus PTR.
            let node = unsafe { &*((word - PTR) as *const N) };
            let removals = node.removals();
            let sample = removals.map_or(0, SeqCount::raw_begin);
            // See "Order on a chain". The sample was taken first, so the node is in the life that
            // it shows if the link still leads there. Relaxed: after the Acquire of the sample,
            // which brings the stores that took the node elsewhere.
            let leads = |link: &AtomicUsize| link.load(Relaxed) & !LOCK == word;
            let is_next = match at {
                Some((before, count, since)) => leads(before.next()) && !count.retry(since),
                None => removals.is_none() || leads(bucket),
            };
            if !is_next {
                return Err(End::Foreign);
            }
            if matches(node) {
                return Ok(node);
            }
            // ORDERING: Acquire, pairs with the Release stores of `set` in `link` and `remove`, as in `scan`.
            word = node.next().load(Acquire);
            at = removals.map(|count| (node, count, sample));
        }
        if at.is_some_and(|(_, count, since)| count.retry(since)) {
            return Err(End::Foreign);
        }
        match word {
            0 => Err(End::Own),
            MOVED => Err(End::Moved),
            word if word == end_of(bucket) => Err(End::Own),
            _ => Err(End::Foreign),
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
        // ORDERING: Acquire, pairs with the Release stores of `set` in `link` and `remove`.
        word = node.next().load(Acquire);
    }
    Err(word)
}

/// Takes a bucket's lock bit. Returns its word without the bit. `None`: the bucket was moved, there is nothing to lock.
#[inline(always)]
pub(super) fn lock_bucket(bucket: &AtomicUsize) -> Option<usize> {
    prim::hint::prefetch_to_write(bucket);
    loop {
        // Relaxed: a guess; the exchange decides.
        let word = bucket.load(Relaxed);
        if word & (LOCK | MOVED) != 0 {
            if await_bucket(bucket, word) {
                continue;
            }
            return None;
        }
        // ORDERING: Acquire, pairs with the Release store of `set` by the last holder.
        if bucket.compare_exchange(word, word | LOCK, Acquire, Relaxed).is_ok() {
            return Some(word);
        }
    }
}

/// Waits until a bucket with this word is not locked. `false`: it was moved.
#[cold]
fn await_bucket(bucket: &AtomicUsize, word: usize) -> bool {
    if word == MOVED {
        // ORDERING: Acquire, pairs with the Release store of MOVED by `set` in `move_bucket`: the nodes are in the
        // next table.
        bucket.load(Acquire);
        return false;
    }
    prim::hint::spin_until(|| bucket.load(Relaxed) & LOCK == 0);
    true
}

/// Stores a word of a chain. In a bucket this also releases the lock, since `word` has no [`LOCK`] bit.
#[inline]
pub(super) fn set(place: &AtomicUsize, word: usize) {
    // ORDERING: Release, pairs with the Acquire loads of `View::find`, `scan` and `search` (readers see what the nodes
    // held) and of `lock_bucket` (the next writer sees this one's work).
    place.store(word, Release);
}

/// Links `node` into the chain of `bucket`, whose word is `head` and whose lock the caller holds, and releases the lock.
#[inline(always)]
pub(super) fn link<N: HashNode>(bucket: &AtomicUsize, head: usize, node: &N) {
    let is_behind = |word: usize| word & PTR != 0 && !node.is_first() && node_of::<N>(word).is_first();
    let (mut before, mut next) = (None, head);
    while is_behind(next) {
        let first = node_of::<N>(next);
        // Relaxed: under the bucket's lock (invariant 2).
        (before, next) = (Some(first), first.next().load(Relaxed));
    }
    // Release although the node is not linked yet: a reader may still be on this memory's former node (see `set`).
    set(node.next(), if next == 0 { end_of(bucket) } else { next });
    match before {
        None => set(bucket, word_of(node)),
        Some(first) => {
            set(first.next(), word_of(node));
            set(bucket, head);
        }
    }
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

/// Returns the word that ends a bucket's chain.
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
