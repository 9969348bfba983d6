//! A view: the context and the start of path walks. Every operation on paths is a method of it.
//!
//! # What it is
//! A context of the core, a directory that relative paths start from (or the context's working directory), and limits
//! of walks. [`Context`](crate::Context) and [`Dir`] dereference to it, so they have the same operations. The
//! operations are in files by kind: `files` (contents), `names`, `remove_all`, `attributes`, `mounts`, `explain`.
//!
//! # What it is not
//! A path: it refers to its directory also after that was moved.
//!
//! # How it is locked
//! Not at all: it does not change. For the objects that it refers to see `docs/locking.md`.
//!
//! # Where it comes from
//! `openat(2)` and its kin for the handles, `std::fs` and `cap_std::fs::Dir` for the shape. `docs/std-fs.md` compares
//! method by method.

mod attributes;
mod batch;
mod explain;
mod files;
mod mounts;
mod names;
mod remove_all;

pub(crate) use attributes::os_strings;
pub use explain::WalkFailure;

use crate::dir::Dir;
use crate::error::error;
use crate::metadata::Metadata;
use crate::path::{AsPath, path_buf};
use crate::read_dir::ReadDir;
use crate::watch::Watch;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use vfs::{Base, Errno, OpenFile, OpenFlags, OwnedPlace, PathAt, Resolve};

/// The common part of [`Context`](crate::Context) and [`Dir`]: every operation on paths.
///
/// A relative path starts from the context's working directory, or from the `Dir`. An absolute path starts from the
/// context's root directory, unless the `Dir` is scoped.
///
/// Errors are those of the system calls named at each method; those of every walk (`path_resolution(7)`) are not
/// repeated: `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`, `EINVAL` for a NUL byte; where the walk has limits
/// ([`Dir::within`]) also `EXDEV`, `ELOOP` and `EAGAIN`, as `openat2(2)` has them.
#[derive(Clone)]
pub struct View {
    pub(crate) inner: Arc<vfs::Context>,
    /// `None`: the working directory, without limits.
    from: Option<(OwnedPlace, Resolve)>,
}

impl fmt::Debug for View {
    /// The directory from which paths start, the limits of walks, and the credentials' user and group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let from = match self.held() {
            Some(held) => path_buf(self.inner.path_of(held)),
            None => self.inner.current_dir().map(path_buf).unwrap_or_default(),
        };
        let credentials = self.inner.credentials();
        let mut view = f.debug_struct("View");
        view.field("from", &from);
        if !self.limits().is_empty() {
            view.field("limits", &self.limits());
        }
        view.field("uid", &credentials.uid).field("gid", &credentials.gid).finish_non_exhaustive()
    }
}

impl View {
    /// The view of a context: paths start from its working directory.
    pub(crate) fn of_context(inner: Arc<vfs::Context>) -> Self {
        Self { inner, from: None }
    }

    /// The same context, from a directory, or a file that may turn out not to be one.
    pub(crate) fn at(&self, held: OwnedPlace, resolve: Resolve) -> Self {
        Self { inner: self.inner.clone(), from: Some((held, resolve)) }
    }

    /// The same start and limits, with another context.
    pub(crate) fn of(&self, context: vfs::Context) -> Self {
        Self { inner: Arc::new(context), from: self.from.clone() }
    }

    /// The start and the limits of walks.
    pub(crate) fn base(&self) -> Base<'_> {
        match &self.from {
            None => Base::CWD,
            Some((held, resolve)) => Base::at(held).within(*resolve),
        }
    }

    /// A path, and where it starts.
    pub(crate) fn path_at<'a>(&'a self, path: &'a impl AsPath) -> PathAt<'a> {
        PathAt::new(self.base(), path.as_path_bytes())
    }

    /// The limits of walks.
    pub(crate) fn limits(&self) -> Resolve {
        self.from.as_ref().map_or(Resolve::default(), |from| from.1)
    }

    /// The directory of a [`Dir`]; `None` for a context.
    pub(crate) fn held(&self) -> Option<&OwnedPlace> {
        self.from.as_ref().map(|from| &from.0)
    }

    /// What a mount of the view serves.
    #[cfg(feature = "fuse")]
    pub(crate) fn part(&self, vfs: &vfs::Vfs) -> Result<::fuse::Part, Errno> {
        const KEPT: Resolve = Resolve::BENEATH.union(Resolve::IN_ROOT);
        if !vfs.has(&self.inner) {
            return Err(Errno::EXDEV);
        }
        match &self.from {
            None => ::fuse::Part::below(&self.inner, Base::CWD, b"/"),
            Some((_, limits)) if !KEPT.contains(*limits) => Err(Errno::EINVAL),
            Some((held, _)) => ::fuse::Part::below(&self.inner, Base::at(held), b"."),
        }
    }

    // ---- queries

    /// Attributes; symbolic links are followed: `stat(2)`. Writes to no shared memory if the path is cached.
    ///
    /// # Errors
    /// Those of every walk.
    #[inline]
    pub fn metadata(&self, path: impl AsPath) -> io::Result<Metadata> {
        let path = path.as_path_bytes();
        if self.from.is_none() { self.stat(path) } else { self.stat_from(path, true) }
    }

    /// [`View::metadata`] of a context, compiled once. The walk is inlined here, so that the result is written once, to
    /// its place; its start is known, so that it does not check limits.
    #[inline(never)]
    fn stat(&self, path: &[u8]) -> io::Result<Metadata> {
        self.inner.attr_as(Base::CWD, path, true, Metadata::new)
    }

    /// The same from any start.
    #[inline(never)]
    fn stat_from(&self, path: &[u8], follow: bool) -> io::Result<Metadata> {
        self.inner.attr_as(self.base(), path, follow, Metadata::new)
    }

    /// Attributes; a symbolic link at the end is not followed: `lstat(2)`.
    ///
    /// # Errors
    /// Those of every walk.
    #[inline]
    pub fn symlink_metadata(&self, path: impl AsPath) -> io::Result<Metadata> {
        self.stat_from(path.as_path_bytes(), false)
    }

    /// Whether the path leads to something; also `false` if that cannot be found out.
    #[must_use]
    pub fn exists(&self, path: impl AsPath) -> bool {
        self.access(path, crate::access::F_OK).is_ok()
    }

    /// Whether the path leads to something, or why that cannot be found out.
    ///
    /// # Errors
    /// Those of every walk but `ENOENT`.
    pub fn try_exists(&self, path: impl AsPath) -> io::Result<bool> {
        match self.inner.access(self.base(), path.as_path_bytes(), true, crate::access::F_OK) {
            Ok(()) => Ok(true),
            Err(Errno::ENOENT) => Ok(false),
            Err(errno) => Err(error(errno)),
        }
    }

    /// Whether the path leads to a regular file; also `false` if that cannot be found out.
    #[must_use]
    pub fn is_file(&self, path: impl AsPath) -> bool {
        self.metadata(path).is_ok_and(|metadata| metadata.is_file())
    }

    /// Whether the path leads to a directory; also `false` if that cannot be found out.
    #[must_use]
    pub fn is_dir(&self, path: impl AsPath) -> bool {
        self.metadata(path).is_ok_and(|metadata| metadata.is_dir())
    }

    /// Whether there is a symbolic link at the path; also `false` if that cannot be found out.
    #[must_use]
    pub fn is_symlink(&self, path: impl AsPath) -> bool {
        self.symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
    }

    /// Checks [`R_OK`](crate::R_OK), [`W_OK`](crate::W_OK), [`X_OK`](crate::X_OK): `faccessat(2)` with `AT_EACCESS`.
    ///
    /// # Errors
    /// `EACCES`; `EROFS` to write on a read-only mount.
    pub fn access(&self, path: impl AsPath, bits: u32) -> io::Result<()> {
        self.inner.access(self.base(), path.as_path_bytes(), true, bits).map_err(error)
    }

    /// The target of a symbolic link: `readlink(2)`.
    ///
    /// # Errors
    /// `EINVAL` if it is not a symbolic link.
    pub fn read_link(&self, path: impl AsPath) -> io::Result<PathBuf> {
        self.inner.read_link(self.base(), path.as_path_bytes()).map(path_buf).map_err(error)
    }

    /// The path without symbolic links, `.` and `..`: `realpath(3)`. Absolute; with `BENEATH` relative to the `Dir`
    /// (`.` for the `Dir` itself), so that it can be walked again from there. With `IN_ROOT` its first slash is the
    /// `Dir`.
    ///
    /// # Errors
    /// Those of every walk.
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

    // ---- directories

    /// The entries of a directory: `readdir(3)`.
    ///
    /// # Errors
    /// `ENOTDIR`, `EACCES`.
    pub fn read_dir(&self, path: impl AsPath) -> io::Result<ReadDir> {
        let path = path.as_path_bytes();
        let dir = self.open_raw(path, OpenFlags::DIRECTORY)?;
        let view = self.at(dir.held().clone(), self.limits());
        Ok(ReadDir::new(view, dir, path_buf(path.to_vec())))
    }

    /// A handle of the directory at `path`, from which paths can start: `openat(2)` with `O_PATH` and `O_DIRECTORY`. It
    /// needs no permission on the directory itself; operations from there do. The handle has the limits of this view,
    /// counted from its directory.
    ///
    /// # Errors
    /// `ENOTDIR`.
    pub fn open_dir(&self, path: impl AsPath) -> io::Result<Dir> {
        let place = self.open_raw(path.as_path_bytes(), OpenFlags::PATH.union(OpenFlags::DIRECTORY))?;
        Ok(Dir::new(self.at(place.held().clone(), self.limits())))
    }

    fn open_raw(&self, path: &[u8], flags: OpenFlags) -> io::Result<OpenFile> {
        self.inner.open(self.base(), path, flags, 0).map_err(error)
    }

    // ---- change events

    /// Watches what `path` leads to, with room for as many events as `inotify(7)` has. See [`View::watch_with`].
    ///
    /// # Errors
    /// `EACCES` without read permission.
    pub fn watch(&self, path: impl AsPath, scope: vfs::Scope) -> io::Result<Watch> {
        self.watch_with(path, scope, vfs::DEFAULT_QUEUED_EVENTS)
    }

    /// Watches what `path` leads to: a file, a directory and its entries, or with [`Scope::Subtree`](crate::Scope) all
    /// below it on its file system. The queue holds at most `capacity` events, then one overflow event. The watch keeps
    /// the place busy, as an open file does.
    ///
    /// # Errors
    /// `EACCES` without read permission.
    pub fn watch_with(&self, path: impl AsPath, scope: vfs::Scope, capacity: usize) -> io::Result<Watch> {
        self.inner.watch(self.base(), path.as_path_bytes(), scope, capacity).map(Watch::new).map_err(error)
    }
}
