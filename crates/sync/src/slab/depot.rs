//! The depot of a slab: its chunks, and the free items that no magazine has.
//!
//! # What it is
//! The part of a slab behind its lock. The head of [the slab's module](super) has the invariants,
//! and how memory returns.
//!
//! # What it is not
//! Fast: magazines come here once in a batch of calls.
//!
//! # How it is locked
//! The slab puts it into a mutex. [`Depot::return_groups`] takes that itself, twice for a short time.
//!
//! # Where it comes from
//! The depot of J. Bonwick and J. Adams, "Magazines and Vmem" (USENIX 2001).

use super::chunk::{Chunk, is_returnable, place_of, used};
use super::free::{FreeItems, GROUP};
use super::{Item, PART};
use crate::mutex::Mutex;
use core::ops::Range;
use core::ptr::NonNull;

/// How often threads wait for the depot.
#[derive(Default)]
pub(super) struct Trade {
    visits: u32,
    waits: u32,
}

impl Trade {
    /// Notes a visit. At each 64th visit that has waited, returns whether at least one of eight visits waited since the last
    /// such answer; else returns false.
    pub(super) fn note(&mut self, has_waited: bool) -> bool {
        self.visits = self.visits.saturating_add(1);
        if !has_waited {
            return false;
        }
        self.waits += 1;
        if self.waits < 64 {
            return false;
        }
        let is_often = self.visits <= 8 * self.waits;
        *self = Self::default();
        is_often
    }
}

/// A chunk, and how its memory is.
pub(super) struct Place<T: Item> {
    /// In its own `Box`, so that a thread can refer to it without the lock.
    pub(super) chunk: NonNull<Chunk<T>>,
    /// Groups whose memory was returned.
    bare: usize,
    /// Whether huge pages are requested for it: while there are none of these.
    are_huge: bool,
}

/// See the [module documentation](self).
pub(super) struct Depot<T: Item> {
    pub(super) trade: Trade,
    pub(super) free: FreeItems,
    pub(super) chunks: Vec<Place<T>>,
    /// The chunks' addresses, in order, with their indexes.
    addresses: Vec<(usize, usize)>,
    /// The highest count of an item whose memory was returned.
    pub(super) count: u32,
    /// Whether the system can take back a group.
    is_returnable: bool,
    /// Items reserved so far, in the order of the chunks: a multiple of `PART`.
    pub(super) reserved: usize,
    /// How far `reserved` may grow for `try_alloc`.
    pub(super) limit: usize,
    /// Chunks from this one on are requested as huge pages.
    huge_from: usize,
}

// SAFETY: invariant 4: it owns the chunks that it points at, and `T: Send + Sync`.
unsafe impl<T: Item> Send for Depot<T> {}

impl<T: Item> Depot<T> {
    pub(super) fn new(huge_from: usize) -> Self {
        Self {
            trade: Trade::default(),
            free: FreeItems::default(),
            chunks: Vec::new(),
            addresses: Vec::new(),
            count: 0,
            is_returnable: T::RETURNS && is_returnable::<T>(),
            reserved: 0,
            limit: usize::MAX,
            huge_from,
        }
    }

    /// Fills `items` with addresses of free items, as far as there are any. Returns how many.
    pub(super) fn take(&mut self, items: &mut [*mut T]) -> usize {
        let mut len = 0;
        while len < items.len()
            && let Some((index, was_bare)) = self.free.take()
        {
            let at = index / const { used::<T>() };
            let place = &mut self.chunks[at];
            // SAFETY: invariant 4.
            let chunk = unsafe { place.chunk.as_ref() };
            if was_bare {
                place.bare -= 1;
                if place.bare == 0 && at >= self.huge_from {
                    place.are_huge = true;
                    chunk.advise_huge(true);
                }
            }
            items[len] = chunk.at(index % const { used::<T>() });
            len += 1;
        }
        len
    }

    /// Takes a free item.
    pub(super) fn put(&mut self, item: *mut T) {
        self.free.put(self.number_of(item));
    }

    /// Returns the number of an item in the order of the chunks.
    pub(super) fn number_of(&self, item: *const T) -> usize {
        let (chunk, index) = place_of(item);
        let at = self.addresses.binary_search_by_key(&chunk, |&(address, _)| address).expect("an item of this slab");
        self.addresses[at].1 * const { used::<T>() } + index
    }

    /// Groups whose memory must go back, taken out of the depot: at most so many. (A call frees as many items at most as
    /// it completes groups; the rest is for those that may not stay any more because fewer are in use.)
    pub(super) fn surplus(&mut self, most: usize) -> Vec<usize> {
        if !self.is_returnable || self.limit != usize::MAX {
            return Vec::new();
        }
        let groups = self.reserved / GROUP;
        core::iter::from_fn(|| self.free.take_surplus(groups)).take(most).collect()
    }

    /// Returns the memory of groups that [`Depot::surplus`] took, after a grace period, and makes them free again.
    pub(super) fn return_groups(depot: &Mutex<Self>, groups: &[usize]) {
        let places: Vec<(NonNull<Chunk<T>>, usize)> = {
            let depot = depot.lock();
            let place = |group: usize| {
                let first = group * GROUP;
                (depot.chunks[first / const { used::<T>() }].chunk, first % const { used::<T>() })
            };
            groups.iter().map(|&group| place(group)).collect()
        };
        let mut count = 0;
        for (chunk, first) in places {
            // SAFETY: invariant 4: the caller has the depot.
            let chunk = unsafe { chunk.as_ref() };
            // SAFETY: invariant 5: the group is free and cannot be taken; the grace period is over.
            count = count.max(unsafe { chunk.discard(first) });
        }
        let mut depot = depot.lock();
        depot.count = depot.count.max(count);
        groups.iter().for_each(|&group| depot.put_bare(group));
    }

    /// Takes back a group whose memory was returned.
    fn put_bare(&mut self, group: usize) {
        self.free.put_bare(group);
        let at = group * GROUP / const { used::<T>() };
        let place = &mut self.chunks[at];
        place.bare += 1;
        // A huge page, at the next use of an item or made by the system later, would take the memory again.
        if !core::mem::take(&mut place.are_huge) {
            return;
        }
        // SAFETY: invariant 4.
        let chunk = unsafe { place.chunk.as_ref() };
        chunk.advise_huge(false);
        let reserved = self.reserved - at * const { used::<T>() };
        if reserved < const { used::<T>() } {
            // SAFETY: invariant 3: nobody has items that are not reserved, and the lock is held.
            unsafe { chunk.discard_rest(reserved.next_multiple_of(GROUP)) };
        }
    }

    /// Reserves memory never used before, for the caller to write: whole parts, and at most `wanted` objects; at first one
    /// part. Returns its chunk, and the objects' indexes there. With `limited`, only what the limit allows.
    pub(super) fn reserve(&mut self, limited: bool, wanted: usize) -> Option<(NonNull<Chunk<T>>, Range<usize>)> {
        if limited && self.reserved >= self.limit {
            return None;
        }
        let first = self.reserved % const { used::<T>() };
        if first == 0 {
            let are_huge = self.chunks.len() >= self.huge_from;
            let chunk = Box::new(Chunk::<T>::new(are_huge));
            let address = chunk.at(0).addr();
            let at = self.addresses.partition_point(|&(other, _)| other < address);
            self.addresses.insert(at, (address, self.chunks.len()));
            self.chunks.push(Place { chunk: NonNull::from(Box::leak(chunk)), bare: 0, are_huge });
        }
        let allowed = if limited { self.limit - self.reserved } else { wanted };
        let len = if self.reserved == 0 { PART } else { wanted.min(allowed).min(const { used::<T>() } - first) };
        self.reserved += len;
        self.chunks.last().map(|place| (place.chunk, first..first + len))
    }
}

impl<T: Item> Drop for Depot<T> {
    fn drop(&mut self) {
        for Place { chunk, .. } in self.chunks.drain(..) {
            // SAFETY: invariant 4: it came from a box, and the slab is being dropped, so it has no user.
            drop(unsafe { Box::from_raw(chunk.as_ptr()) });
        }
    }
}
