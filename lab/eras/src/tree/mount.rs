//! Mounts, as far as walks and `statvfs` pay for them.
//!
//! # What it is
//! The tree is one mounted file system. Each path that is held counts on the mount, each absolute
//! walk crosses the mount point of the tree, and a reverse path keeps mounts unchanged while it
//! climbs. The eras differ in the writes for that:
//!
//! | of                  | count of references         | crossing and reverse paths |
//! |---------------------|-----------------------------|----------------------------|
//! | [`Uncrossed`], to 2.6.17 | one word for all       | under `dcache_lock`, which is held or taken for it |
//! | [`OneMountLock`], 2.6.32 | one word for all       | `vfsmount_lock`            |
//! | [`PerCpuMounts`], vfs-scale to 3.12 | one for each CPU | the CPU's own lock (`brlock`) |
//! | [`SequenceMounts`], 3.13 on | one for each CPU | nothing: a sequence is checked |
//!
//! A mount and its end take that lock as a writer: with [`PerCpuMounts`] that is the lock of every CPU. Since 2.6.30 a change
//! of a name counts its writer in a word of its CPU (`mnt_want_write`), so that a mount can become read-only.
//!
//! # What it is not
//! A mount table: the mounted directory is the mount point itself, so a walk need not look for it.
//! In the first kind the tree is taken to be the root file system, so that there is nothing to
//! cross either: with a mount point on each path, the measurements of 2002 would count one
//! acquisition of `dcache_lock` more a walk.
//!
//! # Source
//! `vfsmount_lock` was split off `dcache_lock` in 2.5; per-CPU lock and counts are Nick Piggin's of 2009.

use super::Tree;
use super::fs_struct::ROOT;
use super::global_lock::{GlobalGuard, GlobalLock};
use super::renames::{Renames, SeqSpin};
use super::scheme::Scheme;
use crate::era::{Error, Result};
use locks::lockstat::Class;
use prim::PerCpu;
use prim::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};
use prim::profile::{Tag, scope};
use sync::{AlwaysQueue, PerCpuReadGuard, PerCpuRwLock, RawLock, RwSem};

/// How references to the mount are counted and mounts kept still.
pub(crate) trait Mounts: Send + Sync + 'static {
    /// Mounts kept still.
    type Guard<'a>;

    /// `is_remounted`: a remount cleared the flag that makes the count of references one for each CPU.
    fn new(is_remounted: bool) -> Self;

    /// Notes that `by` more paths are held.
    fn add(&self, by: i64);

    /// Notes that one more path is held.
    fn get(&self) {
        self.add(1);
    }

    /// Notes that one path fewer is held.
    fn put(&self) {
        self.add(-1);
    }

    /// Keeps mounts still.
    fn still(&self) -> Self::Guard<'_>;

    /// Does the work of a walk that crosses a mount point.
    fn cross(&self);

    /// Mounts or unmounts: `change` is done while no thread crosses or holds mounts still.
    fn change(&self);

    /// Notes that a name is about to change, until the guard is dropped.
    fn want_write(&self) -> Option<Writer<'_>> {
        None
    }

    /// Returns the number of paths that are held.
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

/// Writers of names, counted for each CPU: `mnt_writers`.
struct Writers(PerCpu<UseCount>);

/// A writer of names.
pub(crate) struct Writer<'a>(&'a AtomicI64);

impl Writers {
    fn new() -> Self {
        Self(PerCpu::new(UseCount::new))
    }

    fn enter(&self) -> Writer<'_> {
        let own = &self.0.this().0;
        // Relaxed: the slot is this thread's own.
        own.store(own.load(Relaxed) + 1, Relaxed);
        Writer(own)
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        // Relaxed: as above.
        self.0.store(self.0.load(Relaxed) - 1, Relaxed);
    }
}

/// Mounts that are kept still by the lock that its user holds anyway, and are never crossed.
pub(crate) struct Uncrossed(UseCount);

impl Mounts for Uncrossed {
    type Guard<'a> = ();

    fn new(_is_remounted: bool) -> Self {
        Self(UseCount::new())
    }

    fn add(&self, by: i64) {
        self.0.add(by);
    }

    fn still(&self) {}

    fn cross(&self) {}

    fn change(&self) {}

    fn held(&self) -> i64 {
        self.0.0.load(Relaxed)
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}

/// One spinlock for all mounts.
pub(crate) struct OneMountLock<R: RawLock> {
    lock: GlobalLock<R>,
    count: UseCount,
    writers: Writers,
    /// The chain of the mount hash that leads to the tree.
    chain: AtomicU32,
}

impl<R: RawLock + 'static> Mounts for OneMountLock<R> {
    type Guard<'a> = GlobalGuard<'a, R>;

    fn new(_is_remounted: bool) -> Self {
        Self {
            lock: GlobalLock::new("vfsmount_lock"),
            count: UseCount::new(),
            writers: Writers::new(),
            chain: AtomicU32::new(1),
        }
    }

    fn add(&self, by: i64) {
        self.count.add(by);
    }

    fn still(&self) -> Self::Guard<'_> {
        self.lock.lock()
    }

    fn cross(&self) {
        let _still = self.still();
        let _found = self.chain.load(Relaxed);
    }

    fn change(&self) {
        let _alone = self.lock.lock();
        self.chain.store(1, Relaxed);
    }

    fn want_write(&self) -> Option<Writer<'_>> {
        Some(self.writers.enter())
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
    /// All counts in one, after a remount that cleared the flag for the separate ones.
    common: Option<UseCount>,
    writers: Writers,
    chain: AtomicU32,
}

impl Mounts for PerCpuMounts {
    type Guard<'a> = PerCpuReadGuard<'a, ()>;

    fn new(is_remounted: bool) -> Self {
        Self {
            lock: PerCpuRwLock::new(()),
            counts: PerCpu::new(UseCount::new),
            common: is_remounted.then(UseCount::new),
            writers: Writers::new(),
            chain: AtomicU32::new(1),
        }
    }

    fn add(&self, by: i64) {
        if let Some(common) = &self.common {
            return common.add(by);
        }
        let _scope = scope(Tag::Ref);
        let own = &self.counts.this().0;
        // Relaxed: the slot is this thread's own.
        own.store(own.load(Relaxed) + by, Relaxed);
    }

    fn still(&self) -> Self::Guard<'_> {
        self.lock.read()
    }

    fn cross(&self) {
        let _still = self.still();
        let _found = self.chain.load(Relaxed);
    }

    fn change(&self) {
        let _alone = self.lock.write();
        self.chain.store(1, Relaxed);
    }

    fn want_write(&self) -> Option<Writer<'_>> {
        Some(self.writers.enter())
    }

    fn held(&self) -> i64 {
        let common = self.common.as_ref().map_or(0, |count| count.0.load(Relaxed));
        common + self.counts.iter().map(|count| count.0.load(Relaxed)).sum::<i64>()
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}

/// One sequence for all mounts, and one count for each CPU.
pub(crate) struct SequenceMounts<R: RawLock> {
    sequence: SeqSpin<R>,
    rest: PerCpuMounts,
}

impl<R: RawLock + 'static> Mounts for SequenceMounts<R> {
    type Guard<'a> = ();

    fn new(is_remounted: bool) -> Self {
        Self { sequence: SeqSpin::with_name("mount_lock"), rest: PerCpuMounts::new(is_remounted) }
    }

    fn add(&self, by: i64) {
        self.rest.add(by);
    }

    /// Nothing is kept unchanged: data are read again if mounts changed, which here cannot show.
    fn still(&self) {
        self.cross();
    }

    fn cross(&self) {
        loop {
            let start = self.sequence.begin();
            let _found = self.rest.chain.load(Relaxed);
            if !self.sequence.retry(start) {
                return;
            }
        }
    }

    fn change(&self) {
        let _alone = self.sequence.write();
        self.rest.chain.store(1, Relaxed);
    }

    fn want_write(&self) -> Option<Writer<'_>> {
        self.rest.want_write()
    }

    fn held(&self) -> i64 {
        self.rest.held()
    }

    fn visit_locks(&self, visit: &mut dyn FnMut(&Class)) {
        self.sequence.visit_locks(visit);
    }
}

/// The data that `statvfs(3)` reads: the list of mounts, and the mount's own flags.
pub(crate) struct MountList {
    /// `namespace_sem`, and the directory whose path each line has.
    namespace: RwSem<Vec<u32>, AlwaysQueue>,
    /// `mnt_flags`; bit 0: read-only.
    flags: AtomicU32,
}

impl MountList {
    /// Returns a list of so many lines.
    pub(crate) fn new(lines: usize) -> Self {
        Self { namespace: RwSem::with_slow_path(vec![ROOT; lines]), flags: AtomicU32::new(0) }
    }

    /// From the mount itself.
    pub(crate) fn is_read_only(&self) -> bool {
        // Relaxed: a flag that orders nothing.
        self.flags.load(Relaxed) & 1 != 0
    }

    /// Calls `each` with each mounted directory, line by line of the list, which does not change
    /// meanwhile; then with the line of the tree's mount.
    pub(crate) fn is_read_only_by_list(&self, mut each: impl FnMut(u32)) -> bool {
        let lines = self.namespace.read();
        lines.iter().for_each(|&mounted| each(mounted));
        self.is_read_only()
    }
}

impl<S: Scheme> Tree<S> {
    /// Mounts the counted directory `at` on itself, and takes its reference over.
    pub(crate) fn mount_on(&self, at: u32) -> Result<()> {
        if !self.inode(at).is_directory() {
            return Err(Error::NotDirectory);
        }
        let mut lines = self.mount_list.namespace.write();
        prim::cost(self.options.attach_ns);
        self.mounts.change();
        lines.push(at);
        Ok(())
    }

    /// Ends the last mount on `at`; the caller must return its reference.
    pub(crate) fn unmount_from(&self, at: u32) -> Result<()> {
        let mut lines = self.mount_list.namespace.write();
        let last = lines.iter().rposition(|&mounted| mounted == at && at != ROOT).ok_or(Error::Invalid)?;
        prim::cost(self.options.attach_ns);
        self.mounts.change();
        lines.remove(last);
        Ok(())
    }
}
