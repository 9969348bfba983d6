//! A virtual file system in a crate.
//!
//! Lightfoot keeps a tree of files in memory behind an interface shaped like [`std::fs`]. Path
//! walks work as in a modern kernel, with less cost: the lookup of a cached path takes no lock,
//! changes no reference count and stores to no shared memory. So lookups run on all cores without
//! delaying one another.
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
//! - [`Context`]: root and working directory, credentials, umask. Threads can share one by
//!   reference, or each have one.
//! - [`Dir`]: a directory from which paths start, with limits on where paths may lead.
//! - [`View`]: every operation on paths. `Context` and `Dir` dereference to it, so they have all its methods.
//! - [`File`], [`OpenOptions`]: contents. An open file stays valid when its name is removed or renamed.
//! - [`Metadata`], [`ReadDir`], [`Permissions`], [`DirBuilder`]: as in `std`.
//!
//! Guides: [with tokio and other async runtimes](guide::tokio), [a file system in 40 lines](guide::own_file_system),
//! [Lightfoot, `vfs`, cap-std, tempfile: which when](guide::which). `docs/std-fs.md` in the repository compares with `std::fs` and `cap_std::fs::Dir`, method by method.
//!
//! # Mounts
//! A tree begins with one file system. [`View::mount`] mounts other file systems in the tree,
//! [`View::bind`] shows parts of the tree at other paths. Each mount has its own [`MountFlags`].
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
//! | `fuse`  | mounts of a tree, or of a part of it, on a directory of the host: `Vfs::mount`, the module `fuse` |
//! | `workspaces` | copy-on-write forks of a tree: the module `workspaces` |
//! | `serde` | `Serialize` for reports ([`CacheStats`], [`MountInfo`], [`RcuStats`]...) and events; `Deserialize` too for [`Budget`] and [`MountFlags`] |
//!
//! The crate builds on Linux only.
//!
//! # Paths
//! Any byte string: `&str`, `&[u8]`, [`std::path::Path`] and their owned forms are all [`AsPath`]. A name may have any
//! byte but NUL and `/`; at most 255 bytes a name and 4095 a path.
//!
//! # Errors
//! [`std::io::Error`] with the error number that Linux would return: `error.raw_os_error()` is the
//! `errno`, [`Errno`] has names for these numbers. If several errors apply, the number is the one
//! that Linux returns; tests compare each call with the kernel. [`View::explain`] finds the
//! component of the path that failed.

#![forbid(unsafe_code)]

#[cfg(not(target_os = "linux"))]
compile_error!("Lightfoot needs Linux: its deferred freeing uses futex(2) and membarrier(2)");

mod access;
mod context;
mod dir;
mod error;
mod file;
mod flags;
pub mod fs;
#[cfg(any(doc, doctest))]
pub mod guide;
#[cfg(feature = "host")]
mod host;
mod memory;
mod metadata;
mod path;
mod read_dir;
mod reports;
mod tree;
mod view;
mod watch;

// This module is after `tree`: rustdoc shows groups of methods in this order.
#[cfg(feature = "fuse")]
pub mod fuse;

// This module is last: rustdoc shows its groups of methods last.
mod conversions;

/// The core, for features that this crate does not show. The method `as_inner` of a type returns
/// the core's value; `From` or `from_inner` makes this crate's value of it.
#[doc(no_inline)]
pub use ::vfs;
pub use ::vfs::DEFAULT_QUEUED_EVENTS;
/// Copy-on-write forks of a tree, in memory or kept by a directory of the host.
///
/// ```
/// use lightfoot::{Vfs, workspaces::{ForkLimits, Workspaces}};
///
/// let base = Vfs::ram();
/// base.context().write("/main.c", "one")?;
/// let spaces = Workspaces::over(base.as_inner().context(), true)?;
/// spaces.fork("base", "a", ForkLimits::default())?;
/// let forks = Vfs::from(spaces.tree().clone()).context();
/// forks.write("/w/a/main.c", "two")?;
/// assert_eq!(spaces.changes("a")?[0].to_string(), "M main.c");
/// assert_eq!(base.context().read_to_string("/main.c")?, "one");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "workspaces")]
#[doc(no_inline)]
pub use ::workspaces;
pub use access::{Capabilities, Credentials, F_OK, Policy, R_OK, W_OK, X_OK};
pub use context::Context;
pub use dir::Dir;
pub use error::Errno;
pub use file::{File, OpenOptions};
pub use flags::{Allocate, LockKind, LockWait, MountFlags, RenameFlags, Resolve, SetXattr, UnmountFlags};
#[doc(no_inline)]
pub use fs::FileSystem;
#[cfg(feature = "host")]
pub use host::{AccessTimes, HostAcls, HostFs, HostHandle, HostOptions, HostStats, MountPoints, Ownership, Revalidate};
pub use memory::{Budget, RamFs, RamLimits, RamOptions, UserLimits};
pub use metadata::{FileTimes, FileType, Metadata, Permissions};
pub use path::AsPath;
pub use read_dir::{DirEntry, ReadDir};
pub use reports::{
    CacheStats, Fallback, Holder, LockInfo, MountInfo, RankWaits, RcuStats, StatFs, StatVfs, WholePathStats,
};
pub use std::fs::TryLockError;
pub use tree::{Builder, Vfs};
pub use view::{DirBuilder, View, WalkFailure};
pub use watch::{Event, EventKind, Scope, Watch};

/// The examples of both README files, and of the page about file systems, are tests too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/filesystem.md")]
#[doc = include_str!("../README.md")]
struct Readme;
