//! Conversions from this crate's types to the core's types, and back.
//!
//! # What it is
//! The core is the crate `lightfoot-vfs`, here [`lightfoot::vfs`](crate::vfs). The core has
//! operations that this crate does not show: on held directories and files, listings from a cookie,
//! observers of changes. A front end (FUSE, 9P, NFS) uses it directly.
//!
//! # Where it comes from
//! `AsFd` and `From<OwnedFd>` of `std`, which do this for files and descriptors.

use crate::context::Context;
use crate::dir::Dir;
use crate::error::error;
use crate::file::File;
use crate::metadata::Metadata;
use crate::tree::Vfs;
use std::io;
use vfs::{Attr, Errno, OpenFile, PackedAttr, PathRef, Resolve};

/// # The core's tree
///
/// ```
/// use lightfoot::{Vfs, vfs};
///
/// let core: vfs::Vfs = Vfs::ram().into();
/// let tree = Vfs::from(core.clone()); // The same tree.
/// tree.context().write("/file", "text")?;
/// assert!(core.context().attr(vfs::Base::CWD, b"/file", true).is_ok());
/// assert!(!tree.as_inner().may_wait());
/// # Ok::<(), std::io::Error>(())
/// ```
impl Vfs {
    /// Returns the core's tree.
    #[must_use]
    pub fn as_inner(&self) -> &vfs::Vfs {
        &self.inner
    }
}

/// Returns the core's interface of the tree.
impl From<Vfs> for vfs::Vfs {
    fn from(tree: Vfs) -> Self {
        tree.inner
    }
}

/// # The core's context
///
/// ```
/// use lightfoot::{Context, Vfs, vfs};
///
/// let vfs = Vfs::ram();
/// let ctx = Context::from(vfs.as_inner().context());
/// ctx.write("/file", "text")?;
/// assert_eq!(ctx.as_inner().attr(vfs::Base::CWD, b"/file", true)?.size, 4);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Context {
    /// Returns the core's context. Handles of this context share the core's context;
    /// [`vfs::Context::fork`] makes a context that they do not share.
    #[must_use]
    pub fn as_inner(&self) -> &vfs::Context {
        self.inner()
    }
}

/// Returns this crate's interface of the context.
impl From<vfs::Context> for Context {
    fn from(inner: vfs::Context) -> Self {
        Self::new(inner)
    }
}

/// # The core's place
///
/// ```
/// use lightfoot::{Dir, Vfs, vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.create_dir("/srv")?;
/// ctx.write("/srv/file", "text")?;
/// let dir = ctx.open_dir("/srv")?.scoped();
///
/// let base = vfs::Base::at(dir.as_inner()).within(dir.resolve()); // Where its paths start, and their limits.
/// assert_eq!(ctx.as_inner().attr(base, b"file", true)?.size, 4);
/// assert_eq!(ctx.as_inner().attr(base, b"../srv", true), Err(vfs::Errno::EXDEV));
/// let again = Dir::from_inner(&ctx, dir.as_inner().clone())?; // A plain handle: without limits.
/// assert!(again.exists("../srv"));
/// # Ok::<(), std::io::Error>(())
/// ```
impl Dir {
    /// Returns the core's handle of the directory. The core's handle has no limits:
    /// [`Dir::resolve`] returns the limits of this one.
    #[must_use]
    pub fn as_inner(&self) -> &PathRef {
        self.held().expect("a `Dir` is the view of a place")
    }

    /// Returns a handle without limits of the core's directory `place`. Operations on the handle
    /// use `context`.
    ///
    /// # Errors
    /// `ENOTDIR`. If the context belongs to another tree, this call succeeds, and each operation on
    /// a path fails with `EXDEV`.
    pub fn from_inner(context: &Context, place: PathRef) -> io::Result<Dir> {
        if !place.is_dir() {
            return Err(error(Errno::ENOTDIR));
        }
        Ok(Self::new(context.at(place, Resolve::default())))
    }
}

/// # The core's open file
///
/// ```
/// use lightfoot::{File, Vfs, vfs};
/// use std::io::Read;
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/file", "text")?;
/// let opened: vfs::OpenFile = ctx.as_inner().open(vfs::Base::CWD, b"/file", vfs::OpenFlags::RDONLY, 0)?;
/// let mut file = File::from(opened);
/// let mut text = String::new();
/// file.read_to_string(&mut text)?;
/// assert_eq!(text, "text");
/// assert_eq!(file.as_inner().flags(), vfs::OpenFlags::RDONLY);
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Returns the core's open file. The core's open file has no position; this `File` keeps the
    /// position.
    #[must_use]
    pub fn as_inner(&self) -> &OpenFile {
        self.inner()
    }
}

/// An open file at position 0.
impl From<OpenFile> for File {
    fn from(inner: OpenFile) -> Self {
        Self::new(inner)
    }
}

/// # The core's attributes
///
/// ```
/// use lightfoot::fs::Attr;
/// use lightfoot::{Metadata, Vfs};
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/file", "text")?;
/// let metadata = ctx.metadata("/file")?;
/// let attr = Attr::from(metadata);
/// assert_eq!(attr.size, 4);
/// assert_eq!(Metadata::from_inner(&attr, metadata.dev()), metadata);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Metadata {
    /// Returns metadata of the core's attributes, and the number of the file system:
    /// [`Metadata::dev`].
    #[must_use]
    pub fn from_inner(attr: &Attr, dev: u64) -> Self {
        Self::new(PackedAttr::from(attr), dev)
    }
}

/// The attributes without the number of the file system.
impl From<Metadata> for Attr {
    fn from(metadata: Metadata) -> Self {
        metadata.attr()
    }
}
