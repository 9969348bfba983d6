//! Open files, as methods of [`FileSystem`](super::FileSystem) get them.

/// The result of [`FileSystem::open`](super::FileSystem::open), which is called if
/// [`FsTraits::opens`](super::FsTraits::opens) is `Yes`.
///
/// ```
/// use lightfoot::fs::{FileSystem, FsTraits, Inode, Layer, Open, OpenFlags, OpenState, Opened, Opens, Request};
/// use lightfoot::{Errno, RamFs, Vfs};
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// /// Numbers the opens, and prints what each one reads.
/// struct Traced(RamFs, AtomicU64);
///
/// impl Layer for Traced {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn traits(&self) -> FsTraits {
///         FsTraits { opens: Opens::Yes { flush: false }, ..self.0.traits() }
///     }
///
///     fn open(&self, _: &Request, _: &Inode, _: OpenFlags) -> Result<Opened, Errno> {
///         let number = self.1.fetch_add(1, Relaxed);
///         Ok(Opened { state: OpenState::Word(number), ..Opened::default() })
///     }
///
///     fn read(&self, request: &Request, file: &Open<'_>, offset: u64, buf: &mut [u8]) -> Result<usize, Errno> {
///         println!("open {:?} reads from {offset}", file.state.word());
///         # assert_eq!(file.state.word(), Some(1));
///         self.0.read(request, file, offset, buf)
///     }
/// }
///
/// let ctx = Vfs::new(Traced(RamFs::new(), AtomicU64::new(0))).context();
/// ctx.write("/file", "hello")?;
/// assert_eq!(ctx.read("/file")?, b"hello");
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Opened;

/// The state that a file system keeps for one open: nothing, a number, or a value of the file
/// system's type.
///
/// ```
/// use lightfoot::fs::OpenState;
/// use std::sync::Arc;
///
/// let state = OpenState::Shared(Arc::new(vec!["generation 3"]));
/// assert_eq!(state.get::<Vec<&str>>().unwrap()[0], "generation 3");
/// ```
pub use vfs::OpenState;

/// An open file: the file, the flags, and what [`FileSystem::open`](super::FileSystem::open) returned for it.
///
/// ```
/// use lightfoot::Errno;
/// use lightfoot::fs::Open;
///
/// /// The handle of a server that `open` stored.
/// fn handle(file: &Open<'_>) -> Result<u64, Errno> {
///     file.state.word().ok_or(Errno::EBADF)
/// }
/// ```
pub use vfs::Open;

/// Where [`FileSystem::write`](super::FileSystem::write) puts the data.
///
/// ```
/// use lightfoot::fs::{FileSystem, Layer, Open, Position, Request, Written};
/// use lightfoot::{Errno, OpenOptions, RamFs, Vfs};
///
/// /// Data can be appended, not overwritten.
/// struct Journal(RamFs);
///
/// impl Layer for Journal {
///     type Inner = RamFs;
///
///     fn inner(&self) -> &RamFs {
///         &self.0
///     }
///
///     fn write(&self, request: &Request, file: &Open<'_>, at: Position, data: &[u8]) -> Result<Written, Errno> {
///         if let Position::End(_) = at { self.0.write(request, file, at, data) } else { Err(Errno::EPERM) }
///     }
/// }
///
/// let ctx = Vfs::new(Journal(RamFs::new())).context();
/// let log = OpenOptions::new().append(true).create(true).open(&ctx, "/log")?;
/// assert_eq!(log.write_at(b"line", 0)?, 4);
/// assert!(ctx.write("/log", "other").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
pub use vfs::Position;
