//! Open files.
//!
//! # What it is
//! An open file of the core and a position: an open file description of `open(2)`. Submodules: `position` (reading and
//! writing at the position), `at` (at an offset), `storage` (allocation, extended attributes), `locks`, `options`.
//!
//! # How it is locked
//! The position has a mutex, held across a read or a write, as Linux holds `f_pos_lock`: operations at the position run
//! one after another. A lock of the core protects the contents.
//!
//! # Where it comes from
//! `std::fs::File`, method by method (`docs/std-fs.md`).

mod at;
mod locks;
mod options;
mod position;
mod storage;

pub use options::OpenOptions;

use crate::context::Context;
use crate::error::error;
use crate::metadata::{FileTimes, Metadata, Permissions};
use crate::path::{AsPath, path_buf};
use crate::view::View;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use vfs::{OpenFile, PackedAttr, SetAttr};

/// An open file. It stays valid when its name is removed or renamed.
///
/// Reads and writes start at its position; `&File` implements them too, so threads can share one. Permission is checked
/// when the file is opened, and operations use the credentials of that time. A drop loses errors of the last writes, as in
/// `std`: [`File::sync_all`] returns them.
pub struct File {
    shared: Arc<Shared>,
}

/// The state that clones of a file share.
struct Shared {
    inner: OpenFile,
    position: Mutex<u64>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = self.inner();
        f.debug_struct("File").field("place", inner.held()).field("flags", &inner.flags()).finish_non_exhaustive()
    }
}

impl File {
    #[inline]
    pub(crate) fn new(inner: OpenFile) -> Self {
        Self { shared: Arc::new(Shared { inner, position: Mutex::new(0) }) }
    }

    pub(crate) fn inner(&self) -> &OpenFile {
        &self.shared.inner
    }

    fn position(&self) -> MutexGuard<'_, u64> {
        // The position is a number: valid even if a thread panicked with it.
        self.shared.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens for reading.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn open(view: &View, path: impl AsPath) -> io::Result<File> {
        view.open(path)
    }

    /// Opens for writing; creates the file or truncates it.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create(view: &View, path: impl AsPath) -> io::Result<File> {
        view.create(path)
    }

    /// Creates a file, which must not exist, for reading and writing.
    ///
    /// # Errors
    /// As for [`OpenOptions::open`].
    pub fn create_new(view: &View, path: impl AsPath) -> io::Result<File> {
        view.create_new(path)
    }

    /// Options to open a file with: [`OpenOptions::new`].
    #[must_use]
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// Another handle of the same open file: `dup(2)`. Both share the position and the locks, which are released with
    /// the last of them.
    ///
    /// # Errors
    /// None; the form is `std`'s.
    pub fn try_clone(&self) -> io::Result<File> {
        Ok(Self { shared: self.shared.clone() })
    }

    /// Its attributes: `fstat(2)`.
    ///
    /// # Errors
    /// None in practice.
    pub fn metadata(&self) -> io::Result<Metadata> {
        self.inner().attr().map(|attr| Metadata::new(PackedAttr::from(&attr), self.inner().dev())).map_err(error)
    }

    /// Its current path, with ` (deleted)` after it if its name was removed.
    #[must_use]
    pub fn path(&self, context: &Context) -> PathBuf {
        path_buf(context.inner.path_of_file(self.inner()))
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
    /// `EPERM` if the user that opened it is not the owner.
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
    /// `EPERM` if the user that opened it is not the owner, `EACCES` if that user must not write either.
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

    fn set_attr(&self, set: &SetAttr) -> io::Result<()> {
        self.inner().set_attr(set).map_err(error)
    }

    /// Writes contents and attributes to permanent storage, if the file system has any: `fsync(2)`.
    ///
    /// # Errors
    /// The file system's; `EBADF` on a file opened with `O_PATH`.
    pub fn sync_all(&self) -> io::Result<()> {
        self.inner().sync(false).map_err(error)
    }

    /// As [`File::sync_all`], without attributes that reading does not need: `fdatasync(2)`.
    ///
    /// # Errors
    /// As for [`File::sync_all`].
    pub fn sync_data(&self) -> io::Result<()> {
        self.inner().sync(true).map_err(error)
    }
}
