//! The MCS lock: a queue in which each waiter spins on a line of its own.
//!
//! # What it is
//! One word, the tail of a queue of nodes. Who wants the lock swaps its node in, links itself behind the node it found,
//! and spins on its own node until whoever is in front hands over. So a handover costs two transfers of a line, however
//! many wait, and waiters are served in order.
//!
//! # What it is not
//! Cheap when it is free: a swap to take, a compare-exchange to give back, and the search for a node. When a waiter loses
//! its CPU, all behind it wait for it.
//!
//! # State
//! | `tail`  | meaning                                                    |
//! |---------|------------------------------------------------------------|
//! | null    | free                                                       |
//! | a node  | held; that node is the last in the queue, maybe the holder's |
//!
//! A node: `waiting` 1 until it is handed the lock; `next` the node behind, once that has linked itself.
//!
//! # Orderings
//! | here                                         | partner                                                    |
//! |----------------------------------------------|------------------------------------------------------------|
//! | `lock`: swap of `tail`, Acquire              | `unlock`: compare-exchange of `tail`, Release              |
//! | `try_lock`: compare-exchange, Acquire        | the same                                                   |
//! | `lock`: load of `waiting`, Acquire           | `unlock`: store of `waiting`, Release                      |
//! | `lock`: swap of `tail`, Release              | `lock` of the next in the queue: the same swap, Acquire    |
//! | `try_lock`: compare-exchange, Release        | `lock` of the next in the queue: swap, Acquire             |
//! | `lock`: store of the front's `next`, Release | `unlock`: loads of `next`, Acquire                         |
//!
//! # Invariants
//! 1. A node is in at most one queue, and is given back only when nobody else can reach it.
//! 2. The lock is with the node at the front: the one that found `tail` null, or was handed over to since.
//!
//! # Source
//! J. Mellor-Crummey and M. Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors" (ACM TOCS
//! 9(1), 1991). There the caller brings the node; here it comes from the CPU index (see `prim::qnode`), as in Linux.
//!
//! # Limitations
//! A thread can hold four of these locks at once; asking for a fifth panics. So does giving one back in a thread-local
//! destructor that runs after the thread gave its CPU index back.
//!
//! ```
//! use sync::{Lock, McsLock};
//!
//! let total = Lock::<McsLock, _>::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use crate::lock::{RawLock, through_lock_api};
use crate::place::Place;
use core::ptr::{self, NonNull};
use prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};
use prim::qnode::Node;

/// The tail of the queue; see the module's description. 8 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct McsLock {
    tail: AtomicPtr<Node>,
}

// SAFETY: invariants 1 and 2 exclude, and the orderings of the module's table make a section follow the last one.
unsafe impl RawLock for McsLock {
    #[inline]
    fn new() -> Self {
        Self { tail: AtomicPtr::new(ptr::null_mut()) }
    }

    /// As [`RawLock::lock`].
    ///
    /// # Panics
    /// If the thread has four places in queues already.
    #[inline]
    fn lock(&self) {
        let _scope = scope(Tag::SpinLock);
        let place = Place::take(self).expect("a thread holds at most four queued locks");
        // ORDERING: Acquire pairs with the Release in `unlock` (an empty queue: this section follows the last one), and
        // with the Release of this swap and of `try_lock` in the thread in front (its node is ready to be linked to).
        // Release pairs with the Acquire of this swap in the thread behind.
        if let Some(front) = NonNull::new(self.tail.swap(node_of(place), AcqRel)) {
            lockstat::contended(self);
            // SAFETY: invariant 1: the node in front stays there until it has handed over to this one.
            let front = unsafe { front.as_ref() };
            // ORDERING: Release pairs with the Acquires in `unlock`: who sees this link sees `waiting` set, and clears it
            // after that.
            front.next.store(node_of(place), Release);
            // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
            spin_until(|| place.node.waiting.load(Acquire) == 0);
        }
        lockstat::acquired(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let _scope = scope(Tag::SpinLock);
        // Relaxed: only a hint, which saves a node; the exchange decides.
        if !self.tail.load(Relaxed).is_null() {
            return false;
        }
        let Some(place) = Place::take(self) else { return false };
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one. Release pairs with the
        // Acquire of the swap in `lock`.
        let taken = self.tail.compare_exchange(ptr::null_mut(), node_of(place), AcqRel, Relaxed).is_ok();
        if taken {
            lockstat::acquired(self);
        } else {
            place.give_back();
        }
        taken
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        lockstat::released(self);
        let place = Place::at(self).expect("a queued lock is given back by the thread that took it");
        // ORDERING: Acquire pairs with the Release of the link in `lock`.
        let mut behind = place.node.next.load(Acquire);
        if behind.is_null() {
            // ORDERING: Release pairs with the Acquire of the swap in `lock` and of `try_lock`: the next section follows
            // this one.
            if self.tail.compare_exchange(node_of(place), ptr::null_mut(), Release, Relaxed).is_ok() {
                place.give_back();
                return;
            }
            // Somebody has swapped itself in and is about to link.
            spin_until(|| {
                // ORDERING: Acquire pairs with the Release of the link in `lock`.
                behind = place.node.next.load(Acquire);
                !behind.is_null()
            });
        }
        place.give_back();
        // SAFETY: invariant 1: who waits there cannot leave before it is handed the lock. Not null: seen above.
        let behind = unsafe { &*behind };
        // ORDERING: Release pairs with the Acquire of `waiting` in `lock`: the next section follows this one.
        behind.waiting.store(0, Release);
    }
}

fn node_of(place: Place) -> *mut Node {
    ptr::from_ref(place.node).cast_mut()
}

through_lock_api!(McsLock, Self { tail: AtomicPtr::new(ptr::null_mut()) });

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::lock::Lock;

    #[test]
    fn four_are_held_at_once_and_given_back_in_any_order() {
        let locks: [Lock<McsLock, u32>; 5] = Default::default();
        let mut held: Vec<_> = locks[..4].iter().map(|lock| lock.lock()).collect();
        assert!(locks[4].try_lock().is_none());
        let fifth = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(locks[4].lock())));
        assert!(fifth.is_err());
        drop(held.remove(1));
        assert!(locks[4].try_lock().is_some());
        drop(held);
        assert!(locks.iter().all(|lock| lock.try_lock().is_some()));
    }
}
