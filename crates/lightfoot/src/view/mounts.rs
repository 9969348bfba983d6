//! What is mounted where. Mounts belong to the context's namespace, whoever names the place.

use super::View;
use crate::error;
use crate::path::AsPath;
use std::io;
use vfs::{FileSystem, Holder, MountFlags, StatVfs, UnmountFlags};

impl View {
    /// Mounts `fs` on the directory (or, if its root is a file, on the file) at `path`: `mount(2)`.
    ///
    /// # Errors
    /// `EPERM` without `SYS_ADMIN`; `ENOTDIR` if one is a directory and the other is not; `EINVAL` on what this
    /// context's namespace does not show; `ENOENT` if the name has just gone.
    pub fn mount(&self, fs: impl FileSystem, path: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.inner.mount(fs, self.base(), path.as_path_bytes(), flags).map_err(error)
    }

    /// Shows the directory or file at `source` at `target` too, with flags of its own: `mount(2)` with `MS_BIND`. What
    /// is mounted below `source` does not come along.
    ///
    /// # Errors
    /// As for [`View::mount`].
    pub fn bind(&self, source: impl AsPath, target: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.bind_as(source.as_path_bytes(), target.as_path_bytes(), flags, false)
    }

    /// [`View::bind`] with what is mounted below `source`, which keeps its flags: `MS_BIND` with `MS_REC`.
    ///
    /// # Errors
    /// As for [`View::mount`].
    pub fn bind_recursive(&self, source: impl AsPath, target: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.bind_as(source.as_path_bytes(), target.as_path_bytes(), flags, true)
    }

    fn bind_as(&self, source: &[u8], target: &[u8], flags: MountFlags, recursive: bool) -> io::Result<()> {
        self.inner.bind((self.base(), source), (self.base(), target), flags, recursive).map_err(error)
    }

    /// Moves the mount at `source` to `target`: `mount(2)` with `MS_MOVE`.
    ///
    /// # Errors
    /// `EINVAL` if nothing is mounted at `source`; `EBUSY` for the root of the namespace; `ELOOP` if `target` is within
    /// it; else as for [`View::mount`].
    pub fn move_mount(&self, source: impl AsPath, target: impl AsPath) -> io::Result<()> {
        let (source, target) = (source.as_path_bytes(), target.as_path_bytes());
        self.inner.move_mount((self.base(), source), (self.base(), target)).map_err(error)
    }

    /// Changes the flags of the mount at `path`: `mount(2)` with `MS_REMOUNT` and `MS_BIND`.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if nothing is mounted there; `EBUSY` to make it read-only while files are open for writing.
    pub fn remount(&self, path: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.inner.remount(self.base(), path.as_path_bytes(), flags).map_err(error)
    }

    /// Takes away what is mounted at `path`: `umount2(2)`. When the last mount of a file system goes, all that was
    /// cached of it is released before this returns; with `DETACH`, when the last that is open has been closed.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if nothing is mounted there; `EBUSY` if something is open, is somebody's working directory, or
    /// is mounted on it (not with `DETACH`), and for the root of the namespace. [`View::holders`] says who.
    pub fn unmount(&self, path: impl AsPath, flags: UnmountFlags) -> io::Result<()> {
        self.inner.unmount(self.base(), path.as_path_bytes(), flags).map_err(error)
    }

    /// What the file system at `path` has left, and how it is mounted: `statvfs(3)`. Looks at the one mount that the
    /// walk ended on.
    ///
    /// # Errors
    /// `ENOSYS` if the file system cannot say.
    pub fn statvfs(&self, path: impl AsPath) -> io::Result<StatVfs> {
        self.inner.statvfs(self.base(), path.as_path_bytes()).map_err(error)
    }

    /// Who holds something of the file system at `path`: open files, directories, working directories of contexts.
    /// Looks at all that is cached of it: for reports of what keeps it busy.
    ///
    /// # Errors
    /// Those of every walk.
    pub fn holders(&self, path: impl AsPath) -> io::Result<Vec<Holder>> {
        self.inner.holders(self.base(), path.as_path_bytes()).map_err(error)
    }
}
