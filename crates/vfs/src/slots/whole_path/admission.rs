//! Which walks become entries of the table of whole paths.
//!
//! # What it is
//! The state of one CPU index. A path is recorded at its second use that this state remembers: a
//! filter has a tag for each of [`TAGS`] paths that missed last. Paths that are used more rarely
//! than that are recorded too, as long as the table has room: one in [`RARE`] of their uses. So a
//! set of a million paths gets into a table that is large enough for it.
//!
//! After a thread has written an entry, each other CPU that reads the entry pays for a transfer of
//! its line. So soon after a change, when the next change may be near, only one candidate in
//! [`SHARE`] times the number of other CPUs is recorded or renewed. Each of those CPUs has then
//! used an entry [`SHARE`] times, on average, before it pays. After [`CALM`] times as many
//! candidates without a change, each candidate is recorded or renewed.
//!
//! # How it is locked
//! No lock: only the owner of the CPU index writes it; all may read the statistics.

use super::checked::Checked;
use prim::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};
use sync::signature_table::Signature;

/// Paths that the filter of one CPU index remembers.
const TAGS: usize = if cfg!(loom) { 1 } else { 1024 };

/// See the [module documentation](self).
const RARE: u64 = 16;

/// A slot of the filter without a path. (A path with this tag is a candidate at its first use.)
const FREE: u16 = 0;

/// How many uses of an entry with an old stamp take as long as the transfer of its line.
const SHARE: u32 = 4;

/// See the [module documentation](self).
const CALM: u32 = 64;

/// The stamp of an index that has had no candidate yet.
const NONE: u64 = u64::MAX;

/// See the [module documentation](self).
#[repr(align(128))]
pub(crate) struct Admission {
    tags: Box<[AtomicU16]>,
    pub(super) checked: Checked,
    /// The stamp of the last candidate.
    stamp: AtomicU64,
    /// Candidates since the stamp changed.
    since: AtomicU32,
    skipped: AtomicU32,
    misses: AtomicU64,
    recorded: AtomicU64,
    refused: AtomicU64,
    renewed: AtomicU64,
    by_list: AtomicU64,
}

impl Default for Admission {
    fn default() -> Self {
        Self {
            tags: (0..TAGS).map(|_| AtomicU16::new(0)).collect(),
            checked: Checked::default(),
            stamp: AtomicU64::new(NONE),
            since: AtomicU32::new(u32::MAX),
            skipped: AtomicU32::new(0),
            misses: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            renewed: AtomicU64::new(0),
            by_list: AtomicU64::new(0),
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

    /// Returns whether the path that missed last is a candidate at its first use, if the table has
    /// room.
    pub(crate) fn is_chosen(&self) -> bool {
        (mixed(self.misses.load(Relaxed)) >> 32).is_multiple_of(RARE)
    }

    /// Returns whether a candidate is recorded or renewed now, where `stamp` is the number of
    /// changes begun.
    pub(crate) fn is_turn(&self, stamp: u32) -> bool {
        self.is_turn_of(stamp, prim::cpu::count() as u32)
    }

    fn is_turn_of(&self, stamp: u32, cpus: u32) -> bool {
        let last = self.stamp.load(Relaxed);
        if last != u64::from(stamp) {
            self.stamp.store(stamp.into(), Relaxed);
            if last != NONE {
                self.since.store(0, Relaxed);
            }
        }
        let since = self.since.load(Relaxed).saturating_add(1);
        self.since.store(since, Relaxed);
        let every = SHARE.saturating_mul(cpus.saturating_sub(1)).max(1);
        let skipped = self.skipped.load(Relaxed) + 1;
        let is_turn = skipped >= every || since > CALM.saturating_mul(every);
        self.skipped.store(if is_turn { 0 } else { skipped }, Relaxed);
        is_turn
    }

    /// Counts a recorded path, or one that cannot be recorded.
    pub(crate) fn note(&self, is_recorded: bool) {
        add(if is_recorded { &self.recorded } else { &self.refused });
    }

    /// Counts an entry that got the current stamp.
    pub(crate) fn note_renewal(&self) {
        add(&self.renewed);
    }

    #[cfg(feature = "testing")]
    pub(crate) fn stats(&self) -> super::WholePathStats {
        super::WholePathStats {
            misses: self.misses(),
            recorded: self.recorded(),
            refused: self.refused(),
            renewed: self.renewed(),
            by_list: self.by_list(),
            ..super::WholePathStats::default()
        }
    }

    /// Counts a lookup whose entry has an old stamp and a list that has not changed.
    pub(crate) fn note_list(&self) {
        add(&self.by_list);
    }

    pub(crate) fn by_list(&self) -> u64 {
        self.by_list.load(Relaxed)
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

/// Mixes the bits by the finalizer of Sebastiano Vigna's SplitMix64: returns a number whose bits look random, also for small steps.
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
        // An empty filter has the tag zero.
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
        let recorded =
            |cpus, stamps: &mut dyn FnMut() -> u32| (0..4096).filter(|_| admission.is_turn_of(stamps(), cpus)).count();
        assert_eq!(recorded(2, &mut || 7), 4096, "no change was seen yet");
        let mut stamp = 7;
        let mut changing = || {
            stamp += 1;
            stamp
        };
        assert_eq!(recorded(1, &mut changing), 4096, "no other CPU pays");
        assert_eq!(recorded(2, &mut changing), 4096 / 4);
        assert_eq!(recorded(65, &mut changing), 4096 / 256, "the more CPUs, the fewer");
        assert!(recorded(2, &mut || 9999) > 3000);
    }
}
