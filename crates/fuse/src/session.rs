//! Sessions: the operations of FUSE on a tree, for any transport.
//!
//! # What it is
//! One method for each operation, in terms of node ids, handles and names. The methods do not
//! depend on how requests arrive and replies leave, so a transport over `/dev/fuse`, io_uring or a
//! virtio queue only translates. A node holds a place of the tree ([`vfs::PathRef`]), so it stays
//! the same file when its name moves or is removed.
//!
//! # What it is not
//! A cache: the tree and the kernel cache names, attributes and pages.
//!
//! # How it is locked
//! The tables of nodes and handles have their own locks, which no thread holds during a call into the tree. All else is fixed
//! by [`Session::new`]. Any number of threads may call the methods.
//!
//! # Where it comes from
//! `linux/fuse.h`, `Documentation/filesystems/fuse.rst`; the operations are as in libfuse's
//! low-level interface.

mod callers;
mod early;
mod exports;
mod files;
mod inode_flags;
mod interrupts;
mod labels;
mod listing;
mod listing_budget;
mod lock_waits;
mod locks;
mod names;
mod node_budget;
mod observer;
mod part;
mod serving;
mod set_ids;
mod setattr;
mod trim;
mod under_way;
mod unsent;
mod user_budget;
mod who;
mod xattrs;

pub use files::Opened;
pub use listing::{Listed, Unlisted};
pub use lock_waits::LockAnswer;
pub use locks::{FileLock, LockFamily, LockOwner};
pub use part::Part;
pub use serving::Serving;
pub(crate) use set_ids::without_fsetid;
pub(crate) use under_way::{Subject, UnderWay};
pub use who::{User, Who};

use crate::checkers::session_refusal;
use crate::handles::Handles;
use crate::metrics::{Gauge, Metrics};
use crate::nodes::{NodeId, Nodes};
use crate::notices::{Notices, Sender};
use crate::options::{SessionOptions, Ttls};
use callers::Callers;
use interrupts::Interrupts;
use listing_budget::{ListingBudgets, OpenDirectory};
use node_budget::NodeBudget;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use trim::Trim;
use user_budget::{Node, UserBudgets};
use vfs::{Attr, Errno, Labels, PathRef, StatVfs, Valid, Vfs};

/// The longest queue of notices. One notice for everything replaces a full queue.
const QUEUED_NOTICES: usize = 4096;

/// Ids from here on are for nodes whose inode number another node has.
const OTHER: u64 = 1 << 62;

/// The node of the root directory.
pub const ROOT_NODE: u64 = crate::nodes::ROOT;

/// The process that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Its user.
    pub who: Who,
    /// The thread; the session reads its supplementary groups in `/proc`. 0 if unknown.
    pub pid: u32,
    /// The group of the directory in which it makes a file, if the caller has that group as a
    /// supplementary group and the transport has noted it ([`Session::note_groups`]).
    pub group: Option<u32>,
}

impl Caller {
    /// Returns the user with these numbers, without a thread. All ones in either of them name no user ([`Who::Unknown`]).
    #[must_use]
    pub const fn of(uid: u32, gid: u32) -> Self {
        Self { who: Who::of(uid, gid), pid: 0, group: None }
    }
}

/// The mode of a new file, and its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewMode<'l> {
    /// Type and permission bits, as in `mknod(2)`.
    pub mode: u32,
    /// Permission bits that are taken away, unless the directory has a default ACL.
    pub umask: u32,
    /// Names and values of labels, which the file has from its beginning on. Ignored without [`SessionOptions::labels`].
    pub labels: Labels<'l>,
}

impl<'l> NewMode<'l> {
    /// Returns `mode` without `umask`.
    #[must_use]
    pub const fn new(mode: u32, umask: u32) -> Self {
        Self { mode, umask, labels: &[] }
    }

    /// Returns this mode, with these labels.
    #[must_use]
    pub const fn labelled(self, labels: Labels<'l>) -> Self {
        Self { labels, ..self }
    }
}

/// A name in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameIn<'n> {
    /// Node of the directory.
    pub parent: u64,
    /// The name: one component of a path.
    pub name: &'n [u8],
}

impl<'n> NameIn<'n> {
    /// Returns `name` in the directory `parent`.
    #[must_use]
    pub const fn new(parent: u64, name: &'n [u8]) -> Self {
        Self { parent, name }
    }
}

/// Attributes, and how long the kernel may cache them.
pub type AttrReply = (Attr, Duration);

/// The reply to a lookup. It adds one to the lookup count of its node, until the kernel forgets it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Node id.
    pub node: u64,
    /// A number that distinguishes nodes that had the id one after the other.
    pub generation: u64,
    /// Attributes, with the overrides of [`SessionOptions::shown`].
    pub attr: Attr,
    /// How long the kernel may cache the name.
    pub entry_ttl: Duration,
    /// How long the kernel may cache the attributes.
    pub attr_ttl: Duration,
}

/// The operations of FUSE on a tree, one method each. Any number of threads may call them.
pub struct Session {
    options: SessionOptions,
    callers: Callers,
    nodes: Nodes<Arc<Node>>,
    user_budgets: UserBudgets,
    node_budget: NodeBudget,
    trim: Trim,
    files: Handles<files::OpenHandle>,
    directories: Handles<OpenDirectory>,
    listing_budgets: ListingBudgets,
    locks: Arc<locks::Locks>,
    backed: files::Backed,
    interrupts: Interrupts,
    waiting_for_data: unsent::Waiting,
    /// The root's device. The inode numbers of other devices are mixed with the device number.
    root_dev: u64,
    /// The mount of the root, if files are found there by numbers that the kernel has forgotten: see [`exports`].
    exports: Option<u64>,
    /// Whether a node ever had an id other than its inode number.
    has_others: AtomicBool,
    /// Whether the kernel can expire names: Linux 6.2.
    expires_names: AtomicBool,
    /// Whether callers that make files come with their [group](Caller::group): Linux 6.3.
    names_groups: AtomicBool,
    /// Whether the kernel checks callers that set flags of inodes: Linux 5.14.
    kernel_checks_flags: AtomicBool,
    /// Whether the kernel has refused to prune: before Linux 6.18.
    cannot_prune: AtomicBool,
    metrics: Arc<Metrics>,
    notices: OnceLock<Notices>,
    pub(crate) replies: under_way::Replies,
    vfs: Vfs,
}

impl Session {
    /// Returns a session for the whole tree `vfs`.
    ///
    /// # Errors
    /// `EINVAL`: under these options nobody would check some permission ([`crate::refusal`]). As
    /// for opening the root directory.
    pub fn new(vfs: &Vfs, options: SessionOptions) -> Result<Arc<Self>, Errno> {
        Self::of_part(vfs, Part::whole(vfs)?, options)
    }

    /// Returns a session for a part of the tree `vfs`.
    ///
    /// # Errors
    /// `EINVAL`: under these options nobody would check some permission ([`crate::refusal`]).
    pub fn of_part(vfs: &Vfs, part: Part, options: SessionOptions) -> Result<Arc<Self>, Errno> {
        if session_refusal(&options).is_some() {
            return Err(Errno::EINVAL);
        }
        let Part { context, root, acts_as } = part;
        let callers = Callers::new(context, &options, acts_as);
        let root_dev = root.dev();
        let exports = callers.finds_numbers(&root).then(|| root.mount_id());
        let nodes = Nodes::new(Arc::new(Node::free(root)));
        let metrics = Arc::new(Metrics::new());
        let replies = under_way::Replies::new(options.reports_changes || options.tree_changes);
        let session = Arc::new(Self {
            options,
            callers,
            nodes,
            user_budgets: UserBudgets::new(),
            node_budget: NodeBudget::default(),
            trim: Trim::default(),
            files: Handles::new(),
            directories: Handles::new(),
            listing_budgets: ListingBudgets::default(),
            locks: Arc::new(locks::Locks::new(&metrics)),
            interrupts: Interrupts::default(),
            backed: files::Backed::default(),
            waiting_for_data: unsent::Waiting::default(),
            root_dev,
            exports,
            has_others: AtomicBool::new(false),
            expires_names: AtomicBool::new(false),
            names_groups: AtomicBool::new(false),
            kernel_checks_flags: AtomicBool::new(false),
            cannot_prune: AtomicBool::new(false),
            metrics,
            notices: OnceLock::new(),
            replies,
            vfs: vfs.clone(),
        });
        if session.options.tree_changes {
            vfs.observe_changes(&session);
        } else {
            vfs.observe(&session);
        }
        Ok(session)
    }

    /// Starts a thread that sends notices of changes by `sender`. Must be called at most once.
    pub(crate) fn notify_by(&self, sender: impl Sender) {
        match Notices::start(sender, QUEUED_NOTICES, self.metrics.clone()) {
            Ok(notices) => drop(self.notices.set(notices)),
            Err(error) => {
                tracing::warn!(%error, "the kernel will not learn of changes behind it: no thread for notices")
            }
        }
    }

    /// Lets at most `waiting` requests wait at once until the kernel has forgotten names. `waiting`
    /// must be less than the number of threads that serve requests. Only notices make the kernel
    /// forget names, so no request waits if no thread sends notices.
    pub(crate) fn allow_waiting(&self, waiting: usize) {
        if self.notices.get().is_some() {
            self.node_budget.allow(waiting);
        }
    }

    /// Returns its options.
    #[must_use]
    pub fn options(&self) -> &SessionOptions {
        &self.options
    }

    /// Returns its metrics.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns the tree.
    #[must_use]
    pub fn vfs(&self) -> &Vfs {
        &self.vfs
    }

    /// Returns the number of nodes that the kernel has, with the root.
    #[must_use]
    pub fn known_nodes(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of open files and directories.
    #[must_use]
    pub fn open_handles(&self) -> usize {
        self.files.len() + self.directories.len()
    }

    /// Updates the gauges of nodes and handles.
    pub fn measure(&self) {
        self.metrics.set(Gauge::Nodes, self.nodes.len() as u64);
        self.metrics.set(Gauge::Lookups, self.nodes.total_lookups());
        self.metrics.set(Gauge::ExcessForgets, self.nodes.excess_forgets());
        self.metrics.set(Gauge::Handles, self.open_handles() as u64);
    }

    /// Returns the place of the node `id`.
    ///
    /// # Errors
    /// `ESTALE`: the kernel does not have such a node.
    pub(crate) fn node(&self, id: u64) -> Result<Arc<Node>, Errno> {
        self.nodes.get(id).ok_or(Errno::ESTALE)
    }

    /// Returns the reply to a lookup by `caller` that found the file `held`.
    pub(crate) fn entry(&self, caller: &Caller, held: PathRef) -> Result<Entry, Errno> {
        self.entry_of(caller, held).map(|(entry, _)| entry)
    }

    /// As [`entry`](Self::entry), but also returns whether the kernel learned before that the file
    /// has, or had, several names.
    fn entry_of(&self, caller: &Caller, held: PathRef) -> Result<(Entry, bool), Errno> {
        // The tree does not learn of writes by passthrough.
        let is_backed = self.options.passthrough && self.backed.has(&held);
        let first = self.shown(&held, if is_backed { held.attr_anew()? } else { held.attr()? });
        let ttls = self.ttls_of(&held);
        let (NodeId { id, generation }, node) = self.node_of(caller, held, first.ino)?;
        // Observers can find the node after this point. So the second read of the attributes
        // includes a change before it, and a later change becomes a notice.
        let mut attr = if is_backed { first } else { node.attr().map_or(first, |attr| self.shown(&node, attr)) };
        let had_names = node.note_names(&attr);
        let generation = self.generation(&node, id == attr.ino, generation);
        attr.ino = id;
        self.make_space();
        Ok((Entry { node: id, generation, attr, entry_ttl: ttls.entry, attr_ttl: ttls.attr }, had_names))
    }

    /// Returns for how long the kernel may cache answers about `held`.
    fn ttls_of(&self, held: &PathRef) -> Ttls {
        let ttls = &self.options.ttls;
        let valid = held.valid();
        let name = limited(ttls.entry, valid);
        // If a notice would remove a name that processes use, the kernel looks up names as often as
        // absent names.
        let is_short = self.options.reports_changes && !self.expires_names();
        Ttls {
            entry: if is_short { name.min(ttls.negative) } else { name },
            attr: limited(ttls.attr, valid),
            negative: limited(ttls.negative, held.absence_valid()),
        }
    }

    /// Counts one more lookup of the node of `held`. The id is the inode number, so that it is the
    /// same after the kernel has forgotten the node. If another node has that id (the id is the
    /// root's, or two mounts show one inode), the session makes the id from the inode's address.
    ///
    /// # Errors
    /// `EIO`: the session shows the inode through five mounts.
    fn node_of(&self, caller: &Caller, held: PathRef, ino: u64) -> Result<(NodeId, Arc<Node>), Errno> {
        let (inode, mount) = (held.identity(), held.mount_id());
        let is_same = |known: &Arc<Node>| known.identity() == inode && known.mount_id() == mount;
        let held = Arc::new(self.user_budgets.node(caller, held));
        let others = other_ids(inode);
        // Relaxed: the locks of the table order accesses to its nodes.
        let has_others = self.has_others.load(Relaxed);
        let known_other = others.clone().filter(|_| has_others);
        let known_other = known_other.filter(|id| self.nodes.find(*id).is_some_and(|(_, known)| is_same(&known)));
        let found = known_other.chain([ino]).chain(others).find_map(|id| {
            let found = self.nodes.look_up(id, is_same, || held.clone());
            if found.is_none() {
                self.has_others.store(true, Relaxed);
            }
            found
        });
        found.ok_or(Errno::EIO)
    }

    /// Returns the inode number in replies: mixed with the device number unless the file is on the
    /// root's device.
    fn shown_ino(&self, dev: u64, ino: u64) -> u64 {
        if dev == self.root_dev { ino } else { ino ^ dev << 48 }
    }

    /// Returns the inode number of `held` in replies.
    fn shown_ino_of(&self, held: &PathRef) -> Result<u64, Errno> {
        Ok(self.shown_ino(held.dev(), held.attr()?.ino))
    }

    /// Returns attributes for a reply.
    fn shown(&self, held: &PathRef, attr: Attr) -> Attr {
        let shown = &self.options.shown;
        Attr {
            ino: self.shown_ino(held.dev(), attr.ino),
            uid: shown.uid.unwrap_or(attr.uid),
            gid: shown.gid.unwrap_or(attr.gid),
            mode: shown.umask.map_or(attr.mode, |umask| attr.kind() | 0o777 & !umask),
            ..attr
        }
    }

    /// Returns the attributes of a node for a reply, with the node's id, and how long the kernel
    /// may cache them.
    fn shown_of(&self, node: u64, held: &PathRef, attr: Attr) -> AttrReply {
        let attr = self.shown(held, attr);
        let ino = if node == ROOT_NODE { attr.ino } else { node };
        (Attr { ino, ..attr }, self.ttls_of(held).attr)
    }

    /// FORGET: takes `lookups` off the count of a node. The root is never forgotten.
    pub fn forget(&self, node: u64, lookups: u64) {
        if let Some(gone) = self.nodes.forget(node, lookups) {
            let bytes = gone.cached_size();
            drop(gone);
            self.node_budget.forgot();
            self.trim.forgot(bytes, self.nodes.len());
        }
    }

    /// DESTROY: drops all nodes, handles and locks, which the kernel does not release one by one.
    /// Ends the requests that wait, and the thread that sends notices.
    pub fn end(&self) {
        drop(self.files.drain());
        drop(self.directories.drain());
        self.locks.clear();
        drop(self.nodes.forget_all());
        // The sender of the notices keeps the device open, so it is stopped.
        self.notices.get().into_iter().for_each(|notices| _ = notices.stop());
    }

    /// Waits until all queued notices are sent. A thread that serves requests must not call it: a notice can wait in the
    /// kernel for that thread's reply.
    pub fn flush_notices(&self) {
        self.notices.get().into_iter().for_each(Notices::flush);
    }

    /// GETATTR: attributes, and how long the kernel may cache them.
    ///
    /// # Errors
    /// `ESTALE`; the file system's errors.
    pub fn getattr(&self, node: u64) -> Result<AttrReply, Errno> {
        let held = self.node(node)?;
        let attr = held.attr_anew()?;
        held.note_names(&attr);
        Ok(self.shown_of(node, &held, attr))
    }

    /// STATX: as [`getattr`](Self::getattr), and with `wants_birth` the time when the file was made, in nanoseconds since the
    /// epoch, if its file system keeps it.
    ///
    /// # Errors
    /// As for [`getattr`](Self::getattr).
    pub fn statx(&self, node: u64, wants_birth: bool) -> Result<(Attr, Duration, Option<i64>), Errno> {
        let (attr, ttl) = self.getattr(node)?;
        let birth = if wants_birth { self.node(node)?.birth()? } else { None };
        Ok((attr, ttl, birth))
    }

    /// READLINK.
    ///
    /// # Errors
    /// `ESTALE`; `EINVAL` if the node is not a symbolic link; the file system's errors.
    pub fn readlink(&self, node: u64) -> Result<Vec<u8>, Errno> {
        self.callers.everyone().read_link_held(&**self.node(node)?)
    }

    /// STATFS.
    ///
    /// # Errors
    /// `ESTALE`; `ENOSYS` if the file system does not support it.
    pub fn statfs(&self, node: u64) -> Result<StatVfs, Errno> {
        self.node(node)?.statvfs()
    }

    /// ACCESS: checks the permissions `mask` for `caller`.
    ///
    /// # Errors
    /// `EACCES`, `EROFS`, `ESTALE`.
    pub fn access(&self, caller: &Caller, node: u64, mask: u32) -> Result<(), Errno> {
        let held = self.node(node)?;
        self.callers.unprivileged(caller).access_held(&held, mask)
    }
}

/// Returns the time `ttl`; if it is [`Ttls::LONG`], no longer than the tree reports.
fn limited(ttl: Duration, valid: Valid) -> Duration {
    match valid {
        Valid::For(ns) if ttl >= Ttls::LONG.entry => ttl.min(Duration::from_nanos(ns)),
        _ => ttl,
    }
}

/// Ids for nodes whose inode number another node has. They are made from the inode's address, which is unique while the node
/// holds the inode.
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
