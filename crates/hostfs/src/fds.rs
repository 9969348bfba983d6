//! The budget of descriptors.
//!
//! # What it is
//! Records with descriptors that may be closed stand in a ring; when there are more descriptors than the budget allows,
//! a hand goes round and closes those that were not used since it came by last. What is held (open files, files without
//! a name) leaves the ring until it is let go. A descriptor that somebody works with while it is taken out is closed
//! when that work is done.
//!
//! # How it is locked
//! The ring has a mutex, held for no call to the host; records' locks are inside of it. Descriptors are closed outside
//! of all locks.
//!
//! # Where it comes from
//! CLOCK (Corbató, 1968); the file cache of NFS Ganesha and of `nfsd`.

use crate::node::{Node, State};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};

/// The smallest budget: a directory, a file, and what a walk between them needs.
const LEAST: usize = 8;

/// Records that the hand looks at for one descriptor that is opened, beyond which the budget is passed.
const MOST_LOOKS: usize = 1024;

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
            max: max.max(LEAST),
            open: AtomicUsize::new(0),
            ring: Mutex::default(),
            evicted: AtomicU64::new(0),
            reopened: AtomicU64::new(0),
        }
    }

    /// Descriptors that are open, those that were closed for want of room, and those that were opened again.
    pub(crate) fn counts(&self) -> (usize, u64, u64) {
        // Relaxed: counters.
        (self.open.load(Relaxed), self.evicted.load(Relaxed), self.reopened.load(Relaxed))
    }

    /// How many descriptors there may be.
    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// Counts a descriptor that was opened again by its name.
    pub(crate) fn note_reopened(&self) {
        // Relaxed: a counter.
        self.reopened.fetch_add(1, Relaxed);
    }

    /// Counts descriptors that were put into a record, or taken out of one.
    pub(crate) fn count(&self, opened: usize, closed: usize) {
        // Relaxed: a counter; the ring's lock orders what is done about it.
        if opened > closed {
            self.open.fetch_add(opened - closed, Relaxed);
        } else if closed > opened {
            self.open.fetch_sub(closed - opened, Relaxed);
        }
    }

    /// Lets the hand come by, if the record has descriptors that may be closed; makes room if there are too many.
    pub(crate) fn queue(&self, node: &Arc<Node>) {
        {
            let mut ring = self.ring.lock();
            let mut state = node.state();
            if !state.is_queued && !state.is_held() && state.fds() != 0 {
                state.is_queued = true;
                drop(state);
                ring.push_back(Arc::downgrade(node));
            }
            if ring.len() > 2 * self.max + MOST_LOOKS {
                // Records that went while they stood there.
                ring.retain(|node| node.strong_count() != 0);
            }
        }
        if self.open.load(Relaxed) > self.max {
            self.shrink(self.max);
        }
    }

    /// Closes descriptors until no more than `most` are open, as far as that can be.
    pub(crate) fn shrink(&self, most: usize) {
        let mut closing: Vec<Arc<OwnedFd>> = Vec::new();
        let mut ring = self.ring.lock();
        let mut looks = ring.len().saturating_mul(2).min(MOST_LOOKS);
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

    /// Makes room after the host said that there are too many descriptors.
    #[cold]
    pub(crate) fn make_room(&self) {
        self.shrink(self.open.load(Relaxed) / 2);
    }

    /// Takes all descriptors out of a record, and counts them. The caller drops them outside of the record's lock.
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
