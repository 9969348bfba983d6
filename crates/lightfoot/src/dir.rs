//! A directory that paths start from.

use crate::Context;
use crate::error;
use crate::file::File;
use crate::metadata::Metadata;
use crate::path::path_buf;
use crate::read_dir::ReadDir;
use crate::view::View;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use vfs::{Errno, Held, OpenFlags, Resolve};

/// A handle of a directory, and the context that it is used by: relative paths start there, wherever it is moved. Every
/// operation of [`View`] is a method of it.
///
/// It comes from [`View::open_dir`], and is what `openat(2)` and its kin take: its credentials, umask and namespace are
/// those that the context has when it is used. A clone is the same handle again.
///
/// # How far it reaches
/// A plain `Dir` is a place to start from and nothing more: `..`, absolute paths and symbolic links lead out of it. One
/// from [`Dir::scoped`] is what `cap_std::fs::Dir` is, by `openat2(2)`'s `RESOLVE_BENEATH`: nothing that is done with
/// it, or with a `Dir` that it opens, reaches what is not below it, even while others move directories. [`Dir::within`]
/// sets any of those flags. Limits are kept and can only become narrower.
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
/// ctx.rename("/srv/site", "/srv/old")?; // the handle stays what it is
/// assert_eq!(site.read_to_string("index.html")?, "hello");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Dir {
    /// It starts from a directory that is held.
    view: View,
}

impl Deref for Dir {
    type Target = View;

    #[inline]
    fn deref(&self) -> &View {
        &self.view
    }
}

impl Dir {
    pub(crate) fn new(view: View) -> Self {
        Self { view }
    }

    /// The directory that `file` is, used by `context`.
    ///
    /// # Errors
    /// `ENOTDIR`. If the context is of another tree, whatever is done with it is `EXDEV`.
    pub fn from_file(context: &Context, file: &File) -> io::Result<Dir> {
        if !file.metadata()?.is_dir() {
            return Err(error(Errno::ENOTDIR));
        }
        Ok(Self::new(context.at(file.inner().held().clone(), Resolve::default())))
    }

    /// The same directory, for walks that go no further than `limits` and the limits that it has say: `openat2(2)`.
    ///
    /// # Errors
    /// `EINVAL` for `BENEATH` and `IN_ROOT` together.
    pub fn within(&self, limits: Resolve) -> io::Result<Dir> {
        let limits = Resolve::from_bits(self.limits().bits() | limits.bits()).map_err(error)?;
        Ok(Self::new(self.view.at(self.place()?.clone(), limits)))
    }

    /// The same directory, for walks that stay below it: an absolute path or symbolic link, or a `..` that leads out,
    /// is `EXDEV`. If it has `IN_ROOT` it is scoped already, and stays what it is.
    #[must_use]
    pub fn scoped(&self) -> Dir {
        self.within(Resolve::BENEATH).unwrap_or_else(|_| self.clone())
    }

    /// How far its walks go.
    #[must_use]
    pub fn resolve(&self) -> Resolve {
        self.limits()
    }

    /// Its attributes: `fstat(2)`. No permission is asked for.
    ///
    /// # Errors
    /// None in practice.
    pub fn dir_metadata(&self) -> io::Result<Metadata> {
        // Nothing is walked, not even `.`, which takes search permission.
        let place = self.place()?;
        place.attr().map(|attr| Metadata::new(attr, place.dev())).map_err(error)
    }

    /// Its entries.
    ///
    /// # Errors
    /// `EACCES`.
    pub fn entries(&self) -> io::Result<ReadDir> {
        self.read_dir(".")
    }

    /// Its path now, from the context's root; ` (deleted)` behind it if its name has gone, `(unreachable)` before it if
    /// the root does not lead to it. For people: it may be another at the next moment.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.held().map(|held| path_buf(self.inner.path_of(held))).unwrap_or_default()
    }

    /// Removes this directory, which is empty, whatever its name is.
    ///
    /// The name is looked for in the directory above; if that changes meanwhile this may fail, as `cap_std`'s may.
    ///
    /// # Errors
    /// Those of `rmdir(2)`; `ENOENT` if it has no name any more; `EBUSY` for a root or a mount point.
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

    /// Removes all that is in this directory, and it: [`Dir::remove_open_dir`] after what [`View::remove_dir_all`]
    /// does.
    ///
    /// # Errors
    /// As for both.
    pub fn remove_open_dir_all(self) -> io::Result<()> {
        let opened = self.inner.open(self.base(), b".", OpenFlags::DIRECTORY, 0).map_err(error)?;
        self.empty(opened).map_err(error)?;
        self.remove_open_dir()
    }

    fn place(&self) -> io::Result<&Held> {
        self.held().ok_or_else(|| error(Errno::EBADF))
    }
}

fn busy_instead(failed: io::Error, of: Errno) -> io::Error {
    if failed.raw_os_error() == Some(of.raw()) { error(Errno::EBUSY) } else { failed }
}
