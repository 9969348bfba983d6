//! The queued spinlock: an MCS queue behind one 32-bit word.
//!
//! # What it is
//! A free lock is one compare-exchange. The first waiter sets the pending bit and spins on the word itself, so that two
//! threads never touch a node. From the second waiter on they queue up on nodes, each spinning on its own; the head of
//! the queue alone watches the word. Served in order, but for who finds the lock free and nobody waiting.
//!
//! # What it is not
//! Linux's word exactly: there the locked byte is given back by a store of one byte, here by a locked subtraction of the
//! word, because mixing the sizes of atomic accesses to one word has no meaning in Rust's memory model.
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
//! 1. The locked byte is set only by who saw it 0: by `try_take` in a word of 0; by the owner of the pending bit; by the
//!    head of the queue in a word without pending bit.
//! 2. The pending bit is owned by who set it in a word without it and without a tail; others that set it in passing were
//!    shown a tail, and take it back.
//! 3. With a tail there is one head: who found no tail when it joined, or was handed over to.
//! 4. The locked byte becomes 0 in `unlock` only.
//!
//! # Source
//! Waiman Long and Peter Zijlstra, "qspinlock: a 4-byte queue spinlock with PV support" (Linux 4.2, 2015).
//!
//! # Limitations
//! A thread that holds four [`McsLock`](crate::McsLock)s has no node left, and waits for the word alone, out of order.
//!
//! ```
//! use sync::{Lock, QueuedLock};
//!
//! let total = Lock::<QueuedLock, _>::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use crate::lock::{RawLock, through_lock_api};
use crate::place::Place;
use core::ptr;
use prim::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use prim::hint::{spin_until, spin_until_bounded};
use prim::lockstat;
use prim::profile::{Tag, scope};

const LOCKED: u32 = 1;
const LOCKED_MASK: u32 = 0xff;
const PENDING: u32 = 0x100;
const TAIL_SHIFT: u32 = 9;
const TAIL_MASK: u32 = !(PENDING | LOCKED_MASK);

/// Pauses for which a newcomer waits for the pending one to take the lock, before it takes a node. (None under loom.)
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
    /// Takes a lock that is free and that nobody waits for. `Err`: the word.
    #[inline]
    fn try_take(&self) -> Result<u32, u32> {
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        self.0.compare_exchange(0, LOCKED, Acquire, Relaxed)
    }

    #[cold]
    fn lock_slow(&self, mut word: u32) {
        if word == PENDING {
            // The pending one is about to take the lock: then there is room for another.
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
                // Relaxed: takes back what was set in passing (invariant 2).
                self.0.fetch_and(!PENDING, Relaxed);
            }
            return self.queue_up();
        }
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        spin_until(|| self.0.load(Acquire) & LOCKED_MASK == 0);
        // Relaxed: from pending to locked in one step; nobody else may change either (invariant 1).
        self.0.fetch_sub(PENDING - LOCKED, Relaxed);
    }

    /// Waits in the queue, then takes the lock.
    fn queue_up(&self) {
        let Some(place) = Place::take(self) else {
            while self.try_take().is_err() {
                // Relaxed: only a hint; the exchange decides.
                spin_until(|| self.0.load(Relaxed) == 0);
            }
            return;
        };
        if let Some(front) = self.join(place) {
            // ORDERING: Release pairs with the Acquire in `hand_over`: who sees this link sees `waiting` set, and clears
            // it after that (not visible to loom: to it, stores of one word are in the order of their execution).
            front.node.next.store(ptr::from_ref(place.node).cast_mut(), Release);
            // ORDERING: Acquire pairs with the Release in `hand_over`: the loads that follow see the word that the last
            // head left, with its lock in it.
            spin_until(|| place.node.waiting.load(Acquire) == 0);
        }
        loop {
            let mut word = 0;
            spin_until(|| {
                // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
                word = self.0.load(Acquire);
                word & (LOCKED_MASK | PENDING) == 0
            });
            if word >> TAIL_SHIFT != place.code {
                // Relaxed: the load above orders.
                self.0.fetch_or(LOCKED, Relaxed);
                self.hand_over(place);
                break;
            }
            // Relaxed: the load above orders. Alone in the queue: out of it and in the lock at once, unless somebody has
            // joined since, or sets the pending bit in passing.
            if self.0.compare_exchange(word, LOCKED, Relaxed, Relaxed).is_ok() {
                break;
            }
        }
        place.give_back();
    }

    /// Puts `place` at the end of the queue. Returns who is in front, if anyone.
    fn join(&self, place: Place) -> Option<Place> {
        // Relaxed: a guess, which the exchange checks.
        let mut word = self.0.load(Relaxed);
        loop {
            let joined = (word & !TAIL_MASK) | (place.code << TAIL_SHIFT);
            // ORDERING: Release and Acquire pair with one another, of two threads in a row: the node of the first is
            // ready before the second links itself to it.
            match self.0.compare_exchange_weak(word, joined, AcqRel, Relaxed) {
                Ok(_) => break,
                Err(now) => word = now,
            }
        }
        let front = word >> TAIL_SHIFT;
        (front != 0).then(|| Place::of_code(front))
    }

    /// Makes who is behind `place` the head of the queue. There is somebody, for the tail is not `place`.
    fn hand_over(&self, place: Place) {
        let mut behind = ptr::null_mut();
        spin_until(|| {
            // ORDERING: Acquire pairs with the Release of the link in `queue_up` (not visible to loom: to it,
            // the stores of `waiting` are in the order of their execution).
            behind = place.node.next.load(Acquire);
            !behind.is_null()
        });
        // SAFETY: a node of `prim::qnode`, which stay where they are. Not null: seen above.
        let behind = unsafe { &*behind };
        // ORDERING: Release pairs with the Acquire of `waiting` in `queue_up`.
        behind.waiting.store(0, Release);
    }
}

through_lock_api!(QueuedLock, Self(AtomicU32::new(0)));

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Lock, McsLock};

    /// Waits until the word is such. Its owner goes on only then.
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
    fn who_sets_the_pending_bit_in_passing_takes_it_back() {
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
            // A newcomer that saw the word before anybody waited.
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
    fn who_has_no_node_left_waits_without_one() {
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
