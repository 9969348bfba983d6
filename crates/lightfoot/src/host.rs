//! Host directories as file systems: types of `lightfoot-hostfs`, each with an example.

/// A host directory, to mount in a tree. [`Vfs::host`](crate::Vfs::host) makes a whole tree of one.
///
/// ```
/// use lightfoot::{HostFs, HostOptions, MountFlags, Vfs};
///
/// let source = tempfile::tempdir()?;
/// std::fs::write(source.path().join("file"), "of the host")?;
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/host")?;
/// ctx.mount(HostFs::new(source.path(), &HostOptions::default())?, "/host", MountFlags::RDONLY)?;
/// assert_eq!(ctx.read_to_string("/host/file")?, "of the host");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::HostFs;

/// How a host directory is shown.
///
/// ```
/// use lightfoot::{HostFs, HostOptions, Revalidate, Vfs};
///
/// let source = tempfile::tempdir()?;
/// let options = HostOptions { policy: Revalidate::Exclusive, read_only: true, ..HostOptions::default() };
/// let ctx = Vfs::new(HostFs::new(source.path(), &options)?).context();
/// assert_eq!(ctx.create_dir("/new").unwrap_err().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::HostOptions;

/// How long answers of the host may be cached.
///
/// ```
/// use lightfoot::{HostFs, HostOptions, Revalidate, Vfs};
///
/// let source = tempfile::tempdir()?;
/// let ctx = Vfs::new(HostFs::new(
///     source.path(),
///     &HostOptions { policy: Revalidate::Always, ..HostOptions::default() },
/// )?)
/// .context();
/// assert!(!ctx.exists("/late"));
/// std::fs::write(source.path().join("late"), "")?; // Another program, for example.
/// assert!(ctx.exists("/late"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::Revalidate;

/// Whether file systems that are mounted below the directory are shown.
///
/// ```
/// use lightfoot::{HostFs, HostOptions, MountPoints, Vfs};
///
/// let options = HostOptions { mount_points: MountPoints::Cross, ..HostOptions::default() };
/// let ctx = Vfs::new(HostFs::new("/", &options)?).context();
/// assert!(ctx.exists("/proc/self")); // `/proc` is another mount.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::MountPoints;

/// With whose rights the host is changed.
///
/// ```
/// use lightfoot::{HostFs, HostOptions, Ownership, Vfs};
/// use std::os::unix::fs::MetadataExt;
///
/// let source = tempfile::tempdir()?;
/// let options = HostOptions { ownership: Ownership::Daemon, ..HostOptions::default() };
/// Vfs::new(HostFs::new(source.path(), &options)?).context().write("/file", "")?;
/// let process = std::fs::metadata("/proc/self")?.uid();
/// assert_eq!(std::fs::metadata(source.path().join("file"))?.uid(), process); // Of this process, whatever the caller is.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::Ownership;

/// The use of POSIX ACLs on the host.
///
/// ```
/// use lightfoot::{HostAcls, HostFs, HostOptions, SetXattr, Vfs};
///
/// let source = tempfile::tempdir()?;
/// let options = HostOptions { acls: HostAcls::Refuse, ..HostOptions::default() };
/// let ctx = Vfs::new(HostFs::new(source.path(), &options)?).context();
/// ctx.write("/file", "")?;
/// let acl = lightfoot::fs::Acl::from_mode(0o600).to_xattr();
/// let refused = ctx.set_xattr("/file", "system.posix_acl_access", acl, SetXattr::Any).unwrap_err();
/// assert_eq!(refused.raw_os_error(), Some(95)); // EOPNOTSUPP
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::HostAcls;

/// Which reads change access times on the host.
///
/// ```
/// use lightfoot::{AccessTimes, HostFs, HostOptions, Vfs};
/// use std::os::unix::fs::MetadataExt;
///
/// let source = tempfile::tempdir()?;
/// let file = source.path().join("file");
/// std::fs::write(&file, "text")?;
/// let before = std::fs::metadata(&file)?;
/// let options = HostOptions { access_times: AccessTimes::Keep, ..HostOptions::default() };
/// Vfs::new(HostFs::new(source.path(), &options)?).context().read("/file")?;
/// let after = std::fs::metadata(&file)?;
/// assert_eq!((before.atime(), before.atime_nsec()), (after.atime(), after.atime_nsec()));
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::AccessTimes;

/// A handle of a [`HostFs`] that was given to a tree.
///
/// ```
/// use lightfoot::{HostFs, HostOptions, Vfs};
///
/// let source = tempfile::tempdir()?;
/// let fs = HostFs::new(source.path(), &HostOptions::default())?;
/// let handle = fs.handle(); // Before the tree takes the file system.
/// let ctx = Vfs::new(fs).context();
/// ctx.write("/file", "")?;
/// println!("{} files", handle.stats().nodes);
/// # assert!(handle.stats().nodes > 0);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::HostHandle;

/// A [`HostFs`]'s descriptors and counts.
///
/// ```
/// use lightfoot::{HostFs, HostOptions};
///
/// let source = tempfile::tempdir()?;
/// let fs = HostFs::new(source.path(), &HostOptions { max_fds: 100, ..HostOptions::default() })?;
/// assert!(fs.handle().stats().open_fds <= 100);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use hostfs::HostStats;
