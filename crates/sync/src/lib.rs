//! Synchronisation primitives of the Linux directory cache, in user space.
#![warn(missing_docs)]

mod hashtable;
mod lockref;
mod mutex;
mod percpu_arc;
pub mod rcu;
mod seqcount;
mod seqlock;
pub mod slab;
mod spinlock;

pub use hashtable::{HashNode, HashTable, View as HashView};
pub use lockref::{GetNotDead, LockRef, LockRefGuard};
pub use mutex::{Mutex, MutexGuard, RawMutex, RawMutexGuard};
pub use percpu_arc::{PerCpuArc, PerCpuOwner};
pub use seqcount::{SeqCount, SeqWrite};
pub use seqlock::{SeqLock, SeqLockGuard};
pub use slab::{Item, Slab};
pub use spinlock::{SpinLock, SpinLockGuard};
