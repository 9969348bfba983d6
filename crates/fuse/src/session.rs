//! A session: what a kernel knows of a tree, and what it asks, whatever carries the questions.
//!
//! # What it is
//! One method for each operation of FUSE, in terms of node ids, handles and names; none of them knows how requests arrive or
//! answers leave, so a transport over `/dev/fuse`, over io_uring or over a virtio queue has only to translate. A node holds a
//! place of the tree ([`vfs::Held`]), so it stays what it is when its name moves or goes.
//!
//! # What it is not
//! A cache: names, attributes and the kernel's page cache have theirs already.
//!
//! # How it is locked
//! Tables of nodes and handles have their own locks, never held during a call into the tree. Everything else is fixed from the
//! beginning. Methods may be called by any number of threads.
//!
//! # Where it comes from
//! `linux/fuse.h`, `Documentation/filesystems/fuse.rst`; libfuse's low-level interface, whose operations these are.

mod callers;
mod files;
mod listing;
mod names;
mod pushes;
mod xattrs;

pub use files::{FileLock, Opened};
pub use listing::Listed;

use crate::handles::Handles;
use crate::metrics::{Gauge, Metrics};
use crate::nodes::{NodeId, Nodes};
use crate::notices::{Notices, Sender};
use crate::options::SessionOptions;
use callers::Callers;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use vfs::{Attr, Base, Errno, Held, OpenFile, SetAttr, StatVfs, Vfs};

/// Notices that wait to be sent at most; beyond, the kernel is told that everything is in doubt.
const QUEUED_NOTICES: usize = 4096;

/// Ids from here on are of nodes that cannot have their inode numbers.
const OTHER: u64 = 1 << 62;

/// The root directory's node.
pub const ROOT_NODE: u64 = 1;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// Thread, to find supplementary groups by; 0 if unknown.
    pub pid: u32,
}

/// A name that was found: one more lookup of its node, until it is forgotten.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Node id.
    pub node: u64,
    /// Which use of the id it is.
    pub generation: u64,
    /// Attributes as they are to be shown.
    pub attr: Attr,
    /// How long the name is good.
    pub entry_ttl: Duration,
    /// How long the attributes are good.
    pub attr_ttl: Duration,
}

/// What a kernel knows of a tree, and what it asks: one method for each operation of FUSE, whatever carries it. Any number of
/// threads may call them.
pub struct Session {
    options: SessionOptions,
    callers: Callers,
    nodes: Nodes<Arc<Held>>,
    files: Handles<files::Open>,
    directories: Handles<OpenFile>,
    locks: files::Locks,
    backed: files::Backed,
    /// The device of the root: inode numbers of other devices are shown mixed with theirs.
    root_dev: u64,
    /// Whether a node ever had to have another id than its inode number.
    has_others: AtomicBool,
    metrics: Arc<Metrics>,
    notices: OnceLock<Notices>,
    vfs: Vfs,
}

impl Session {
    /// A session that shows `vfs` from its root on.
    ///
    /// # Errors
    /// Those of looking at the root.
    pub fn new(vfs: &Vfs, options: SessionOptions) -> Result<Arc<Self>, Errno> {
        let callers = Callers::new(vfs.context(), options.checks);
        let root = callers.everyone().hold(Base::CWD, b"/", true)?;
        let root_dev = root.dev();
        let nodes = Nodes::new(Arc::new(root));
        let session = Arc::new(Self {
            options,
            callers,
            nodes,
            files: Handles::new(),
            directories: Handles::new(),
            locks: files::Locks::default(),
            backed: files::Backed::default(),
            root_dev,
            has_others: AtomicBool::new(false),
            metrics: Arc::new(Metrics::new()),
            notices: OnceLock::new(),
            vfs: vfs.clone(),
        });
        vfs.observe(&session);
        Ok(session)
    }

    /// Begins to tell the kernel by `sender`, on a thread of its own, what changes behind it. Once.
    pub(crate) fn notify_by(&self, sender: impl Sender) {
        match Notices::start(sender, QUEUED_NOTICES, self.metrics.clone()) {
            Ok(notices) => drop(self.notices.set(notices)),
            Err(error) => tracing::warn!(%error, "no thread for notices: the kernel is not told of changes behind it"),
        }
    }

    /// What the session was asked to be.
    #[must_use]
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The tree.
    #[must_use]
    pub fn vfs(&self) -> &Vfs {
        &self.vfs
    }

    /// Nodes that the kernel knows, the root among them.
    #[must_use]
    pub fn known_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Files and directories that are open.
    #[must_use]
    pub fn open_handles(&self) -> usize {
        self.files.len() + self.directories.len()
    }

    /// Puts what changes by itself into the metrics.
    pub fn measure(&self) {
        self.metrics.set(Gauge::Nodes, self.nodes.len() as u64);
        self.metrics.set(Gauge::Lookups, self.nodes.total_lookups());
        self.metrics.set(Gauge::ExcessForgets, self.nodes.excess_forgets());
        self.metrics.set(Gauge::Handles, self.open_handles() as u64);
    }

    /// The place of a node.
    ///
    /// # Errors
    /// `ESTALE`: no such node.
    pub(crate) fn node(&self, id: u64) -> Result<Arc<Held>, Errno> {
        self.nodes.get(id).ok_or(Errno::ESTALE)
    }

    /// One more lookup of what `held` is.
    pub(crate) fn entry(&self, held: Held) -> Result<Entry, Errno> {
        // What the kernel writes by itself nobody has told the tree of.
        let is_backed = self.options.passthrough && self.backed.has(&held);
        let mut attr = self.shown(&held, if is_backed { held.attr_anew()? } else { held.attr()? });
        let node = self.node_of(held, attr.ino)?;
        attr.ino = node.id;
        let ttls = &self.options.ttls;
        self.make_room();
        Ok(Entry { node: node.id, generation: node.generation, attr, entry_ttl: ttls.entry, attr_ttl: ttls.attr })
    }

    /// The node of `held`, told once more: its inode number is the id, so that the kernel sees one number before and after it has
    /// forgotten it. If another node has that (the root's number, or one inode on two mounts), one made of its place in memory.
    ///
    /// # Errors
    /// `EIO`: a fifth mount shows the inode.
    fn node_of(&self, held: Held, ino: u64) -> Result<NodeId, Errno> {
        let (inode, mount) = (held.identity(), held.mount_id());
        let is_same = |known: &Arc<Held>| known.identity() == inode && known.mount_id() == mount;
        let held = Arc::new(held);
        let others = other_ids(inode);
        // Relaxed: the table's locks order what is looked for there.
        let has_others = self.has_others.load(Relaxed);
        let known_other = others.clone().filter(|_| has_others);
        let known_other = known_other.filter(|id| self.nodes.find(*id).is_some_and(|(_, known)| is_same(&known)));
        let told = known_other.chain([ino]).chain(others).find_map(|id| {
            let told = self.nodes.look_up(id, is_same, || held.clone());
            if told.is_none() {
                self.has_others.store(true, Relaxed);
            }
            told
        });
        told.map(|(node, _)| node).ok_or(Errno::EIO)
    }

    /// The nodes of an inode, which shows the number `ino`: one for each mount that the kernel saw it through.
    fn nodes_of(&self, inode: u64, ino: u64) -> Vec<(u64, Arc<Held>)> {
        let others = other_ids(inode).filter(|_| self.has_others.load(Relaxed));
        let known = [ROOT_NODE, ino].into_iter().chain(others).filter_map(|id| Some((id, self.nodes.find(id)?.1)));
        known.filter(|(_, known)| known.identity() == inode).collect()
    }

    /// The inode number that is shown: those of other file systems than the root's are mixed with their device's.
    fn shown_ino(&self, dev: u64, ino: u64) -> u64 {
        if dev == self.root_dev { ino } else { ino ^ dev << 48 }
    }

    /// The inode number that `held` is shown with.
    fn shown_ino_of(&self, held: &Held) -> Result<u64, Errno> {
        Ok(self.shown_ino(held.dev(), held.attr()?.ino))
    }

    /// Attributes as they are to be shown.
    fn shown(&self, held: &Held, attr: Attr) -> Attr {
        let shown = &self.options.shown;
        Attr {
            ino: self.shown_ino(held.dev(), attr.ino),
            uid: shown.uid.unwrap_or(attr.uid),
            gid: shown.gid.unwrap_or(attr.gid),
            mode: shown.umask.map_or(attr.mode, |umask| attr.kind() | 0o777 & !umask),
            ..attr
        }
    }

    /// Attributes of a node as they are to be shown, with the number that it was told with, and for how long they are good.
    fn shown_of(&self, node: u64, held: &Held, attr: Attr) -> (Attr, Duration) {
        let attr = self.shown(held, attr);
        let ino = if node == ROOT_NODE { attr.ino } else { node };
        (Attr { ino, ..attr }, self.options.ttls.attr)
    }

    /// FORGET: `lookups` fewer of a node. The root is never forgotten.
    pub fn forget(&self, node: u64, lookups: u64) {
        drop(self.nodes.forget(node, lookups));
    }

    /// DESTROY: the kernel has gone, and with it all that it knew and had open, which it does not take back one by one.
    pub fn end(&self) {
        drop(self.files.drain());
        drop(self.directories.drain());
        self.locks.clear();
        drop(self.nodes.forget_all());
    }

    /// Waits until the kernel was told all that was to be told. Not for who answers the kernel.
    pub fn flush_notices(&self) {
        self.notices.get().into_iter().for_each(Notices::flush);
    }

    /// GETATTR: attributes, and for how long they are good.
    ///
    /// # Errors
    /// `ESTALE`; the file system's.
    pub fn getattr(&self, node: u64) -> Result<(Attr, Duration), Errno> {
        let held = self.node(node)?;
        Ok(self.shown_of(node, &held, held.attr_anew()?))
    }

    /// SETATTR: changes attributes; a length through `handle` if there is one.
    ///
    /// # Errors
    /// `ESTALE`; those of [`vfs::Context::set_attr`].
    pub fn setattr(
        &self,
        caller: &Caller,
        node: u64,
        set: &SetAttr,
        handle: Option<u64>,
    ) -> Result<(Attr, Duration), Errno> {
        let held = self.node(node)?;
        let mut set = *set;
        if let Some(size) = set.size
            && let Some(open) = handle.and_then(|handle| self.files.get(handle))
            && open.file.flags().can_write()
        {
            open.file.set_len(size)?;
            set.size = None;
        }
        let is_nothing = set == SetAttr::default() && handle.is_some();
        let context = self.callers.changing(caller, &set);
        let attr = if is_nothing { held.attr()? } else { context.set_attr_held(&held, &set)? };
        Ok(self.shown_of(node, &held, attr))
    }

    /// READLINK.
    ///
    /// # Errors
    /// `ESTALE`; `EINVAL` if it is no symbolic link; the file system's.
    pub fn readlink(&self, node: u64) -> Result<Vec<u8>, Errno> {
        self.callers.everyone().read_link_held(&*self.node(node)?)
    }

    /// STATFS.
    ///
    /// # Errors
    /// `ESTALE`; `ENOSYS` if the file system cannot say.
    pub fn statfs(&self, node: u64) -> Result<StatVfs, Errno> {
        self.node(node)?.statvfs()
    }

    /// ACCESS: whether `caller` may do `mask`.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`, `ESTALE`.
    pub fn access(&self, caller: &Caller, node: u64, mask: u32) -> Result<(), Errno> {
        let held = self.node(node)?;
        self.callers.with_groups(caller).access_held(&held, mask)
    }
}

/// Ids of nodes that cannot have their inode numbers: made of the address of the inode, which nobody else has as long as it is held.
fn other_ids(inode: u64) -> impl Iterator<Item = u64> + Clone {
    // Inodes are aligned to 64 bytes: two bits are free.
    (0..4).map(move |which| OTHER | inode >> 4 | which)
}

impl core::fmt::Debug for Session {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Session").field("nodes", &self.nodes.len()).field("handles", &self.open_handles()).finish()
    }
}

#[cfg(test)]
mod tests;
