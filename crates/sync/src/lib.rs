//! Synchronisation primitives of the Linux directory cache, in user space.
//!
//! Each module says what its primitive is and what it is not, draws its state word, names each ordering with its partner,
//! and cites its source. The loom tests in `tests/` fail when any one ordering is weakened (`scripts/weaken-orderings`).
//! The crate knows no file-system word.
//!
//! | want | take |
//! |---|---|
//! | readers that never store to shared memory | [`rcu`], [`SeqCount`] for what they read |
//! | small data read often, written rarely | [`SeqLock`]; [`SeqRwLock`] where reads are long |
//! | a count that many threads move | [`LockRef`]; [`PerCpuArc`] for one hot object |
//! | objects reused under readers | [`slab::Slab`], [`HashTable`] |
//! | exclusion | [`SpinLock`], [`Mutex`]: a [`Lock`] around data; the raw locks below in it, or in `lock_api`'s |
//! | readers and writers | [`RwSem`] sleeps; [`PerCpuRwLock`] for readers that must not meet |
//! | one to do what many ask for | [`SingleFlight`] |
//! | to know what a lock costs, or that the order is kept | [`lockstat`]; [`lockdep`] |
//!
//! | raw lock | waiters | fair | free: take and give back |
//! |---|---|---|---|
//! | [`TasLock`] | spin on the word | no | a compare-exchange, a store |
//! | [`TicketLock`] | spin on the word | yes | a fetch-add, a store |
//! | [`McsLock`] | spin on a line of their own | yes | a swap, a compare-exchange |
//! | [`QueuedLock`] | the first on the word, others on a line of their own | nearly | a compare-exchange, a fetch-sub |
//! | [`RawMutex`] | sleep | no | a compare-exchange, a swap |

pub mod hashtable;
pub mod lock;
pub mod lockdep;
pub mod lockref;
pub mod lockstat;
pub mod mcs;
pub mod mutex;
pub mod percpu_arc;
pub mod percpu_rwlock;
mod place;
pub mod queued;
pub mod rcu;
pub mod rwsem;
pub mod seqcount;
pub mod seqlock;
pub mod seqrwlock;
pub mod single_flight;
pub mod slab;
pub mod tas;
pub mod ticket;

pub use hashtable::{HashNode, HashTable, View as HashView};
pub use lock::{Lock, LockGuard, RawLock};
pub use lockref::{GetNotDead, LockRef, LockRefGuard};
pub use mcs::McsLock;
pub use mutex::{Mutex, MutexGuard, RawMutex};
pub use percpu_arc::{PerCpuArc, PerCpuOwner, PerCpuRef};
pub use percpu_rwlock::{PerCpuReadGuard, PerCpuRwLock, PerCpuWriteGuard};
pub use queued::QueuedLock;
pub use rwsem::{AlwaysQueue, EarlyExit, RawRwSem, RwSem, RwSemReadGuard, RwSemStats, RwSemWriteGuard, SlowPath};
pub use seqcount::{SeqCount, SeqWrite};
pub use seqlock::{SeqLock, SeqLockGuard};
pub use seqrwlock::{Reading, SeqRwLock, SeqRwReadGuard, SeqRwWriteGuard};
pub use single_flight::SingleFlight;
pub use slab::{Item, Slab, SlabCursor};
pub use tas::{SpinLock, SpinLockGuard, TasLock};
pub use ticket::TicketLock;

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
