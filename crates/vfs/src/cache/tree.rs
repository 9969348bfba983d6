//! The tree: state shared by all file systems, mounts and contexts of one [`Vfs`](crate::Vfs).
//!
//! # What it is
//! One hash table over the dentries of all superblocks, the RCU domain that frees everything, the
//! sequences of renames, the lock of mounts, and counters. [`crate::cache::superblock`] has the
//! state of one file system, [`crate::cache::insert`] the operations on entries.
//!
//! # How it is locked
//! Ranks: see [`crate::base::rank`] and `docs/locking.md`.
//!
//! # Where it comes from
//! The globals of Linux's `fs/dcache.c` and `fs/namespace.c`, of one tree.

use crate::base::name::NameKey;
use crate::base::rank::{Rank, Ranks};
use crate::cache::fallback::Fallbacks;
use crate::cache::mountpoints::Mountpoints;
use crate::cache::observer::Observers;
use crate::fs::{FileSystem, FsTraits, Opens};
use crate::notify::Watches;
use crate::record_lock::RecordLocks;
use crate::slots::dentry::Dentry;
use crate::slots::slot::{Table, entry_hash};
use crate::slots::whole_path::{Options, WholePaths};
use prim::PerCpu;
use prim::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::panic::{AssertUnwindSafe, catch_unwind};
use sync::rcu::RcuDomain;
use sync::zeroed::Zeroed;
use sync::{Mutex, SeqLock, SeqRwLock, SeqRwReadGuard};

/// Buckets of a new tree; it grows from there. 64 KiB, so that a few hundred threads that create and remove
/// names in separate directories seldom meet on a cache line of buckets (the lab: 64 CPUs keep 0.94 of the
/// rate of one; 0.49 with 256 buckets).
const MIN_BUCKETS: usize = if cfg!(loom) { 4 } else { 8192 };

/// See the [module documentation](self).
pub(crate) struct Tree {
    table: Table,
    pub(crate) domain: RcuDomain,
    pub(crate) key: NameKey,
    pub(crate) paths: WholePaths,
    pub(crate) fallbacks: PerCpu<Fallbacks>,
    pub(crate) ranks: Ranks,
    /// Held while a directory moves to another directory.
    pub(crate) rename_lock: Mutex<()>,
    pub(crate) renames: Renames,
    /// Changes while a directory moves to another directory; a climb that sees a change is repeated.
    pub(crate) dir_moves: PaddedSeqLock,
    /// Held while the tree of mounts changes.
    pub(crate) mounts: Mutex<Mountpoints>,
    /// Changes with the tree of mounts. A reverse path that was disturbed too often blocks its writers.
    pub(crate) mount_seq: SeqRwLock,
    pub(crate) watches: Watches,
    pub(crate) observers: Observers,
    pub(crate) record_locks: RecordLocks,
    /// Directories are sharded at once: for tests.
    pub(crate) shards_always: bool,
    next_number: AtomicU64,
    /// Whether a file system of the tree has, or had, [`Opens::Yes`] with `flush`.
    has_flushes: AtomicBool,
    /// Whether one has not, or had not, [`CachedNames::never_waits`](crate::CachedNames::never_waits).
    may_wait: AtomicBool,
    /// Whether one has, or had, [`FsTraits::is_cancellable`].
    is_cancellable: AtomicBool,
    /// Whether one has, or had, [`FsTraits::checks_callers`].
    checks_callers: AtomicBool,
    /// Panics of callbacks that [`Tree::contain`] caught.
    panics: AtomicU64,
}

/// A sequence in a separate cache line: walks that go up read it.
#[repr(align(128))]
pub(crate) struct PaddedSeqLock(pub(crate) SeqLock);

/// Sequences of renames, in separate cache lines. A rename changes the sequences of its two names;
/// a search that missed reads its name's sequence. Renames of other names meet on one only by
/// chance. A reverse path that was disturbed too often blocks the writers of the sequences of the
/// names on its way, and no other reader.
pub(crate) struct Renames(Zeroed<SeqRwLock>);

/// Number of sequences of renames: the bits of a [`RenameSet`]. With 256 of them, 192 CPUs that
/// rename to one directory wait for one another for a third of their time (the lab: `MWRM`). A
/// sequence takes memory only if it is used.
const RENAME_SEQS: usize = if cfg!(loom) { 1 } else { 1024 };

/// Names in directories, by their sequences of renames.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct RenameSet([u64; 16]);

impl RenameSet {
    /// Adds the name with the hash `hash` in `dir`.
    pub(crate) fn add(&mut self, dir: &Dentry, hash: u64) {
        let index = Renames::index(dir, hash);
        self.0[index / 64] |= 1 << (index % 64);
    }

    /// Returns whether it contains all of `other`.
    pub(crate) fn contains(self, other: Self) -> bool {
        self.union(other) == self
    }

    /// Returns the sequences of both.
    pub(crate) fn union(self, other: Self) -> Self {
        Self(core::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    fn has(self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 != 0
    }
}

impl Renames {
    fn new() -> Self {
        Self(Zeroed::new(RENAME_SEQS).expect("memory"))
    }

    /// Blocks renames from and to the names of `set`, in the lock order of renames. It does not
    /// block other callers of this. The caller has acquired [`Rank::Renames`] of `ranks`.
    pub(crate) fn block(&self, set: RenameSet, ranks: &Ranks) -> Vec<SeqRwReadGuard<'_>> {
        // A thread must not allocate while it holds a spinning lock, so the vector gets its room now.
        let mut held = Vec::with_capacity(set.0.iter().map(|word| word.count_ones() as usize).sum());
        let wanted = self.0.get().iter().enumerate().filter(|(index, _)| set.has(*index));
        held.extend(
            wanted.map(|(_, sequence)| {
                ranks.take_by(Rank::Renames, || sequence.try_read_lock(), || sequence.read_lock())
            }),
        );
        held
    }

    /// By bits of the hash that choose neither the bucket nor the shard alone.
    fn index(dir: &Dentry, hash: u64) -> usize {
        (entry_hash(dir, hash).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48) as usize % RENAME_SEQS
    }

    /// Returns the sequence of the renames from and to the name with the hash `hash` in `dir`.
    pub(crate) fn of(&self, dir: &Dentry, hash: u64) -> &SeqRwLock {
        &self.0.get()[Self::index(dir, hash)]
    }

    /// Returns the sequences of two names in locking order; one if they share it.
    pub(crate) fn of_both(&self, a: (&Dentry, u64), b: (&Dentry, u64)) -> (&SeqRwLock, Option<&SeqRwLock>) {
        let (a, b) = (Self::index(a.0, a.1), Self::index(b.0, b.1));
        let (first, second) = (a.min(b), a.max(b));
        let all = self.0.get();
        (&all[first], (first != second).then(|| &all[second]))
    }
}

impl Tree {
    pub(crate) fn new(paths: Options) -> Self {
        // A model has no thread but its own.
        let domain = if cfg!(loom) { RcuDomain::without_reclaimer() } else { RcuDomain::new() };
        let key = NameKey::random();
        Self {
            table: Table::new(&domain, MIN_BUCKETS, key),
            domain,
            key,
            paths: WholePaths::new(paths),
            fallbacks: PerCpu::new(Fallbacks::default),
            ranks: Ranks::new(),
            rename_lock: Mutex::new(()),
            renames: Renames::new(),
            dir_moves: PaddedSeqLock(SeqLock::new()),
            mounts: Mutex::new(Mountpoints::default()),
            mount_seq: SeqRwLock::new(),
            watches: Watches::new(),
            observers: Observers::default(),
            record_locks: RecordLocks::default(),
            shards_always: paths.shards_always,
            next_number: AtomicU64::new(1),
            has_flushes: AtomicBool::new(false),
            may_wait: AtomicBool::new(false),
            is_cancellable: AtomicBool::new(false),
            checks_callers: AtomicBool::new(false),
            panics: AtomicU64::new(0),
        }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// Returns a number that was never used in this tree, for a mount, a namespace or a device.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Relaxed)
    }

    /// Returns the properties of a file system, and notes the properties of its calls: whether its
    /// [`flush`](crate::fs::FileSystem::flush) is called, and whether they may wait, can be
    /// cancelled, or check the caller.
    pub(crate) fn traits_of(&self, fs: &dyn FileSystem) -> FsTraits {
        let traits = fs.traits();
        let has_flushes = traits.opens == (Opens::Yes { flush: true });
        for (note, is_so) in [
            (&self.has_flushes, has_flushes),
            (&self.may_wait, !traits.never_waits()),
            (&self.is_cancellable, traits.is_cancellable),
            (&self.checks_callers, traits.checks_callers),
        ] {
            if is_so {
                // Relaxed: nothing depends on them; the file system is mounted later.
                note.store(true, Relaxed);
            }
        }
        traits
    }

    /// Returns whether there is, or was, a file system with flushes.
    pub(crate) fn has_flushes(&self) -> bool {
        // Relaxed: as in `traits_of`.
        self.has_flushes.load(Relaxed)
    }

    /// Returns whether there is, or was, a file system whose calls may wait.
    pub(crate) fn may_wait(&self) -> bool {
        // Relaxed: as in `traits_of`.
        self.may_wait.load(Relaxed)
    }

    /// Returns whether there is, or was, a file system whose calls can be cancelled.
    pub(crate) fn is_cancellable(&self) -> bool {
        // Relaxed: as in `traits_of`.
        self.is_cancellable.load(Relaxed)
    }

    /// Returns whether there is, or was, a file system that checks callers itself.
    pub(crate) fn checks_callers(&self) -> bool {
        // Relaxed: as in `traits_of`.
        self.checks_callers.load(Relaxed)
    }

    /// Runs a callback of a file system in the middle of work that must be completed. Catches its panic, which the
    /// panic hook has reported, and counts it.
    pub(crate) fn contain(&self, callback: impl FnOnce()) {
        // The cache shows the callback nothing that is half done; the file system's own state is its own matter.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(callback)) {
            self.panics.fetch_add(1, Relaxed);
            // The drop of the payload is code of the file system, and may panic.
            core::mem::forget(payload);
        }
    }

    /// Panics caught so far.
    pub(crate) fn panics(&self) -> u64 {
        self.panics.load(Relaxed)
    }
}

impl core::fmt::Debug for Tree {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tree").field("entries", &self.table.count()).finish_non_exhaustive()
    }
}
