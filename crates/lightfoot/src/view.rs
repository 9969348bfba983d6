//! A view: the context and the start of path walks. Every operation on paths is a method of it.
//!
//! # What it is
//! A context of the core, a directory that relative paths start from (or the context's working directory), and limits
//! of walks. [`Context`](crate::Context) and [`Dir`](crate::Dir) dereference to it, so they have the same operations. The
//! operations are in files by kind; rustdoc shows each as a group.
//!
//! # What it is not
//! A path: a view refers to the same directory even after a move of the directory.
//!
//! # How it is locked
//! Not: a view does not change. For the locks of its context and directory see `docs/locking.md`.
//!
//! # Where it comes from
//! `openat(2)` and similar calls for the handles, `std::fs` and `cap_std::fs::Dir` for the shape.
//! `docs/std-fs.md` compares method by method.

// rustdoc shows the groups of methods in the order of these modules. The blank lines keep rustfmt from sorting them.
mod files;

mod directories;

mod attributes;

mod names;

mod links;

mod paths;

mod xattrs;

mod mounts;

mod watches;

mod dir_builder;
mod explain;
mod remove_all;

pub use dir_builder::DirBuilder;
pub use explain::WalkFailure;
pub(crate) use xattrs::os_strings;

use crate::path::{AsPath, path_buf};
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "fuse")]
use vfs::Errno;
use vfs::{Base, PathAt, PathRef, Resolve};

/// The common part of [`Context`](crate::Context) and [`Dir`](crate::Dir): every operation on
/// paths. A function that takes a `&View` works with a context and with a directory.
///
/// ```
/// use lightfoot::{Vfs, View};
///
/// /// Counts the lines of the file `log`.
/// fn lines(view: &View) -> std::io::Result<usize> {
///     Ok(view.read_to_string("log")?.lines().count())
/// }
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/srv")?;
/// ctx.write("/srv/log", "a\nb\n")?;
/// let srv = ctx.open_dir("/srv")?;
/// assert_eq!(lines(&srv)?, 2);
/// ctx.set_current_dir("/srv")?;
/// assert_eq!(lines(&ctx)?, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// A relative path starts from the context's working directory, or from the `Dir`. An absolute path starts from the
/// context's root directory, unless the `Dir` is scoped.
///
/// Errors are the errors of the system calls named at each method. The errors of every walk
/// (`path_resolution(7)`) are not repeated: `ENOENT`, `ENOTDIR`, `EACCES`, `ELOOP`, `ENAMETOOLONG`,
/// `EINVAL` for a NUL byte; where the walk has limits ([`Dir::within`](crate::Dir::within)) also
/// `EXDEV`, `ELOOP` and `EAGAIN`, as `openat2(2)` has them.
#[derive(Clone)]
pub struct View {
    pub(crate) inner: Arc<vfs::Context>,
    /// `None`: the working directory, without limits.
    from: Option<(PathRef, Resolve)>,
}

impl fmt::Debug for View {
    /// Writes the directory from which paths start, the limits of walks, and the credentials' user
    /// and group.
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
    /// Returns the view of a context: paths start from its working directory.
    pub(crate) fn of_context(inner: Arc<vfs::Context>) -> Self {
        Self { inner, from: None }
    }

    /// Returns a view of this context that starts from `held`: a directory, or a file, from which
    /// walks then fail.
    pub(crate) fn at(&self, held: PathRef, resolve: Resolve) -> Self {
        Self { inner: self.inner.clone(), from: Some((held, resolve)) }
    }

    /// Returns a view of another context, with this start and these limits.
    pub(crate) fn of(&self, context: vfs::Context) -> Self {
        Self { inner: Arc::new(context), from: self.from.clone() }
    }

    /// Returns the start and the limits of walks.
    pub(crate) fn base(&self) -> Base<'_> {
        match &self.from {
            None => Base::CWD,
            Some((held, resolve)) => Base::at(held).within(*resolve),
        }
    }

    /// Returns a path and the directory from which it starts.
    pub(crate) fn path_at<'a>(&'a self, path: &'a impl AsPath) -> PathAt<'a> {
        PathAt::new(self.base(), path.as_path_bytes())
    }

    /// Returns the limits of walks.
    pub(crate) fn limits(&self) -> Resolve {
        self.from.as_ref().map_or(Resolve::default(), |from| from.1)
    }

    /// Returns the directory of a [`Dir`](crate::Dir); `None` for a context.
    pub(crate) fn held(&self) -> Option<&PathRef> {
        self.from.as_ref().map(|from| &from.0)
    }

    /// Returns the part of the tree that a mount of the view serves.
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
}
