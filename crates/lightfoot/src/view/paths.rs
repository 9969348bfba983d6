//! Canonical paths, and explanations.

use super::{View, WalkFailure};
use crate::error::error;
use crate::path::{AsPath, path_buf};
use std::io;
use std::path::PathBuf;
use vfs::Resolve;

/// # Paths, and why one fails
///
/// ```
/// use lightfoot::Vfs;
/// use std::path::Path;
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/srv/data")?;
/// ctx.symlink("/srv/data", "/data")?;
/// assert_eq!(ctx.canonicalize("/data/../data/.")?, Path::new("/srv/data"));
///
/// let why = ctx.explain("/data/logs/today").expect("the walk fails");
/// assert!(why.to_string().starts_with("cannot walk `/data/logs/today`: `logs` in `/data`: No such file"));
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Returns the path without symbolic links, `.` and `..`: `realpath(3)`. The path is absolute.
    /// With `BENEATH` it is relative to the `Dir` (`.` for the `Dir` itself), so that it can be
    /// walked again from the `Dir`. With `IN_ROOT` its first slash stands for the `Dir`.
    ///
    /// # Errors
    /// As for every walk.
    pub fn canonicalize(&self, path: impl AsPath) -> io::Result<PathBuf> {
        let mut path = self.inner.canonical(self.base(), path.as_path_bytes()).map_err(error)?;
        if self.limits().contains(Resolve::BENEATH) && path.first() == Some(&b'/') {
            path.remove(0);
            if path.is_empty() {
                path.push(b'.');
            }
        }
        Ok(path_buf(path))
    }

    /// Returns why a walk of `path` fails, where the last symbolic link is followed; `None` if the
    /// walk succeeds now. For reports: the call walks many times.
    #[must_use]
    #[cold]
    pub fn explain(&self, path: impl AsPath) -> Option<WalkFailure> {
        self.failure(path.as_path_bytes())
    }
}
