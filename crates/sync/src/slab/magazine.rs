//! The magazines of a slab, and their trade with the depot.
//!
//! # What it is
//! A magazine is a list of free items, one for each CPU index. An empty magazine takes items from
//! the depot; a full magazine returns the older half of its items.
//!
//! # What it is not
//! Of one size: if threads often wait for the depot, magazines trade more items at a time (`Trade`
//! in `crates/sync/src/slab/depot.rs`). Nor always small: a magazine holds up to twice as many
//! items as it trades at a time.
//!
//! # How it is locked
//! Only the owner of its index touches a magazine; the depot has a mutex. The [slab](super) has the
//! invariants.
//!
//! # Where it comes from
//! J. Bonwick and J. Adams, "Magazines and Vmem" (USENIX 2001), 3.3, for the size of the magazines.

use super::chunk::Chunk;
use super::depot::Depot;
use super::free::GROUP;
use super::{BATCH, Item, MAX_BATCH, PART, Slab, link_of};
use crate::mutex::MutexGuard;
use crate::rcu::RcuDomain;
use core::ptr::null_mut;
use prim::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Free items of one CPU index: a list through [`Item::free_link`].
#[repr(align(128))]
pub(super) struct Magazine<T: Item> {
    pub(super) head: AtomicPtr<T>,
    pub(super) len: AtomicUsize,
    pub(super) span: Span<T>,
}

/// Items of one chunk that the clock's hand has passed, and that the index has not visited yet; see [`Slab::step`].
pub(super) struct Span<T: Item> {
    pub(super) chunk: AtomicPtr<Chunk<T>>,
    /// The index of the next item in the chunk, and that after the last one.
    pub(super) at: AtomicUsize,
    pub(super) end: AtomicUsize,
}

impl<T: Item> Default for Magazine<T> {
    fn default() -> Self {
        let none = || AtomicUsize::new(0);
        let span = Span { chunk: AtomicPtr::new(null_mut()), at: none(), end: none() };
        Self { head: AtomicPtr::new(null_mut()), len: none(), span }
    }
}

impl<T: Item> Magazine<T> {
    /// # Safety
    /// The magazine is the calling thread's and not empty; its items are in a slab that outlives
    /// the borrow.
    #[inline(always)]
    pub(super) unsafe fn pop<'a>(&self) -> &'a T {
        // SAFETY: this function's contract.
        let item = unsafe { &*self.head.load(Relaxed) };
        // Relaxed: invariant 2: this thread owns the magazine.
        self.head.store(link_of(item).load(Relaxed), Relaxed);
        self.len.store(self.len.load(Relaxed) - 1, Relaxed);
        item
    }
}

impl<T: Item> Slab<T> {
    /// Locks the depot. If threads often wait for it, magazines trade more at a time after that:
    /// Bonwick's rule.
    fn lock_depot(&self) -> MutexGuard<'_, Depot<T>> {
        let (mut depot, has_waited) = match self.depot.0.try_lock() {
            Some(depot) => (depot, false),
            None => (self.depot.0.lock(), true),
        };
        self.note_visit(&mut depot, has_waited);
        depot
    }

    pub(super) fn note_visit(&self, depot: &mut Depot<T>, has_waited: bool) {
        if depot.trade.note(has_waited) && depot.limit == usize::MAX {
            // Relaxed: see `set_limit`.
            let full = self.full.load(Relaxed);
            self.full.store((2 * full).min(2 * MAX_BATCH), Relaxed);
        }
    }

    /// Moves items from the depot, or from fresh memory, into an empty magazine: half of its most.
    /// `false`, with nothing done, if there is none and, with `limited`, the limit is reached.
    #[cold]
    pub(super) fn refill(&self, magazine: &Magazine<T>, limited: bool) -> bool {
        // Relaxed: see `set_limit`. (The short array costs less to clear.)
        let wanted = (self.full.load(Relaxed) / 2).max(BATCH);
        if wanted == BATCH {
            self.refill_by::<BATCH>(magazine, limited, wanted)
        } else {
            self.refill_by::<MAX_BATCH>(magazine, limited, wanted)
        }
    }

    fn refill_by<const MOST: usize>(&self, magazine: &Magazine<T>, limited: bool, wanted: usize) -> bool {
        let mut items = [null_mut(); MOST];
        let mut depot = self.lock_depot();
        let len = depot.take(&mut items[..wanted]);
        let (head, len) = if len != 0 {
            let count = depot.count;
            drop(depot);
            let mut head: *mut T = null_mut();
            for &at in items[..len].iter().rev() {
                // SAFETY: invariant 1.
                let item = unsafe { &*at };
                if count != 0 {
                    item.raise_above(count);
                }
                // Relaxed: invariant 5: taken from the depot above, and so this thread's.
                link_of(item).store(head, Relaxed);
                head = at;
            }
            (head, len)
        } else if let Some((chunk, reserved)) = depot.reserve(limited, wanted) {
            drop(depot);
            // SAFETY: invariant 4: chunks stay for as long as the slab is borrowed.
            let chunk = unsafe { chunk.as_ref() };
            let (first, len) = (reserved.start, reserved.len());
            // The first part is handed out first.
            let write = |head, part| {
                // SAFETY: reserved above, and written here only.
                unsafe { chunk.write_part(first + part * PART, head) }.as_ptr()
            };
            ((0..len / PART).rev().fold(null_mut(), write), len)
        } else {
            return false;
        };
        magazine.head.store(head, Relaxed);
        magazine.len.store(len, Relaxed);
        true
    }

    /// Moves the older half of a full magazine to the depot, and has memory that is too much returned.
    #[cold]
    pub(super) fn flush(&self, domain: &RcuDomain, magazine: &Magazine<T>) {
        if magazine.len.load(Relaxed) <= 2 * BATCH {
            self.flush_by::<BATCH>(domain, magazine);
        } else {
            self.flush_by::<MAX_BATCH>(domain, magazine);
        }
    }

    fn flush_by<const MOST: usize>(&self, domain: &RcuDomain, magazine: &Magazine<T>) {
        let held = magazine.len.load(Relaxed);
        let kept = held - held / 2;
        let mut last = magazine.head.load(Relaxed);
        for _ in 1..kept {
            // SAFETY: invariant 1, and the magazine holds more than `kept` items.
            last = link_of(unsafe { &*last }).load(Relaxed);
        }
        let mut items = [null_mut(); MOST];
        let mut len = 0;
        // SAFETY: as above.
        let mut next = link_of(unsafe { &*last }).load(Relaxed);
        while len < held - kept {
            items[len] = next;
            len += 1;
            // SAFETY: as above.
            next = link_of(unsafe { &*next }).load(Relaxed);
        }
        // The last link that stays leads to an item that leaves, but the length marks the end of
        // the magazine.
        magazine.len.store(kept, Relaxed);
        let surplus = {
            let mut depot = self.lock_depot();
            items[..len].iter().for_each(|&item| depot.put(item));
            depot.surplus(2 * MOST)
        };
        if !surplus.is_empty() {
            let bytes = surplus.len() * GROUP * (size_of::<T>() + size_of::<T::Side>());
            let depot = self.depot.clone();
            domain.defer(bytes, move || Depot::return_groups(&depot.0, &surplus));
        }
    }
}
