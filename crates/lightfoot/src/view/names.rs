//! Renaming and removing names.

use super::View;
use crate::dir::Dir;
use crate::error::error;
use crate::path::AsPath;
use std::io;
use vfs::{PathAt, RenameFlags};

/// # Renaming and removing
///
/// ```
/// use lightfoot::{RenameFlags, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/config.new", "colour = green")?;
/// ctx.write("/config", "colour = red")?;
/// ctx.rename("/config.new", "/config")?; // Others see the old file or the new one, at any time.
/// assert_eq!(ctx.read_to_string("/config")?, "colour = green");
///
/// ctx.create_dir("/trash")?;
/// let trash = ctx.open_dir("/trash")?;
/// ctx.rename_to("/config", &trash, "config", RenameFlags::NOREPLACE)?;
/// ctx.remove_file("/trash/config")?;
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Renames, replacing a file or empty directory at the new name: `rename(2)`.
    ///
    /// # Errors
    /// `EINVAL` for a directory into itself; `ENOTEMPTY`, `EISDIR`, `ENOTDIR`; `EBUSY` for `.`,
    /// `..`, `/` and mount points; `EXDEV` to another mount.
    pub fn rename(&self, from: impl AsPath, to: impl AsPath) -> io::Result<()> {
        self.rename_with(from, to, RenameFlags::default())
    }

    /// As [`View::rename`], but by `flags` replaces nothing or exchanges two names: `renameat2(2)`.
    ///
    /// # Errors
    /// As for [`View::rename`]; `EEXIST` with `NOREPLACE`; `ENOENT` with `EXCHANGE`; `EINVAL` for both.
    pub fn rename_with(&self, from: impl AsPath, to: impl AsPath, flags: RenameFlags) -> io::Result<()> {
        self.move_name(self.path_at(&from), self.path_at(&to), flags)
    }

    /// As [`View::rename_with`], but to a path that starts from another directory.
    ///
    /// # Errors
    /// As for [`View::rename_with`]; `EXDEV` for a directory of another tree.
    pub fn rename_to(&self, from: impl AsPath, to_dir: &Dir, to: impl AsPath, flags: RenameFlags) -> io::Result<()> {
        self.move_name(self.path_at(&from), PathAt::new(to_dir.base(), to.as_path_bytes()), flags)
    }

    /// Removes the name of a file that is not a directory: `unlink(2)`.
    ///
    /// # Errors
    /// `EISDIR` for a directory; `EPERM` in a sticky directory; `EBUSY` for a mount point.
    pub fn remove_file(&self, path: impl AsPath) -> io::Result<()> {
        self.inner.unlink(self.base(), path.as_path_bytes()).map_err(error)
    }
}

impl View {
    fn move_name(&self, from: PathAt<'_>, to: PathAt<'_>, flags: RenameFlags) -> io::Result<()> {
        self.inner.rename(from, to, flags).map_err(error)
    }

    /// Returns `to_dir` with the context of this view: for operations with two paths.
    pub(super) fn as_seen_from(&self, to_dir: &Dir) -> View {
        match to_dir.held() {
            Some(held) => self.at(held.clone(), to_dir.limits()),
            None => self.clone(),
        }
    }
}
