//! Counters of changes of directories.
//!
//! # What it is
//! An answer of a file system is used only if the counter of the directory did not change since the
//! request. A counter has a second part, of evictions, for answers about names below ([`Moment`]).
//!
//! # How it is locked
//! A thread that changes a directory, or compares its counter, has its lock, or the name's lock.

use crate::slots::dentry::Dentry;
use prim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Counters of changes of directories, in the cache of a file system that keeps its own names. Directories
/// share counters by hash, so a reader may see a change of another directory. 64 bits: a cached listing may lie for years
/// before it is compared, so no number may come twice.
///
/// If there are few, they lie side by side, since a tree may have thousands of such caches. Otherwise each has its own line, so that
/// changes of other directories do not disturb its users.
pub(crate) struct Versions {
    words: Box<[AtomicU64]>,
    /// Words of a counter, of which the first one counts.
    stride: usize,
}

/// A counter of changes, in whose low [`EVICTION_BITS`] bits the directories that were evicted from
/// the directory are counted: an answer about the entries of such a subdirectory may be older than
/// the evicted ones. If they overflow, a change is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Moment(u64);

impl Moment {
    /// Returns the counter of changes alone.
    pub(crate) fn version(self) -> u64 {
        self.0 >> EVICTION_BITS
    }
}

/// See [`Moment`].
const EVICTION_BITS: u32 = 8;

impl Versions {
    pub(crate) fn new(counters: usize) -> Self {
        let stride = if counters > 16 { 8 } else { 1 };
        Self { words: (0..counters * stride).map(|_| AtomicU64::new(0)).collect(), stride }
    }

    /// Returns how many counters there are.
    pub(crate) fn width(&self) -> usize {
        self.words.len() / self.stride
    }

    fn counter(&self, dir: &Dentry) -> &AtomicU64 {
        let line = core::ptr::from_ref(dir) as usize >> 6;
        &self.words[((line ^ line >> 8) * self.stride) & (self.words.len() - 1)]
    }

    /// Returns the counter of the locked directory.
    pub(crate) fn of(&self, dir: &Dentry) -> u64 {
        self.moment_of(dir).version()
    }

    /// Returns the counter, with evictions of directories from it.
    pub(crate) fn moment_of(&self, dir: &Dentry) -> Moment {
        // ORDERING: Acquire, pairs with the Release of `bump`: an invalidation that was counted is seen.
        Moment(self.counter(dir).load(Acquire))
    }

    /// Counts the eviction of a directory from `dir`.
    pub(crate) fn note_eviction(&self, dir: &Dentry) {
        // Relaxed: a thread that compares moments has the lock of the evicted name, as this one.
        self.counter(dir).fetch_add(1, Relaxed);
    }

    /// Counts a change.
    pub(crate) fn bump(&self, dir: &Dentry) {
        // ORDERING: Release, pairs with the Acquire of `of`.
        self.counter(dir).fetch_add(1 << EVICTION_BITS, Release);
    }

    /// Counts a change in every directory.
    pub(crate) fn bump_all(&self) {
        // ORDERING: Release, as in `bump`.
        for counter in self.words.iter().step_by(self.stride) {
            counter.fetch_add(1 << EVICTION_BITS, Release);
        }
    }
}
