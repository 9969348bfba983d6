//! One file's locks of one family, and the requests that wait.
//!
//! # What it is
//! The ranges of each owner, an index of the ranges of all owners, and the waiting requests in order of
//! arrival. A request visits the ranges of the owner, and few of other owners.
//!
//! # What it is not
//! A wait queue for each blocker, as in Linux: a change examines all waiting requests of the file.
//!
//! # How it is locked
//! The shard's mutex protects everything except a sleeper's word: the waiting thread reads the word
//! relaxed, and takes the mutex before it relies on the value. A parked request has no thread: the
//! thread that grants the request calls its closure after the release of the mutex.
//!
//! # Invariants
//! 1. The locks of two owners do not conflict.
//! 2. Each waiting request conflicts with a lock of another owner. So a table without locks has no
//!    waiting requests.
//!
//! # Where it comes from
//! Linux's `fs/locks.c`: the rules, not the structure.

use super::intervals::Intervals;
use super::quota::LockQuota;
use super::ranges::{Index, Ranges};
use super::{LockInfo, LockKind, WHOLE};
use crate::base::errno::Errno;
use core::ops::Range;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::park;
use prim::shared::PlainArc as Arc;
use std::collections::BTreeMap;

/// An owner's request. The range is not empty.
#[derive(Clone, Debug)]
pub(super) struct LockRequest {
    pub(super) owner: u64,
    pub(super) kind: LockKind,
    pub(super) range: Range<u64>,
    /// The quota of the owner; its first one counts.
    pub(super) quota: Option<Arc<LockQuota>>,
}

/// An owner with locks.
#[derive(Default)]
struct Held {
    ranges: Ranges,
    quota: Option<Arc<LockQuota>>,
}

/// The thread of a request that waits.
pub(super) struct Sleeper {
    pub(super) word: AtomicU32,
}

impl Sleeper {
    pub(super) const WAITING: u32 = 0;
    const GRANTED: u32 = 1;

    /// Exact under the shard's lock; a hint without it.
    pub(super) fn is_granted(&self) -> bool {
        // Relaxed: the lock orders.
        self.word.load(Relaxed) == Self::GRANTED
    }
}

/// Called when a parked request is granted.
pub(crate) type Granted = Box<dyn FnOnce() + Send>;

pub(super) enum Waiter {
    Thread(Arc<Sleeper>),
    /// No thread: the number of the request, and the closure to call.
    Parked(u64, Granted),
}

impl Waiter {
    /// Notifies it after its request was granted; without the shard's lock.
    pub(super) fn wake(self) {
        match self {
            Self::Thread(sleeper) => park::unpark_one(&sleeper.word),
            Self::Parked(_, granted) => granted(),
        }
    }

    pub(super) fn is_thread(&self, sleeper: &Arc<Sleeper>) -> bool {
        matches!(self, Self::Thread(own) if Arc::ptr_eq(own, sleeper))
    }

    pub(super) fn is_parked(&self, number: u64) -> bool {
        matches!(self, Self::Parked(own, _) if *own == number)
    }
}

/// See the module's description.
pub(super) struct LockTable {
    /// Owners with locks.
    held: BTreeMap<u64, Held>,
    index: Index,
    waiting: Vec<(LockRequest, Waiter)>,
}

impl LockTable {
    /// `seed`: a number that users of the file do not know.
    pub(super) fn new(seed: u64) -> Self {
        Self { held: BTreeMap::new(), index: Index::new(seed), waiting: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Returns whether a lock of another owner conflicts.
    pub(super) fn has_conflict(&self, request: &LockRequest) -> bool {
        self.first_conflict(request).is_some()
    }

    /// Returns the first lock of another owner that conflicts, with its owner.
    pub(super) fn first_conflict(&self, request: &LockRequest) -> Option<(u64, LockInfo)> {
        let first = |index: &Intervals, kind| {
            let span = index.first_of_another(request.owner, &request.range)?;
            Some((span.owner, LockInfo { kind, start: span.start, end: span.end }))
        };
        let exclusive = || first(&self.index.exclusive, LockKind::Exclusive);
        match request.kind {
            LockKind::Unlock => None,
            LockKind::Shared => exclusive(),
            LockKind::Exclusive => {
                let both = [exclusive(), first(&self.index.shared, LockKind::Shared)];
                both.into_iter().flatten().min_by_key(|(_, lock)| lock.start)
            }
        }
    }

    /// Returns whether a lock of `other` conflicts.
    pub(super) fn is_blocked_by(&self, other: u64, request: &LockRequest) -> bool {
        let held = self.held.get(&other).filter(|_| other != request.owner);
        held.is_some_and(|held| held.ranges.first_conflict(request.kind, &request.range).is_some())
    }

    /// Checks whether the owner's quota has room for the request.
    ///
    /// # Errors
    /// `ENOLCK`.
    pub(super) fn check_quota(&self, request: &LockRequest) -> Result<(), Errno> {
        let held = self.held.get(&request.owner);
        let Some(quota) = held.and_then(|held| held.quota.as_ref()).or(request.quota.as_ref()) else { return Ok(()) };
        match self.growth(request) {
            0 => Ok(()),
            growth => quota.check(growth),
        }
    }

    /// Returns how many ranges more the owner would have.
    pub(super) fn growth(&self, request: &LockRequest) -> usize {
        let first = usize::from(request.kind != LockKind::Unlock);
        self.held.get(&request.owner).map_or(first, |held| held.ranges.growth(request.kind, &request.range))
    }

    /// Grants a request without a conflict. Returns the waiters whose requests this grants; the caller wakes
    /// them.
    #[must_use]
    pub(super) fn grant(&mut self, request: &LockRequest) -> Vec<Waiter> {
        if self.apply(request) { self.hand_over() } else { Vec::new() }
    }

    /// Removes all locks of `owner`. Returns as [`LockTable::grant`].
    #[must_use]
    pub(super) fn give_up(&mut self, owner: u64) -> Vec<Waiter> {
        self.grant(&LockRequest { owner, kind: LockKind::Unlock, range: WHOLE, quota: None })
    }

    /// Queues a request that conflicts.
    pub(super) fn queue(&mut self, request: LockRequest) -> Arc<Sleeper> {
        let sleeper = Arc::new(Sleeper { word: AtomicU32::new(Sleeper::WAITING) });
        self.waiting.push((request, Waiter::Thread(sleeper.clone())));
        sleeper
    }

    /// Queues a request that conflicts, without a thread.
    pub(super) fn park(&mut self, request: LockRequest, number: u64, granted: Granted) {
        self.waiting.push((request, Waiter::Parked(number, granted)));
    }

    pub(super) fn withdraw(&mut self, sleeper: &Arc<Sleeper>) {
        self.waiting.retain(|(_, other)| !other.is_thread(sleeper));
    }

    /// Withdraws a parked request. `None`: it was granted, or withdrawn.
    pub(super) fn unpark(&mut self, number: u64) -> Option<Waiter> {
        let at = self.waiting.iter().position(|(_, other)| other.is_parked(number))?;
        Some(self.waiting.remove(at).1)
    }

    /// Withdraws all requests of an owner that ends.
    pub(super) fn withdraw_owner(&mut self, owner: u64) -> Vec<Waiter> {
        self.waiting.extract_if(.., |(request, _)| request.owner == owner).map(|(_, waiter)| waiter).collect()
    }

    /// Returns whether other requests may succeed now.
    fn apply(&mut self, request: &LockRequest) -> bool {
        let held = self.held.entry(request.owner).or_default();
        let counted = held.quota.as_ref().map_or(0, |_| held.ranges.len());
        let gives_back = held.ranges.set(&mut self.index, request.owner, request.kind, &request.range);
        if held.quota.is_none() {
            held.quota.clone_from(&request.quota);
        }
        if let Some(quota) = &held.quota {
            quota.count(counted, held.ranges.len());
        }
        if held.ranges.is_empty() {
            self.held.remove(&request.owner);
        }
        gives_back
    }

    /// Grants the requests that can be granted, in order of arrival.
    fn hand_over(&mut self) -> Vec<Waiter> {
        let mut granted = Vec::new();
        let mut at = 0;
        while let Some((request, _)) = self.waiting.get(at) {
            if self.has_conflict(request) {
                at += 1;
                continue;
            }
            let (request, waiter) = self.waiting.remove(at);
            // A request may release a part of its owner's locks: older requests get another chance.
            if self.apply(&request) {
                at = 0;
            }
            if let Waiter::Thread(sleeper) = &waiter {
                // Relaxed: under the lock, which the sleeper takes too.
                sleeper.word.store(Sleeper::GRANTED, Relaxed);
            }
            granted.push(waiter);
        }
        granted
    }

    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns an owner's pieces.
    #[cfg(test)]
    pub(super) fn pieces_of(&self, owner: u64) -> Vec<LockInfo> {
        self.held.get(&owner).into_iter().flat_map(|held| held.ranges.overlapping(&WHOLE)).collect()
    }
}
