//! Observing the tree: which notices its changes become, and which names the kernel must drop when it has too many.
//!
//! # What it is
//! Names expire: the kernel looks a name up before it uses the name again. Linux before 6.2 cannot
//! expire names. There the kernel caches names of trees that report changes for a short time
//! (`Session::ttls_of`), and a file that is not open loses its name at a notice. Directories keep
//! their names, since a name may lead to a working directory or a mount point.
//!
//! A separate thread sends the notices. A handler that sent one, or a thread with a lock, could wait for itself: the kernel
//! takes the lock of the directory, and a request that holds that lock may wait for the handler.

use super::user_budget::Node;
use super::{Caller, QUEUED_NOTICES, ROOT_NODE, Session, other_ids};
use crate::notices::{Notice, Notices};
use crate::panics::contained;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use vfs::{Changed, Identity, Observer, PathRef};

/// Number of nodes that the kernel must forget at a time.
const BATCH: usize = 256;

impl Observer for Session {
    fn entry(&self, dir: &Identity, name: &[u8], inode: Option<&Identity>) {
        self.observe(|notices| {
            for (parent, _) in self.nodes_of(dir.inode, self.shown_ino(dir.dev, dir.ino)) {
                self.stale_name(notices, parent, name, inode);
            }
        });
        // The file may have lost the name, and with it the watch that reported changes of the file.
        inode.into_iter().for_each(|inode| self.inode(inode));
    }

    fn removed(&self, dir: &Identity, name: &[u8], inode: &Identity) {
        self.observe(|notices| {
            let children = self.nodes_of(inode.inode, self.shown_ino(inode.dev, inode.ino));
            for (parent, known) in self.nodes_of(dir.inode, self.shown_ino(dir.dev, dir.ino)) {
                let child = children.iter().find(|(_, child)| child.mount_id() == known.mount_id());
                // Of a file that has another name the kernel would believe that it has none.
                match child.filter(|(_, child)| !child.is_dir() && !child.had_names()) {
                    Some((child, _)) => {
                        self.notify(notices, Notice::Delete { parent, child: *child, name: name.into() })
                    }
                    None => self.stale_name(notices, parent, name, Some(inode)),
                }
            }
        });
        self.inode(inode);
    }

    fn inode(&self, inode: &Identity) {
        self.observe(|notices| {
            for (node, _) in self.nodes_of(inode.inode, self.shown_ino(inode.dev, inode.ino)) {
                self.notify(notices, Notice::InvalInode { node, offset: 0, len: 0 });
            }
        });
    }

    fn all(&self) {
        self.observe(|notices| self.notify_all(notices));
    }

    fn changed(&self, change: &Changed<'_>) {
        if self.is_served_here() {
            return;
        }
        match change {
            Changed::Entry { dir, name, inode } => {
                Observer::entry(self, dir, name, inode.as_ref());
                // Invalidates the directory's length and times, and the kernel's cached listing.
                self.inode(dir);
            }
            Changed::Inode(inode) => self.inode(inode),
            _ => self.all(),
        }
    }
}

impl Session {
    /// Calls `f` if notices are sent. A panic must not reach the thread that changes the tree; the kernel then invalidates
    /// everything.
    fn observe(&self, f: impl FnOnce(&Notices)) {
        let Some(notices) = self.notices.get() else { return };
        if contained(&self.metrics, "an observer", || f(notices)).is_none() {
            self.notify_all(notices);
        }
    }

    /// Returns the nodes of an inode with the shown number `ino`: one for each mount through which
    /// the kernel looked it up.
    pub(super) fn nodes_of(&self, inode: u64, ino: u64) -> Vec<(u64, Arc<Node>)> {
        let others = other_ids(inode).filter(|_| self.has_others.load(Relaxed));
        let shown = Some(ino).filter(|ino| *ino != ROOT_NODE);
        let known = |id| Some((id, self.nodes.find(id)?.1)).filter(|(_, known)| known.identity() == inode);
        [ROOT_NODE].into_iter().chain(shown).chain(others).filter_map(known).collect()
    }

    /// Returns whether the kernel has the node, or will have it when it has taken a reply that is
    /// under way.
    pub(crate) fn knows(&self, id: u64) -> bool {
        self.nodes.find(id).is_some()
    }

    fn stale_name(&self, notices: &Notices, parent: u64, name: &[u8], inode: Option<&Identity>) {
        let name = name.into();
        if self.expires_names() {
            self.notify(notices, Notice::Expire { parent, name });
        } else if !inode.is_some_and(|inode| inode.is_dir || self.is_open(inode.inode)) {
            self.notify(notices, Notice::Drop { parent, name });
        }
    }

    /// Calls `send` with notices that invalidate every node and every name that the kernel has. The
    /// kernel caches absent names for a short time only: [`Session::negative_ttl`].
    pub(crate) fn everything(&self, mut send: impl FnMut(Notice)) {
        self.nodes.for_each(|id, held: Arc<Node>| {
            send(Notice::InvalInode { node: id, offset: 0, len: 0 });
            if let Some((parent, name)) = self.name_of(&held) {
                if self.expires_names() {
                    send(Notice::Expire { parent, name });
                } else if !held.is_dir() && !self.is_open(held.identity()) {
                    send(Notice::Drop { parent, name });
                }
            }
        });
    }

    /// Notes whether the kernel can expire names.
    pub(crate) fn note_expiry(&self, expires_names: bool) {
        // Relaxed, here and below: flags by themselves.
        self.expires_names.store(expires_names, Relaxed);
    }

    /// Notes whether requests that make files come with the [group](Caller::group) of the directory, if the caller needs it to be in that
    /// group. Otherwise groups are looked for in `/proc`.
    pub fn note_groups(&self, names_groups: bool) {
        self.names_groups.store(names_groups, Relaxed);
    }

    /// Returns whether requests that make files come with the group of the directory.
    #[must_use]
    pub fn names_groups(&self) -> bool {
        self.names_groups.load(Relaxed)
    }

    /// Returns whether the kernel can expire names.
    pub(super) fn expires_names(&self) -> bool {
        self.expires_names.load(Relaxed)
    }

    pub(crate) fn note_kernel_without_prune(&self) {
        self.cannot_prune.store(true, Relaxed);
    }

    /// Requests that the kernel drops names that it did not use lately, if it has too many nodes.
    pub(super) fn make_space(&self) {
        if self.nodes.len() > self.options.max_nodes {
            self.ask_to_drop(BATCH, |_| true);
        }
    }

    /// Requests that the kernel drops a quarter of its names: the cache of the tree is full, and
    /// nodes pin all of it.
    #[cold]
    pub(super) fn make_much_room(&self) {
        self.drop_coldest((self.nodes.len() / 4 + BATCH).min(QUEUED_NOTICES / 4), |_| true);
    }

    /// Requests that the kernel drops names of the caller, whose share of the cache is used up, or
    /// will be soon.
    #[cold]
    pub(super) fn make_room_of(&self, caller: &Caller) {
        self.drop_coldest(BATCH, |node| node.is_of(caller.who.account()));
    }

    /// As [`ask_to_drop`](Self::ask_to_drop), but even if all names were used lately.
    fn drop_coldest(&self, count: usize, is_wanted: impl Fn(&Node) -> bool) {
        if self.ask_to_drop(count, &is_wanted) == 0 {
            self.ask_to_drop(count, is_wanted);
        }
    }

    /// Returns the number of names.
    #[cold]
    fn ask_to_drop(&self, count: usize, is_wanted: impl Fn(&Node) -> bool) -> usize {
        let Some(notices) = self.notices.get().filter(|notices| !notices.is_behind()) else { return 0 };
        let mut coldest = Vec::new();
        self.nodes.coldest(count, &mut coldest);
        let wanted: Vec<_> = coldest.iter().filter(|(_, node)| is_wanted(node)).collect();
        if !self.cannot_prune.load(Relaxed) {
            let prune = |some: &[&(u64, _)]| notices.push(Notice::Prune(some.iter().map(|(id, _)| *id).collect()));
            wanted.chunks(BATCH).for_each(prune);
            return wanted.len();
        }
        // The clock finds the nodes that are in use now again later.
        let unused = wanted.iter().filter(|(_, node)| !node.is_dir() && !self.is_open(node.identity()));
        let names = unused.filter_map(|(_, node)| self.name_of(node));
        names.map(|(parent, name)| notices.push(Notice::Drop { parent, name })).count()
    }

    /// Returns a few nodes that are not directories, any.
    pub(crate) fn some_files(&self) -> Vec<u64> {
        /// Some of them may be links or devices.
        const FEW: usize = 8;
        self.nodes.some(FEW, |node| !node.is_dir())
    }

    /// Returns whether the file with this identity is open.
    fn is_open(&self, inode: u64) -> bool {
        self.files.any(|open| open.file.held().identity() == inode)
    }

    /// Returns the name of `held` in the kernel's cache.
    fn name_of(&self, held: &PathRef) -> Option<(u64, Box<[u8]>)> {
        let (parent, name) = held.parent_and_name()?;
        let nodes = self.nodes_of(parent.identity(), self.shown_ino_of(&parent).ok()?);
        let (parent, _) = nodes.into_iter().find(|(_, known)| known.mount_id() == parent.mount_id())?;
        Some((parent, name))
    }
}
