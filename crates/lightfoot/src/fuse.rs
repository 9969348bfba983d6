//! Mounts of a tree on a directory of the host, through FUSE, so that any program can use it.
//!
//! # What it is
//! [`Vfs::mount`] mounts a whole tree, [`Vfs::mount_view`] the part below a [`Dir`](crate::Dir) or
//! the root of a [`Context`](crate::Context). Threads of this process serve the requests. [`Mount`]
//! unmounts when it is dropped.
//!
//! Changes that the program makes in the tree, or that come through another mount of the tree,
//! invalidate the kernel's cache. A thread notifies the kernel some microseconds later;
//! [`Mount::flush`] waits for that thread. So the timeouts of [`Ttls`] may be long, but the timeout
//! of absent names is at most a second. The program sees changes through the mount at once.
//!
//! ```
//! use lightfoot::Vfs;
//! use lightfoot::fuse::MountOptions;
//!
//! # // Mounting needs root and the device; the example ends here without them.
//! # use std::os::unix::fs::MetadataExt;
//! # if std::fs::metadata("/proc/self")?.uid() != 0 || !std::path::Path::new("/dev/fuse").exists() {
//! #     return Ok::<(), Box<dyn std::error::Error>>(());
//! # }
//! let vfs = Vfs::ram();
//! let place = tempfile::tempdir()?; // Any empty directory: `/mnt`, for example.
//! let mount = vfs.mount(&place, &MountOptions::default())?;
//! vfs.context().write("/file", "hello")?;
//! assert_eq!(std::fs::read_to_string(place.path().join("file"))?, "hello");
//! std::fs::remove_file(place.path().join("file"))?;
//! assert!(!vfs.context().exists("/file"));
//! drop(mount);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it is not
//! Usable by the thread that serves its requests: a program must not use the mount in a method of a
//! [`FileSystem`](crate::FileSystem) of the tree. Nor must the program mount the tree below a host
//! directory that the tree shows, unless it calls `HostHandle::exclude_dev` with [`Mount::device`].
//!
//! # How it is locked
//! As the crate `lightfoot-fuse`.
//!
//! # Where it comes from
//! `mount.fuse(8)`; the handle is as `fuser::BackgroundSession`.

mod settings;

pub use settings::{Checks, MountError, MountOptions, NoRing, SessionOptions, Shown, TransportKind, Ttls, Uring};

use crate::tree::Vfs;
use crate::view::View;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::time::Duration;

/// The longest time for which the kernel may cache that a name does not exist.
const ABSENT: Duration = Duration::from_secs(1);

/// A mount on a directory of the host. A drop unmounts it; files that are open at the drop work
/// until they are closed.
///
/// ```
/// use lightfoot::Vfs;
/// use lightfoot::fuse::MountOptions;
///
/// # // Mounting needs root and the device; the example ends here without them.
/// # use std::os::unix::fs::MetadataExt;
/// # if std::fs::metadata("/proc/self")?.uid() != 0 || !std::path::Path::new("/dev/fuse").exists() {
/// #     return Ok::<(), Box<dyn std::error::Error>>(());
/// # }
/// let place = tempfile::tempdir()?;
/// let mount = Vfs::ram().mount(&place, &MountOptions::default())?;
/// println!("{} is served through {}", mount.mountpoint().display(), mount.transport_kind());
/// mount.unmount()?;
/// mount.wait()?; // Returns when the mount has ended, for any reason.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a drop unmounts"]
pub struct Mount {
    inner: ::fuse::Mounted,
}

/// # Mounts on the host
///
/// With the feature `fuse`: see the module [`fuse`](crate::fuse).
///
/// ```
/// use lightfoot::Vfs;
/// use lightfoot::fuse::MountOptions;
///
/// let vfs = Vfs::ram();
/// match vfs.mount("/mnt/none", &MountOptions::default()) {
///     Ok(mount) => println!("{:?} is mounted until `mount` is dropped", mount.mountpoint()),
///     Err(error) => println!("{error}"), // With the cure, such as the name of a package.
/// }
/// ```
impl Vfs {
    /// Mounts the whole tree on the directory `mountpoint` of the host. Each process acts with its own rights: new files
    /// belong to its user.
    ///
    /// # Errors
    /// See [`MountError`]: `/dev/fuse` does not exist, the process may not mount, the mount point
    /// does not exist or has entries.
    pub fn mount(&self, mountpoint: impl AsRef<Path>, options: &MountOptions) -> Result<Mount, MountError> {
        let part = ::fuse::Part::whole(&self.inner).map_err(MountError::NoRoot)?;
        self.mount_part(part, mountpoint.as_ref(), options)
    }

    /// Mounts the part that `view` shows: at and below a [`Dir`](crate::Dir), or at and below the
    /// root of a [`Context`](crate::Context). All processes that use the mount act with the
    /// credentials of the view at this call. Paths through the mount cannot leave the mount,
    /// whatever the limits of a `Dir` are.
    ///
    /// ```
    /// use lightfoot::fuse::MountOptions;
    /// # let vfs = lightfoot::Vfs::ram();
    /// # let ctx = vfs.context();
    /// # // Mounting needs root and the device; the example ends here without them.
    /// # use std::os::unix::fs::MetadataExt;
    /// # if std::fs::metadata("/proc/self")?.uid() != 0 || !std::path::Path::new("/dev/fuse").exists() {
    /// #     return Ok::<(), Box<dyn std::error::Error>>(());
    /// # }
    /// let place = tempfile::tempdir()?;
    /// ctx.create_dir_all("/home/ann")?;
    /// let home = ctx.open_dir("/home/ann")?.confined();
    /// let mount = vfs.mount_view(&home, &place, &MountOptions::default())?;
    /// ctx.write("/home/ann/letter", "dear")?;
    /// assert_eq!(std::fs::read_to_string(place.path().join("letter"))?, "dear");
    /// # drop(mount);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Vfs::mount`]. [`MountError::NoRoot`] with `EXDEV` for a view of another tree; with `EINVAL` for a `Dir` with limits
    /// other than `BENEATH` and `IN_ROOT`, which a mount cannot keep.
    pub fn mount_view(
        &self,
        view: &View,
        mountpoint: impl AsRef<Path>,
        options: &MountOptions,
    ) -> Result<Mount, MountError> {
        self.mount_part(view.part(&self.inner).map_err(MountError::NoRoot)?, mountpoint.as_ref(), options)
    }

    fn mount_part(&self, part: ::fuse::Part, at: &Path, options: &MountOptions) -> Result<Mount, MountError> {
        let mut options = options.clone();
        options.session.tree_changes = true;
        options.session.reports_changes = true;
        // No list has the absent names: if notices were lost, only the timeout invalidates these
        // names.
        options.session.ttls.negative = options.session.ttls.negative.min(ABSENT);
        ::fuse::mount_part(&self.inner, part, at, &options).map(|inner| Mount { inner })
    }
}

impl Mount {
    /// Returns the mount point, absolute and without symbolic links.
    #[must_use]
    pub fn mountpoint(&self) -> &Path {
        self.inner.mountpoint()
    }

    /// Returns the device number of its files: `st_dev`.
    #[must_use]
    pub fn device(&self) -> u64 {
        self.inner.device()
    }

    /// Returns the transport of its requests: io_uring, or `/dev/fuse`.
    #[must_use]
    pub fn transport_kind(&self) -> &TransportKind {
        self.inner.transport_kind()
    }

    /// Waits until the kernel has been notified of all changes that came before this call.
    pub fn flush(&self) {
        self.inner.session().flush_notices();
    }

    /// Returns a descriptor for `poll(2)`, which becomes readable when the mount has ended, for any
    /// reason.
    #[must_use]
    pub fn end(&self) -> BorrowedFd<'_> {
        self.inner.end()
    }

    /// Returns whether the mount has ended, for any reason.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.inner.is_over()
    }

    /// Unmounts. If files are open, detaches the mount: these files work until they are closed.
    ///
    /// # Errors
    /// As for `umount2(2)`; an error without a number if another mount covers this one.
    pub fn unmount(&self) -> io::Result<()> {
        self.inner.unmount()
    }

    /// Waits until the mount has ended, for any reason.
    ///
    /// # Errors
    /// The error that ended the server.
    pub fn wait(self) -> io::Result<()> {
        self.inner.wait()
    }
}
