//! The budget of descriptors.
//!
//! # What it is
//! Records whose descriptors may be closed form a ring. When more descriptors are open than the
//! budget allows, a hand moves around the ring and closes the descriptors that were not used since
//! the hand passed last. The records of open files and of files without a name are outside of the
//! ring until the file is released. If a thread still uses a descriptor that was taken out of a
//! record, the descriptor is closed when the thread drops it.
//!
//! # How it is locked
//! The ring has a mutex, never held during a call to the host; records' locks nest inside it. Descriptors are closed
//! outside of all locks.
//!
//! # Where it comes from
//! CLOCK (Corbató, 1968); the file cache of NFS Ganesha and of `nfsd`.

use crate::node::{Fds, Node, State};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The smallest budget: a directory, a file, and the descriptors of a walk between them.
const MIN_FDS: usize = 8;

/// The largest budget: a descriptor is a non-negative `int`.
const MAX_FDS: usize = i32::MAX as usize;

/// Records that the hand examines when one descriptor is opened. After that the budget may be exceeded.
const MAX_LOOKS: usize = 1024;

/// Counts of descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FdCounts {
    pub(crate) open: usize,
    /// Descriptors that the budget closed.
    pub(crate) evicted: u64,
    /// Descriptors that were opened again after the budget had closed them.
    pub(crate) reopened: u64,
}

/// The records whose descriptors may be closed, and records whose descriptors could be closed when
/// the records were added.
#[derive(Debug)]
struct Ring {
    records: VecDeque<Weak<Node>>,
    /// The length at which the other records are removed.
    compact_at: usize,
    /// See `compact_at`.
    min_compact_at: usize,
}

impl Ring {
    fn push(&mut self, node: &Arc<Node>) {
        self.records.push_back(Arc::downgrade(node));
        if self.records.len() > self.compact_at {
            self.compact();
        }
    }

    /// Removes records without descriptors, held records, and dead ones. The next call comes when
    /// the length of the ring has doubled, so the average cost of an addition does not depend on
    /// the number of records.
    #[cold]
    fn compact(&mut self) {
        self.records.retain(|weak| {
            let Some(node) = weak.upgrade() else { return false };
            let mut state = node.state();
            state.is_queued = !state.is_held() && state.fds() != 0;
            state.is_queued
        });
        self.compact_at = self.min_compact_at.max(2 * self.records.len());
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    open: AtomicUsize,
    ring: Mutex<Ring>,
    evicted: AtomicU64,
    reopened: AtomicU64,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Self {
        let max = max.clamp(MIN_FDS, MAX_FDS);
        let compact_at = 2 * max + MAX_LOOKS;
        Self {
            max,
            open: AtomicUsize::new(0),
            ring: Mutex::new(Ring { records: VecDeque::new(), compact_at, min_compact_at: compact_at }),
            evicted: AtomicU64::new(0),
            reopened: AtomicU64::new(0),
        }
    }

    /// Returns the counts of descriptors.
    pub(crate) fn counts(&self) -> FdCounts {
        // Relaxed: counters.
        FdCounts {
            open: self.open.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            reopened: self.reopened.load(Relaxed),
        }
    }

    /// Counts a descriptor of the record with this state that was opened, if the budget had closed one of it.
    pub(crate) fn note_opened(&self, state: &mut State) {
        if core::mem::take(&mut state.was_closed) {
            // Relaxed: a counter.
            self.reopened.fetch_add(1, Relaxed);
        }
    }

    /// Counts descriptors that were added to a record, and those that were taken out of one.
    pub(crate) fn count(&self, opened: usize, closed: usize) {
        // Relaxed: a counter; the ring's lock orders the actions that follow from it.
        if opened > closed {
            self.open.fetch_add(opened - closed, Relaxed);
        } else if closed > opened {
            self.open.fetch_sub(closed - opened, Relaxed);
        }
    }

    /// Adds a record to the ring if its descriptors may be closed, and closes descriptors if too many are open.
    pub(crate) fn queue(&self, node: &Arc<Node>) {
        {
            let mut ring = self.ring.lock();
            let mut state = node.state();
            let is_added = !state.is_queued && !state.is_held() && state.fds() != 0;
            state.is_queued |= is_added;
            drop(state);
            if is_added {
                ring.push(node);
            }
        }
        if self.open.load(Relaxed) > self.max {
            self.shrink(self.max);
        }
    }

    /// Closes descriptors until at most `most` are open, or no more can be closed.
    pub(crate) fn shrink(&self, most: usize) {
        let mut closing: Vec<Arc<OwnedFd>> = Vec::new();
        let mut guard = self.ring.lock();
        let ring = &mut guard.records;
        let mut looks = ring.len().saturating_mul(2).min(MAX_LOOKS);
        while self.open.load(Relaxed) > most && looks != 0 {
            looks -= 1;
            let Some(weak) = ring.pop_front() else { break };
            let Some(node) = weak.upgrade() else { continue };
            let used = node.take_use();
            let mut state = node.state();
            if used && !state.is_held() && state.fds() != 0 {
                drop(state);
                ring.push_back(weak);
                continue;
            }
            state.is_queued = false;
            if state.is_held() {
                continue;
            }
            let fds = state.take_fds();
            state.was_closed = true;
            drop(state);
            let closed = fds.iter().flatten().count();
            self.count(0, closed);
            // Relaxed: a counter.
            self.evicted.fetch_add(closed as u64, Relaxed);
            closing.extend(fds.into_iter().flatten());
        }
        drop(guard);
        drop(closing);
    }

    /// Closes half of the descriptors, after the host reported `EMFILE` or `ENFILE`.
    #[cold]
    pub(crate) fn make_room(&self) {
        self.shrink(self.open.load(Relaxed) / 2);
    }

    /// Counts descriptors that were taken out of a record.
    pub(crate) fn forget(&self, fds: &Fds) {
        self.count(0, fds.iter().flatten().count());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NameAt;

    /// Returns a descriptor that leads nowhere.
    fn descriptor() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open("/").unwrap().into())
    }

    #[test]
    fn records_without_descriptors_leave_the_ring() {
        let budget = Budget::new(MIN_FDS);
        let most = 2 * MIN_FDS + MAX_LOOKS;
        let fd = descriptor();
        let mut nodes = Vec::new();
        for id in 0..20 * most as u64 {
            let node = Arc::new(Node::new(id, id, false, NameAt { dir: 1, name: b"f" }));
            node.state().data = Some(fd.clone());
            budget.queue(&node);
            // The file is open, and its descriptor is closed when that ends.
            node.state().data = None;
            nodes.push(node);
            assert!(budget.ring.lock().records.len() <= most);
        }
    }

    #[test]
    fn a_budget_is_at_most_as_large_as_a_descriptor() {
        assert_eq!(Budget::new(usize::MAX).max, MAX_FDS);
    }

    #[test]
    fn a_compaction_keeps_what_may_be_closed() {
        let budget = Budget::new(MIN_FDS);
        let fd = descriptor();
        let node = |id| Arc::new(Node::new(id, id, false, NameAt { dir: 1, name: b"f" }));
        let [closable, held] = [node(1), node(2)];
        for node in [&closable, &held] {
            node.state().path = Some(fd.clone());
            budget.queue(node);
        }
        held.state().opens = 1;
        budget.ring.lock().compact();
        let is_queued = |node: &Node| node.state().is_queued;
        assert_eq!((is_queued(&closable), is_queued(&held)), (true, false));
        // Released, it is added again.
        held.state().opens = 0;
        budget.queue(&held);
        budget.count(2, 0);
        budget.shrink(0);
        assert_eq!(budget.counts().evicted, 2);
    }
}
