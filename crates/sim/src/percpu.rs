//! An array with one slot per CPU index, as `prim`'s: grown without moving, in the arena, its slots where production
//! would have them.

use crate::cpu;
use std::sync::OnceLock;

/// Slots that exist from the start.
const FIRST: usize = 32;

/// Segments behind the first: 32, 64, 128, ... slots.
const SEGMENTS: usize = 16;

/// One `T` per CPU index; see [`cpu::id`].
pub struct PerCpu<T> {
    first: Box<[T]>,
    more: [OnceLock<Box<[T]>>; SEGMENTS],
    make: fn() -> T,
}

impl<T> PerCpu<T> {
    /// An array whose slots are made by `make`, some now and the rest when first used. Making slots is not charged.
    #[must_use]
    pub fn new(make: fn() -> T) -> Self {
        let first = crate::uncharged(|| (0..FIRST).map(|_| make()).collect());
        Self { first, more: [const { OnceLock::new() }; SEGMENTS], make }
    }

    /// The slot of the calling thread.
    #[inline]
    pub fn this(&self) -> &T {
        self.get(cpu::id())
    }

    /// The slot of index `id`, made if it is not there yet.
    ///
    /// # Panics
    /// With an index beyond two million, which [`cpu::id`] never gives out.
    #[inline]
    pub fn get(&self, id: usize) -> &T {
        match self.first.get(id) {
            Some(slot) => slot,
            None => self.get_later(id),
        }
    }

    #[inline(never)]
    fn get_later(&self, id: usize) -> &T {
        // Segment k holds indexes FIRST << k .. FIRST << (k + 1).
        let k = (id / FIRST).ilog2() as usize;
        // Uncharged, so the thread is not suspended inside the once-lock, where another would wait for it for good.
        let make = || crate::uncharged(|| (0..FIRST << k).map(|_| (self.make)()).collect());
        &self.more[k].get_or_init(make)[id - (FIRST << k)]
    }

    /// Every slot made so far.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(self.more.iter().filter_map(OnceLock::get).flatten())
    }
}

impl<T> core::fmt::Debug for PerCpu<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PerCpu").field("slots", &self.iter().count()).finish_non_exhaustive()
    }
}
