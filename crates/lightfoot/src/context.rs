//! The context of operations: root and working directory, credentials, umask.
//!
//! # What it is
//! Root directory, working directory, credentials, umask, and the mount namespace of both
//! directories. The operations on paths are in [`View`], to which a context dereferences.
//!
//! # How it is locked
//! By the core, in its module `context`: a change is atomic, and walks that begin after the change
//! see it.
//!
//! # Where it comes from
//! The state of a process that `clone(2)` shares or copies by `CLONE_FS` and `CLONE_NEWNS`.

use crate::dir::Dir;
use crate::error::error;
use crate::path::{AsPath, path_buf};
use crate::view::View;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use vfs::{Credentials, MountInfo, Policy};

/// How a tree is used: root and working directory, credentials, umask. See the [crate
/// documentation](crate). Every operation on paths is a method of [`View`], and so of a context.
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// let ctx = vfs.context();
/// ctx.write("/file", "text")?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(ctx.read("/file").unwrap(), b"text")); // Threads share it,
///     let own = ctx.fork(); // or have their own.
///     scope.spawn(move || own.set_current_dir("/").unwrap());
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// Each [`Dir`] that a context returned keeps the context alive.
pub struct Context {
    view: View,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cwd = self.current_dir().unwrap_or_default();
        f.debug_struct("Context")
            .field("current_dir", &cwd)
            .field("credentials", &self.credentials())
            .field("umask", &format_args!("{:#05o}", self.umask()))
            .finish_non_exhaustive()
    }
}

/// As [`Context::fork`]: the contexts share only the tree and its mounts.
impl Clone for Context {
    fn clone(&self) -> Self {
        self.fork()
    }
}

impl Deref for Context {
    type Target = View;

    #[inline]
    fn deref(&self) -> &View {
        &self.view
    }
}

impl Context {
    pub(crate) fn new(inner: vfs::Context) -> Self {
        Self { view: View::of_context(Arc::new(inner)) }
    }

    pub(crate) fn inner(&self) -> &vfs::Context {
        &self.view.inner
    }
}

/// # Working directory and root
///
/// ```
/// use lightfoot::Vfs;
/// use std::path::Path;
///
/// let vfs = Vfs::ram();
/// let ctx = vfs.context();
/// ctx.create_dir_all("/jail/home")?;
/// ctx.set_current_dir("/jail/home")?;
/// ctx.write("letter", "dear")?; // Relative paths start there.
/// assert!(ctx.exists("/jail/home/letter"));
///
/// ctx.chroot("/jail")?;
/// assert_eq!(ctx.current_dir()?, Path::new("/home"));
/// assert!(vfs.context().exists("/jail")); // Other contexts have their own root.
/// # Ok::<(), std::io::Error>(())
/// ```
impl Context {
    /// Changes the working directory: `chdir(2)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`.
    pub fn set_current_dir(&self, path: impl AsPath) -> io::Result<()> {
        self.inner().set_current_dir(path.as_path_bytes()).map_err(error)
    }

    /// Changes the working directory to the directory of the handle `dir`: `fchdir(2)`. The limits
    /// of `dir` do not limit this context.
    ///
    /// ```
    /// use std::path::Path;
    ///
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.create_dir_all("/srv/new")?;
    /// let dir = ctx.open_dir("/srv/new")?;
    /// ctx.rename("/srv/new", "/srv/current")?; // The handle still refers to the directory.
    /// ctx.set_current_dir_to(&dir)?;
    /// assert_eq!(ctx.current_dir()?, Path::new("/srv/current"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EACCES`; `EXDEV` for a directory of another tree.
    pub fn set_current_dir_to(&self, dir: &Dir) -> io::Result<()> {
        self.inner().set_current_dir_to(dir.place()?).map_err(error)
    }

    /// Returns the working directory's path: `getcwd(2)`.
    ///
    /// # Errors
    /// `ENOENT` if the working directory was removed.
    pub fn current_dir(&self) -> io::Result<PathBuf> {
        self.inner().current_dir().map(path_buf).map_err(error)
    }

    /// Changes the root directory and keeps the working directory: `chroot(2)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`; `EPERM` without [`Capabilities::SYS_CHROOT`](crate::Capabilities::SYS_CHROOT).
    pub fn chroot(&self, path: impl AsPath) -> io::Result<()> {
        self.inner().set_root(path.as_path_bytes()).map_err(error)
    }

    /// Changes the root directory to the directory of the handle `dir`, and keeps the working
    /// directory: on Linux `fchdir(2)` and `chroot(".")`. The limits of `dir` do not limit this
    /// context.
    ///
    /// ```
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.create_dir("/jail")?;
    /// let jail = ctx.open_dir("/jail")?;
    /// let guest = ctx.fork();
    /// guest.chroot_to(&jail)?;
    /// guest.set_current_dir_to(&jail)?; // Otherwise its relative paths start outside.
    /// guest.write("/file", "text")?;
    /// assert!(ctx.exists("/jail/file"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EACCES`; `EPERM` without [`Capabilities::SYS_CHROOT`](crate::Capabilities::SYS_CHROOT); `EXDEV` for a directory of
    /// another tree.
    pub fn chroot_to(&self, dir: &Dir) -> io::Result<()> {
        self.inner().set_root_to(dir.place()?).map_err(error)
    }

    /// Returns a handle of the root directory.
    ///
    /// # Errors
    /// As for every walk.
    pub fn root_dir(&self) -> io::Result<Dir> {
        self.open_dir("/")
    }
}

/// # Credentials
///
/// ```
/// use lightfoot::{Credentials, Vfs};
///
/// let root = Vfs::ram().context();
/// root.create_dir("/home")?;
/// root.create_dir("/home/ann")?;
/// root.chown("/home/ann", Some(1000), Some(1000))?;
/// let ann = root.with_credentials(Credentials::user(1000, 1000, &[]));
/// ann.set_umask(0o077);
/// ann.write("/home/ann/diary", "today")?;
/// assert_eq!(root.metadata("/home/ann/diary")?.uid(), 1000);
/// let bob = root.with_credentials(Credentials::user(1001, 1001, &[]));
/// assert!(bob.read("/home/ann/diary").is_err());
/// # Ok::<(), std::io::Error>(())
/// ```
impl Context {
    /// Returns a context that shares nothing with this one but the tree, with other credentials.
    #[must_use]
    pub fn with_credentials(&self, credentials: Credentials) -> Context {
        let context = self.fork();
        context.set_credentials(credentials);
        context
    }

    /// Returns a copy that shares nothing with this one but the tree and its mounts.
    #[must_use]
    pub fn fork(&self) -> Context {
        Self::new(self.inner().fork())
    }

    /// Returns the credentials.
    #[must_use]
    pub fn credentials(&self) -> Credentials {
        self.inner().credentials()
    }

    /// Replaces the credentials, for every [`Dir`] of this context as well.
    pub fn set_credentials(&self, credentials: Credentials) {
        self.inner().set_credentials(credentials);
    }

    /// Returns the mask of creation modes.
    #[must_use]
    pub fn umask(&self) -> u32 {
        self.inner().umask()
    }

    /// Replaces the mask of creation modes and returns the old one: `umask(2)`.
    pub fn set_umask(&self, mask: u32) -> u32 {
        self.inner().set_umask(mask)
    }

    /// Returns the protections of links and files in sticky directories.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.inner().policy()
    }

    /// Replaces the protections of links and files in sticky directories: `proc_sys_fs(5)`.
    pub fn set_policy(&self, policy: Policy) {
        self.inner().set_policy(policy);
    }

    /// Sets the longest time that an operation waits for its file system. After this time the
    /// operation fails with `ETIMEDOUT`. `None`, the default, and more than 584 years mean no
    /// limit.
    pub fn set_timeout(&self, timeout: Option<Duration>) {
        let ns = timeout.and_then(|timeout| u64::try_from(timeout.as_nanos()).ok());
        self.inner().set_timeout_ns(ns);
    }
}

/// # Mounts and namespaces
///
/// [`View`] has `mount`, `bind` and `unmount`.
///
/// ```
/// use lightfoot::{MountFlags, RamFs, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/tmp")?;
/// let plugin = ctx.fork();
/// plugin.unshare_mounts()?; // Now it has its own mounts.
/// plugin.mount(RamFs::new(), "/tmp", MountFlags::default())?;
/// assert_eq!(plugin.mounts().len(), 2);
/// assert_eq!(ctx.mounts().len(), 1);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Context {
    /// Returns all mounts reachable from this context's root, each after its parent:
    /// `/proc/self/mountinfo`.
    #[must_use]
    pub fn mounts(&self) -> Vec<MountInfo> {
        self.inner().mounts()
    }

    /// Makes the mount at `new_root` the root of this context's namespace and of this context, and
    /// mounts the old root at `put_old`: `pivot_root(2)`. Other contexts keep their roots, whose
    /// path is `put_old` after the call. If `put_old` is `new_root`, the old root is mounted over
    /// the new root, and must be unmounted.
    ///
    /// # Errors
    /// `EPERM`; `ENOTDIR`; `EINVAL` if `new_root` or this context's root is not a mount point, or
    /// if `put_old` is not at or below `new_root`; `EBUSY` if `new_root` or `put_old` is on the
    /// root mount.
    pub fn pivot_root(&self, new_root: impl AsPath, put_old: impl AsPath) -> io::Result<()> {
        self.inner().pivot_root(new_root.as_path_bytes(), put_old.as_path_bytes()).map_err(error)
    }

    /// Does what [`Context::pivot_root`] does, but takes handles of both directories.
    ///
    /// ```
    /// use lightfoot::{MountFlags, RamFs, UnmountFlags, Vfs};
    ///
    /// let ctx = Vfs::ram().context();
    /// ctx.create_dir("/new")?;
    /// ctx.mount(RamFs::new(), "/new", MountFlags::default())?;
    /// let new = ctx.open_dir("/new")?;
    /// new.create_dir("old")?;
    /// ctx.pivot_root_to(&new, &new.open_dir("old")?)?;
    /// assert!(ctx.is_dir("/old/new")); // The old root, with the empty mount point in it.
    /// ctx.unmount("/old", UnmountFlags::DETACH)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Context::pivot_root`]; `EXDEV` for directories of another tree.
    pub fn pivot_root_to(&self, new_root: &Dir, put_old: &Dir) -> io::Result<()> {
        self.inner().pivot_root_to(new_root.place()?, put_old.place()?).map_err(error)
    }

    /// Gives this context its own mount namespace, a copy of the old one. Later mounts in one
    /// namespace do not appear in the other: `unshare(2)` with `CLONE_NEWNS`, and all mounts
    /// private.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn unshare_mounts(&self) -> io::Result<()> {
        self.inner().unshare_mounts().map_err(error)
    }
}
