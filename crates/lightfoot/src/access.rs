//! Credentials, protections, and the bits of `faccessat(2)`.

/// Checks that [`View::access`](crate::View::access) makes: search or execute.
pub const X_OK: u32 = vfs::MAY_EXEC;
/// Checks that [`View::access`](crate::View::access) makes: write.
pub const W_OK: u32 = vfs::MAY_WRITE;
/// Checks that [`View::access`](crate::View::access) makes: read.
pub const R_OK: u32 = vfs::MAY_READ;
/// Checks that [`View::access`](crate::View::access) makes: that the file exists.
pub const F_OK: u32 = 0;

/// The user, groups and capabilities that a context acts with.
///
/// ```
/// use lightfoot::{Credentials, Permissions, Vfs};
///
/// let root = Vfs::ram().context();
/// root.write("/secret", "for root")?;
/// root.set_permissions("/secret", Permissions::from_mode(0o600))?;
/// let ann = root.with_credentials(Credentials::user(1000, 1000, &[]));
/// assert_eq!(ann.read("/secret").unwrap_err().kind(), std::io::ErrorKind::PermissionDenied);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Credentials;

/// The privileges of root, one by one.
///
/// ```
/// use lightfoot::{Capabilities, Credentials, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/file", "text")?;
/// let mut backup = Credentials::user(34, 34, &[]);
/// backup.capabilities = Capabilities::DAC_READ_SEARCH; // Reads everything, changes nothing.
/// let backup = ctx.with_credentials(backup);
/// assert_eq!(backup.read("/file")?, b"text");
/// assert!(backup.write("/file", "").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Capabilities;

/// Protections for directories that all users may write, such as `/tmp`.
///
/// ```
/// use lightfoot::{Credentials, Permissions, Policy, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/tmp")?;
/// ctx.set_permissions("/tmp", Permissions::from_mode(0o1777))?;
/// let mallory = ctx.with_credentials(Credentials::user(666, 666, &[]));
/// mallory.symlink("/etc/passwd", "/tmp/report")?;
///
/// ctx.set_policy(Policy { protected_symlinks: true, ..Policy::default() });
/// assert_eq!(ctx.write("/tmp/report", "x").unwrap_err().raw_os_error(), Some(13)); // EACCES: the link is mallory's
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Policy;
