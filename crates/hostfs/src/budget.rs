//! The budget of descriptors.
//!
//! # What it is
//! Records whose descriptors may be closed form a ring. When more descriptors are open than the budget allows, a hand
//! moves around the ring and closes those that were not used since it passed last. Open files and files without a name
//! are held: they leave the ring until they are released. If a thread still uses a descriptor that was taken out, the
//! descriptor is closed when the thread drops it.
//!
//! # How it is locked
//! The ring has a mutex, never held during a call to the host; records' locks nest inside it. Descriptors are closed
//! outside of all locks.
//!
//! # Where it comes from
//! CLOCK (Corbató, 1968); the file cache of NFS Ganesha and of `nfsd`.

use crate::node::{Node, State};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The smallest budget: a directory, a file, and the descriptors of a walk between them.
const MIN_FDS: usize = 8;

/// Records that the hand examines when one descriptor is opened. After that the budget may be exceeded.
const MAX_LOOKS: usize = 1024;

/// Counts of descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FdCounts {
    pub(crate) open: usize,
    /// Closed because there were too many.
    pub(crate) evicted: u64,
    /// Opened again after that.
    pub(crate) reopened: u64,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Budget {
    max: usize,
    open: AtomicUsize,
    ring: Mutex<VecDeque<Weak<Node>>>,
    evicted: AtomicU64,
    reopened: AtomicU64,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            max: max.max(MIN_FDS),
            open: AtomicUsize::new(0),
            ring: Mutex::default(),
            evicted: AtomicU64::new(0),
            reopened: AtomicU64::new(0),
        }
    }

    /// The counts of descriptors.
    pub(crate) fn counts(&self) -> FdCounts {
        // Relaxed: counters.
        FdCounts {
            open: self.open.load(Relaxed),
            evicted: self.evicted.load(Relaxed),
            reopened: self.reopened.load(Relaxed),
        }
    }

    /// The number of descriptors that may be open.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Counts a descriptor that was opened again.
    pub(crate) fn note_reopened(&self) {
        // Relaxed: a counter.
        self.reopened.fetch_add(1, Relaxed);
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
            if !state.is_queued && !state.is_held() && state.fds() != 0 {
                state.is_queued = true;
                drop(state);
                ring.push_back(Arc::downgrade(node));
            }
            if ring.len() > 2 * self.max + MAX_LOOKS {
                // Dead records.
                ring.retain(|node| node.strong_count() != 0);
            }
        }
        if self.open.load(Relaxed) > self.max {
            self.shrink(self.max);
        }
    }

    /// Closes descriptors until at most `most` are open, or no more can be closed.
    pub(crate) fn shrink(&self, most: usize) {
        let mut closing: Vec<Arc<OwnedFd>> = Vec::new();
        let mut ring = self.ring.lock();
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
            let fds = take(&mut state);
            state.was_closed = true;
            drop(state);
            let closed = fds.iter().flatten().count();
            self.count(0, closed);
            // Relaxed: a counter.
            self.evicted.fetch_add(closed as u64, Relaxed);
            closing.extend(fds.into_iter().flatten());
        }
        drop(ring);
        drop(closing);
    }

    /// Closes half of the descriptors, after the host reported `EMFILE` or `ENFILE`.
    #[cold]
    pub(crate) fn make_room(&self) {
        self.shrink(self.open.load(Relaxed) / 2);
    }

    /// Takes all descriptors out of a record. The caller drops them outside of the record's lock.
    pub(crate) fn take_all(&self, state: &mut State) -> [Option<Arc<OwnedFd>>; 2] {
        let fds = take(state);
        self.count(0, fds.iter().flatten().count());
        fds
    }
}

fn take(state: &mut State) -> [Option<Arc<OwnedFd>>; 2] {
    state.access = 0;
    [state.path.take(), state.data.take()]
}
