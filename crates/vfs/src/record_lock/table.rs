//! One file's locks of one family: who has what, and who waits.
//!
//! # What it is
//! The ranges of each owner, and the requests that wait, in the order in which they came.
//!
//! # What it is not
//! A wait queue for each blocker, as Linux has: a change looks at all that wait for the file.
//!
//! # How it is locked
//! By the shard's mutex, except for a sleeper's word: its owner reads that while it sleeps, relaxed, and takes the
//! mutex before it believes it.
//!
//! # Invariants
//! 1. The locks of two owners do not conflict.
//! 2. Each request that waits conflicts with a lock of another owner. So a table without locks has nobody who waits.
//!
//! # Where it comes from
//! `fs/locks.c` of Linux, of which it keeps the rules but not the shape.

use super::ranges::Ranges;
use super::{LockInfo, LockKind, WHOLE};
use core::ops::Range;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::park;
use prim::shared::Arc;
use std::collections::{BTreeMap, VecDeque};

/// What an owner asks for. The range is not empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Request {
    pub(super) owner: u64,
    pub(super) kind: LockKind,
    pub(super) range: Range<u64>,
}

/// The thread of a request that waits.
#[derive(Debug)]
pub(super) struct Sleeper {
    pub(super) word: AtomicU32,
}

impl Sleeper {
    pub(super) const WAITING: u32 = 0;
    const GRANTED: u32 = 1;

    /// Sure under the shard's lock; without it a hint.
    pub(super) fn is_granted(&self) -> bool {
        // Relaxed: the lock orders.
        self.word.load(Relaxed) == Self::GRANTED
    }

    /// Wakes it after it was granted; without the shard's lock.
    pub(super) fn wake(&self) {
        park::unpark_one(&self.word);
    }
}

/// See the module's description.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Owners that have something.
    held: BTreeMap<u64, Ranges>,
    waiting: VecDeque<(Request, Arc<Sleeper>)>,
}

impl Table {
    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether a lock of another owner is in the way.
    pub(super) fn has_conflict(&self, request: &Request) -> bool {
        self.conflicts(request).next().is_some()
    }

    /// Of the locks in the way the one that begins first.
    pub(super) fn first_conflict(&self, request: &Request) -> Option<LockInfo> {
        self.conflicts(request).min_by_key(|lock| lock.start)
    }

    /// Gives what nothing is in the way of. Answers whose requests that grants; the caller wakes them.
    #[must_use]
    pub(super) fn grant(&mut self, request: &Request) -> Vec<Arc<Sleeper>> {
        if self.apply(request) { self.hand_over() } else { Vec::new() }
    }

    /// Takes all locks of `owner`. Answers as [`Table::grant`].
    #[must_use]
    pub(super) fn give_up(&mut self, owner: u64) -> Vec<Arc<Sleeper>> {
        self.grant(&Request { owner, kind: LockKind::Unlock, range: WHOLE })
    }

    /// Lets a request wait that something is in the way of.
    pub(super) fn queue(&mut self, request: Request) -> Arc<Sleeper> {
        let sleeper = Arc::new(Sleeper { word: AtomicU32::new(Sleeper::WAITING) });
        self.waiting.push_back((request, sleeper.clone()));
        sleeper
    }

    /// Takes back a request that waits.
    pub(super) fn leave(&mut self, sleeper: &Arc<Sleeper>) {
        self.waiting.retain(|(_, other)| !Arc::ptr_eq(other, sleeper));
    }

    /// For each other owner with a lock in the way, the first such lock.
    fn conflicts(&self, request: &Request) -> impl Iterator<Item = LockInfo> {
        let others = self.held.iter().filter(|&(&owner, _)| owner != request.owner);
        others.filter_map(|(_, ranges)| ranges.first_conflict(request.kind, &request.range))
    }

    /// Says whether others may now have what they could not.
    fn apply(&mut self, request: &Request) -> bool {
        let ranges = self.held.entry(request.owner).or_default();
        let gives_back = ranges.set(request.kind, &request.range);
        if ranges.is_empty() {
            self.held.remove(&request.owner);
        }
        gives_back
    }

    /// Grants what can be granted, in order of arrival.
    fn hand_over(&mut self) -> Vec<Arc<Sleeper>> {
        let mut granted = Vec::new();
        let mut at = 0;
        while let Some((request, _)) = self.waiting.get(at) {
            if self.has_conflict(request) {
                at += 1;
                continue;
            }
            let Some((request, sleeper)) = self.waiting.remove(at) else {
                break;
            };
            // A request may give back a part of what its owner had: older ones get another chance.
            if self.apply(&request) {
                at = 0;
            }
            // Relaxed: under the lock, which the sleeper takes too.
            sleeper.word.store(Sleeper::GRANTED, Relaxed);
            granted.push(sleeper);
        }
        granted
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// An owner's pieces.
    #[cfg(test)]
    pub(super) fn pieces_of(&self, owner: u64) -> Vec<LockInfo> {
        self.held.get(&owner).into_iter().flat_map(|ranges| ranges.overlapping(&WHOLE)).collect()
    }
}
