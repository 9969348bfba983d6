//! A place in the queue of a queued lock: finding a free node of the calling thread's CPU index, and giving it back.
//!
//! # What it is
//! The part that [`McsLock`](crate::McsLock) and [`QueuedLock`](crate::QueuedLock) share. Both queue up on nodes of
//! `prim::qnode`, of which each CPU index has four.
//!
//! # How it is locked
//! Not at all: whether a node is free is written and asked by the thread that owns the CPU index only.
//!
//! # Invariants
//! 1. `Node::lock` is changed by the owner of the node's CPU index only.
//! 2. While it is not zero the node stands, or is about to stand, in the queue of the lock at that address.
//!
//! # Source
//! Linux's queued spinlock (Long and Zijlstra, 2015), which nests four deep for interrupts. Here it is by locks held.

use prim::atomic::Ordering::Relaxed;
use prim::qnode::{self, LEVELS, Node};

/// A node that stands for the calling thread in the queue of one lock.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) node: &'static Node,
    /// Which node of which CPU index, as one number; never 0.
    pub(crate) code: u32,
}

impl Place {
    /// A free node, for a place at the end of the queue of the lock at `lock`. `None`: this thread has
    /// [`LEVELS`] places already.
    #[inline]
    pub(crate) fn take<L>(lock: &L) -> Option<Self> {
        // Relaxed: invariant 1.
        let place = Self::find(0)?;
        place.node.lock.store(address(lock), Relaxed);
        // Relaxed, both: what links the node into the queue releases them.
        place.node.next.store(core::ptr::null_mut(), Relaxed);
        place.node.waiting.store(1, Relaxed);
        Some(place)
    }

    /// The calling thread's place at `lock`.
    #[inline]
    pub(crate) fn at<L>(lock: &L) -> Option<Self> {
        Self::find(address(lock))
    }

    /// Gives the node back. Nobody else may know it any more.
    #[inline]
    pub(crate) fn give_back(self) {
        // Relaxed: invariant 1.
        self.node.lock.store(0, Relaxed);
    }

    /// The node with that code.
    #[inline]
    pub(crate) fn of_code(code: u32) -> Self {
        let number = code as usize - LEVELS;
        Self { node: &qnode::of(number / LEVELS).0[number % LEVELS], code }
    }

    #[inline]
    fn find(lock: usize) -> Option<Self> {
        let cpu = prim::cpu::id();
        let nodes = &qnode::of(cpu).0;
        // Relaxed: invariant 1.
        let level = nodes.iter().position(|node| node.lock.load(Relaxed) == lock)?;
        Some(Self { node: &nodes[level], code: ((cpu + 1) * LEVELS + level) as u32 })
    }
}

fn address<L>(lock: &L) -> usize {
    (&raw const *lock).addr()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_four_places_and_each_is_found_by_its_lock() {
        let locks = [0u32; 5];
        let places: Vec<Place> = locks[..4].iter().map(|lock| Place::take(lock).expect("four")).collect();
        assert!(Place::take(&locks[4]).is_none() && Place::at(&locks[4]).is_none());
        for (lock, place) in locks.iter().zip(&places) {
            assert!(core::ptr::eq(Place::at(lock).expect("taken").node, place.node));
            assert!(core::ptr::eq(Place::of_code(place.code).node, place.node));
            assert_ne!(place.code, 0);
        }
        places[1].give_back();
        let again = Place::take(&locks[4]).expect("one is free");
        assert_eq!(again.code, places[1].code);
        [places[0], again, places[2], places[3]].into_iter().for_each(Place::give_back);
        assert!(locks.iter().all(|lock| Place::at(lock).is_none()));
    }
}
