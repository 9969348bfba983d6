//! The MCS lock: a queue in which each waiter spins on its own cache line.
//!
//! # What it is
//! The lock word is the tail of a queue of nodes. A thread that wants the lock swaps its node into
//! the word. If the word had another node, the thread links its own node behind that one, and spins
//! on its own node until the thread in front hands the lock over. A handover moves two cache lines,
//! however many threads wait, and waiters are served in order.
//!
//! # What it is not
//! Cheap without waiters: a lock is a swap and a search for a node, an unlock is a
//! compare-exchange. When a waiter loses its CPU, all waiters behind it wait for it.
//!
//! # State
//! | `tail`  | meaning                                                     |
//! |---------|-------------------------------------------------------------|
//! | null    | free                                                        |
//! | a node  | held; the node is the last in the queue, maybe the holder's |
//!
//! In a node, `waiting` is 1 until the node gets the lock; `next` is the node behind, once that
//! node is linked.
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
//! 1. A node is in at most one queue, and its owner frees it only when no other thread can reach it.
//! 2. The node at the front has the lock: it found `tail` null, or the node before it handed the
//!    lock over.
//!
//! # Source
//! J. Mellor-Crummey and M. Scott, "Algorithms for scalable synchronization on shared-memory multiprocessors" (ACM TOCS
//! 9(1), 1991). There the caller brings the node; here it belongs to the CPU index, as in Linux.
//!
//! # Limitations
//! A thread can hold four of these locks at once; taking a fifth panics. A guard that is forgotten
//! counts for ever, even for later threads with the same CPU index. The release of a lock in a
//! destructor that runs after the thread has returned its CPU index panics.
//!
//! ```
//! use lightfoot_locks::McsLock;
//! use sync::Lock;
//!
//! let total = Lock::<McsLock, _>::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use crate::node::{Node, NodeRef};
use core::ptr::{self, NonNull};
use prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};
use sync::RawLock;

/// The tail of the queue; see the module's description. 8 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct McsLock {
    tail: AtomicPtr<Node>,
}

// SAFETY: by invariants 1 and 2 one thread at a time has the lock. By the orderings of the module's
// table each section sees the section before it.
unsafe impl RawLock for McsLock {
    #[inline]
    fn new() -> Self {
        Self { tail: AtomicPtr::new(ptr::null_mut()) }
    }

    /// As [`RawLock::lock`].
    ///
    /// # Panics
    /// If the thread uses its four nodes already.
    #[inline]
    fn lock(&self) {
        let _scope = scope(Tag::SpinLock);
        let own = NodeRef::claim(self).expect("a thread holds at most four queued locks");
        // ORDERING: Acquire pairs with the Release in `unlock` (an empty queue: this section follows the last one), and
        // with the Release of this swap and of `try_lock` in the thread in front (its node is ready to be linked to).
        // Release pairs with the Acquire of this swap in the thread behind.
        if let Some(front) = NonNull::new(self.tail.swap(pointer(own), AcqRel)) {
            lockstat::contended(self);
            // SAFETY: invariant 1: the node in front stays there until it has handed over to this one.
            let front = unsafe { front.as_ref() };
            // ORDERING: Release pairs with the Acquires in `unlock`: a thread that sees this link sees `waiting` set,
            // and clears it after that.
            front.next.store(pointer(own), Release);
            // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
            spin_until(|| own.node.waiting.load(Acquire) == 0);
        }
        lockstat::acquired(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let _scope = scope(Tag::SpinLock);
        // Relaxed: only a hint, which saves the claim of a node; the exchange decides.
        if !self.tail.load(Relaxed).is_null() {
            return false;
        }
        let Some(own) = NodeRef::claim(self) else { return false };
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one. Release pairs with
        // the Acquire of the swap in `lock`.
        let taken = self.tail.compare_exchange(ptr::null_mut(), pointer(own), AcqRel, Relaxed).is_ok();
        if taken {
            lockstat::acquired(self);
        } else {
            own.free();
        }
        taken
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        lockstat::released(self);
        let own = NodeRef::at(self).expect("the thread that took a queued lock releases it");
        // ORDERING: Acquire pairs with the Release of the link in `lock`.
        let mut behind = own.node.next.load(Acquire);
        if behind.is_null() {
            // ORDERING: Release pairs with the Acquire of the swap in `lock` and of `try_lock`: the next section
            // follows this one.
            if self.tail.compare_exchange(pointer(own), ptr::null_mut(), Release, Relaxed).is_ok() {
                own.free();
                return;
            }
            // Another thread has swapped its node in and is about to link it.
            spin_until(|| {
                // ORDERING: Acquire pairs with the Release of the link in `lock`.
                behind = own.node.next.load(Acquire);
                !behind.is_null()
            });
        }
        own.free();
        // SAFETY: invariant 1: the thread that waits there cannot leave before it is handed the lock. Not null: checked
        // above.
        let behind = unsafe { &*behind };
        // ORDERING: Release pairs with the Acquire of `waiting` in `lock`: the next section follows this one.
        behind.waiting.store(0, Release);
    }
}

fn pointer(own: NodeRef) -> *mut Node {
    ptr::from_ref(own.node).cast_mut()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use sync::Lock;

    #[test]
    fn a_thread_holds_four_at_once_and_releases_them_in_any_order() {
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
