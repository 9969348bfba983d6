//! Mounts, which belong to the mount namespace of the context.

use super::View;
use crate::error::error;
use crate::path::AsPath;
use std::io;
use vfs::{Budget, FileSystem, Holder, MountFlags, StatVfs, UnmountFlags};

/// # Mounts
///
/// ```
/// use lightfoot::{MountFlags, RamFs, UnmountFlags, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir_all("/mnt/scratch")?;
/// ctx.mount(RamFs::new(), "/mnt/scratch", MountFlags::NOEXEC)?;
/// ctx.write("/mnt/scratch/file", "text")?;
///
/// ctx.create_dir("/view")?;
/// ctx.bind("/mnt/scratch", "/view", MountFlags::RDONLY)?; // The same files at a second place, read-only.
/// assert_eq!(ctx.read("/view/file")?, b"text");
/// ctx.remount("/mnt/scratch", MountFlags::NOEXEC | MountFlags::NOATIME)?;
/// ctx.unmount("/view", UnmountFlags::default())?;
/// # Ok::<(), std::io::Error>(())
/// ```
impl View {
    /// Mounts `fs` on the directory (or, if its root is a file, on the file) at `path`: `mount(2)`.
    ///
    /// # Errors
    /// `EPERM` without `SYS_ADMIN`; `ENOTDIR` if either the root of `fs` or `path` is a directory
    /// and the other is not; `EINVAL` if `path` is outside of this context's namespace; `ENOENT` if
    /// the name was just removed.
    pub fn mount(&self, fs: impl FileSystem, path: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.inner.mount(fs, self.base(), path.as_path_bytes(), flags).map_err(error)
    }

    /// As [`View::mount`], with a limit on the cache of `fs`, in bytes.
    ///
    /// # Errors
    /// As for [`View::mount`].
    pub fn mount_with_budget(
        &self,
        fs: impl FileSystem,
        path: impl AsPath,
        flags: MountFlags,
        budget: Budget,
    ) -> io::Result<()> {
        self.inner.mount_with(fs, self.base(), path.as_path_bytes(), flags, budget).map_err(error)
    }

    /// Shows the directory or file at `source` at `target` as well, by a mount with its own flags,
    /// but not the mounts below `source`: `mount(2)` with `MS_BIND`.
    ///
    /// # Errors
    /// As for [`View::mount`].
    pub fn bind(&self, source: impl AsPath, target: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.inner.bind(self.path_at(&source), self.path_at(&target), flags, false).map_err(error)
    }

    /// As [`View::bind`], but with the mounts below `source`, which keep their flags: `MS_BIND`
    /// with `MS_REC`.
    ///
    /// # Errors
    /// As for [`View::mount`].
    pub fn bind_recursive(&self, source: impl AsPath, target: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.inner.bind(self.path_at(&source), self.path_at(&target), flags, true).map_err(error)
    }

    /// Moves the mount at `source` to `target`: `mount(2)` with `MS_MOVE`.
    ///
    /// # Errors
    /// `EINVAL` if nothing is mounted at `source`; `EBUSY` for the root of the namespace; `ELOOP` if `target` is below
    /// `source`; else as for [`View::mount`].
    pub fn move_mount(&self, source: impl AsPath, target: impl AsPath) -> io::Result<()> {
        self.inner.move_mount(self.path_at(&source), self.path_at(&target)).map_err(error)
    }

    /// Changes the flags of the mount at `path`: `mount(2)` with `MS_REMOUNT` and `MS_BIND`.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if nothing is mounted there; `EBUSY` to make the mount read-only while
    /// files are open for writing.
    pub fn remount(&self, path: impl AsPath, flags: MountFlags) -> io::Result<()> {
        self.inner.remount(self.base(), path.as_path_bytes(), flags).map_err(error)
    }

    /// Unmounts `path`: `umount2(2)`. If this is the last mount of a file system, the call releases
    /// the caches of the file system before it returns; with `DETACH`, they are released when the
    /// last open file is closed.
    ///
    /// # Errors
    /// `EPERM`; `EINVAL` if nothing is mounted there; `EBUSY` for the root of the namespace and,
    /// without `DETACH`, if a file is open, a context has its working directory there, or another
    /// mount is on `path`. [`View::holders`] lists these users.
    pub fn unmount(&self, path: impl AsPath, flags: UnmountFlags) -> io::Result<()> {
        self.inner.unmount(self.base(), path.as_path_bytes(), flags).map_err(error)
    }

    /// Returns the free space of the file system at `path`, and the flags of the mount on which the
    /// walk ended: `statvfs(3)`.
    ///
    /// # Errors
    /// `ENOSYS` if the file system does not report it.
    pub fn statvfs(&self, path: impl AsPath) -> io::Result<StatVfs> {
        self.inner.statvfs(self.base(), path.as_path_bytes()).map_err(error)
    }

    /// Returns the users that keep the file system at `path` busy: open files, directories, working
    /// directories of contexts. Visits all its cached entries: for reports.
    ///
    /// # Errors
    /// As for every walk.
    pub fn holders(&self, path: impl AsPath) -> io::Result<Vec<Holder>> {
        self.inner.holders(self.base(), path.as_path_bytes()).map_err(error)
    }
}
