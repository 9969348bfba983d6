//! Synchronisation primitives of the Linux directory cache, in user space.
//!
//! Each module says what its primitive is and what it is not, draws its state word, names each ordering with its partner and the
//! source of the idea. The loom tests in `tests/` fail when any one ordering is weakened (`scripts/weaken-orderings`).
//! The crate knows no file-system word.
//!
//! | want | take |
//! |---|---|
//! | readers that never store to shared memory | [`rcu`], [`SeqCount`] for what they read |
//! | small data read often, written rarely | [`SeqLock`] |
//! | a count that many threads move | [`LockRef`]; [`PerCpuArc`] for one hot object |
//! | objects reused under readers | [`slab::Slab`], [`HashTable`] |
//! | exclusion | [`SpinLock`], [`Mutex`], [`RawMutex`] inside a larger object |

pub mod hashtable;
pub mod lockref;
pub mod mutex;
pub mod percpu_arc;
pub mod rcu;
pub mod seqcount;
pub mod seqlock;
pub mod slab;
pub mod spinlock;

pub use hashtable::{HashNode, HashTable, View as HashView};
pub use lockref::{GetNotDead, LockRef, LockRefGuard};
pub use mutex::{Mutex, MutexGuard, RawMutex, RawMutexGuard};
pub use percpu_arc::{PerCpuArc, PerCpuOwner};
pub use seqcount::{SeqCount, SeqWrite};
pub use seqlock::{SeqLock, SeqLockGuard};
pub use slab::{Item, Slab};
pub use spinlock::{SpinLock, SpinLockGuard};
