//! A virtual file system in a crate.
//!
//! Lightfoot keeps a tree of files in memory behind an interface shaped like [`std::fs`]. Its path walks are those of a
//! modern kernel, carried further: looking up a cached path takes no lock, moves no reference count and stores to no
//! shared memory, so lookups run on all cores without getting in one another's way.
//!
//! ```
//! use std::io::{Read, Write};
//!
//! let vfs = lightfoot::Vfs::ram();
//! let ctx = vfs.context();
//! ctx.create_dir_all("/etc/app")?;
//! ctx.write("/etc/app/conf", "colour = green\n")?;
//! ctx.symlink("app/conf", "/etc/conf")?;
//!
//! assert_eq!(ctx.metadata("/etc/conf")?.len(), 15);
//! assert_eq!(ctx.read_to_string("/etc/conf")?, "colour = green\n");
//!
//! let mut file = lightfoot::OpenOptions::new().append(true).open(&ctx, "/etc/conf")?;
//! file.write_all(b"size = 3\n")?;
//! ctx.rename("/etc/app", "/etc/application")?; // the open file stays valid
//! assert_eq!(file.metadata()?.len(), 24);
//! assert_eq!(ctx.metadata("/etc/conf").unwrap_err().raw_os_error(), Some(2)); // ENOENT: the link dangles now
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # The pieces
//! - [`Vfs`]: one tree. Cloning it shares the tree.
//! - [`Context`]: root and working directory, credentials, umask. Share one among threads by reference, or give each
//!   thread its own.
//! - [`Dir`]: a directory that paths start from, with limits of how far they lead.
//! - [`View`]: every operation on paths. `Context` and `Dir` dereference to it, so they have all its methods.
//! - [`File`], [`OpenOptions`]: contents. An open file stays valid when its name is removed or renamed.
//! - [`Metadata`], [`ReadDir`], [`Permissions`], [`DirBuilder`]: as in `std`.
//!
//! `docs/std-fs.md` in the repository compares with `std::fs` and `cap_std::fs::Dir`, method by method.
//!
//! # Mounts
//! A tree begins with one file system. [`View::mount`] mounts others in it, [`View::bind`] shows parts of it at other
//! places. Each mount has its own [`MountFlags`].
//!
//! ```
//! use lightfoot::{MountFlags, RamFs, UnmountFlags, Vfs};
//!
//! let ctx = Vfs::ram().context();
//! ctx.create_dir_all("/mnt/data")?;
//! ctx.mount(RamFs::new(), "/mnt/data", MountFlags::default())?;
//! ctx.write("/mnt/data/file", "kept")?;
//! ctx.create_dir("/ro")?;
//! ctx.bind("/mnt/data", "/ro", MountFlags::RDONLY)?;
//! assert_eq!(ctx.read_to_string("/ro/file")?, "kept");
//! assert_eq!(ctx.remove_file("/ro/file").unwrap_err().raw_os_error(), Some(30)); // EROFS
//! ctx.unmount("/ro", UnmountFlags::default())?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Features
//! Without features the crate has trees in memory, and your own file systems ([`fs`]).
//!
//! | feature | what it adds |
//! |---------|--------------|
//! | `host`  | host directories as file systems: `Vfs::host`, `HostFs` |
//!
//! The crate builds on Linux only.
//!
//! # Paths
//! Any byte string: `&str`, `&[u8]`, [`std::path::Path`] and their owned forms are all [`AsPath`]. A name may have any
//! byte but NUL and `/`; at most 255 bytes a name and 4095 a path.
//!
//! # Errors
//! [`std::io::Error`] with the error number that Linux would return: `error.raw_os_error()` is the `errno`, [`Errno`]
//! has names for them. If several errors apply, it is the one that Linux returns; the tests compare call by call with
//! the kernel. [`View::explain`] finds the component of the path that failed.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("Lightfoot needs Linux: its deferred freeing uses futex(2) and membarrier(2)");

mod access;
mod context;
mod dir;
mod dir_builder;
mod error;
mod file;
mod metadata;
mod path;
mod read_dir;
mod view;
mod watch;

pub use access::{F_OK, R_OK, W_OK, X_OK};
pub use context::Context;
pub use dir::Dir;
pub use dir_builder::DirBuilder;
pub use file::{File, OpenOptions};
#[cfg(feature = "host")]
pub use hostfs::{AccessTimes, HostFs, HostHandle, HostOptions, HostStats, MountPoints, Ownership, Revalidate};
pub use metadata::{FileTimes, FileType, Metadata, Permissions};
pub use path::AsPath;
pub use ramfs::{RamFs, RamLimits, RamOptions, UserLimits};
pub use read_dir::{DirEntry, ReadDir};
pub use std::fs::TryLockError;
pub use vfs::{
    Allocate, Budget, CacheStats, Capabilities, Credentials, DEFAULT_QUEUED_EVENTS, Errno, Event, EventKind, Fallback,
    FileSystem, Holder, LockInfo, LockKind, LockWait, MountFlags, MountInfo, Policy, RcuStats, RenameFlags, Resolve,
    Scope, SetXattr, StatFs, StatVfs, UnmountFlags, WholePathStats,
};
pub use view::{View, WalkFailure};
pub use watch::Watch;

/// Types for implementors of [`FileSystem`].
pub mod fs {
    pub use vfs::{
        Allocate, Attr, DirEntry, FileSystem, FsTraits, Inode, Invalidator, Layer, NameRules, NewInode, PathAdapter,
        PathEntry, PathFileSystem, Permission, Rename, RenameFlags, Request, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO,
        S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, SeekFor, SetAttr, SetTime, SetXattr, StatFs, UnheldInode, Valid, Written,
    };
}

/// One tree: a file system and its caches. It is dropped with its last handle, context and open file.
#[derive(Clone, Debug)]
pub struct Vfs {
    inner: vfs::Vfs,
}

impl Vfs {
    /// An empty tree in memory. Its root directory belongs to uid 0 and has mode 0755. Its contents take at most half of the
    /// machine's memory, and so do its names ([`RamLimits::default`]); then changes fail with `ENOSPC`.
    #[must_use]
    pub fn ram() -> Self {
        Self::new(RamFs::new())
    }

    /// An empty tree in memory, with these limits, owner and mode of its root directory.
    ///
    /// ```
    /// use lightfoot::{RamLimits, RamOptions, Vfs};
    ///
    /// let limits = RamLimits { bytes: Some(64 << 20), inodes: Some(10_000), ..RamLimits::none() };
    /// let ctx = Vfs::ram_with(RamOptions { limits, ..RamOptions::default() }).context();
    /// assert_eq!(ctx.statvfs("/")?.fs.files, 10_000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn ram_with(options: RamOptions) -> Self {
        Self::new(RamFs::with_options(&options))
    }

    /// A tree over your own file system.
    #[must_use]
    pub fn new(fs: impl FileSystem) -> Self {
        Self { inner: vfs::Vfs::new(fs) }
    }

    /// A tree over your own file system, whose cache holds at most `budget`. [`View::mount_with_budget`] does the
    /// same for a file system that is mounted in a tree.
    ///
    /// ```
    /// use lightfoot::{Budget, RamFs, Vfs};
    ///
    /// let budget = Budget { negatives: 4 << 20, ..Budget::default() };
    /// let vfs = Vfs::with_budget(RamFs::new(), budget);
    /// # vfs.context();
    /// ```
    #[must_use]
    pub fn with_budget(fs: impl FileSystem, budget: Budget) -> Self {
        Self { inner: vfs::Vfs::with_budget(fs, budget) }
    }

    /// A tree with options.
    ///
    /// ```
    /// use lightfoot::{RamFs, Vfs};
    ///
    /// // Paths in frequent use are found by a table of a megabyte, without a walk.
    /// let vfs = Vfs::builder().whole_paths(1 << 20).build(RamFs::new());
    /// # vfs.context();
    /// ```
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// A tree over the directory of the host at `path`, which other programs may change: cached entries are revalidated
    /// after a second. [`HostFs`] with [`HostOptions`] has other choices; [`View::mount`] mounts one beside others.
    ///
    /// Walks use what is cached and get the rest from the host. They never leave the directory.
    ///
    /// ```
    /// # let source = std::env::temp_dir().join(format!("lightfoot-doc-{}", std::process::id()));
    /// # std::fs::create_dir(&source)?;
    /// let ctx = lightfoot::Vfs::host(&source)?.context();
    /// ctx.write("/made", "here")?;
    /// assert_eq!(std::fs::read_to_string(source.join("made"))?, "here");
    /// std::os::unix::fs::symlink("/etc", source.join("out"))?;
    /// assert!(ctx.metadata("/out/passwd").is_err()); // The tree's root is the source: there is no /etc in it.
    /// # std::fs::remove_dir_all(&source)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`HostFs::new`]: `ENOENT`, `ENOTDIR`, `EACCES`...
    #[cfg(feature = "host")]
    pub fn host(path: impl AsRef<std::path::Path>) -> std::io::Result<Self> {
        Ok(Self::new(HostFs::new(path, &HostOptions::default())?))
    }

    /// A new context: at the root, with root's credentials, umask 022.
    #[must_use]
    pub fn context(&self) -> Context {
        Context::new(self.inner.context())
    }

    /// How often walks left the store-free mode for `reason`.
    #[must_use]
    pub fn fallbacks(&self, reason: Fallback) -> u64 {
        self.inner.fallbacks(reason)
    }

    /// Statistics of the caches. Visits every entry: for tests and reports.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.inner.stats()
    }

    /// The table of whole paths ([`Builder::whole_paths`]). Examines every entry: for tests and reports.
    #[must_use]
    pub fn whole_path_stats(&self) -> WholePathStats {
        self.inner.whole_path_stats()
    }

    /// The state of deferred freeing.
    #[must_use]
    pub fn rcu_stats(&self) -> RcuStats {
        self.inner.rcu_stats()
    }

    /// Waits until everything that was retired before this call is freed.
    pub fn barrier(&self) {
        self.inner.barrier();
    }
}

/// Options of a tree: [`Vfs::builder`].
///
/// ```
/// use lightfoot::{Budget, RamFs, Vfs};
///
/// let budget = Budget { negatives: 4 << 20, ..Budget::default() };
/// let vfs = Vfs::builder().budget(budget).whole_paths(1 << 20).build(RamFs::new());
/// # vfs.context();
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Builder {
    inner: vfs::Builder,
}

impl Builder {
    /// The most that the cache of the root file system may hold.
    pub fn budget(self, budget: Budget) -> Self {
        Self { inner: self.inner.budget(budget) }
    }

    /// Finds whole paths by a table of at most `bytes` bytes, in front of the walk; 0, the default, means no table. See
    /// [`vfs::Builder::whole_paths`] for the paths that it has.
    pub fn whole_paths(self, bytes: usize) -> Self {
        Self { inner: self.inner.whole_paths(bytes) }
    }

    /// Splits every directory of the RAM file system at the first change of it. For tests; only debug builds do so.
    pub fn splits_every_directory(self, splits: bool) -> Self {
        Self { inner: self.inner.splits_every_directory(splits) }
    }

    /// With a table of whole paths, records every path at its first use. For tests.
    pub fn records_every_path(self, records: bool) -> Self {
        Self { inner: self.inner.records_every_path(records) }
    }

    /// The tree, with the root file system `fs`.
    #[must_use]
    pub fn build(self, fs: impl FileSystem) -> Vfs {
        self.inner.build(fs).into()
    }
}

/// The same tree under this crate's interface.
impl From<vfs::Vfs> for Vfs {
    fn from(inner: vfs::Vfs) -> Self {
        Self { inner }
    }
}

/// The examples of both README files are tests too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
struct Readme;
