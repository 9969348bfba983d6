//! Mounts, as far as walks and `statvfs` pay for them.
//!
//! # What it is
//! The tree is one mounted file system. Each path that is held counts on the mount, each absolute walk crosses the mount
//! point under which the tree lies, and a reverse path keeps mounts still while it climbs. What that writes is the
//! difference:
//!
//! | of                  | count of references         | crossing and reverse paths |
//! |---------------------|-----------------------------|----------------------------|
//! | [`Uncrossed`], to 2.6.17 | one word for all       | under `dcache_lock`, which is held or taken for it |
//! | [`OneMountLock`], 2.6.32 | one word for all       | `vfsmount_lock`            |
//! | [`PerCpuMounts`], vfs-scale on | one for each CPU | the CPU's own lock (`brlock`) |
//!
//! # What it is not
//! A mount table: there is nothing to mount on. In the first kind the tree is taken to be the root file system, so that
//! there is nothing to cross either: with a mount point on each path, the measurements of 2002 would count one
//! acquisition of `dcache_lock` more a walk.
//!
//! # Source
//! `vfsmount_lock` was split off `dcache_lock` in 2.5; per-CPU lock and counts are Nick Piggin's of 2009.

use super::global_lock::{GlobalGuard, GlobalLock};
use prim::PerCpu;
use prim::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};
use prim::profile::{Tag, scope};
use sync::lockstat::Class;
use sync::{AlwaysQueue, PerCpuReadGuard, PerCpuRwLock, RawLock, RwSem};

/// How references to the mount are counted and mounts kept still.
pub(crate) trait Mounts: Send + Sync + 'static {
    /// Mounts kept still.
    type Guard<'a>;

    fn new() -> Self;

    /// One more path is held.
    fn get(&self);

    /// One less.
    fn put(&self);

    /// Keeps mounts still.
    fn still(&self) -> Self::Guard<'_>;

    /// A walk crosses a mount point.
    fn cross(&self);

    /// Paths that are held.
    fn held(&self) -> i64;

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class));
}

#[repr(align(128))]
struct UseCount(AtomicI64);

impl UseCount {
    fn new() -> Self {
        Self(AtomicI64::new(0))
    }

    fn add(&self, by: i64) {
        let _scope = scope(Tag::Ref);
        // Relaxed: a count that nothing is freed by.
        self.0.fetch_add(by, Relaxed);
    }
}

/// Mounts that are kept still by the lock that its user holds anyway, and are never crossed.
pub(crate) struct Uncrossed(UseCount);

impl Mounts for Uncrossed {
    type Guard<'a> = ();

    fn new() -> Self {
        Self(UseCount::new())
    }

    fn get(&self) {
        self.0.add(1);
    }

    fn put(&self) {
        self.0.add(-1);
    }

    fn still(&self) {}

    fn cross(&self) {}

    fn held(&self) -> i64 {
        self.0.0.load(Relaxed)
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}

/// One spinlock for all mounts.
pub(crate) struct OneMountLock<R: RawLock> {
    lock: GlobalLock<R>,
    count: UseCount,
    /// The chain of the mount hash that leads to the tree.
    chain: AtomicU32,
}

impl<R: RawLock + 'static> Mounts for OneMountLock<R> {
    type Guard<'a> = GlobalGuard<'a, R>;

    fn new() -> Self {
        Self { lock: GlobalLock::new("vfsmount_lock"), count: UseCount::new(), chain: AtomicU32::new(1) }
    }

    fn get(&self) {
        self.count.add(1);
    }

    fn put(&self) {
        self.count.add(-1);
    }

    fn still(&self) -> Self::Guard<'_> {
        self.lock.lock()
    }

    fn cross(&self) {
        let _still = self.still();
        let _found = self.chain.load(Relaxed);
    }

    fn held(&self) -> i64 {
        self.count.0.load(Relaxed)
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        visit(self.lock.class());
    }
}

/// One lock and one count for each CPU.
pub(crate) struct PerCpuMounts {
    lock: PerCpuRwLock<()>,
    counts: PerCpu<UseCount>,
    chain: AtomicU32,
}

impl PerCpuMounts {
    fn add(&self, by: i64) {
        let _scope = scope(Tag::Ref);
        let own = &self.counts.this().0;
        // Relaxed: the slot is this thread's own.
        own.store(own.load(Relaxed) + by, Relaxed);
    }
}

impl Mounts for PerCpuMounts {
    type Guard<'a> = PerCpuReadGuard<'a, ()>;

    fn new() -> Self {
        Self { lock: PerCpuRwLock::new(()), counts: PerCpu::new(UseCount::new), chain: AtomicU32::new(1) }
    }

    fn get(&self) {
        self.add(1);
    }

    fn put(&self) {
        self.add(-1);
    }

    fn still(&self) -> Self::Guard<'_> {
        self.lock.read()
    }

    fn cross(&self) {
        let _still = self.still();
        let _found = self.chain.load(Relaxed);
    }

    fn held(&self) -> i64 {
        self.counts.iter().map(|count| count.0.load(Relaxed)).sum()
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}

/// What `statvfs(3)` reads: the list of mounts, and the mount's own flags.
pub(crate) struct MountList {
    namespace: RwSem<usize, AlwaysQueue>,
    /// `mnt_flags`; bit 0: read-only.
    flags: AtomicU32,
}

impl MountList {
    /// A list of so many lines.
    pub(crate) fn new(lines: usize) -> Self {
        Self { namespace: RwSem::with_slow_path(lines), flags: AtomicU32::new(0) }
    }

    /// From the mount itself.
    pub(crate) fn is_read_only(&self) -> bool {
        // Relaxed: a flag that orders nothing.
        self.flags.load(Relaxed) & 1 != 0
    }

    /// Calls `each` for each line of the list, which stays as it is meanwhile; then what the line of the tree's mount
    /// says.
    pub(crate) fn is_read_only_by_list(&self, mut each: impl FnMut()) -> bool {
        let lines = self.namespace.read();
        (0..*lines).for_each(|_| each());
        self.is_read_only()
    }
}
