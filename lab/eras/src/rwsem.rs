//! **The rwsem's reader slow path** before and after July 2018 (Waiman Long; Linux 4.19): the semaphore of a file that is
//! read by many and now and then written.
//!
//! A reader that met a writer joined the queue and raised a mark that sent later readers into the
//! queue as well, even long after the writer had left. With the patch a reader that finds neither
//! queue nor writer enters at once. The queue is under a queued spinlock, and a writer that is
//! woken competes for the semaphore: see `tree/semaphore.rs`. Here it is the semaphore of each file
//! in a tree of that time: lockless counts, queued spinlocks (Linux 4.2), reverse paths without a
//! lock, mounts that a walk checks by a sequence (3.13).

use crate::rcu_walk::walk_and_go_on;
use crate::tree::dentry::Late;
use crate::tree::fine_locks::{Fine, Walk};
use crate::tree::grace::AtOnce;
use crate::tree::lockless::LocklessCount;
use crate::tree::mount::SequenceMounts;
use crate::tree::mutex::QueuedSpinning;
use crate::tree::renames::SeqExclusive;
use core::marker::PhantomData;
use locks::QueuedLock;
use sync::rwsem::SlowPath;

/// The tree of the time, with one slow path or the other. See the [module documentation](self).
pub(crate) struct Semaphores<P>(PhantomData<P>);

impl<P: SlowPath + Send + Sync + 'static> Fine for Semaphores<P> {
    type Dentry = Late<LocklessCount<QueuedLock>>;
    type Spin = QueuedLock;
    type Mutex = QueuedSpinning;
    type Renames = SeqExclusive<QueuedLock>;
    type Readers = P;
    type Mounts = SequenceMounts<QueuedLock>;
    type Grace = AtOnce;
    const LOCKS_EACH: bool = false;
    const LISTS_MOUNTS: bool = false;
    const WALK: Walk<Self> = walk_and_go_on;
}
