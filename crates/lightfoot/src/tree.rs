//! Trees, and the options with which they are made.

use crate::context::Context;
#[cfg(feature = "host")]
use hostfs::{HostFs, HostOptions};
use ramfs::{RamFs, RamOptions};
use std::fmt;
use vfs::{Budget, CacheStats, Fallback, FileSystem, RankWaits, RcuStats, WholePathStats};

/// One tree: a file system and its caches. The tree is dropped when its last handle, context and
/// open file are dropped.
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// let same = vfs.clone(); // The same tree.
/// vfs.context().write("/file", "text")?;
/// assert_eq!(same.context().read("/file")?, b"text");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Vfs {
    pub(crate) inner: vfs::Vfs,
}

/// # Making trees
///
/// ```
/// use lightfoot::{RamFs, Vfs};
///
/// let one = Vfs::ram(); // In memory.
/// let two = Vfs::new(RamFs::with_root(0o1777, 0, 0)); // Over any file system, also your own.
/// # drop((one, two));
/// ```
impl Vfs {
    /// Returns an empty tree in memory. Its root directory belongs to uid 0 and has mode 0755.
    /// Contents take at most half of the machine's memory, names another half
    /// ([`RamLimits::default`](crate::RamLimits::default)). Changes that need more fail with
    /// `ENOSPC`.
    #[must_use]
    pub fn ram() -> Self {
        Self::new(RamFs::new())
    }

    /// Returns an empty tree in memory, with these limits, owner and mode of its root directory.
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

    /// Returns a tree over your own file system.
    #[must_use]
    pub fn new(fs: impl FileSystem) -> Self {
        Self { inner: vfs::Vfs::new(fs) }
    }

    /// Returns a tree over your own file system, whose cache holds at most `budget`.
    /// [`View::mount_with_budget`](crate::View::mount_with_budget) does the same for a file system
    /// mounted in a tree.
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

    /// Returns a tree with options.
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

    /// Returns a tree over the directory of the host at `path`, which other programs may change: a
    /// walk checks cached entries again after a second. [`HostFs`] with [`HostOptions`] has other
    /// choices; [`View::mount`](crate::View::mount) mounts a host directory in a tree.
    ///
    /// Walks use the cache, and request from the host the names that the cache does not have. Walks
    /// never leave the directory.
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
    /// As for [`HostFs::new`]: `ENOENT`, `ENOTDIR`, `EACCES`...
    #[cfg(feature = "host")]
    pub fn host(path: impl AsRef<std::path::Path>) -> std::io::Result<Self> {
        Ok(Self::new(HostFs::new(path, &HostOptions::default())?))
    }

    /// Returns a new context: at the root, with root's credentials, umask 022.
    #[must_use]
    pub fn context(&self) -> Context {
        Context::new(self.inner.context())
    }
}

/// # Reports
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// let ctx = vfs.context();
/// ctx.write("/file", "text")?;
/// ctx.remove_file("/file")?;
/// vfs.barrier();
/// println!("{} bytes of entries", vfs.cache_stats().slot_bytes);
/// assert_eq!(vfs.rcu_stats().deferred_callbacks, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Vfs {
    /// Returns how often walks left the mode without stores for `reason`.
    #[must_use]
    pub fn fallbacks(&self, reason: Fallback) -> u64 {
        self.inner.fallbacks(reason)
    }

    /// Returns statistics of the caches. Visits every entry: for tests and reports.
    #[must_use]
    pub fn cache_stats(&self) -> CacheStats {
        self.inner.stats()
    }

    /// Returns counts of the table of whole paths ([`Builder::whole_paths`]). Examines every entry:
    /// for tests and reports.
    #[must_use]
    pub fn whole_path_stats(&self) -> WholePathStats {
        self.inner.whole_path_stats()
    }

    /// Returns the state of deferred freeing.
    #[must_use]
    pub fn rcu_stats(&self) -> RcuStats {
        self.inner.rcu_stats()
    }

    /// Returns how often, and how long, threads waited for the tree's locks, by the rank of the
    /// lock, outermost first. A thread that gets a lock at once is not counted.
    pub fn lock_waits(&self) -> impl Iterator<Item = RankWaits> {
        self.inner.lock_waits()
    }

    /// Waits until all memory that was retired before this call is freed.
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
    /// Limits the cache of the root file system.
    pub fn budget(self, budget: Budget) -> Self {
        Self { inner: self.inner.budget(budget) }
    }

    /// Looks up whole paths in a table of at most `bytes` bytes before a walk; 0, the default,
    /// means no table. See [`vfs::Builder::whole_paths`] for the paths that the table has.
    pub fn whole_paths(self, bytes: usize) -> Self {
        Self { inner: self.inner.whole_paths(bytes) }
    }

    /// Shards every directory of the RAM file system at the first change of the directory. For
    /// tests; only debug builds do so.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn shards_every_directory(self, splits: bool) -> Self {
        Self { inner: self.inner.shards_every_directory(splits) }
    }

    /// With a table of whole paths, records every path at its first use. For tests.
    #[cfg(feature = "testing")]
    #[doc(hidden)]
    pub fn records_every_path(self, records: bool) -> Self {
        Self { inner: self.inner.records_every_path(records) }
    }

    /// Returns the tree, with the root file system `fs`.
    #[must_use]
    pub fn build(self, fs: impl FileSystem) -> Vfs {
        self.inner.build(fs).into()
    }
}

/// Returns this crate's interface of the tree.
impl From<vfs::Vfs> for Vfs {
    fn from(inner: vfs::Vfs) -> Self {
        Self { inner }
    }
}

impl fmt::Debug for Vfs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mounts = self.inner.context().mounts();
        let root = mounts.first().map_or("", |mount| &mount.type_name);
        f.debug_struct("Vfs").field("root", &root).field("mounts", &mounts.len()).finish()
    }
}
