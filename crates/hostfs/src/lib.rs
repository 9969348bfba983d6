//! A host directory as a file system for `lightfoot-vfs`.
//!
//! # What it is
//! [`HostFs`] shows a directory of the host: names, attributes and contents come from the host, and changes are made
//! there. The VFS answers from its caches; this crate answers the requests that they cannot. A lookup is one system call
//! and opens nothing; the open descriptors keep to a budget ([`HostOptions::max_fds`]).
//!
//! ```
//! use lightfoot_hostfs::{HostFs, HostOptions};
//!
//! let source = std::env::temp_dir();
//! let fs = HostFs::new(&source, &HostOptions::default())?;
//! let tree = vfs::Vfs::new(fs);
//! let entries = tree.context().open(vfs::Base::CWD, b"/", vfs::OpenFlags::DIRECTORY, 0)?.next_entries()?;
//! # let _ = entries;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Containment
//! The host never gets a path, only single names below the descriptor of a directory, and neither `..` nor symbolic
//! links (which the VFS follows within its own tree). If another program moves a cached directory out of the source, this
//! file system still has it open: it stays visible until its name is looked up again, and nothing above it becomes visible.
//!
//! # Mount points
//! File systems that are mounted below the source are entered only with [`MountPoints::Cross`]. A front end may show this
//! file system on a mount point below the source itself (FUSE); it then excludes that device by [`HostFs::exclude_dev`].
//! Names on an excluded device fail with `ELOOP` and are never opened. Detecting such a name needs no answer of the front
//! end: attributes are requested with `AT_STATX_DONT_SYNC`, which FUSE answers from its cache.
//!
//! # Identity
//! A file is identified by device, inode number, type and time of birth; see `identity.rs`.
//!
//! # Attributes
//! Attributes are the host's. After each change through this file system, the VFS requests them again
//! ([`vfs::Inode::mark_stale`]).
//!
//! # Limitations
//! - Requests to the host have the rights of the process, except for new files ([`Ownership`]). A root process writes
//!   beyond its callers' quotas; a host that does not trust root (NFS with `root_squash`) refuses access to files that
//!   their owners may use.
//! - If another program puts a file in the place of one that is being removed, between two calls, the new file may be
//!   removed instead.
//! - If another program replaces a file while its name is cached, the next open fails once with `ESTALE`; the lookup
//!   after that finds the new file.
//! - `O_APPEND`, `O_SYNC` and locks are the VFS's: other programs of the host do not see them.
//!
//! # Requirements
//! Linux 5.8 or later with `/proc` mounted; `openat2(2)` is used if the host has it.
//!
//! # Modules
//! Each module uses only modules of the lines above its own:
//! 1. `errno`, `options`, `caller` (the owner of new files), `identity` (nodes and attributes), `node` (the record of a file),
//!    `streams` (directory streams)
//! 2. `host` (system calls), `table` (the records), `budget` (of descriptors)
//! 3. `watches` (inotify)
//! 4. `shared` (the state that all parts share)
//! 5. `descriptors` (from a record to a descriptor), `change` (a change by this file system)
//! 6. `attributes`, `create`, `data`, `events` (changes by other programs), `listing`, `names`
//! 7. `filesystem` (the trait), `lib`
//!
//! # How it is locked
//! See the modules: each table has its lock, and no lock is held during a call to the host.
//!
//! # Where it comes from
//! libfuse's `passthrough_hp`, NFS servers' file caches; own code.

#![forbid(unsafe_code)]

mod attributes;
mod budget;
mod caller;
mod change;
mod create;
mod data;
mod descriptors;
mod errno;
mod events;
mod filesystem;
mod host;
mod identity;
mod listing;
mod names;
mod node;
mod options;
mod shared;
mod streams;
mod table;
mod watches;

pub use options::{HostOptions, MountPoints, Ownership, Revalidate};

use crate::shared::Shared;
use crate::watches::Watches;
use std::path::Path;
use std::sync::Arc;

/// A host directory as a file system; see the [crate documentation](self).
pub struct HostFs {
    shared: Arc<Shared>,
}

/// Counts of a [`HostFs`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostStats {
    /// Files with a record.
    pub nodes: usize,
    /// Open descriptors of files and directories, without the source's.
    pub open_fds: usize,
    /// Descriptors that were opened again after the budget had closed them.
    pub reopened: u64,
    /// Descriptors that the budget closed.
    pub evicted_fds: u64,
    /// How many times the caches were notified of a change by other programs.
    pub invalidations: u64,
    /// Watched directories.
    pub watches: usize,
}

impl HostFs {
    /// Shows the directory at `path`. The path is resolved once: a directory that gets this path later is not shown.
    ///
    /// # Errors
    /// Those of `open(2)` on a directory: `ENOENT`, `ENOTDIR`, `EACCES`...; with [`HostOptions::watch`], `EMFILE` if
    /// the user has too many `inotify(7)` instances.
    pub fn new(path: impl AsRef<Path>, options: &HostOptions) -> Result<Self, std::io::Error> {
        let shared = Arc::new(Shared::new(path.as_ref(), options)?);
        events::start(&shared)?;
        Ok(Self { shared })
    }

    /// The counts. Takes the lock of each table for a moment: for tests and reports.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        self.handle().stats()
    }

    /// The canonical path of the directory that is shown, from when it was resolved.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.shared.source
    }

    /// Excludes the device `dev` (`st_dev`), that of a mount through which this file system is shown: names on it fail with
    /// `ELOOP` from now on, and nothing on it is opened.
    pub fn exclude_dev(&self, dev: u64) {
        self.shared.exclude(dev);
    }

    /// A handle for use after this file system was given to a tree.
    #[must_use]
    pub fn handle(&self) -> HostHandle {
        HostHandle { shared: self.shared.clone() }
    }
}

/// A handle of a [`HostFs`] that was given to a tree. It keeps the records alive, not the tree.
#[derive(Clone)]
pub struct HostHandle {
    shared: Arc<Shared>,
}

impl HostHandle {
    /// As [`HostFs::stats`].
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let fds = self.shared.budget.counts();
        let watches = self.shared.watches.as_ref();
        HostStats {
            nodes: self.shared.table.len(),
            open_fds: fds.open + self.shared.streams.len(),
            reopened: fds.reopened,
            evicted_fds: fds.evicted,
            invalidations: watches.map_or(0, Watches::invalidations),
            watches: watches.map_or(0, Watches::len),
        }
    }

    /// As [`HostFs::exclude_dev`].
    pub fn exclude_dev(&self, dev: u64) {
        self.shared.exclude(dev);
    }
}

impl Drop for HostFs {
    fn drop(&mut self) {
        if let Some(watches) = &self.shared.watches {
            watches.stop();
        }
    }
}

impl core::fmt::Debug for HostFs {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostFs").field("source", &self.shared.source).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for HostHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostHandle").field("source", &self.shared.source).finish_non_exhaustive()
    }
}
