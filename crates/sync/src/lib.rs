//! Synchronisation primitives of the Linux directory cache, in user space.
//!
//! The head of each module describes its primitive: its purpose and limits, its state word, each
//! ordering with its partner, and its source. `tools/check/weaken-orderings` shows for each
//! ordering a loom test in `tests/` that fails without it. The crate does not depend on a file
//! system.
//!
//! | need | take |
//! |---|---|
//! | readers that never store to shared memory | [`rcu`], [`SeqCount`] for the data they read |
//! | small data read often, written rarely | [`SeqLock`]; [`SeqRwLock`] where reads are long |
//! | a count that many threads change | [`LockRef`]; [`PerCpuArc`] for one hot object |
//! | objects reused under readers | [`slab::Slab`], [`HashTable`] |
//! | bulk memory that is returned to the system when it is free | [`PagePool`] |
//! | facts by their signatures, found without a store | [`SignatureTable`] |
//! | a bound that many threads take from | [`PerCpuCredits`] |
//! | exclusion | [`SpinLock`], [`Mutex`]: a [`Lock`] around data; or a raw lock below in `lock_api`'s |
//! | readers and writers | [`RwSem`] sleeps; [`PerCpuRwLock`] for readers without a shared cache line; [`BiasedRwLock`] for many objects that are seldom shared |
//! | one thread to do what many need | [`SingleFlight`] |
//! | a value that is made at its first use | [`OnceBox`] |
//! | a check of the lock order; how long threads waited for the locks of a rank | [`lockdep`] |
//!
//! | raw lock | waiters | fair | uncontended: take and release |
//! |---|---|---|---|
//! | [`TasLock`] | spin on the word | no | a compare-exchange, a store |
//! | [`RawMutex`] | sleep | no | a compare-exchange, a swap |

#![allow(unsafe_code, reason = "the home of concurrency that the borrow checker cannot see")]
#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

pub mod biased_rwlock;
pub mod hashtable;
pub mod lock;
pub mod lockdep;
pub mod lockref;
pub mod mutex;
pub mod once_box;
pub mod pages;
pub mod percpu_arc;
pub mod percpu_credits;
pub mod percpu_rwlock;
pub mod rcu;
pub mod rwsem;
pub mod seqcount;
pub mod seqlock;
pub mod seqrwlock;
pub mod signature_table;
pub mod single_flight;
pub mod slab;
pub mod tas;
pub mod zeroed;

pub use biased_rwlock::{BiasedReadGuard, BiasedReaders, BiasedRwLock, BiasedWriteGuard};
pub use hashtable::{HashNode, HashTable, View as HashView};
pub use lock::{Lock, LockGuard, RawLock};
pub use lockref::{GetNotDead, LockRef, LockRefGuard};
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use once_box::OnceBox;
pub use pages::{Page, PagePool};
pub use percpu_arc::{PerCpuArc, PerCpuOwner, PerCpuRef};
pub use percpu_credits::PerCpuCredits;
pub use percpu_rwlock::{PerCpuReadGuard, PerCpuRwLock, PerCpuWriteGuard};
pub use rwsem::{AlwaysQueue, EarlyExit, RawRwSem, RwSem, RwSemReadGuard, RwSemStats, RwSemWriteGuard, SlowPath};
pub use seqcount::{SeqCount, SeqWrite};
pub use seqlock::{SeqLock, SeqLockGuard};
pub use seqrwlock::{ReadPass, SeqRwLock, SeqRwReadGuard, SeqRwWriteGuard};
pub use signature_table::SignatureTable;
pub use single_flight::SingleFlight;
pub use slab::{Item, Slab, SlabCursor};
pub use tas::{SpinLock, SpinLockGuard, TasLock};

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
