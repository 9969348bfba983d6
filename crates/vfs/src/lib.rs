//! The core of a virtual file system whose path walks store to no shared memory.
//!
//! A lookup of a cached path takes no lock and moves no reference count, not even on the last component if
//! only its attributes are needed. `ARCHITECTURE.md` is the overview, `docs/walk.md` describes the walk. Most
//! users want the crate `lightfoot`, an interface like `std::fs` to this one.
//!
//! The crate has ten rooms. Each imports only rooms before it: `base`, `notify`, `record_lock`, `slots`, `fs`, `cache`,
//! `layers`, `mount`, `walk`, `ops`. This file has [`Vfs`] and the public names.
//!
//! ```
//! # struct Empty;
//! # impl lightfoot_vfs::FileSystem for Empty {
//! #     fn root(&self) -> lightfoot_vfs::NewInode {
//! #         let attr = lightfoot_vfs::Attr { ino: 1, mode: lightfoot_vfs::S_IFDIR | 0o755, nlink: 2, ..Default::default() };
//! #         lightfoot_vfs::NewInode { node: 0, attr, ..Default::default() }
//! #     }
//! # }
//! let vfs = lightfoot_vfs::Vfs::new(Empty);
//! let context = vfs.context();
//! assert!(context.attr(lightfoot_vfs::Base::CWD, b"/", true)?.is_dir());
//! assert_eq!(context.attr(lightfoot_vfs::Base::CWD, b"/nothing", true), Err(lightfoot_vfs::Errno::ENOSYS));
//! # Ok::<(), lightfoot_vfs::Errno>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_macros, clippy::disallowed_methods, clippy::disallowed_types))]

mod base;
mod cache;
mod fs;
mod layers;
mod mount;
mod notify;
mod ops;
mod record_lock;
mod slots;
mod walk;

pub use base::access::acl::{Acl, AclEntry, AclKind, AclTag};
pub use base::access::credentials::{Capabilities, Credentials, MAY_EXEC, MAY_READ, MAY_WRITE};
// For the tests that compare its rules with the kernel's.
#[doc(hidden)]
pub use base::access::xattr;
pub use base::attr::{
    Attr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, S_ISGID, S_ISUID, S_ISVTX, SetAttr,
    SetTime,
};
pub use base::cancel::{Cancel, CancelWatch};
pub use base::errno::Errno;
pub use base::file_time::{from_system_time, to_system_time};
pub use base::flags::{InodeFlags, MountFlags, OpenFlags, RenameFlags, Resolve, UnmountFlags};
pub use base::foreign::Foreign;
pub use base::name::{NAME_MAX, PATH_MAX};
pub use base::packed_attr::PackedAttr;
pub use cache::budget::Budget;
pub use cache::fallback::Fallback;
pub use cache::observer::{Changed, Identity, Observer};
pub use cache::shared_budget::{Limits, SharedBudget};
pub use cache::superblock::CacheStats;
pub use fs::invalidator::Invalidator;
pub use fs::layer::Layer;
pub use fs::{
    After, Allocate, Attributes, CachedNames, Copying, DirEntry, FileId, FileSystem, FsTraits, Labels, Listed, Modes,
    NameRules, NameStore, NewInode, NewNode, NextNames, Open, OpenState, Opened, Opens, OwnNames, Position, Rename,
    Request, SeekFor, SetXattr, StatFs, Valid, Want, Written,
};
pub use layers::bounded::Bounded;
pub use mount::context::{Context, Policy};
pub use mount::place::{Base, CacheUse, PathAt, PathRef};
pub use mount::statvfs::StatVfs;
pub use notify::{DEFAULT_QUEUED_EVENTS, Event, EventKind, Scope, Watch};
pub use ops::file::OpenFile;
pub use ops::handles::FileHandle;
pub use ops::mount_list::{Holder, MountInfo};
pub use record_lock::{LockCharge, LockInfo, LockKind, LockQuota, LockWait, ParkedLock};
pub use slots::inode::Inode;
pub use slots::whole_path::WholePathStats;
#[cfg(not(loom))]
pub use sync::lockdep::RankWaits;
pub use sync::rcu::RcuStats;

use cache::superblock::SuperBlock;
use cache::tree::Tree;
use mount::Mount;
use mount::namespace::Namespace;
use prim::shared::PlainArc as Arc;
use slots::whole_path::Options;
use sync::PerCpuOwner;

/// A tree of mounts: file systems and their caches. Clones share it. It is freed with its last handle,
/// context and file.
#[derive(Clone, Debug)]
pub struct Vfs {
    /// Dropped before `tree`, which mounts hold.
    namespace: Arc<Namespace>,
    root: Arc<SuperBlock>,
    tree: Arc<PerCpuOwner<Tree>>,
}

impl Vfs {
    /// Returns a tree with the root file system `fs`.
    #[must_use]
    pub fn new(fs: impl FileSystem) -> Self {
        Self::with_budget(fs, Budget::default())
    }

    /// As [`new`](Self::new), with a `budget` for the cache of `fs`.
    #[must_use]
    pub fn with_budget(fs: impl FileSystem, budget: Budget) -> Self {
        Self::builder().budget(budget).build(fs)
    }

    /// Returns a tree with options.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Returns a context at the root of the tree, with root's credentials and umask 022.
    #[must_use]
    pub fn context(&self) -> Context {
        Context::new(self.tree.share(), self.namespace.clone())
    }

    /// Returns whether `context` is one of this tree.
    #[must_use]
    pub fn has(&self, context: &Context) -> bool {
        core::ptr::eq::<Tree>(&**self.tree, context.tree())
    }

    /// Notifies `observer` of the invalidations that file systems report by their [`Invalidator`], until it
    /// is dropped.
    pub fn observe(&self, observer: &Arc<impl Observer>) {
        self.tree.observers.add(&self.tree.watches, observer, false);
    }

    /// As [`observe`](Self::observe), and also notifies it of every change that an operation on the
    /// tree makes: [`Observer::changed`].
    pub fn observe_changes(&self, observer: &Arc<impl Observer>) {
        self.tree.observers.add(&self.tree.watches, observer, true);
    }

    /// Returns how often walks left rcu-walk for `reason`.
    #[must_use]
    pub fn fallbacks(&self, reason: Fallback) -> u64 {
        self.tree.fallbacks.iter().map(|counters| counters.get(reason)).sum()
    }

    /// Returns counts of the contents of the root file system's cache. Examines every dentry: for
    /// tests and reports, and exact only while nothing changes.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        self.root.stats()
    }

    /// Returns the statistics of the mounted file system whose files have the `st_dev` `dev`
    /// ([`MountInfo::dev`]). `None`: no mount shows one.
    #[must_use]
    pub fn stats_of(&self, dev: u64) -> Option<CacheStats> {
        let mounts = self.namespace.mounts();
        mounts.iter().find(|mount| mount.dev == dev).map(|mount| mount.sb.stats())
    }

    /// Returns how often the calling thread requested a name that the cache did not have from a
    /// file system, or waited for another thread that did. So an operation whose walk or change did
    /// not move this count was answered from the cache. Cheap: one load.
    #[must_use]
    pub fn names_asked_here(&self) -> u64 {
        self.tree.fallbacks.this().asked()
    }

    /// Returns the state of the table of whole paths. Examines every entry: for tests and reports.
    #[must_use]
    pub fn whole_path_stats(&self) -> WholePathStats {
        self.tree.paths.stats()
    }

    /// Returns counts of the calling thread's CPU index for the table of whole paths. Of
    /// [`WholePathStats`] only these are counted: misses, and paths recorded, refused and renewed.
    /// Cheap: no entry is examined.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    #[must_use]
    pub fn whole_path_stats_here(&self) -> WholePathStats {
        self.tree.paths.stats_here()
    }

    /// Returns the state of deferred freeing.
    #[must_use]
    pub fn rcu_stats(&self) -> RcuStats {
        self.tree.domain.stats()
    }

    /// Returns how often, and how long, threads waited for the tree's locks, by the rank of the
    /// lock. (`docs/locking.md` lists the data that each lock protects.) A thread that finds a lock
    /// free counts nothing, so counting costs nothing where no thread waits. Not counted: spinning
    /// for the buckets of tables and for the sequences of entries, inodes and mounts.
    #[cfg(not(loom))]
    pub fn lock_waits(&self) -> impl Iterator<Item = RankWaits> {
        self.tree.ranks.waits()
    }

    /// Returns true if a file system that is, or was, mounted in the tree has [`Opens::Yes`] with `flush`. Otherwise
    /// [`OpenFile::flush`] has no effect.
    #[must_use]
    pub fn wants_flushes(&self) -> bool {
        self.tree.has_flushes()
    }

    /// Returns true if some file system that is, or was, mounted in the tree lacks
    /// [`CachedNames::never_waits`]: an operation may then wait for a device, another process or a
    /// network.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        self.tree.may_wait()
    }

    /// Returns true if a file system that is, or was, mounted in the tree has [`FsTraits::is_cancellable`]. Otherwise a [`Cancel`] has no
    /// effect on calls, except on those that wait for another's lookup.
    #[must_use]
    pub fn is_cancellable(&self) -> bool {
        self.tree.is_cancellable()
    }

    /// Returns true if a file system that is, or was, mounted in the tree has [`FsTraits::checks_callers`]: a front end must then
    /// name the user of each request.
    #[must_use]
    pub fn checks_callers(&self) -> bool {
        self.tree.checks_callers()
    }

    /// Returns the number of panics of file systems that the tree caught, because it had to
    /// complete its own work: in [`FileSystem::evict`], in [`FileSystem::release`], and in drops of
    /// a file system or of its inodes' data. The panic hook has reported each panic. The panics of
    /// other methods reach the caller of the operation.
    #[must_use]
    pub fn callback_panics(&self) -> u64 {
        self.tree.panics()
    }

    /// Waits until everything deferred before this call is freed.
    ///
    /// # Panics
    /// If nothing can be freed any more ([`sync::rcu::Refused`]): in the child of a `fork(2)`, or after a seccomp filter
    /// was installed that refuses `membarrier(2)` and `sched_setaffinity(2)`. [`Vfs::rcu_stats`] counts refusals.
    pub fn barrier(&self) {
        // An object that lost its last reference inside a read section waits for a put outside of
        // one.
        self.root.end_late_puts();
        self.namespace.mounts().iter().for_each(|mount| mount.sb.end_late_puts());
        self.tree.domain.barrier();
    }
}

/// Options of a tree: [`Vfs::builder`].
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Builder {
    budget: Budget,
    paths: Options,
}

impl Builder {
    /// Returns the most that the cache of the root file system may hold.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Finds whole paths by a table of at most `bytes` bytes in front of the walk; 0, the default,
    /// means no table. An entry takes 32 bytes, and the table works best three quarters full. With
    /// the lists, count 56 bytes for each path in frequent use.
    ///
    /// A path is recorded when it is used again soon after its first use; in a cache with a budget,
    /// one or two uses later. A recorded path has no `.` and no `..`, does not end at a mount
    /// point, passes at most 11 directories and symbolic links, and has at most 256 bytes. Other
    /// paths are walked as without a table. If everyone may search all directories of the path and
    /// none is a mount point, one entry serves everyone. Otherwise the path is recorded for each
    /// set of equal credentials; there can be 1024 sets at a time.
    pub fn whole_paths(mut self, bytes: usize) -> Self {
        self.paths.bytes = bytes;
        self
    }

    /// With a table of whole paths, records every path at its first use. For tests: a path that is used once then costs
    /// two walks.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn records_every_path(mut self, records: bool) -> Self {
        self.paths.admits_all = records;
        self
    }

    /// Shards every directory, not only directories that threads wait for. In file systems with
    /// [`CachedNames::changes_in_parallel`] this happens at the first change of the directory; in
    /// file systems that keep their own names, at the first lookup in it. For tests; only debug
    /// builds do so.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn shards_every_directory(mut self, splits: bool) -> Self {
        self.paths.shards_always = splits;
        self
    }

    /// Returns the tree, with the root file system `fs`.
    #[must_use]
    pub fn build(self, fs: impl FileSystem) -> Vfs {
        let tree = Arc::new(PerCpuOwner::new(Tree::new(self.paths), false));
        let root = Arc::new(SuperBlock::new(tree.share(), Box::new(fs), self.budget.into(), true));
        SuperBlock::introduce(&root);
        let mount = Mount::new(root.clone(), root.pin_again(root.root()), MountFlags::default());
        Vfs { namespace: Namespace::new(tree.share(), mount), root, tree }
    }
}
