//! Attributes of an open file, and writing it to storage.

use super::File;
use crate::context::Context;
use crate::error::error;
use crate::metadata::{FileTimes, Metadata, Permissions};
use crate::path::path_buf;
use std::io;
use std::path::PathBuf;
use std::time::SystemTime;
use vfs::SetAttr;

/// # Metadata and storage
///
/// ```
/// use lightfoot::{Permissions, Vfs};
/// use std::path::Path;
///
/// let ctx = Vfs::ram().context();
/// let file = ctx.create("/file")?;
/// file.set_len(1000)?;
/// file.set_permissions(Permissions::from_mode(0o400))?; // This file stays open for writing.
/// ctx.rename("/file", "/moved")?;
/// assert_eq!(file.path(&ctx), Path::new("/moved"));
/// assert_eq!(file.metadata()?.len(), 1000);
/// file.sync_all()?;
/// file.close()?; // A drop would lose an error.
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Returns the attributes of the file: `fstat(2)`.
    ///
    /// # Errors
    /// None in practice.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.inner().held().packed_attr().map(|attr| Metadata::new(attr, self.inner().dev())).map_err(error)
    }

    /// Returns its current path, with ` (deleted)` after it if its name was removed.
    #[must_use]
    pub fn path(&self, context: &Context) -> PathBuf {
        path_buf(context.inner.path_of(self.inner().held()))
    }

    /// Truncates the file to `len` bytes, or extends it with a hole: `ftruncate(2)`.
    ///
    /// # Errors
    /// `EINVAL` if not open for writing or beyond the longest length.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        self.inner().set_len(len).map_err(error)
    }

    /// Changes the permission bits: `fchmod(2)`.
    ///
    /// # Errors
    /// `EPERM` if the user that opened the file is not the owner.
    pub fn set_permissions(&self, permissions: Permissions) -> io::Result<()> {
        self.set_attr(&SetAttr { mode: Some(permissions.mode()), ..SetAttr::default() })
    }

    /// Changes owner and group; `None` leaves one as it is: `fchown(2)`.
    ///
    /// # Errors
    /// `EPERM`.
    pub fn chown(&self, uid: Option<u32>, gid: Option<u32>) -> io::Result<()> {
        self.set_attr(&SetAttr { uid, gid, ..SetAttr::default() })
    }

    /// Changes the times: `futimens(3)`.
    ///
    /// # Errors
    /// `EPERM` if the user that opened the file is not the owner; `EACCES` if, besides, that user
    /// may not write.
    pub fn set_times(&self, times: FileTimes) -> io::Result<()> {
        if times == FileTimes::new() { Ok(()) } else { self.set_attr(&times.to_set()) }
    }

    /// Changes the time of the last change of the contents.
    ///
    /// # Errors
    /// As for [`File::set_times`].
    pub fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        self.set_times(FileTimes::new().set_modified(time))
    }

    /// Writes contents and attributes to permanent storage, if the file system has such storage:
    /// `fsync(2)`.
    ///
    /// # Errors
    /// The file system's; `EBADF` on a file opened with `O_PATH`.
    pub fn sync_all(&self) -> io::Result<()> {
        self.inner().sync(false).map_err(error)
    }

    /// As [`File::sync_all`], but without attributes that a read does not need: `fdatasync(2)`.
    ///
    /// # Errors
    /// As for [`File::sync_all`].
    pub fn sync_data(&self) -> io::Result<()> {
        self.inner().sync(true).map_err(error)
    }

    /// Closes this handle and returns the error of the close, which a drop loses: `close(2)`. Some
    /// file systems, such as a network file system, write only at the close. The data need not
    /// reach permanent storage: see [`File::sync_all`]. Clones stay open.
    ///
    /// # Errors
    /// The file system's: `EDQUOT`, `ENOSPC`, `EIO`... The handle is closed in any case. No error
    /// for a file that is not open for writing.
    pub fn close(self) -> io::Result<()> {
        self.inner().flush().map_err(error)
    }

    fn set_attr(&self, set: &SetAttr) -> io::Result<()> {
        self.inner().set_attr(set).map_err(error)
    }
}
