//! Observing the tree: which notices its changes become, and which names the kernel must drop when it has too many.
//!
//! A separate thread sends the notices. A handler that sent one, or a thread with a lock, could wait for itself: the kernel
//! takes the lock of the directory, and a request that holds that lock may wait for the handler.

use super::shares::Node;
use super::{Caller, QUEUED_NOTICES, Session};
use crate::notices::{Notice, Notices};
use crate::panics::contained;
use std::sync::Arc;
use vfs::{Identity, Observer, OwnedPlace};

/// Number of names that the kernel must drop at a time.
const BATCH: usize = 256;

impl Observer for Session {
    fn entry(&self, dir: &Identity, name: &[u8]) {
        self.observe(|notices| {
            for (parent, _) in self.nodes_of(dir.inode, self.shown_ino(dir.dev, dir.ino)) {
                notices.push(Notice::InvalEntry { parent, name: name.into() });
            }
        });
    }

    fn inode(&self, inode: &Identity) {
        self.observe(|notices| {
            for (node, _) in self.nodes_of(inode.inode, self.shown_ino(inode.dev, inode.ino)) {
                notices.push(Notice::InvalInode { node, offset: 0, len: 0 });
            }
        });
    }

    fn all(&self) {
        self.observe(Notices::push_all);
    }
}

impl Session {
    /// Calls `f` if notices are sent. A panic must not reach the thread that changes the tree; the kernel then invalidates
    /// everything.
    fn observe(&self, f: impl FnOnce(&Notices)) {
        let Some(notices) = self.notices.get() else { return };
        if contained(&self.metrics, "an observer", || f(notices)).is_none() {
            notices.push_all();
        }
    }

    /// Notices that invalidate every node and every name that the kernel knows.
    #[must_use]
    pub(crate) fn everything(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.nodes.for_each(|id, held: Arc<Node>| {
            notices.push(Notice::InvalInode { node: id, offset: 0, len: 0 });
            notices.extend(self.drop_name(&held));
        });
        notices
    }

    /// Asks the kernel to drop names that it did not use lately, if it knows too many nodes.
    pub(super) fn make_room(&self) {
        if self.nodes.len() > self.options.max_nodes {
            self.ask_to_drop(BATCH, |_| true);
        }
    }

    /// Asks the kernel to drop a quarter of its names: the cache of the tree is full, and nodes pin all of it.
    #[cold]
    pub(super) fn make_much_room(&self) {
        self.drop_coldest((self.nodes.len() / 4 + BATCH).min(QUEUED_NOTICES / 4), |_| true);
    }

    /// Asks the kernel to drop names of the caller, whose share of the cache is used up, or will be soon.
    #[cold]
    pub(super) fn make_room_of(&self, caller: &Caller) {
        self.drop_coldest(BATCH, |node| node.is_of(caller.uid));
    }

    /// [`ask_to_drop`](Self::ask_to_drop), also if all were used lately.
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
        let wanted = coldest.iter().filter(|(_, node)| is_wanted(node));
        wanted.filter_map(|(_, node)| self.drop_name(node)).map(|notice| notices.push(notice)).count()
    }

    /// The notice that makes the kernel drop the name of `held`.
    fn drop_name(&self, held: &OwnedPlace) -> Option<Notice> {
        let (parent, name) = held.parent_and_name()?;
        let nodes = self.nodes_of(parent.identity(), self.shown_ino_of(&parent).ok()?);
        let (parent, _) = nodes.into_iter().find(|(_, known)| known.mount_id() == parent.mount_id())?;
        Some(Notice::InvalEntry { parent, name })
    }
}
