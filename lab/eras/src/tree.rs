//! The tree that all eras but `lightfoot` have in common: entries in a table of fixed size, chains, lists of children.
//!
//! # What it is
//! Data and the steps that change them, without a lock: the era decides which lock is held for
//! which step, and each function here names the locks that it needs. Entries are named by their
//! number in the table, so that a stale one does no more harm than to show another entry, which
//! lock-free searches check for.
//!
//! # What it is not
//! A file system with contents, hard links, symbolic links or permissions. The cache is complete: a
//! miss is an answer, and no entry is ever evicted. There are no negative entries, so a miss leaves
//! nothing behind; the kernel of the time would call the file system under the directory's mutex.
//!
//! # Where its parts are
//! | file                | what                                                              |
//! |---------------------|-------------------------------------------------------------------|
//! | `scheme.rs`         | what an era decides                                               |
//! | `operations.rs`     | the operations of [`Process`](crate::Process) on top of that      |
//! | `one_lock.rs`       | counts, changes and reverse paths under `dcache_lock`             |
//! | `fine_locks.rs`     | the same under fine-grained locks                                 |
//! | `walk.rs`           | the walk that counts each step                                    |
//! | `dentry.rs`, `inode.rs`, `name.rs`, `count.rs`, `lockless.rs`, `lockref.rs` | entries |
//! | `fs_struct.rs`, `mount.rs`, `renames.rs` | what else a walk touches                     |
//! | `mutex.rs`, `semaphore.rs`, `inode_table.rs`, `grace.rs` | sleeping locks of an inode; inodes by number; when files are freed |
//! | `list.rs`, `pool.rs`, `sharded.rs`, `global_lock.rs`, `rw_spin.rs` | what these are made of |

pub(crate) mod count;
pub(crate) mod dentry;
pub(crate) mod fine_locks;
pub(crate) mod fs_struct;
pub(crate) mod global_lock;
pub(crate) mod grace;
pub(crate) mod inode;
mod inode_table;
pub(crate) mod list;
pub(crate) mod lockless;
pub(crate) mod lockref;
pub(crate) mod mount;
pub(crate) mod mutex;
pub(crate) mod name;
pub(crate) mod one_lock;
pub(crate) mod operations;
pub(crate) mod pool;
pub(crate) mod renames;
pub(crate) mod rw_spin;
pub(crate) mod scheme;
pub(crate) mod semaphore;
pub(crate) mod sharded;
mod verify;
pub(crate) mod walk;

use crate::era::{Error, Result};
use crate::options::Options;
use count::Count;
use dentry::{Dentry, UNHASHED, USED};
use fs_struct::ROOT;
use inode::Inode;
use list::{NONE, some};
use locks::lockstat::Class;
use mount::MountList;
use name::{LongNames, Name};
use pool::Pool;
use prim::PerCpu;
use prim::atomic::{
    AtomicI64, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use prim::shared::Arc;
use scheme::Scheme;
use semaphore::SemaphoreStats;
use sync::rcu::RcuDomain;
use sync::{Mutex, SpinLock};

/// Entries freed by one CPU that wait for one grace period together.
const FREED_BATCH: usize = 64;

/// Entries beyond the capacity, where freed ones wait for a grace period before they are used again: some 300 for each
/// CPU. A table that is smaller than [`SMALL`] has only as many again as its capacity.
const IN_GRACE: usize = 32_768;

/// See [`IN_GRACE`].
const SMALL: usize = 1_024;

/// One block for a long name for so many entries.
const ENTRIES_PER_LONG_NAME: usize = 8;

/// Chains of the smallest tree, unless set otherwise. Linux makes its table for the memory of the
/// machine, so a machine of the time had a million chains, however few files were in use.
const BUCKETS_AT_LEAST: usize = 1 << 16;

/// See the [module documentation](self).
pub(crate) struct Tree<S: Scheme> {
    pub(crate) scheme: S,
    pub(crate) options: Options,
    pub(crate) mounts: S::Mounts,
    pub(crate) mount_list: MountList,
    pub(crate) domain: RcuDomain,
    /// Held by a rename between directories, so that no directory gets a new ancestor (`s_vfs_rename_mutex`).
    pub(crate) renaming: Mutex<()>,
    pub(crate) names: LongNames,
    /// The wait locks of the files' semaphores.
    pub(crate) wait_lock: Arc<Class>,
    entries: Box<[S::Dentry]>,
    inodes: Box<[Inode<S::Readers, S::Mutex>]>,
    buckets: Box<[Bucket<S::BucketLock>]>,
    free: Arc<Pool>,
    freed: PerCpu<Freed>,
    files: PerCpu<Files>,
}

/// Entries that one CPU freed and that have not been handed to the grace period yet.
#[repr(align(128))]
struct Freed(SpinLock<Vec<u32>>);

/// A chain and its lock.
#[derive(Default)]
pub(crate) struct Bucket<L> {
    first: First,
    pub(crate) lock: L,
}

/// The first entry of a chain.
struct First(AtomicU32);

impl Default for First {
    fn default() -> Self {
        Self(AtomicU32::new(NONE))
    }
}

/// Files made less files removed by one CPU.
#[repr(align(128))]
struct Files(AtomicI64);

impl<S: Scheme> Tree<S> {
    /// Returns the counts of the semaphores of all files.
    pub(crate) fn semaphore_stats(&self) -> SemaphoreStats {
        self.inodes.iter().fold(SemaphoreStats::default(), |mut sum, inode| {
            let of_one = inode.semaphore.stats();
            sum.slow_readers += of_one.slow_readers;
            sum.early_exits += of_one.early_exits;
            sum.queued_readers += of_one.queued_readers;
            sum.queued_writers += of_one.queued_writers;
            sum.lost_writers += of_one.lost_writers;
            sum
        })
    }

    /// Returns a tree of a root.
    ///
    /// # Panics
    /// With a capacity of 2^32 or more.
    pub(crate) fn new(options: &Options) -> Self {
        let capacity = options.capacity.max(1);
        let in_grace = if capacity < SMALL { capacity } else { IN_GRACE };
        let capacity = if S::IS_RCU { capacity + in_grace } else { capacity };
        let chains = if options.chains == 0 { capacity.max(BUCKETS_AT_LEAST) } else { options.chains };
        let wait_lock = Class::new("wait_lock");
        let tree = Self {
            scheme: S::new(),
            options: options.clone(),
            mounts: mount::Mounts::new(options.is_remounted),
            mount_list: MountList::new(options.mounts),
            domain: RcuDomain::new(),
            renaming: Mutex::new(()),
            names: LongNames::new(capacity.div_ceil(ENTRIES_PER_LONG_NAME)),
            entries: (0..capacity).map(|_| S::Dentry::new()).collect(),
            inodes: (0..capacity).map(|_| Inode::new(&wait_lock)).collect(),
            wait_lock,
            buckets: (0..chains.next_power_of_two()).map(|_| Bucket::default()).collect(),
            free: Arc::new(Pool::new(capacity)),
            freed: PerCpu::new(|| Freed(SpinLock::new(Vec::new()))),
            files: PerCpu::new(|| Files(AtomicI64::new(0))),
        };
        let root = tree.free.take();
        debug_assert_eq!(root, Some(ROOT), "the lowest number comes first");
        tree.prepare(ROOT, ROOT, true);
        tree.files_changed(1);
        tree
    }

    pub(crate) fn entry(&self, number: u32) -> &S::Dentry {
        &self.entries[number as usize]
    }

    pub(crate) fn inode(&self, number: u32) -> &Inode<S::Readers, S::Mutex> {
        &self.inodes[number as usize]
    }

    // ---- entries

    /// Returns an entry that is not published.
    pub(crate) fn allocate(&self) -> Result<u32> {
        if let Some(number) = self.free.take() {
            return Ok(number);
        }
        self.settle();
        self.free.take().ok_or(Error::NoSpace)
    }

    /// Waits until all entries freed before are free.
    #[cold]
    fn settle(&self) {
        let batches = self.freed.iter().map(|freed| core::mem::take(&mut *freed.0.lock()));
        batches.for_each(|batch| self.free_after_grace(batch));
        self.domain.barrier();
    }

    fn free_after_grace(&self, batch: Vec<u32>) {
        let free = self.free.clone();
        let bytes = batch.len() * (size_of::<S::Dentry>() + size_of::<Inode<S::Readers, S::Mutex>>());
        // Back to the CPU that frees them. With `call_rcu` too, a callback runs on the CPU that queued it.
        let cpu = prim::cpu::id();
        self.domain.defer(bytes, move || {
            // As in a kernel's callbacks: a callback that holds a lock does not lose its CPU.
            let _section = prim::preempt::off();
            free.give_all(cpu, batch);
        });
    }

    /// Makes a new entry in `dir`, not named and not linked, with one count for the caller and one for its name if
    /// names are pinned.
    pub(crate) fn prepare(&self, number: u32, dir: u32, is_directory: bool) {
        let entry = self.entry(number);
        entry.set_parent(dir);
        entry.change_flags(USED, UNHASHED);
        entry.count().reset(1 + u32::from(self.options.is_pinned && number != ROOT));
        self.inode(number).reset(is_directory);
    }

    /// Makes an entry's number free, for one that has no name, no count, and is on no list.
    pub(crate) fn free(&self, number: u32) {
        let entry = self.entry(number);
        entry.change_flags(UNHASHED, !UNHASHED);
        // At once: a walk that still reads the name will find that the entry has lost it.
        self.names.clear(&entry.key().name);
        if !S::IS_RCU {
            return self.free.give(number);
        }
        let full = {
            let mut freed = self.freed.this().0.lock();
            freed.push(number);
            if freed.len() < FREED_BATCH { Vec::new() } else { core::mem::take(&mut *freed) }
        };
        if !full.is_empty() {
            self.free_after_grace(full);
        }
    }

    /// So many files more.
    pub(crate) fn files_changed(&self, by: i64) {
        let own = &self.files.this().0;
        // Relaxed: the slot is this thread's own.
        own.store(own.load(Relaxed) + by, Relaxed);
    }

    /// Files with a name, and the root.
    pub(crate) fn files(&self) -> u64 {
        let sum: i64 = self.files.iter().map(|files| files.0.load(Relaxed)).sum();
        u64::try_from(sum).unwrap_or(0)
    }

    // ---- chains

    pub(crate) fn bucket(&self, dir: u32, hash: u32) -> &Bucket<S::BucketLock> {
        let mixed = (hash ^ dir.wrapping_mul(0x9E37_79B1)) as usize;
        &self.buckets[mixed & (self.buckets.len() - 1)]
    }

    /// Returns the bucket that an entry's place and name lead to.
    pub(crate) fn bucket_of(&self, number: u32) -> &Bucket<S::BucketLock> {
        let entry = self.entry(number);
        self.bucket(entry.parent(), entry.key().name.hash())
    }

    /// Returns the entries of a chain. Without a lock that keeps it still, some that are on it may
    /// be missed when one moves.
    pub(crate) fn chain(&self, dir: u32, hash: u32) -> impl Iterator<Item = u32> {
        prim::cost(self.options.search_ns);
        // ORDERING: Acquire, here and below, pairs with the Release in `hash_in` and `hash_out`: an entry is seen as it was
        // when it was linked.
        let first = some(self.bucket(dir, hash).first.0.load(Acquire));
        core::iter::successors(first, |&at| some(self.entry(at).key().next.load(Acquire)))
    }

    /// Returns whether an entry is the one looked for, by its first cache line.
    pub(crate) fn resembles(&self, number: u32, dir: u32, name: &Name<'_>) -> bool {
        let entry = self.entry(number);
        entry.key().name.hash() == name.hash && entry.parent() == dir
    }

    /// Returns whether an entry has the name. The caller keeps it still.
    pub(crate) fn is_named(&self, number: u32, name: &Name<'_>) -> bool {
        let entry = self.entry(number);
        self.names.is(&entry.key().name, entry.name(), name)
    }

    /// Returns the entry of this name. The caller keeps the chain still.
    pub(crate) fn find(&self, dir: u32, name: &Name<'_>) -> Option<u32> {
        self.chain(dir, name.hash).find(|&at| self.resembles(at, dir, name) && self.is_named(at, name))
    }

    /// Links an entry to its chain, which the caller has alone.
    pub(crate) fn hash_in(&self, number: u32) {
        let first = &self.bucket_of(number).first.0;
        // Relaxed: under the chain's lock. ORDERING: Release, twice, pairs with the Acquire in `chain`: a search
        // that reached the entry on its former chain too continues along this one.
        self.entry(number).key().next.store(first.load(Relaxed), Release);
        first.store(number, Release);
    }

    /// Takes an entry off its chain, to which the caller has exclusive access. A search that is at the entry continues.
    pub(crate) fn hash_out(&self, number: u32) {
        // Relaxed, the loads: under the chain's lock.
        let mut link = &self.bucket_of(number).first.0;
        loop {
            let at = link.load(Relaxed);
            if at == number || at == NONE {
                break;
            }
            link = &self.entry(at).key().next;
        }
        debug_assert_eq!(link.load(Relaxed), number, "the entry was not on its chain");
        // ORDERING: Release pairs with the Acquire in `chain`.
        link.store(self.entry(number).key().next.load(Relaxed), Release);
    }

    /// Gives an entry its name and place. The caller excludes readers, or notifies them by a sequence.
    pub(crate) fn place(&self, number: u32, dir: u32, name: &Name<'_>, block: u32) {
        let entry = self.entry(number);
        self.names.set(&entry.key().name, entry.name(), name, block);
        entry.set_parent(dir);
    }

    // ---- children; the caller has the list of `dir` alone, or still

    pub(crate) fn link_child(&self, dir: u32, number: u32) {
        self.entry(dir).lists().children.insert(number, |n| &self.entry(n).lists().siblings);
    }

    pub(crate) fn unlink_child(&self, dir: u32, number: u32) {
        self.entry(dir).lists().children.remove(number, |n| &self.entry(n).lists().siblings);
    }

    /// Returns the first child of `dir` that has a name, or the first such child after `after`.
    pub(crate) fn next_child(&self, dir: u32, after: Option<u32>) -> Option<u32> {
        let next = |number: u32| self.entry(number).lists().siblings.next();
        let first = after.map_or_else(|| self.entry(dir).lists().children.first(), next);
        core::iter::successors(first, |&at| next(at)).find(|&at| !self.entry(at).has(UNHASHED))
    }

    // ---- reverse paths

    /// Appends an entry's name to `out`. The caller keeps the name still.
    pub(crate) fn copy_name(&self, number: u32, out: &mut Vec<u8>) {
        let entry = self.entry(number);
        self.names.copy(&entry.key().name, entry.name(), out);
    }

    /// Writes the path of an entry into `path`. The caller keeps names and places still, by a lock
    /// around the whole call or by the work of `in_entry` around each entry; or the caller checks
    /// afterwards. Gives up, and returns `false`, when the path is longer than `limit`.
    pub(crate) fn climb(
        &self,
        number: u32,
        path: &mut Vec<u8>,
        limit: usize,
        mut in_entry: impl FnMut(u32, &mut dyn FnMut()),
    ) -> bool {
        // The path is written backwards: each name reversed, then its slash. It is reversed at the
        // end.
        path.clear();
        let mut at = number;
        while at != ROOT {
            if path.len() > limit {
                return false;
            }
            let mut above = ROOT;
            in_entry(at, &mut || {
                let from = path.len();
                self.copy_name(at, path);
                path[from..].reverse();
                above = self.entry(at).parent();
            });
            path.push(b'/');
            prim::cost(self.options.path_ns);
            at = above;
        }
        if path.is_empty() {
            path.push(b'/');
        }
        path.reverse();
        if self.entry(number).has(UNHASHED) {
            path.extend_from_slice(b" (deleted)");
        }
        true
    }
}
