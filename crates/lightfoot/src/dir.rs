//! A directory that paths start from.

use crate::context::Context;
use crate::error::error;
use crate::file::File;
use crate::metadata::Metadata;
use crate::path::path_buf;
use crate::read_dir::ReadDir;
use crate::view::View;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use vfs::{Capabilities, Errno, OpenFlags, PathRef, Resolve};

/// A handle of a directory, with a context: relative paths start from the directory, even after a
/// move of the directory. Every operation of [`View`] is a method of a handle.
///
/// [`View::open_dir`] returns a handle, which corresponds to the directory descriptor of
/// `openat(2)`. An operation uses the credentials, umask and namespace that the context has when
/// the operation begins. A clone refers to the same directory.
///
/// # How far it reaches
/// A plain `Dir` is only a starting point: `..`, absolute paths and symbolic links lead out of the
/// directory. A `Dir` from [`Dir::scoped`] is like `cap_std::fs::Dir`, by `RESOLVE_BENEATH` of
/// `openat2(2)`: no operation on this `Dir`, or on a `Dir` opened through it, leaves the directory,
/// even while other threads move directories. [`Dir::within`] sets any flags of `openat2(2)`.
/// Limits can be added, not removed.
///
/// ```
/// let vfs = lightfoot::Vfs::ram();
/// let ctx = vfs.context();
/// ctx.create_dir_all("/srv/site")?;
/// ctx.symlink("/etc/passwd", "/srv/site/out")?;
///
/// let site = ctx.open_dir("/srv/site")?.scoped();
/// site.write("index.html", "hello")?;
/// for escape in ["../x", "/srv", "out"] {
///     assert_eq!(site.metadata(escape).unwrap_err().raw_os_error(), Some(18)); // EXDEV
/// }
/// ctx.rename("/srv/site", "/srv/old")?; // the handle still refers to the directory
/// assert_eq!(site.read_to_string("index.html")?, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct Dir {
    /// The view of a directory.
    view: View,
}

impl fmt::Debug for Dir {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dir").field("path", &self.path()).field("limits", &self.limits()).finish()
    }
}

impl Deref for Dir {
    type Target = View;

    #[inline]
    fn deref(&self) -> &View {
        &self.view
    }
}

/// # How far paths lead
///
/// ```
/// use lightfoot::{Resolve, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/srv/upload")?;
/// let plain = ctx.open_dir("/srv/upload")?;
/// assert!(plain.exists("../.."));
/// assert!(!plain.scoped().exists("../..")); // Paths stay below the directory.
/// let strict = plain.scoped().within(Resolve::NO_SYMLINKS)?; // And follow no links.
/// assert_eq!(strict.resolve(), Resolve::BENEATH | Resolve::NO_SYMLINKS);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Dir {
    /// Returns this directory, for walks that stay below it: an absolute path or symbolic link, or
    /// a `..` that leads out, fails with `EXDEV`. A handle with `IN_ROOT` is scoped already and
    /// keeps its limits.
    ///
    /// This limits paths, not rights. With a context that may mount, a user of the handle can mount
    /// on files below the directory, and unmount them. Give untrusted code a
    /// [confined](Dir::confined) handle.
    #[must_use]
    pub fn scoped(&self) -> Dir {
        self.within(Resolve::BENEATH).unwrap_or_else(|_| self.clone())
    }

    /// Returns this directory for code that is not trusted: [scoped](Dir::scoped), and without
    /// capabilities. Its operations use a copy of the context at this call, whose credentials have
    /// the same user and groups and no [`Capabilities`]. So the handle cannot mount, unmount or
    /// change owners, nor read and write files to which the user has no access. Later changes of
    /// the context do not affect the handle.
    ///
    /// ```
    /// # use lightfoot::{RamFs, MountFlags, UnmountFlags};
    /// let ctx = lightfoot::Vfs::ram().context();
    /// ctx.create_dir_all("/srv/plugin/mnt")?;
    /// let home = ctx.open_dir("/srv/plugin")?.confined();
    /// home.write("result", "42")?;
    /// let refused = home.mount(RamFs::new(), "mnt", MountFlags::default()).unwrap_err();
    /// assert_eq!(refused.raw_os_error(), Some(1)); // EPERM
    /// assert!(home.unmount(".", UnmountFlags::DETACH).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn confined(&self) -> Dir {
        let context = self.view.inner.fork();
        let mut credentials = context.credentials();
        credentials.capabilities = Capabilities::none();
        context.set_credentials(credentials);
        Self::new(self.view.of(context)).scoped()
    }

    /// Returns this directory, with `limits` added to the limits of its walks: `openat2(2)`.
    ///
    /// # Errors
    /// `EINVAL` for `BENEATH` and `IN_ROOT` together.
    pub fn within(&self, limits: Resolve) -> io::Result<Dir> {
        let limits = Resolve::from_linux(self.limits().bits() | limits.bits()).map_err(error)?;
        Ok(Self::new(self.view.at(self.place()?.clone(), limits)))
    }

    /// Returns the limits of walks from this handle.
    #[must_use]
    pub fn resolve(&self) -> Resolve {
        self.limits()
    }
}

/// # The directory itself
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.create_dir_all("/tmp/job/parts")?;
/// let job = ctx.open_dir("/tmp/job")?;
/// assert_eq!(job.entries()?.count(), 1);
/// ctx.rename("/tmp/job", "/tmp/done")?;
/// assert_eq!(job.path(), std::path::Path::new("/tmp/done"));
/// assert!(job.dir_metadata()?.is_dir());
/// job.remove_open_dir_all()?; // Under its current name.
/// assert!(!ctx.exists("/tmp/done"));
/// # Ok::<(), std::io::Error>(())
/// ```
impl Dir {
    /// Returns its entries.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn entries(&self) -> io::Result<ReadDir> {
        self.read_dir(".")
    }

    /// Returns its attributes: `fstat(2)`. Needs no permission.
    ///
    /// # Errors
    /// None in practice.
    pub fn dir_metadata(&self) -> io::Result<Metadata> {
        // Does not walk, since even a walk of `.` needs search permission.
        let place = self.place()?;
        place.packed_attr().map(|attr| Metadata::new(attr, place.dev())).map_err(error)
    }

    /// Returns the current path of the directory from the context's root: with ` (deleted)` after
    /// the path if the directory was removed, with `(unreachable)` before it if the directory is
    /// not below the root. For messages: the path may change at any time.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.held().map(|held| path_buf(self.inner.path_of(held))).unwrap_or_default()
    }

    /// Returns a handle of the directory that is open as `file`. Operations on the handle use
    /// `context`.
    ///
    /// # Errors
    /// `ENOTDIR`. If the context belongs to another tree, this call succeeds, and each operation on
    /// a path fails with `EXDEV`.
    pub fn from_file(context: &Context, file: &File) -> io::Result<Dir> {
        if !file.metadata()?.is_dir() {
            return Err(error(Errno::ENOTDIR));
        }
        Ok(Self::new(context.at(file.inner().held().clone(), Resolve::default())))
    }

    /// Removes this directory, which must be empty, under its current name.
    ///
    /// The call searches the parent directory for the name. A concurrent change of the parent
    /// directory may make the call fail, as with `cap_std`.
    ///
    /// # Errors
    /// As for `rmdir(2)`; `ENOENT` if the directory has no name any more; `EBUSY` for a root or a
    /// mount point.
    pub fn remove_open_dir(self) -> io::Result<()> {
        let here = self.dir_metadata()?;
        let up = self.view.at(self.place()?.clone(), Resolve::NO_XDEV);
        let above = up.open_dir("..").map_err(|failed| busy_instead(failed, Errno::EXDEV))?;
        if above.dir_metadata()?.ino() == here.ino() {
            return Err(error(Errno::EBUSY));
        }
        for entry in above.entries()? {
            let entry = entry?;
            if entry.ino() == here.ino() {
                drop(self);
                return above.remove_dir(entry.file_name());
            }
        }
        Err(error(Errno::ENOENT))
    }

    /// Removes the contents of this directory as [`View::remove_dir_all`] does, then the directory itself, as
    /// [`Dir::remove_open_dir`] does.
    ///
    /// # Errors
    /// As for both.
    pub fn remove_open_dir_all(self) -> io::Result<()> {
        let opened = self.inner.open(self.base(), b".", OpenFlags::DIRECTORY, 0).map_err(error)?;
        self.empty(opened).map_err(error)?;
        self.remove_open_dir()
    }
}

impl Dir {
    pub(crate) fn new(view: View) -> Self {
        Self { view }
    }

    pub(crate) fn place(&self) -> io::Result<&PathRef> {
        self.held().ok_or_else(|| error(Errno::EBADF))
    }
}

fn busy_instead(failed: io::Error, of: Errno) -> io::Error {
    if failed.raw_os_error() == Some(of.raw()) { error(Errno::EBUSY) } else { failed }
}
