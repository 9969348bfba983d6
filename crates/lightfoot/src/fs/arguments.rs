//! Arguments and results of the methods of [`FileSystem`](super::FileSystem).

/// The caller of a method and the time. The VFS has checked permissions already.
///
/// ```
/// use lightfoot::fs::{After, FileSystem, Inode, Layer, Request};
/// use lightfoot::{Credentials, Errno, RamFs, Vfs};
///
/// /// Only the user 7 removes files.
/// struct Guarded(RamFs);
///
/// impl Layer for Guarded {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn unlink(&self, request: &Request, dir: &Inode, name: &[u8], inode: &Inode) -> Result<After, Errno> {
///         if request.uid == 7 { self.0.unlink(request, dir, name, inode) } else { Err(Errno::EPERM) }
///     }
/// }
///
/// let root = Vfs::new(Guarded(RamFs::with_root(0o777, 0, 0))).context();
/// root.write("/file", "")?;
/// assert!(root.remove_file("/file").is_err());
/// root.with_credentials(Credentials::user(7, 7, &[])).remove_file("/file")?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Request;

/// The two names of a rename.
///
/// ```
/// use lightfoot::fs::{After, FileSystem, Layer, Rename, Request};
/// use lightfoot::{Errno, RamFs, Vfs};
///
/// /// No file may become hidden.
/// struct Open(RamFs);
///
/// impl Layer for Open {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn rename(&self, request: &Request, rename: &Rename<'_>) -> Result<After, Errno> {
///         if rename.new_name.starts_with(b".") { Err(Errno::EPERM) } else { self.0.rename(request, rename) }
///     }
/// }
///
/// let ctx = Vfs::new(Open(RamFs::new())).context();
/// ctx.write("/a", "")?;
/// ctx.rename("/a", "/b")?;
/// assert!(ctx.rename("/b", "/.b").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Rename;

/// Attributes to change; attributes that are `None` do not change.
///
/// ```
/// use lightfoot::fs::{After, FileSystem, Inode, Layer, Request, SetAttr};
/// use lightfoot::{Errno, Permissions, RamFs, Vfs};
///
/// /// Nobody makes a file writable for everybody.
/// struct Careful(RamFs);
///
/// impl Layer for Careful {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn set_attr(&self, request: &Request, inode: &Inode, set: &SetAttr) -> Result<After, Errno> {
///         if set.mode.is_some_and(|mode| mode & 0o002 != 0) {
///             return Err(Errno::EPERM);
///         }
///         self.0.set_attr(request, inode, set)
///     }
/// }
///
/// let ctx = Vfs::new(Careful(RamFs::new())).context();
/// ctx.write("/file", "")?;
/// ctx.set_permissions("/file", Permissions::from_mode(0o600))?;
/// assert!(ctx.set_permissions("/file", Permissions::from_mode(0o666)).is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::SetAttr;

/// The attributes that files have after a change, if the file system has them: see
/// [`Attributes::FileSystem`](super::Attributes::FileSystem) with `with_changes`.
///
/// ```
/// use lightfoot::fs::{After, Attr};
///
/// /// The reply of a server to a removal has the attributes of the directory.
/// fn after_removal(reply: Option<Attr>) -> After {
///     reply.map_or(After::NONE, |dir| After::NONE.dir(dir))
/// }
///
/// assert_eq!(after_removal(None), After::NONE);
/// assert_ne!(after_removal(Some(Attr::default())), After::NONE);
/// ```
pub use vfs::After;

/// A time in [`SetAttr`].
///
/// ```
/// use lightfoot::fs::SetTime;
///
/// /// The nanoseconds since the epoch that a file system stores.
/// fn stored(time: SetTime, now: i64) -> i64 {
///     match time {
///         SetTime::Now => now,
///         SetTime::At(time) => time,
///     }
/// }
///
/// assert_eq!(stored(SetTime::Now, 5), 5);
/// assert_eq!(stored(SetTime::At(-1), 5), -1); // Before 1970.
/// ```
pub use vfs::SetTime;

/// The target of [`FileSystem::seek`](super::FileSystem::seek): data or a hole.
///
/// ```
/// use lightfoot::Errno;
/// use lightfoot::fs::SeekFor;
///
/// /// A file of `size` bytes whose first half is a hole.
/// fn seek(size: u64, offset: u64, what: SeekFor) -> Result<u64, Errno> {
///     match what {
///         _ if offset >= size => Err(Errno::ENXIO),
///         SeekFor::Data => Ok(offset.max(size / 2)),
///         SeekFor::Hole => Ok(if offset < size / 2 { offset } else { size }),
///     }
/// }
///
/// assert_eq!(seek(100, 0, SeekFor::Data), Ok(50));
/// assert_eq!(seek(100, 60, SeekFor::Hole), Ok(100));
/// ```
pub use vfs::SeekFor;

/// How [`FileSystem::copy_range`](super::FileSystem::copy_range) copies.
///
/// ```
/// use lightfoot::Errno;
/// use lightfoot::fs::Copying;
///
/// /// A file system that cannot share storage, but copies on its server.
/// fn copy_range(len: u64, how: Copying) -> Result<u64, Errno> {
///     match how {
///         Copying::Share => Err(Errno::EOPNOTSUPP),
///         Copying::Any => Ok(len.min(1 << 20)), // At most so many bytes at once.
///     }
/// }
/// assert_eq!(copy_range(10, Copying::Any), Ok(10));
/// assert_eq!(copy_range(10, Copying::Share), Err(Errno::EOPNOTSUPP));
/// ```
pub use vfs::Copying;

/// The result of a write: the bytes that it wrote, and the storage that the file takes after it.
///
/// ```
/// use lightfoot::fs::Written;
///
/// // Ten bytes, into a file that takes one page of 4096 bytes.
/// let written = Written::new(10, 4096 / 512);
/// # assert_eq!(written.blocks, 8);
/// ```
pub use vfs::Written;
