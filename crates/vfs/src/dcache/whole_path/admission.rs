//! Which walks become entries of the table of whole paths.
//!
//! # What it is
//! The state of one CPU index. A path is recorded at its second use that this state remembers: a filter has a tag for
//! each of [`TAGS`] paths that missed last. If changes of directories make entries useless as fast as they are recorded,
//! only one in [`every`](Admission::every) of these is.
//!
//! # How it is locked
//! Not at all: only the owner of the CPU index writes it; all may read the statistics.

use prim::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use sync::signature_table::Signature;

/// Paths that the filter of one CPU index remembers.
const TAGS: usize = if cfg!(loom) { 1 } else { 1024 };

/// A slot of the filter without a path. (A path with this tag is a candidate at its first use.)
const FREE: u16 = 0;

/// The most candidates between two that are recorded.
const MOST: u32 = 256;

/// See the [module documentation](self).
#[repr(align(128))]
pub(crate) struct Admission {
    tags: Box<[AtomicU16]>,
    /// The stamp of the last recording.
    stamp: AtomicU32,
    /// One in so many candidates is recorded.
    every: AtomicU32,
    skipped: AtomicU32,
    misses: AtomicU64,
    recorded: AtomicU64,
    refused: AtomicU64,
    renewed: AtomicU64,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            tags: (0..TAGS).map(|_| AtomicU16::new(0)).collect(),
            stamp: AtomicU32::new(0),
            every: AtomicU32::new(1),
            skipped: AtomicU32::new(0),
            misses: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            renewed: AtomicU64::new(0),
        }
    }
}

// Relaxed everywhere: one thread writes, and nothing depends on the words.
impl Admission {
    /// Notes that a path missed. Returns whether it did so before.
    pub(crate) fn is_second(&self, signature: Signature) -> bool {
        add(&self.misses);
        let (slot, tag) = (&self.tags[signature.slot(TAGS)], signature.tag());
        let noted = slot.load(Relaxed);
        if noted == tag {
            slot.store(FREE, Relaxed);
            return true;
        }
        // Of paths that share a slot and take turns, one must stay until its next use.
        if noted == FREE || mixed(self.misses.load(Relaxed)).is_multiple_of(4) {
            slot.store(tag, Relaxed);
        }
        false
    }

    /// Whether a candidate is recorded now, where `stamp` is the number of changes begun.
    pub(crate) fn is_turn(&self, stamp: u32) -> bool {
        let (every, skipped) = (self.every.load(Relaxed), self.skipped.load(Relaxed) + 1);
        if skipped < every {
            self.skipped.store(skipped, Relaxed);
            return false;
        }
        let has_changed = self.stamp.load(Relaxed) != stamp;
        self.every.store(if has_changed { (every * 2).min(MOST) } else { (every / 2).max(1) }, Relaxed);
        self.stamp.store(stamp, Relaxed);
        self.skipped.store(0, Relaxed);
        true
    }

    /// Counts a recorded path, or one that cannot be recorded.
    pub(crate) fn note(&self, is_recorded: bool) {
        add(if is_recorded { &self.recorded } else { &self.refused });
    }

    /// Counts an entry that got the stamp of today.
    pub(crate) fn note_renewal(&self) {
        add(&self.renewed);
    }

    pub(crate) fn misses(&self) -> u64 {
        self.misses.load(Relaxed)
    }

    pub(crate) fn recorded(&self) -> u64 {
        self.recorded.load(Relaxed)
    }

    pub(crate) fn renewed(&self) -> u64 {
        self.renewed.load(Relaxed)
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }
}

/// The finalizer of Sebastiano Vigna's SplitMix64: a number whose bits look random, also for small steps.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

fn add(counter: &AtomicU64) {
    counter.store(counter.load(Relaxed) + 1, Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use sync::SignatureTable;

    #[test]
    fn a_path_is_a_candidate_at_its_second_use() {
        let table = SignatureTable::new(128).unwrap();
        let admission = Admission::default();
        let signature = table.sign(64, b"a/b").unwrap();
        // A tag of zero is that of an empty filter.
        let first = admission.is_second(signature);
        assert_eq!((first, admission.is_second(signature)), (signature.tag() == 0, signature.tag() != 0));
        assert_eq!(admission.misses(), 2);
    }

    #[test]
    fn paths_that_share_their_slots_and_take_turns_become_candidates() {
        let table = SignatureTable::new(128).unwrap();
        let admission = Admission::default();
        // Four for each slot of the filter.
        let mut waiting: Vec<Signature> = (0..4 * TAGS as u64).map(|n| table.sign(n, b"a").unwrap()).collect();
        for _ in 0..2000 {
            waiting.retain(|&signature| !admission.is_second(signature));
        }
        assert!(waiting.is_empty(), "{} of {}", waiting.len(), 4 * TAGS);
    }

    #[test]
    fn changes_make_recordings_rare_and_quiet_makes_them_common_again() {
        let admission = Admission::default();
        let recorded = |stamps: &mut dyn FnMut() -> u32| (0..4096).filter(|_| admission.is_turn(stamps())).count();
        assert_eq!(recorded(&mut || 0), 4096);
        let mut stamp = 0;
        let busy = recorded(&mut || {
            stamp += 1;
            stamp
        });
        assert!((9..40).contains(&busy), "{busy}");
        let stays = stamp;
        let quiet = recorded(&mut || stays);
        assert!(quiet > 3000, "{quiet}");
    }
}
