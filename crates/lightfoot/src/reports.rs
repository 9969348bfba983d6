//! Reports of a tree: mounts, storage, locks, caches. The types are the core's; each has an
//! example.

/// One mount of a list: [`Context::mounts`](crate::Context::mounts).
///
/// ```
/// use lightfoot::{MountFlags, RamFs, Vfs};
/// use std::path::Path;
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/data")?;
/// ctx.mount(RamFs::new(), "/data", MountFlags::RDONLY)?;
/// let mounts = ctx.mounts();
/// assert_eq!(mounts[1].mountpoint, Path::new("/data"));
/// assert_eq!(mounts[1].parent_id, mounts[0].id);
/// assert!(mounts[1].flags.contains(MountFlags::RDONLY));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::MountInfo;

/// The users that keep a file system busy: [`View::holders`](crate::View::holders).
///
/// ```
/// use lightfoot::{MountFlags, RamFs, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/data")?;
/// ctx.mount(RamFs::new(), "/data", MountFlags::default())?;
/// let _log = ctx.create("/data/log")?;
/// for holder in ctx.holders("/data")? {
///     println!("{} is in use", holder.path.display());
/// }
/// # assert!(ctx.holders("/data")?.iter().any(|holder| holder.path == std::path::Path::new("/data/log")));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Holder;

/// Storage and flags where a path leads: [`View::statvfs`](crate::View::statvfs).
///
/// ```
/// use lightfoot::{RamLimits, RamOptions, Vfs};
///
/// let limits = RamLimits { bytes: Some(1 << 20), ..RamLimits::none() };
/// let ctx = Vfs::ram_with(RamOptions { limits, ..RamOptions::default() }).context();
/// ctx.write("/file", [0; 100_000])?;
/// let stat = ctx.statvfs("/")?;
/// let free = stat.fs.blocks_free * u64::from(stat.fs.block_size);
/// assert!(free <= (1 << 20) - 100_000);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::StatVfs;

/// The storage of a file system, as the file system reports it: the field `fs` of [`StatVfs`].
///
/// ```
/// use lightfoot::{StatFs, Vfs};
///
/// let stat: StatFs = Vfs::ram().context().statvfs("/")?.fs;
/// assert_eq!(stat.name_max, 255);
/// assert!(stat.blocks_free <= stat.blocks);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::StatFs;

/// A lock that conflicts: [`File::test_lock`](crate::File::test_lock).
///
/// ```
/// use lightfoot::{LockKind, LockWait, OpenOptions, Vfs};
///
/// let ctx = Vfs::ram().context();
/// let owner = ctx.create_new("/file")?;
/// let other = ctx.open_with("/file", OpenOptions::new().read(true).write(true))?;
/// owner.lock_range(LockKind::Exclusive, 10..20, LockWait::Never)?;
/// let found = other.test_lock(LockKind::Shared, 0..15)?.expect("a lock conflicts");
/// assert_eq!((found.kind, found.start, found.end), (LockKind::Exclusive, 10, 20));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::LockInfo;

/// The reason for which a lookup needed stores to shared memory:
/// [`Vfs::fallbacks`](crate::Vfs::fallbacks).
///
/// ```
/// use lightfoot::{Fallback, Vfs};
///
/// let vfs = Vfs::ram();
/// let ctx = vfs.context();
/// ctx.write("/file", "text")?;
/// for _ in 0..1000 {
///     ctx.metadata("/file")?;
/// }
/// for reason in Fallback::ALL {
///     println!("{}: {}", reason.name(), vfs.fallbacks(reason));
/// }
/// # assert_eq!(vfs.fallbacks(Fallback::Revalidate), 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Fallback;

/// Counts of the entries in the caches: [`Vfs::cache_stats`](crate::Vfs::cache_stats).
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// let ctx = vfs.context();
/// let before = vfs.cache_stats().entries;
/// ctx.write("/a", "")?;
/// ctx.write("/b", "")?;
/// assert_eq!(vfs.cache_stats().entries, before + 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::CacheStats;

/// Counts of the table of whole paths: [`Vfs::whole_path_stats`](crate::Vfs::whole_path_stats).
///
/// ```
/// use lightfoot::{RamFs, Vfs};
///
/// let vfs = Vfs::builder().whole_paths(1 << 20).build(RamFs::new());
/// let ctx = vfs.context();
/// ctx.write("/file", "text")?;
/// for _ in 0..10 {
///     ctx.metadata("/file")?;
/// }
/// let stats = vfs.whole_path_stats();
/// assert_eq!((stats.entries, stats.recorded), (1, 1)); // Nine lookups or so were answered by the table.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::WholePathStats;

/// How much memory waits to be freed: [`Vfs::rcu_stats`](crate::Vfs::rcu_stats).
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// let ctx = vfs.context();
/// ctx.create_dir("/tmp")?;
/// ctx.remove_dir("/tmp")?;
/// vfs.barrier(); // Frees what was removed before.
/// assert_eq!(vfs.rcu_stats().deferred_bytes, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::RcuStats;

/// How threads waited for the locks of one rank: [`Vfs::lock_waits`](crate::Vfs::lock_waits).
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// vfs.context().write("/file", "text")?;
/// for of in vfs.lock_waits() {
///     println!("{}: {} waits of {} ns together", of.name, of.waits, of.waited_ns);
/// }
/// assert!(vfs.lock_waits().all(|of| of.waits == 0), "one thread waits for no other");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::RankWaits;
