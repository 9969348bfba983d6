//! The queued spinlock: an MCS queue behind one 32-bit word.
//!
//! # What it is
//! To take a free lock is one compare-exchange. The first waiter sets the pending bit and spins on the word itself, so
//! that two threads never touch a node. Further waiters queue up, each spinning on its own node; only the head of the
//! queue watches the word. Waiters are served in order.
//!
//! # What it is not
//! Linux's word exactly: there a store of one byte clears the locked byte, here a locked subtraction from the word,
//! because Rust's memory model does not define atomic accesses of different sizes to one word.
//!
//! # State
//! | bits 31..9                                     | bit 8                    | bits 7..0     |
//! |------------------------------------------------|--------------------------|---------------|
//! | code of the last node in the queue; 0: none    | pending: one waits here  | locked: 0, 1  |
//!
//! # Orderings
//! | here                                          | partner                                                      |
//! |-----------------------------------------------|--------------------------------------------------------------|
//! | `try_take`: compare-exchange, Acquire         | `unlock`: subtraction, Release                               |
//! | `lock_slow`, pending: load, Acquire           | `unlock`: subtraction, Release                               |
//! | `queue_up`, head: load, Acquire               | `unlock`: subtraction, Release                               |
//! | `join`: exchange of the tail, Release         | `join` of the next in the queue: the same exchange, Acquire  |
//! | `queue_up`: store of the front's `next`, Release | `hand_over`: load of `next`, Acquire                      |
//! | `queue_up`: load of `waiting`, Acquire        | `hand_over`: store of `waiting`, Release                     |
//!
//! # Invariants
//! 1. Only a thread that saw the locked byte 0 sets it: `try_take` in a word of 0; the owner of the pending bit; the
//!    head of the queue in a word without the pending bit.
//! 2. The thread that set the pending bit in a word without that bit and without a tail owns it. Another thread that
//!    set the bit in passing saw a tail, and clears it again.
//! 3. With a tail there is one head: the thread that found no tail when it joined, or to which the last head handed
//!    over.
//! 4. The locked byte becomes 0 in `unlock` only.
//!
//! # Source
//! Waiman Long and Peter Zijlstra, "qspinlock: a 4-byte queue spinlock with PV support" (Linux 4.2, 2015).
//!
//! # Limitations
//! A thread that holds four [`McsLock`](crate::McsLock)s has no free node, and spins on the word, out of order.
//!
//! ```
//! use lightfoot_locks::QueuedLock;
//! use sync::Lock;
//!
//! let total = Lock::<QueuedLock, _>::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use crate::node::NodeRef;
use core::ptr;
use prim::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use prim::hint::{spin_until, spin_until_bounded};
use prim::lockstat;
use prim::profile::{Tag, scope};
use sync::RawLock;

const LOCKED: u32 = 1;
const LOCKED_MASK: u32 = 0xff;
const PENDING: u32 = 0x100;
const TAIL_SHIFT: u32 = 9;
const TAIL_MASK: u32 = !(PENDING | LOCKED_MASK);

/// Pauses for which a newcomer waits for the pending thread to take the lock, before it claims a node. (None under
/// loom.)
const PENDING_TURNS: u32 = if cfg!(loom) { 0 } else { 512 };

/// The lock word; see the module's description. 4 bytes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct QueuedLock(AtomicU32);

// SAFETY: invariants 1 and 4 exclude, and the orderings of the module's table make a section follow the last one.
unsafe impl RawLock for QueuedLock {
    #[inline]
    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    #[inline]
    fn lock(&self) {
        let _scope = scope(Tag::SpinLock);
        if let Err(word) = self.try_take() {
            lockstat::contended(self);
            self.lock_slow(word);
        }
        lockstat::acquired(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let _scope = scope(Tag::SpinLock);
        let taken = self.try_take().is_ok();
        if taken {
            lockstat::acquired(self);
        }
        taken
    }

    /// # Safety
    /// As [`RawLock::unlock`].
    #[inline]
    unsafe fn unlock(&self) {
        lockstat::released(self);
        // ORDERING: Release pairs with the Acquire in `try_take` and with those of the waits in `lock_slow` and
        // `queue_up`: the next section follows this one.
        self.0.fetch_sub(LOCKED, Release);
    }
}

impl QueuedLock {
    /// Takes a lock that is free and without waiters. `Err`: the word.
    #[inline]
    fn try_take(&self) -> Result<u32, u32> {
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        self.0.compare_exchange(0, LOCKED, Acquire, Relaxed)
    }

    #[cold]
    fn lock_slow(&self, mut word: u32) {
        if word == PENDING {
            // The pending thread is about to take the lock; then the pending bit is free.
            spin_until_bounded(PENDING_TURNS, || {
                // Relaxed: only a hint; the exchange below decides.
                word = self.0.load(Relaxed);
                word != PENDING
            });
        }
        if word & !LOCKED_MASK != 0 {
            return self.queue_up();
        }
        // Relaxed: claims the second place; the wait below orders.
        let word = self.0.fetch_or(PENDING, Relaxed);
        if word & !LOCKED_MASK != 0 {
            if word & PENDING == 0 {
                // Relaxed: clears the bit that this thread set in passing (invariant 2).
                self.0.fetch_and(!PENDING, Relaxed);
            }
            return self.queue_up();
        }
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        spin_until(|| self.0.load(Acquire) & LOCKED_MASK == 0);
        // Relaxed: from pending to locked in one step; no other thread may change either (invariant 1).
        self.0.fetch_sub(PENDING - LOCKED, Relaxed);
    }

    /// Waits in the queue, then takes the lock.
    fn queue_up(&self) {
        let Some(own) = NodeRef::claim(self) else {
            while self.try_take().is_err() {
                // Relaxed: only a hint; the exchange decides.
                spin_until(|| self.0.load(Relaxed) == 0);
            }
            return;
        };
        if let Some(front) = self.join(own) {
            // ORDERING: Release pairs with the Acquire in `hand_over`: a thread that sees this link sees `waiting` set,
            // and clears it after that (not visible to loom: to it, stores of one word are in the order of their
            // execution).
            front.node.next.store(ptr::from_ref(own.node).cast_mut(), Release);
            // ORDERING: Acquire pairs with the Release in `hand_over`: the loads that follow see the word that the last
            // head left, with its lock in it.
            spin_until(|| own.node.waiting.load(Acquire) == 0);
        }
        loop {
            let mut word = 0;
            spin_until(|| {
                // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
                word = self.0.load(Acquire);
                word & (LOCKED_MASK | PENDING) == 0
            });
            if word >> TAIL_SHIFT != own.code {
                // Relaxed: the load above orders.
                self.0.fetch_or(LOCKED, Relaxed);
                self.hand_over(own);
                break;
            }
            // Relaxed: the load above orders. Alone in the queue: this leaves the queue and takes the lock in one step,
            // unless another thread has joined since, or sets the pending bit in passing.
            if self.0.compare_exchange(word, LOCKED, Relaxed, Relaxed).is_ok() {
                break;
            }
        }
        own.free();
    }

    /// Puts `own` at the end of the queue. Returns the node in front, if there is one.
    fn join(&self, own: NodeRef) -> Option<NodeRef> {
        // Relaxed: a guess, which the exchange checks.
        let mut word = self.0.load(Relaxed);
        loop {
            let joined = (word & !TAIL_MASK) | (own.code << TAIL_SHIFT);
            // ORDERING: Release and Acquire pair with one another, of two threads in a row: the node of the first is
            // ready before the second links itself to it.
            match self.0.compare_exchange_weak(word, joined, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let front = word >> TAIL_SHIFT;
        (front != 0).then(|| NodeRef::of_code(front))
    }

    /// Makes the thread behind `own` the head of the queue. There is one, for the tail is not `own`.
    fn hand_over(&self, own: NodeRef) {
        let mut behind = ptr::null_mut();
        spin_until(|| {
            // ORDERING: Acquire pairs with the Release of the link in `queue_up` (not visible to loom: to it,
            // the stores of `waiting` are in the order of their execution).
            behind = own.node.next.load(Acquire);
            !behind.is_null()
        });
        // SAFETY: invariant 3 of `crate::node`: nodes do not move or end. Not null: checked above.
        let behind = unsafe { &*behind };
        // ORDERING: Release pairs with the Acquire of `waiting` in `queue_up`.
        behind.waiting.store(0, Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::McsLock;
    use sync::Lock;

    /// Waits until `is_such` accepts the word, and returns it.
    fn await_word(lock: &QueuedLock, is_such: impl Fn(u32) -> bool) -> u32 {
        loop {
            let word = lock.0.load(Relaxed);
            if is_such(word) {
                return word;
            }
            std::thread::yield_now();
        }
    }

    fn lock_and_unlock(lock: &QueuedLock) {
        lock.lock();
        // SAFETY: taken above.
        unsafe { lock.unlock() };
    }

    #[test]
    fn it_is_four_bytes() {
        assert_eq!(size_of::<QueuedLock>(), 4);
    }

    #[test]
    fn a_thread_that_sets_the_pending_bit_in_passing_clears_it() {
        let lock = QueuedLock::new();
        let (hold, released) = std::sync::mpsc::channel::<()>();
        lock.lock();
        std::thread::scope(|s| {
            let lock = &lock;
            s.spawn(move || {
                lock.lock();
                let _ = released.recv();
                // SAFETY: taken above.
                unsafe { lock.unlock() };
            });
            await_word(lock, |word| word & PENDING != 0);
            s.spawn(|| lock_and_unlock(lock));
            await_word(lock, |word| word >> TAIL_SHIFT != 0);
            // SAFETY: taken above.
            unsafe { lock.unlock() };
            let word = await_word(lock, |word| word & (LOCKED | PENDING) == LOCKED);
            assert_ne!(word >> TAIL_SHIFT, 0, "one heads the queue");
            // A newcomer that saw the word before any thread waited.
            s.spawn(|| {
                lock.lock_slow(LOCKED);
                // SAFETY: taken above.
                unsafe { lock.unlock() };
            });
            let queued = await_word(lock, |now| now >> TAIL_SHIFT != word >> TAIL_SHIFT);
            assert_eq!(queued & (LOCKED_MASK | PENDING), LOCKED);
            drop(hold);
        });
        assert_eq!(lock.0.load(Relaxed), 0);
    }

    #[test]
    fn a_thread_without_a_free_node_spins_on_the_word() {
        let held: [Lock<McsLock, ()>; 4] = Default::default();
        let _held: Vec<_> = held.iter().map(|lock| lock.lock()).collect();
        let lock = QueuedLock::new();
        lock.queue_up();
        assert_eq!(lock.0.load(Relaxed), LOCKED);
        // SAFETY: taken above.
        unsafe { lock.unlock() };
        lock_and_unlock(&lock);
    }
}
