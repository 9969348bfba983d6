//! Trees in memory and their limits, and the limits of caches. The types come from other crates;
//! each has an example.

/// A file system in memory, to mount in a tree. [`Vfs::ram`](crate::Vfs::ram) makes a whole tree of one.
///
/// ```
/// use lightfoot::{MountFlags, RamFs, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/tmp")?;
/// ctx.mount(RamFs::with_root(0o1777, 0, 0), "/tmp", MountFlags::default())?; // Open to all, sticky.
/// assert_eq!(ctx.metadata("/tmp")?.mode() & 0o7777, 0o1777);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use ramfs::RamFs;

/// The options of a file system in memory.
///
/// ```
/// use lightfoot::{RamOptions, Vfs};
///
/// let ctx = Vfs::ram_with(RamOptions { case_insensitive: true, ..RamOptions::default() }).context();
/// ctx.write("/ReadMe", "text")?;
/// assert_eq!(ctx.read("/README")?, b"text");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use ramfs::RamOptions;

/// How much a file system in memory may hold.
///
/// ```
/// use lightfoot::{RamLimits, RamOptions, Vfs};
///
/// let limits = RamLimits { bytes: Some(1 << 20), ..RamLimits::none() };
/// let ctx = Vfs::ram_with(RamOptions { limits, ..RamOptions::default() }).context();
/// let full = ctx.write("/file", vec![0; 2 << 20]).unwrap_err();
/// assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use ramfs::RamLimits;

/// How much each user may hold: [`RamLimits::per_user`].
///
/// ```
/// use lightfoot::{Credentials, RamLimits, RamOptions, UserLimits, Vfs};
///
/// let per_user = Some(UserLimits { bytes: None, inodes: Some(2) });
/// let limits = RamLimits { per_user, ..RamLimits::none() };
/// let vfs = Vfs::ram_with(RamOptions { mode: 0o777, limits, ..RamOptions::default() });
/// let ann = vfs.context().with_credentials(Credentials::user(1000, 1000, &[]));
/// ann.write("/one", "")?;
/// ann.write("/two", "")?;
/// let third = ann.write("/three", "").unwrap_err();
/// assert_eq!(third.kind(), std::io::ErrorKind::QuotaExceeded);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use ramfs::UserLimits;

/// How many bytes the cache of one file system may hold. File systems in memory do not need one: their names are
/// not a cache.
///
/// ```
/// use lightfoot::{Budget, HostFs, HostOptions, Vfs};
///
/// let budget = Budget { entries: 64 << 20, ..Budget::default() };
/// assert_eq!(budget.names(), 262_144); // So many names, of at most 32 bytes.
/// let ctx = Vfs::with_budget(HostFs::new("/", &HostOptions::default())?, budget).context();
/// assert!(ctx.is_dir("/"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Budget;
