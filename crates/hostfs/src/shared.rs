//! The state that all parts of a host file system share.
//!
//! # What it is
//! This module has the source, the options and the tables. It finds the record of an inode of the
//! VFS, and decides how long answers may be cached.
//!
//! # How it is locked
//! Its only lock is the lock of the excluded devices, a leaf.

use crate::budget::Budget;
use crate::caller::Daemon;
use crate::closing::Closer;
use crate::errno::errno;
use crate::host::{self, Opening};
use crate::identity::{Identities, dev_of, is_dir, time_of_change};
use crate::node::{Attached, NameAt, Node};
use crate::opens::Opens;
use crate::options::{HostAcls, HostOptions, MountPoints, Revalidate};
use crate::pieces::Pieces;
use crate::system;
use crate::table::{Sighting, Table};
use crate::watches::Watches;
use core::hash::{BuildHasher, Hasher};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use parking_lot::RwLock;
use rustix::fs::{OFlags, Statx, StatxAttributes};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use vfs::{Attr, Errno, Foreign, Inode, Invalidator, NewInode, Valid};

/// See the [module documentation](self).
pub(crate) struct Shared {
    pub(crate) source: PathBuf,
    pub(crate) options: HostOptions,
    pub(crate) root: Arc<Node>,
    root_attr: Attr,
    /// The source, open for the calls that refuse an `O_PATH` descriptor.
    pub(crate) root_fd: OwnedFd,
    pub(crate) identities: Identities,
    pub(crate) opening: Opening,
    pub(crate) table: Table,
    pub(crate) budget: Budget,
    pub(crate) opens: Opens,
    pub(crate) pieces: Pieces,
    pub(crate) closer: Closer,
    pub(crate) watches: Option<Watches>,
    pub(crate) daemon: Daemon,
    /// Whether the source's file system has ACLs.
    pub(crate) has_acls: bool,
    /// Whether files are found again by the host's handles.
    pub(crate) has_handles: bool,
    /// Whether the source's file system is on this machine.
    pub(crate) is_local: bool,
    excluded: RwLock<Vec<u64>>,
    has_excluded: AtomicBool,
    pub(crate) invalidator: OnceLock<Invalidator>,
    began: Instant,
    /// Whether the log has that the source was removed.
    is_removal_logged: AtomicBool,
    /// When the root was marked stale last, in nanoseconds since `began`.
    root_marked: AtomicU64,
}

impl Shared {
    pub(crate) fn new(path: &Path, options: &HostOptions) -> Result<Self, HostErrno> {
        let source = system::realpath(path)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root_fd = system::open(&source, flags | OFlags::RDONLY)?;
        let path_fd = system::openat(root_fd.as_fd(), b".", flags | OFlags::PATH)?;
        let kind = system::fstatfs(&root_fd)?.f_type;
        let stat = host::stat_fd(path_fd.as_fd())?;
        let key = std::hash::RandomState::new().build_hasher().finish();
        let identities = Identities::new(key, &stat, kind != host::OVERLAY);
        let table = Table::new();
        let root = Node::new(identities.node(&stat), stat.stx_ino, false, NameAt { dir: 0, name: b"" });
        let crosses = options.mount_points == MountPoints::Cross;
        let watches = if options.watch { Some(Watches::new()?) } else { None };
        if let Some(watches) = &watches {
            watches.add(&root, &path_fd);
        }
        {
            let mut state = root.state();
            state.path = Some(Arc::new(path_fd));
            state.is_pinned = true;
        }
        let root = Arc::new(root);
        table.add(root.clone());
        Ok(Self {
            source,
            options: options.clone(),
            root,
            root_attr: identities.attr(&stat),
            identities,
            opening: Opening::new(root_fd.as_fd(), crosses),
            table,
            budget: Budget::new(options.max_fds),
            opens: Opens::new(),
            pieces: Pieces::default(),
            closer: Closer::new(crosses || !host::is_local(kind)),
            watches,
            daemon: Daemon::new(options.ownership)?,
            has_acls: system::has_acls(&root_fd),
            has_handles: system::has_handles(&root_fd),
            is_local: host::is_local(kind),
            root_fd,
            excluded: RwLock::default(),
            has_excluded: AtomicBool::new(false),
            invalidator: OnceLock::new(),
            began: Instant::now(),
            is_removal_logged: AtomicBool::new(false),
            root_marked: AtomicU64::new(0),
        })
    }

    /// Returns the root for the VFS.
    pub(crate) fn root_inode(&self) -> NewInode {
        let is_watched = self.root.state().watch != 0;
        let valid = if is_watched { self.default_valid() } else { self.options.policy.valid() };
        let mut new = NewInode { node: self.root.id, attr: self.root_attr, valid, ..NewInode::default() };
        if self.applies_acls() {
            host::read_acls(&self.root_fd, b".", &mut new);
        }
        new
    }

    /// Returns whether the VFS obeys the host's ACLs.
    pub(crate) fn applies_acls(&self) -> bool {
        self.has_acls && self.options.acls == HostAcls::Apply
    }

    /// Returns the record of an inode.
    ///
    /// # Errors
    /// `ESTALE` if it was dropped; the names are invalidated, so that the VFS looks them up again.
    #[inline]
    pub(crate) fn node<'i>(&self, inode: &'i Inode) -> Result<&'i Arc<Node>, Errno> {
        match inode.data::<Attached>() {
            Some(attached) => Ok(attached.node()),
            None => self.attach(inode),
        }
    }

    #[cold]
    fn attach<'i>(&self, inode: &'i Inode) -> Result<&'i Arc<Node>, Errno> {
        let attached = self.table.attach(inode.node()).ok_or_else(|| self.estale(inode.node()))?;
        inode.data_or(|| attached).map(Attached::node).ok_or(Errno::EIO)
    }

    /// Returns the error for a file that is not where it was. Also invalidates the file's names, so
    /// that the VFS looks them up again and finds the file if it still has a name.
    #[cold]
    pub(crate) fn estale(&self, node: u64) -> Errno {
        if let Some(invalidator) = self.invalidator.get() {
            invalidator.inode(node);
        }
        Errno::ESTALE
    }

    /// Logs once that the source was removed, if `stat` has the attributes of the source and shows
    /// the removal. Names in it then fail with `ENOENT`, as in any directory that was removed.
    pub(crate) fn note_removal(&self, node: &Node, stat: &Statx) {
        // Relaxed: of two threads, one sets the flag.
        if node.id == self.root.id && stat.stx_nlink == 0 && !self.is_removal_logged.swap(true, Relaxed) {
            tracing::error!(source = %Foreign::of(&self.source), "the source directory was removed (unmount, make it again, and mount it again)");
        }
    }

    /// Returns whether the log has that the source was removed.
    #[cfg(test)]
    pub(crate) fn has_logged_removal(&self) -> bool {
        self.is_removal_logged.load(Relaxed)
    }

    /// Refuses changes of a read-only source.
    ///
    /// # Errors
    /// `EROFS`.
    pub(crate) fn check_writable(&self) -> Result<(), Errno> {
        if self.options.read_only { Err(Errno::EROFS) } else { Ok(()) }
    }

    /// Returns the attributes of `name` in `dir`. One call to the host, unless they are on another
    /// machine.
    ///
    /// # Errors
    /// `ELOOP` on an excluded device, `EXDEV` for a mount point that is not entered; the host's.
    pub(crate) fn stat_at(&self, dir: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, Errno> {
        let stat = host::stat_at(dir, name).map_err(errno)?;
        let dev = dev_of(&stat);
        if self.is_local && dev == self.identities.dev && !stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Ok(stat);
        }
        self.check_place(&stat, dev)?;
        if self.is_local && dev == self.identities.dev {
            return Ok(stat);
        }
        let stat = host::stat_at_synced(dir, name).map_err(errno)?;
        self.check_place(&stat, dev_of(&stat))?;
        Ok(stat)
    }

    /// Checks whether a file that was found may be shown. Fails with `ELOOP` if the device of the
    /// file is excluded, and with `EXDEV` if the file is a mount point and [`MountPoints::Stay`] is
    /// set.
    fn check_place(&self, stat: &Statx, dev: u64) -> Result<(), Errno> {
        // Relaxed: the front end excludes a device before it mounts it.
        if self.has_excluded.load(Relaxed) && self.excluded.read().contains(&dev) {
            return Err(Errno::ELOOP);
        }
        let is_known = stat.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT);
        let is_mount_point = if is_known {
            stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT)
        } else {
            dev != self.identities.dev
        };
        if is_mount_point && self.options.mount_points == MountPoints::Stay { Err(Errno::EXDEV) } else { Ok(()) }
    }

    /// Excludes a device.
    pub(crate) fn exclude(&self, dev: u64) {
        let mut excluded = self.excluded.write();
        if !excluded.contains(&dev) {
            excluded.push(dev);
        }
        // Relaxed: as in `check_place`.
        self.has_excluded.store(true, Relaxed);
    }

    /// Returns how long the host's answer about `node` in `dir` may be cached. `watches`: their number
    /// before the host was queried ([`Shared::watches_begun`]).
    pub(crate) fn valid(&self, dir: &Node, node: &Node, stat: &Statx, watches: u64) -> Valid {
        // Another thread may have begun to watch the directory after its attributes were read.
        let is_late = || is_dir(stat) && watches != self.watches_begun();
        let is_watched = || self.watches.is_some() && is_watched(node, stat) && dir.state().watch != 0;
        match self.options.policy {
            Revalidate::Ttl(_) if is_watched() && !is_late() => Valid::UntilInvalidated,
            policy => policy.valid(),
        }
    }

    /// Returns the number of watches that were begun.
    pub(crate) fn watches_begun(&self) -> u64 {
        self.watches.as_ref().map_or(0, Watches::begun)
    }

    /// Lets the VFS look up all names of a watched file again, if the host has shown several names for
    /// the first time: the later answers are valid for a time only.
    pub(crate) fn note_names(&self, node: &Node, stat: &Statx) {
        if self.watches.is_some()
            && !is_dir(stat)
            && stat.stx_nlink > 1
            && node.note_other_names()
            && let Some(invalidator) = self.invalidator.get()
        {
            invalidator.inode(node.id);
        }
    }

    /// Invalidates an open file that another program has changed: a kernel sees this by the size and
    /// the time of the contents, and the program may have kept both. A file that is not open is
    /// compared at its next open ([`crate::version`]).
    pub(crate) fn note_contents(&self, node: &Node, stat: &Statx) {
        if node.note_change(time_of_change(stat))
            && node.state().opens != 0
            && let Some(invalidator) = self.invalidator.get()
        {
            invalidator.inode(node.id);
        }
    }

    /// Returns how long the answers may be cached without a time: names that do not exist, new
    /// files. In a directory that is not watched, these answers have the directory's own time
    /// ([`Shared::valid`]).
    pub(crate) fn default_valid(&self) -> Valid {
        match self.options.policy {
            Revalidate::Ttl(_) if self.watches.is_some() => Valid::UntilInvalidated,
            policy => policy.valid(),
        }
    }

    /// Returns whether listings may be cached: the listings of directories whose answers have no
    /// time of validity.
    pub(crate) fn keeps_listings(&self) -> bool {
        self.default_valid() == Valid::UntilInvalidated
    }

    /// Marks the root stale if `dir` is the root and its time is over: no lookup of its name would revalidate it.
    pub(crate) fn mark_root_stale(&self, dir: &Inode) {
        let Valid::For(ttl) = self.options.policy.valid() else { return };
        if dir.node() != self.root.id {
            return;
        }
        let now = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        // Relaxed: a time, on which nothing depends.
        if now.saturating_sub(self.root_marked.load(Relaxed)) >= ttl {
            self.root_marked.store(now, Relaxed);
            dir.mark_stale();
        }
    }

    /// Notes a file that was found; returns its record.
    pub(crate) fn note_sighting(&self, sighting: &Sighting<'_>) -> Arc<Node> {
        let (node, is_reachable) = self.table.note_sighting(&self.identities, sighting);
        if is_reachable {
            self.budget.queue(&node);
        }
        node
    }

    #[inline]
    pub(crate) fn note_found(&self, at: NameAt<'_>, node: Option<u64>) {
        if let Some(watches) = &self.watches {
            watches.note_found(at, node);
        }
    }

    /// Begins to watch a directory, if directories are watched.
    #[inline]
    pub(crate) fn watch(&self, dir: &Node, fd: &OwnedFd) {
        if let Some(watches) = &self.watches {
            watches.add(dir, fd);
        }
    }
}

/// Returns whether all changes of a file cause events, given that its directory is watched. A
/// change of entries changes their directory, which causes events only in the directory's own
/// watch. A change by another name of a file causes events only in the directory of that name;
/// by a descriptor whose name was removed, it causes none.
pub(crate) fn is_watched(node: &Node, stat: &Statx) -> bool {
    let has_watch = || if is_dir(stat) { node.state().watch != 0 } else { stat.stx_nlink == 1 };
    !node.had_other_names() && has_watch()
}
