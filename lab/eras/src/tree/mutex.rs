//! The waiters for a directory's mutex: one sleeps, spins with all others on one word, or spins in
//! a queue.
//!
//! A waiter of the semaphore, and of the first mutexes, went to sleep. Since 2.6.29 (March 2009) it
//! spins for as long as the owner runs, with all other waiters on one word. Since 3.10 (2013) a
//! queue is in front of that word, so that one waiter at a time spins on it. The waiters offer
//! their CPU when they have spun for long, which models an owner that does not run.
//!
//! # Limitations
//! The time in [`Spinning`] counts as time in spinlocks; a profile of the kernel has it under the mutex.

use locks::SpinningMutex;
use sync::{RawMutex, TasLock};

/// Waiters sleep: to 2.6.28.
pub(crate) type Sleeping = RawMutex;

/// Waiters spin on one word: 2.6.29 to 3.9.
pub(crate) type Spinning = TasLock;

/// Waiters queue, and the first of them spins: from 3.10 on.
pub(crate) type QueuedSpinning = SpinningMutex;
