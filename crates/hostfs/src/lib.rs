//! A host directory as a file system for `lightfoot-vfs`.
//!
//! # What it is
//! [`HostFs`] shows a directory of the host: names, attributes and contents are the host's, and what is done is done
//! there. The VFS above answers what it knows; here is what happens when it does not. A lookup is one system call and
//! opens nothing, and what is opened is kept within a budget ([`HostOptions::max_fds`]).
//!
//! ```
//! use hostfs::{HostFs, HostOptions};
//!
//! let source = std::env::temp_dir();
//! let fs = HostFs::new(&source, &HostOptions::default())?;
//! let tree = vfs::Vfs::new(fs);
//! let entries = tree.context().open(vfs::Base::CWD, b"/", vfs::OpenFlags::DIRECTORY, 0)?.next_entries()?;
//! # let _ = entries;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The source is not left
//! No path is ever given to the host, only single names below the descriptor of a directory, and neither `..` nor
//! symbolic links (which the VFS follows within its own tree). A directory that somebody moves out of the source while
//! it is cached is a directory that this file system still has open: it is shown until its name is asked for again, and
//! nothing above it is.
//!
//! # Mount points, and a source below its own mount
//! What is mounted below the source is not entered unless [`MountPoints::Cross`] says so. A front end that shows this
//! file system on a mount point below the source itself (FUSE) names that device by [`HostFs::exclude_dev`]; such names
//! are `ELOOP` and are never opened. To find out that a name is such a one takes no answer of the front end: attributes
//! are asked for with `AT_STATX_DONT_SYNC`, which FUSE answers from what it has.
//!
//! # Which file it is
//! A file is known by device, number, type and time of birth; see `identity.rs`.
//!
//! # Attributes
//! They are the host's. After each change by way of this file system the VFS is told to ask again
//! ([`vfs::Inode::doubt`]).
//!
//! # Limitations
//! The host is asked as the process, but for what is made ([`Ownership`]): a process of root writes beyond its callers'
//! quotas, and a host that does not trust root (NFS with `root_squash`) refuses it files that their owners may use. A
//! file that another program puts into the place of one that is being removed, between two calls, may be removed for
//! it. A file that somebody replaced within the time for which its name is good is `ESTALE` when it is opened, once;
//! the next look finds what is there. `O_APPEND`, `O_SYNC` and locks are the VFS's: other programs of the host do not
//! see them.
//!
//! # What the host must have
//! Linux 5.8 or later with `/proc` mounted; `openat2(2)` is used where it is there.
//!
//! # How it is locked
//! See the modules: each table has its lock, none is held while the host is asked.
//!
//! # Where it comes from
//! libfuse's `passthrough_hp`, NFS servers' file caches; own code.

#![forbid(unsafe_code)]

mod attributes;
mod caller;
mod change;
mod core;
mod create;
mod data;
mod errno;
mod fds;
mod filesystem;
mod host;
mod identity;
mod listing;
mod names;
mod node;
mod options;
mod reach;
mod table;
mod watch;

pub use options::{HostOptions, MountPoints, Ownership, Revalidate};

use crate::core::Core;
use std::path::Path;
use std::sync::Arc;

/// A host directory as a file system; see the [crate documentation](self).
pub struct HostFs {
    core: Arc<Core>,
}

/// What a [`HostFs`] holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Files that it has a record of.
    pub nodes: usize,
    /// Descriptors of files and directories that are open, besides the source's own.
    pub open_fds: usize,
    /// Descriptors that were opened again after they had been closed for want of room.
    pub reopened: u64,
    /// Descriptors that were closed for want of room.
    pub evicted_fds: u64,
    /// How often the caches were told of a change by others.
    pub pushes: u64,
    /// Directories that are watched.
    pub watches: usize,
}

impl HostFs {
    /// Shows the directory at `path`. It is found once: what takes its name later is another directory.
    ///
    /// # Errors
    /// Those of `open(2)` on a directory: `ENOENT`, `ENOTDIR`, `EACCES`...; with [`HostOptions::watch`], `EMFILE` where
    /// there may be no more of `inotify(7)`.
    pub fn new(path: impl AsRef<Path>, options: &HostOptions) -> Result<Self, std::io::Error> {
        let core = Arc::new(Core::new(path.as_ref(), options)?);
        watch::begin(&core)?;
        Ok(Self { core })
    }

    /// What it holds and did. Counts what is in its tables: for tests and reports.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        self.handle().stats()
    }

    /// The directory that is shown, as it was called when it was found.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.core.source
    }

    /// Names on the device `dev` (`st_dev`) are `ELOOP` from now on, and nothing there is opened: the device of a mount
    /// through which this file system is shown.
    pub fn exclude_dev(&self, dev: u64) {
        self.core.exclude(dev);
    }

    /// A handle for what is wanted of it after it was given to a tree.
    #[must_use]
    pub fn handle(&self) -> HostHandle {
        HostHandle { core: self.core.clone() }
    }
}

/// A handle of a [`HostFs`] that was given to a tree. It keeps the records, not the tree.
#[derive(Clone)]
pub struct HostHandle {
    core: Arc<Core>,
}

impl HostHandle {
    /// As [`HostFs::stats`].
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let (open_fds, evicted_fds, reopened) = self.core.budget.counts();
        let (watches, pushes) = self.core.watches.as_ref().map_or((0, 0), watch::Watches::counts);
        let open_fds = open_fds + self.core.streams.len();
        HostStats { nodes: self.core.table.len(), open_fds, reopened, evicted_fds, pushes, watches }
    }

    /// As [`HostFs::exclude_dev`].
    pub fn exclude_dev(&self, dev: u64) {
        self.core.exclude(dev);
    }
}

impl Drop for HostFs {
    fn drop(&mut self) {
        if let Some(watches) = &self.core.watches {
            watches.stop();
        }
    }
}

impl ::core::fmt::Debug for HostFs {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.debug_struct("HostFs").field("source", &self.core.source).finish_non_exhaustive()
    }
}

impl ::core::fmt::Debug for HostHandle {
    fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
        f.debug_struct("HostHandle").field("source", &self.core.source).finish_non_exhaustive()
    }
}
