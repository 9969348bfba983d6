//! Options for making a directory.

use super::View;
use crate::path::AsPath;
use std::io;

/// Options for making a directory: `std`'s builder with its Unix mode.
///
/// ```
/// use lightfoot::{DirBuilder, Vfs};
///
/// let ctx = Vfs::ram().context();
/// DirBuilder::new().recursive(true).mode(0o700).create(&ctx, "/home/ann/private")?;
/// assert_eq!(ctx.metadata("/home/ann/private")?.mode() & 0o777, 0o700);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirBuilder {
    recursive: bool,
    mode: u32,
}

impl Default for DirBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl DirBuilder {
    /// Returns options for one directory of mode 0777 less the umask.
    #[must_use]
    pub fn new() -> Self {
        Self { recursive: false, mode: 0o777 }
    }

    /// Sets whether missing parents are made as well, and whether a directory that exists is
    /// accepted.
    pub fn recursive(&mut self, recursive: bool) -> &mut Self {
        self.recursive = recursive;
        self
    }

    /// Sets the permission bits of the directories that are made, before the umask.
    pub fn mode(&mut self, mode: u32) -> &mut Self {
        self.mode = mode;
        self
    }

    /// Makes the directory at `path`.
    ///
    /// # Errors
    /// As for [`View::mkdir`], or [`View::create_dir_all`].
    pub fn create(&self, view: &View, path: impl AsPath) -> io::Result<()> {
        if self.recursive { view.mkdir_all(path.as_path_bytes(), self.mode) } else { view.mkdir(path, self.mode) }
    }
}
