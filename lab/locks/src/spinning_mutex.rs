//! The mutex that spins, with a queue of spinners: Linux's from 3.10 on, while the owner runs.
//!
//! # What it is
//! A word that a thread takes by a compare-exchange, and an [`McsLock`] in front of it for threads that find it taken.
//! The first of that queue spins on the word, the others each on its own line. A newcomer that finds the word free takes
//! it, past the queue.
//!
//! # What it is not
//! A mutex that sleeps: here the owner always runs. Fair: a newcomer may pass the queue.
//!
//! # State
//! | `word` | 0    | 1    |
//! |--------|------|------|
//! |        | free | held |
//!
//! # Orderings
//! | here                              | partner                  |
//! |-----------------------------------|--------------------------|
//! | `take`: compare-exchange, Acquire | `unlock`: store, Release |
//!
//! # Invariants
//! 1. The thread whose exchange turned `word` from 0 to 1 has the lock until it stores 0; no other thread stores.
//!
//! # Source
//! "mutex: Queue mutex spinners with MCS lock to reduce cacheline contention" (Waiman Long, linux-kernel, April 2013;
//! Linux 3.10). Before, since 2.6.29, all waiters spun on the word.
//!
//! ```
//! use lightfoot_locks::SpinningMutex;
//! use sync::Lock;
//!
//! let total = Lock::<SpinningMutex, _>::new(1);
//! *total.lock() += 1;
//! assert_eq!(total.into_inner(), 2);
//! ```

use crate::mcs::McsLock;
use prim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::hint::spin_until;
use prim::lockstat;
use prim::profile::{Tag, scope};
use sync::{Lock, RawLock};

/// The word and the queue; see the module's description. 16 bytes.
#[derive(Debug)]
#[repr(C)]
pub struct SpinningMutex {
    word: AtomicU32,
    queue: Lock<McsLock, ()>,
}

impl SpinningMutex {
    #[inline]
    fn take(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `unlock`: this section follows the last one.
        self.word.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[cold]
    fn lock_slow(&self) {
        lockstat::contended(self);
        let _first = self.queue.lock();
        loop {
            // Relaxed: a guess, which `take` checks.
            spin_until(|| self.word.load(Relaxed) == 0);
            if self.take() {
                return;
            }
        }
    }
}

// SAFETY: invariant 1 excludes, and the ordering of the module's table makes a section follow the last one.
unsafe impl RawLock for SpinningMutex {
    #[inline]
    fn new() -> Self {
        Self { word: AtomicU32::new(0), queue: Lock::new(()) }
    }

    #[inline]
    fn lock(&self) {
        let _scope = scope(Tag::Mutex);
        if !self.take() {
            self.lock_slow();
        }
        lockstat::acquired(self);
    }

    #[inline]
    fn try_lock(&self) -> bool {
        let _scope = scope(Tag::Mutex);
        let taken = self.take();
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
        // ORDERING: Release pairs with the Acquire in `take`: the next section follows this one.
        self.word.store(0, Release);
    }
}
