//! A list that is divided, so that CPUs do not meet at one lock: unused entries, and inodes of the file system.
//!
//! A member stays on the part of the CPU that put it in; its removal takes that part's lock. Stands for the per-zone
//! LRU lists and the per-CPU inode lists of the vfs-scale patches.

use super::list::{Head, Links};
use prim::PerCpu;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use sync::{Lock, RawLock};

/// Of the locks, in the statistics.
const NAME: &str = "lists of each CPU";

/// See the [module documentation](self).
pub(crate) struct Sharded<R: RawLock>(PerCpu<Shard<R>>);

#[repr(align(128))]
struct Shard<R: RawLock> {
    lock: Lock<R, ()>,
    head: Head,
}

impl<R: RawLock> Sharded<R> {
    pub(crate) fn new() -> Self {
        Self(PerCpu::new(|| Shard { lock: Lock::new(()), head: Head::new() }))
    }

    /// Puts `number` into the calling CPU's part, and records the part in `home`.
    pub(crate) fn insert<'a>(&self, number: u32, home: &AtomicU32, links: impl Fn(u32) -> &'a Links) {
        let shard = self.0.this();
        // Relaxed: the member's own lock, or its maker's being alone with it, orders.
        home.store(prim::cpu::id() as u32, Relaxed);
        prim::lockstat::named(|| NAME);
        let _held = shard.lock.lock();
        shard.head.insert(number, links);
    }

    /// Takes and releases the lock of the calling CPU's part: for a list whose members are not
    /// kept.
    pub(crate) fn touch(&self) {
        prim::lockstat::named(|| NAME);
        drop(self.0.this().lock.lock());
    }

    /// Takes `number`, which is in `home`'s part, out.
    pub(crate) fn remove<'a>(&self, number: u32, home: &AtomicU32, links: impl Fn(u32) -> &'a Links) {
        let shard = self.0.get(home.load(Relaxed) as usize);
        prim::lockstat::named(|| NAME);
        let _held = shard.lock.lock();
        shard.head.remove(number, links);
    }
}
