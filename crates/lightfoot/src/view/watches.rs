//! Watches of paths.

use super::View;
use crate::error::error;
use crate::path::AsPath;
use crate::watch::Watch;
use std::io;

/// # Watches
///
/// ```
/// use lightfoot::{EventKind, Scope, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/inbox")?;
/// let watch = ctx.watch("/inbox", Scope::Directory)?;
/// ctx.write("/inbox/letter", "dear")?;
/// let event = watch.next(None).expect("something happened"); // Waits for it.
/// assert_eq!(event.kind, EventKind::Created);
/// assert_eq!(event.path, std::path::Path::new("letter"));
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Watches the file or directory at `path`, with a queue as long as the queue of `inotify(7)`.
    /// See [`View::watch_with`].
    ///
    /// # Errors
    /// `EACCES` without read permission.
    pub fn watch(&self, path: impl AsPath, scope: vfs::Scope) -> io::Result<Watch> {
        self.watch_with(path, scope, vfs::DEFAULT_QUEUED_EVENTS)
    }

    /// Watches the file at `path`; or the directory with its entries; or, with
    /// [`Scope::Subtree`](crate::Scope), all files below the directory on its file system. The
    /// queue holds at most `capacity` events, then one overflow event. The watch keeps the file
    /// system busy, as an open file does.
    ///
    /// # Errors
    /// `EACCES` without read permission.
    pub fn watch_with(&self, path: impl AsPath, scope: vfs::Scope, capacity: usize) -> io::Result<Watch> {
        self.inner.watch(self.base(), path.as_path_bytes(), scope, capacity).map(Watch::new).map_err(error)
    }
}
