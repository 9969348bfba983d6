//! Synchronisation primitives of the Linux directory cache, in user space.
#![warn(missing_docs)]

mod hashtable;
mod lockref;
mod mutex;
mod percpu_arc;
pub mod rcu;
mod seqcount;
mod seqlock;
mod slab;
mod spinlock;
