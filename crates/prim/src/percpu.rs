//! An array with one slot per CPU index, grown without moving.
//!
//! Slots of the first indexes exist from the start and cost one bound check. Later ones are in segments that double in
//! size and are made at first use, and so is the table of segments, which most arrays never need. Only its owner writes a slot;
//! all threads may read it.
//!
//! The simulator's crate compiles this file too, so its slots have the same places in memory.

use crate::charge::uncharged;
use crate::cpu;
use std::sync::OnceLock;

/// Slots that exist from the start. Few under loom, which tracks every atomic; a model has few threads.
const FIRST: usize = if cfg!(loom) { 4 } else { 32 };

/// Slots of the first segment of a small array.
const FIRST_SMALL: usize = 4;

/// Segments behind the first: as many slots as the first, then twice as many, and so on; enough for two million threads.
const SEGMENTS: usize = 19;

/// The segments behind the first, made or not.
type Segments<T> = [OnceLock<Box<[T]>>; SEGMENTS];

/// One `T` per CPU index; see [`cpu::id`].
pub struct PerCpu<T> {
    first: Box<[T]>,
    more: OnceLock<Box<Segments<T>>>,
    make: fn() -> T,
}

impl<T> PerCpu<T> {
    /// Returns an array whose slots `make` makes, some now and the others at first use. A simulated
    /// machine does not charge for it.
    #[must_use]
    pub fn new(make: fn() -> T) -> Self {
        Self::sized(make, false)
    }

    /// As [`new`](Self::new); with `is_small` for an object of which a process may have thousands: fewer slots
    /// exist from the start.
    #[must_use]
    pub fn sized(make: fn() -> T, is_small: bool) -> Self {
        let first = if is_small { FIRST_SMALL } else { FIRST };
        let first = uncharged(|| (0..first).map(|_| make()).collect());
        Self { first, more: OnceLock::new(), make }
    }

    /// Returns the slot of the calling thread.
    #[inline(always)]
    pub fn this(&self) -> &T {
        self.get(cpu::id())
    }

    /// Returns the slot of index `id`, made if it does not exist yet.
    ///
    /// # Panics
    /// If `id` is beyond two million, which [`cpu::id`] never returns.
    #[inline(always)]
    pub fn get(&self, id: usize) -> &T {
        match self.first.get(id) {
            Some(slot) => slot,
            None => self.get_later(id),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_later(&self, id: usize) -> &T {
        // Segment k holds indexes first << k .. first << (k + 1).
        let first = self.first.len();
        // A division by a power of two.
        let k = (id >> first.trailing_zeros()).ilog2() as usize;
        // Uncharged, so that a simulated thread is not suspended inside the once-lock: another would wait for it for
        // ever.
        let make = || uncharged(|| (0..first << k).map(|_| (self.make)()).collect());
        let more = self.more.get_or_init(|| uncharged(|| Box::new([const { OnceLock::new() }; SEGMENTS])));
        &more[k].get_or_init(make)[id - (first << k)]
    }

    /// Returns every slot made so far.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        let more = self.more.get().into_iter().flat_map(|more| more.iter());
        self.first.iter().chain(more.filter_map(OnceLock::get).flatten())
    }
}

impl<T> core::fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PerCpu").field("slots", &self.iter().count()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    #[test]
    fn a_slot_stays_where_it_is_when_the_array_grows() {
        for is_small in [false, true] {
            let array = PerCpu::sized(|| AtomicUsize::new(0), is_small);
            let ids = [0, 7, 8, 9, 15, 16, 31, 32, 33, 63, 64, 127, 128, 5000];
            for id in ids {
                array.get(id).store(id + 1, Relaxed);
            }
            for id in ids {
                assert_eq!(array.get(id).load(Relaxed), id + 1);
            }
            assert_eq!(array.iter().filter(|slot| slot.load(Relaxed) != 0).count(), ids.len());
        }
    }
}
