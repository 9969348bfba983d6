//! Links and special files.

use super::View;
use crate::dir::Dir;
use crate::error::error;
use crate::file::File;
use crate::path::{AsPath, path_buf};
use std::io;
use std::path::PathBuf;
use vfs::{Base, Errno, PathAt};

/// # Links and special files
///
/// ```
/// use lightfoot::Vfs;
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/file", "text")?;
/// ctx.symlink("file", "/link")?; // The target is relative to the link's directory.
/// assert_eq!(ctx.read_link("/link")?.to_str(), Some("file"));
/// ctx.hard_link("/file", "/second")?;
/// ctx.remove_file("/file")?;
/// assert_eq!(ctx.read("/second")?, b"text");
/// assert!(ctx.read("/link").is_err()); // The symbolic link leads nowhere now.
///
/// ctx.mknod("/fifo", 0o010_644, 0)?;
/// assert!(ctx.metadata("/fifo")?.file_type().is_fifo());
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Makes a symbolic link at `path` with the target `target`: `symlink(2)`. Limits of this view do not restrict the
    /// text of the target, only walks that follow it.
    ///
    /// # Errors
    /// `EEXIST`; `ENOENT` for an empty target; `EPERM` or `EOPNOTSUPP` if the file system has no symbolic links.
    pub fn symlink(&self, target: impl AsPath, path: impl AsPath) -> io::Result<()> {
        self.inner.symlink(target.as_path_bytes(), self.base(), path.as_path_bytes()).map_err(error)
    }

    /// Returns the target of a symbolic link: `readlink(2)`.
    ///
    /// # Errors
    /// `EINVAL` if it is not a symbolic link.
    pub fn read_link(&self, path: impl AsPath) -> io::Result<PathBuf> {
        self.inner.read_link(self.base(), path.as_path_bytes()).map(path_buf).map_err(error)
    }

    /// Gives the file at `original` the further name `link`: `link(2)`. A symbolic link is not followed.
    ///
    /// # Errors
    /// `EEXIST`; `EPERM` for a directory; `EMLINK`; `EXDEV` to another mount; `EPERM` or `EOPNOTSUPP` if the file system has no hard
    /// links.
    pub fn hard_link(&self, original: impl AsPath, link: impl AsPath) -> io::Result<()> {
        self.link(self.path_at(&original), self.path_at(&link))
    }

    /// As [`View::hard_link`], but to a path that starts from another directory: `linkat(2)`.
    ///
    /// # Errors
    /// As for [`View::hard_link`]; `EXDEV` for a directory of another tree.
    pub fn hard_link_to(&self, original: impl AsPath, to_dir: &Dir, link: impl AsPath) -> io::Result<()> {
        self.link(self.path_at(&original), PathAt::new(to_dir.base(), link.as_path_bytes()))
    }

    /// Gives an open file a further name, or a first name if it has none (`O_TMPFILE`): `linkat(2)`
    /// with `AT_EMPTY_PATH`.
    ///
    /// # Errors
    /// `EEXIST`; `EPERM` for a directory; `ENOENT` for a file whose last name was removed; `EXDEV` to another mount.
    pub fn hard_link_file(&self, file: &File, link: impl AsPath) -> io::Result<()> {
        self.link(PathAt::new(Base::at(file.inner().held()), b""), self.path_at(&link))
    }

    /// As [`View::symlink`]: the name in `std::fs`, where it is deprecated.
    ///
    /// # Errors
    /// As for [`View::symlink`].
    pub fn soft_link(&self, target: impl AsPath, path: impl AsPath) -> io::Result<()> {
        self.symlink(target, path)
    }

    /// Makes a FIFO, socket, device node or regular file: `mknod(2)`. `mode` has type and permission bits.
    ///
    /// # Errors
    /// `EEXIST`; `EINVAL`, `EPERM` for a type that cannot be made so; `EPERM` or `EOPNOTSUPP` if
    /// the file system does not have this type; `EINVAL` for a device number of more than 32 bits.
    pub fn mknod(&self, path: impl AsPath, mode: u32, rdev: u64) -> io::Result<()> {
        let rdev = u32::try_from(rdev).map_err(|_| error(Errno::EINVAL))?;
        self.inner.mknod(self.base(), path.as_path_bytes(), mode, rdev).map_err(error)
    }
}

impl View {
    fn link(&self, from: PathAt<'_>, to: PathAt<'_>) -> io::Result<()> {
        self.inner.link(from, to, false).map_err(error)
    }
}
