//! The lists that a CPU index has found right since the last change.
//!
//! # What it is
//! A change makes the stamp of all entries old. Until an entry gets the new stamp, each lookup that
//! finds the entry compares the list of the entry's path. All files of a directory share that list,
//! so most of these comparisons have the same result. A CPU index keeps the result until the next
//! change: a lookup that finds the result reads neither the list nor the directories, and writes to
//! no shared memory.
//!
//! # Why a result holds until the next change
//! The comparison was made after a read of the number of changes, and so saw each move that was
//! counted at that read. A lookup that uses the result compares that number after its reads: if it
//! is the same, the lookup read nothing of a move that was counted later. A directory can be
//! removed, and its memory be another directory, without a change: but then no older entry has a
//! dentry, and a newer entry has the current stamp and needs no list.
//!
//! # How it is locked
//! No lock: only the thread that owns the CPU index reads and writes it.

use super::lists::Pair;
use prim::atomic::{AtomicU64, Ordering::Relaxed};

/// Lists that are kept for one CPU index. (24 bytes each.)
const KEPT: usize = if cfg!(loom) { 1 } else { 256 };

/// See the [module documentation](self).
pub(super) struct Checked {
    kept: Box<[Kept]>,
    /// How often the table had been emptied when the results were noted: a number of changes can
    /// wrap around after that.
    emptied: AtomicU64,
}

/// The two words of the list's key, and a word with the number of changes when the list was found
/// right and, above that number, the list's stamp.
struct Kept([AtomicU64; 3]);

impl Default for Checked {
    fn default() -> Self {
        // No pair has a first word of 0.
        let vacant = || Kept(core::array::from_fn(|_| AtomicU64::new(0)));
        Self { kept: (0..KEPT).map(|_| vacant()).collect(), emptied: AtomicU64::new(0) }
    }
}

// Relaxed everywhere: one thread reads and writes.
impl Checked {
    /// Returns the stamp of the list of `pair`, if it was found right when `begun` changes had begun.
    pub(super) fn stamp(&self, pair: Pair, begun: u32, emptied: u64) -> Option<u32> {
        let [start, dir, stamps] = &self.of(pair).0;
        let stamps = stamps.load(Relaxed);
        let is_kept = pair.words() == [start.load(Relaxed), dir.load(Relaxed)] && stamps as u32 == begun;
        (is_kept && self.emptied.load(Relaxed) == emptied).then_some((stamps >> 32) as u32)
    }

    /// Notes that the list of `pair` with this stamp is right, and that `begun` changes had begun before it was compared.
    pub(super) fn note(&self, pair: Pair, stamp: u32, begun: u32, emptied: u64) {
        if self.emptied.load(Relaxed) != emptied {
            self.kept.iter().for_each(|kept| kept.0[0].store(0, Relaxed));
            self.emptied.store(emptied, Relaxed);
        }
        let stamps = u64::from(stamp) << 32 | u64::from(begun);
        let [start, dir] = pair.words();
        for (word, value) in self.of(pair).0.iter().zip([start, dir, stamps]) {
            word.store(value, Relaxed);
        }
    }

    fn of(&self, pair: Pair) -> &Kept {
        let [start, dir] = pair.words();
        // The low bits of all slots' addresses are the same.
        let mixed = (start.rotate_left(32) ^ dir).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.kept[(mixed >> 32) as usize % KEPT]
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_kept_until_the_next_change() {
        let checked = Checked::default();
        let pair = Pair::of_words([64, 128]);
        assert_eq!(checked.stamp(pair, 0, 0), None);
        checked.note(pair, 5, 9, 0);
        assert_eq!(checked.stamp(pair, 9, 0), Some(5));
        assert_eq!(checked.stamp(pair, 10, 0), None, "a change began");
        assert_eq!(checked.stamp(Pair::of_words([64, 192]), 9, 0), None, "another directory");
        assert_eq!(checked.stamp(Pair::of_words([128, 128]), 9, 0), None, "another start");
    }

    #[test]
    fn no_result_outlives_a_round_of_the_count_of_changes() {
        let checked = Checked::default();
        let (pair, other) = (Pair::of_words([64, 128]), Pair::of_words([64, 1 << 20]));
        checked.note(pair, 5, 9, 0);
        assert_eq!(checked.stamp(pair, 9, 1), None);
        checked.note(other, 6, 9, 1);
        assert_eq!((checked.stamp(pair, 9, 1), checked.stamp(other, 9, 1)), (None, Some(6)));
    }
}
