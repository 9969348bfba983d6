//! The tree: what all file systems and mounts of one instance share.
//!
//! # What it is
//! One hash table over the dentries of all superblocks, the RCU domain that everything is freed in, the sequences of renames, the
//! lock of mounts, and counters. What belongs to one file system is in [`crate::superblock`], how entries come, go and move in
//! [`crate::dcache`].
//!
//! # How it is locked
//! Ranks (`rank.rs`), outermost first: a handle's own lock > the mounts' lock > `rename_lock` (directories that move to another
//! directory) > directory locks (ancestor first, else by address) > an inode's `data_lock` > `rename_gate`'s readers and
//! the sequences of renames > the write section of a dentry's `seq` > a bucket's lock bit > an inode's `seq`. See
//! `docs/locking.md`.
//!
//! # Where it comes from
//! The globals of Linux's `fs/dcache.c` and `fs/namespace.c`, of one instance; own code.

use crate::dentry::Dentry;
use crate::invalidate::Observers;
use crate::mount::Mountpoints;
use crate::name::NameKey;
use crate::notify::Watches;
use crate::rank::Ranks;
use crate::record_lock::RecordLocks;
use crate::slot::Table;
use crate::walk::fallback::Fallbacks;
use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use sync::rcu::RcuDomain;
use sync::{Mutex, PerCpuRwLock, SeqLock};

/// Buckets of a new tree; it grows from there. 64 KiB, so that a few hundred threads that make and remove names in
/// directories of their own seldom meet on a line of buckets (the lab: 64 CPUs keep 0.94 of the rate of one, 0.49 with 256).
const MIN_BUCKETS: usize = 8192;

/// See the [module documentation](self).
pub(crate) struct Tree {
    table: Table,
    pub(crate) domain: RcuDomain,
    pub(crate) key: NameKey,
    pub(crate) fallbacks: PerCpu<Fallbacks>,
    pub(crate) ranks: Ranks,
    /// Held by who moves a directory to another directory.
    pub(crate) rename_lock: Mutex<()>,
    pub(crate) renames: Renames,
    /// Changes while a directory moves to another directory: what is below what is then in doubt.
    pub(crate) dir_moves: DirMoves,
    /// Readers: renames, for as long as names are in motion. The writer: a reverse path that was disturbed too often.
    pub(crate) rename_gate: PerCpuRwLock<()>,
    /// Held by who changes what is mounted where.
    pub(crate) mounts: Mutex<Mountpoints>,
    /// Changes with what is mounted where.
    pub(crate) mount_seq: DirMoves,
    pub(crate) watches: Watches,
    pub(crate) observers: Observers,
    pub(crate) record_locks: RecordLocks,
    next_number: AtomicU64,
}

/// A sequence on a line of its own: lookups that miss or go up read it.
#[repr(align(128))]
pub(crate) struct DirMoves(pub(crate) SeqLock);

/// Sequences of renames, many, on lines of their own: a rename moves those of its directories, a search that missed in a directory
/// reads that directory's. So renames in unrelated directories meet on none, but by chance.
pub(crate) struct Renames(Box<[DirMoves; RENAME_SEQS]>);

/// How many sequences of renames there are.
const RENAME_SEQS: usize = 64;

impl Renames {
    fn new() -> Self {
        Self(Box::new(core::array::from_fn(|_| DirMoves(SeqLock::new()))))
    }

    fn index(dir: &Dentry) -> usize {
        let line = core::ptr::from_ref(dir) as usize >> 6;
        (line ^ line >> 6 ^ line >> 12) % RENAME_SEQS
    }

    /// The sequence of the renames out of and into `dir`.
    pub(crate) fn of(&self, dir: &Dentry) -> &SeqLock {
        &self.0[Self::index(dir)].0
    }

    /// The sequences of both directories, in the order in which they are locked; one if they share it.
    pub(crate) fn of_both(&self, a: &Dentry, b: &Dentry) -> (&SeqLock, Option<&SeqLock>) {
        let (a, b) = (Self::index(a), Self::index(b));
        let (first, second) = (a.min(b), a.max(b));
        (&self.0[first].0, (first != second).then(|| &self.0[second].0))
    }
}

impl Tree {
    pub(crate) fn new() -> Self {
        let key = NameKey::random();
        Self {
            table: Table::new(MIN_BUCKETS, key),
            domain: RcuDomain::new(),
            key,
            fallbacks: PerCpu::new(Fallbacks::default),
            ranks: Ranks::new(),
            rename_lock: Mutex::new(()),
            renames: Renames::new(),
            dir_moves: DirMoves(SeqLock::new()),
            rename_gate: PerCpuRwLock::new(()),
            mounts: Mutex::new(Mountpoints::default()),
            mount_seq: DirMoves(SeqLock::new()),
            watches: Watches::new(),
            observers: Observers::default(),
            record_locks: RecordLocks::new(),
            next_number: AtomicU64::new(1),
        }
    }

    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// A number that nothing of this tree has had: of a mount, of a namespace, of a device.
    pub(crate) fn next_number(&self) -> u64 {
        self.next_number.fetch_add(1, Relaxed)
    }
}

impl core::fmt::Debug for Tree {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tree").field("entries", &self.table.len_hint()).finish_non_exhaustive()
    }
}
