//! Flags and choices that operations take, each with an example. The types are the core's.

/// The rules of one mount, such as read-only.
///
/// ```
/// use lightfoot::{MountFlags, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/data")?;
/// ctx.create_dir("/public")?;
/// ctx.write("/data/file", "text")?;
/// ctx.bind("/data", "/public", MountFlags::RDONLY | MountFlags::NOSYMFOLLOW)?;
/// assert_eq!(ctx.read("/public/file")?, b"text");
/// assert_eq!(ctx.write("/public/file", "more").unwrap_err().raw_os_error(), Some(30)); // EROFS
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::MountFlags;

/// How [`View::unmount`](crate::View::unmount) unmounts.
///
/// ```
/// use lightfoot::{MountFlags, RamFs, UnmountFlags, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/mnt")?;
/// ctx.mount(RamFs::new(), "/mnt", MountFlags::default())?;
/// let file = ctx.create("/mnt/file")?;
/// assert_eq!(ctx.unmount("/mnt", UnmountFlags::default()).unwrap_err().raw_os_error(), Some(16)); // EBUSY
/// ctx.unmount("/mnt", UnmountFlags::DETACH)?;
/// file.write_at(b"still here", 0)?; // An open file stays usable.
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::UnmountFlags;

/// The action of [`View::rename_with`](crate::View::rename_with) if the new name exists.
///
/// ```
/// use lightfoot::{RenameFlags, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/current", "old release")?;
/// ctx.write("/next", "new release")?;
/// assert!(ctx.rename_with("/next", "/current", RenameFlags::NOREPLACE).is_err());
/// ctx.rename_with("/next", "/current", RenameFlags::EXCHANGE)?; // Others see either the old file or the new one.
/// assert_eq!(ctx.read("/current")?, b"new release");
/// assert_eq!(ctx.read("/next")?, b"old release");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::RenameFlags;

/// How far paths may lead: [`Dir::within`](crate::Dir::within), [`OpenOptions::resolve`](crate::OpenOptions::resolve).
///
/// ```
/// use lightfoot::{Resolve, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/jail/etc")?;
/// ctx.write("/jail/etc/passwd", "of the jail")?;
/// ctx.symlink("/etc/passwd", "/jail/link")?;
///
/// let jail = ctx.open_dir("/jail")?.within(Resolve::IN_ROOT)?; // For paths from it, `/` is the jail.
/// assert_eq!(jail.read("link")?, b"of the jail");
/// let strict = jail.within(Resolve::NO_SYMLINKS)?;
/// assert_eq!(strict.read("link").unwrap_err().raw_os_error(), Some(40)); // ELOOP
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Resolve;

/// The action of [`File::allocate`](crate::File::allocate) on a range of a file.
///
/// ```
/// use lightfoot::{Allocate, Vfs};
///
/// let ctx = Vfs::ram().context();
/// let file = ctx.create("/file")?;
/// file.write_all_at(&[1; 3 * 4096], 0)?;
/// file.allocate(Allocate::PunchHole, true, 4096, 4096)?; // The middle reads as zeros and takes no storage.
/// assert_eq!(file.metadata()?.len(), 3 * 4096);
/// assert_eq!(file.metadata()?.blocks() * 512, 2 * 4096);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Allocate;

/// Whether [`View::set_xattr`](crate::View::set_xattr) creates an attribute, replaces it, or does either.
///
/// ```
/// use lightfoot::{SetXattr, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/photo", "")?;
/// ctx.set_xattr("/photo", "user.tag", "sea", SetXattr::Create)?;
/// let again = ctx.set_xattr("/photo", "user.tag", "hill", SetXattr::Create);
/// assert_eq!(again.unwrap_err().raw_os_error(), Some(17)); // EEXIST
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::SetXattr;

/// The kind of lock that [`File::lock_range`](crate::File::lock_range) takes.
///
/// ```
/// use lightfoot::{LockKind, LockWait, OpenOptions, Vfs};
///
/// let ctx = Vfs::ram().context();
/// let reader = ctx.create_new("/file")?;
/// let writer = ctx.open_with("/file", OpenOptions::new().read(true).write(true))?;
/// reader.lock_range(LockKind::Shared, 0..100, LockWait::Forever)?;
/// writer.lock_range(LockKind::Shared, 0..50, LockWait::Forever)?; // Shared locks go together.
/// assert!(writer.lock_range(LockKind::Exclusive, 0..50, LockWait::Never).is_err());
/// reader.lock_range(LockKind::Unlock, 0..100, LockWait::Forever)?;
/// writer.lock_range(LockKind::Exclusive, 0..50, LockWait::Never)?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::LockKind;

/// How long [`File::lock_range`](crate::File::lock_range) waits for a lock.
///
/// ```
/// use lightfoot::{LockKind, LockWait, OpenOptions, Vfs};
/// use std::time::Duration;
///
/// let ctx = Vfs::ram().context();
/// let first = ctx.create_new("/file")?;
/// let second = ctx.open_with("/file", OpenOptions::new().write(true))?;
/// first.lock_range(LockKind::Exclusive, 0..u64::MAX, LockWait::Forever)?;
/// let wait = LockWait::AtMost(Duration::from_millis(10));
/// let late = second.lock_range(LockKind::Exclusive, 0..1, wait).unwrap_err();
/// assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::LockWait;
