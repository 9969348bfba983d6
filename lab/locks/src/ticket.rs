//! A ticket lock: waiters are served in the order in which they came.
//!
//! # What it is
//! Two 16-bit counters. A thread that wants the lock draws a ticket and waits until that ticket is served; the thread
//! that releases the lock serves the next ticket.
//!
//! # What it is not
//! Cheap under contention: all waiters read one cache line and each release invalidates it for all of them, so the cost
//! of a handover grows with the number of waiters. There is no back-off in proportion to the distance in the queue; the
//! kernel's lock had none either. When a waiter loses its CPU, all waiters behind it wait for it.
//!
//! # State
//! | `next` (bits 31..16)         | `owner` (bits 15..0)                               |
//! |------------------------------|----------------------------------------------------|
//! | the next ticket to draw      | the ticket being served; equal to `next`: free     |
//!
//! # Orderings
//! | here                        | partner                  |
//! |-----------------------------|--------------------------|
//! | `await_turn`: load, Acquire | `unlock`: store, Release |
//!
//! # Invariants
//! 1. Each value of `next` is drawn once in 2^16 draws, so no two of at most 2^16 - 1 threads have the same ticket.
//! 2. A thread has the lock from the moment it reads its ticket in `owner` until it steps `owner`; no other thread
//!    steps it.
//!
//! # Source
//! The counters are from D. Reed and R. Kanodia, "Synchronization with eventcounts and sequencers"
//! (CACM 22(2), 1979); the lock is in J. Mellor-Crummey and M. Scott, "Algorithms for scalable
//! synchronization on shared-memory multiprocessors" (ACM TOCS 9(1), 1991). Linux had it on x86
//! from 2.6.25 (2008) to 4.1.
//!
//! # Limitations
//! At most 65535 threads at one lock.
//!
//! ```
//! use lightfoot_locks::TicketLock;
//! use sync::Lock;
//!
//! let total = Lock::<TicketLock, _>::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use prim::atomic::{
    AtomicU16,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};
use sync::RawLock;

/// The two counters; see the module's description. 4 bytes.
#[derive(Debug, Default)]
#[repr(C, align(4))]
pub struct TicketLock {
    owner: AtomicU16,
    next: AtomicU16,
}

// SAFETY: invariants 1 and 2 exclude, and the orderings of the module's table make a section follow the last one.
unsafe impl RawLock for TicketLock {
    #[inline]
    fn new() -> Self {
        Self { owner: AtomicU16::new(0), next: AtomicU16::new(0) }
    }

    #[inline]
    fn lock(&self) {
        let _scope = scope(Tag::SpinLock);
        // Relaxed: a ticket is a number; `await_turn` orders.
        let ticket = self.next.fetch_add(1, Relaxed);
        self.await_turn(ticket);
        lockstat::acquired(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let _scope = scope(Tag::SpinLock);
        // Relaxed, both: `await_turn` orders.
        let ticket = self.owner.load(Relaxed);
        let drawn = self.next.compare_exchange(ticket, ticket.wrapping_add(1), Relaxed, Relaxed).is_ok();
        if drawn {
            // The thread's turn comes at once, unless 2^16 tickets were drawn between the load and
            // the exchange.
            self.await_turn(ticket);
            lockstat::acquired(self);
        }
        drawn
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        lockstat::released(self);
        // Relaxed: only the holder changes it.
        let served = self.owner.load(Relaxed);
        // ORDERING: Release pairs with the Acquire in `await_turn`: the next section follows this one.
        self.owner.store(served.wrapping_add(1), Release);
    }
}

impl TicketLock {
    #[inline]
    fn await_turn(&self, ticket: u16) {
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        let is_served = || self.owner.load(Acquire) == ticket;
        if !is_served() {
            lockstat::contended(self);
            spin_until(is_served);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn it_is_four_bytes() {
        assert_eq!(size_of::<TicketLock>(), 4);
    }

    #[test]
    fn tickets_wrap() {
        let lock = TicketLock { owner: AtomicU16::new(u16::MAX), next: AtomicU16::new(u16::MAX) };
        for _ in 0..2 {
            lock.lock();
            assert!(!lock.try_lock());
            // SAFETY: taken above.
            unsafe { lock.unlock() };
            assert!(lock.try_lock());
            // SAFETY: taken above.
            unsafe { lock.unlock() };
        }
        assert_eq!(lock.next.load(Relaxed), 3);
    }
}
