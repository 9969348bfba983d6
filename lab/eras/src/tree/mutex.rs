//! What a waiter for a directory's mutex does, before 2.6.29 and since.
//!
//! A waiter of the semaphore, and of the first mutexes, went to sleep. Since 2.6.29 (March 2009) it spins for as long as the
//! owner runs, with all other waiters on one word; a queue in front of that word came later (the MCS lock in the mutex,
//! 2013). So the eras from 2.6.32 on take a lock that spins. Its waiters offer their CPU when they have spun for long, which
//! stands for the owner that does not run.
//!
//! # Limitations
//! The time in [`Spinning`] counts as time in spinlocks; a profile of the kernel has it under the mutex.

use sync::{RawMutex, TasLock};

/// Waiters sleep.
pub(crate) type Sleeping = RawMutex;

/// Waiters spin.
pub(crate) type Spinning = TasLock;
