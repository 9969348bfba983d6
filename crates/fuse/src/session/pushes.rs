//! What the kernel is told without having asked: that something changed behind it, and that it is to let go of names.
//!
//! Notices go into a queue with a thread of its own: sent from a handler, or under a lock, they could wait for that very
//! handler, since the kernel takes the lock of the directory that it waits for.

use super::Session;
use crate::notices::Notice;
use std::sync::Arc;
use vfs::{Held, Identity, Observer};

/// Of so many nodes that are too many, one batch is let go.
const BATCH: usize = 256;

impl Observer for Session {
    fn entry(&self, dir: &Identity, name: &[u8]) {
        let Some(notices) = self.notices.get() else { return };
        for (parent, _) in self.nodes_of(dir.inode, self.shown_ino(dir.dev, dir.ino)) {
            notices.push(Notice::InvalEntry { parent, name: name.into() });
        }
    }

    fn inode(&self, inode: &Identity) {
        let Some(notices) = self.notices.get() else { return };
        for (node, _) in self.nodes_of(inode.inode, self.shown_ino(inode.dev, inode.ino)) {
            notices.push(Notice::InvalInode { node, offset: 0, len: 0 });
        }
    }

    fn all(&self) {
        if let Some(notices) = self.notices.get() {
            notices.push_all();
        }
    }
}

impl Session {
    /// Everything that the kernel knows is in doubt: notices for each node and each name.
    #[must_use]
    pub(crate) fn everything(&self) -> Vec<Notice> {
        let mut notices = Vec::new();
        self.nodes.for_each(|id, held: Arc<Held>| {
            notices.push(Notice::InvalInode { node: id, offset: 0, len: 0 });
            notices.extend(self.let_go(&held));
        });
        notices
    }

    /// Asks the kernel to let go of names that it has not used for long, if it knows too many.
    pub(super) fn make_room(&self) {
        if self.nodes.len() > self.options.max_nodes {
            self.ask_to_let_go(BATCH);
        }
    }

    /// The cache is full, and all of it held: asks the kernel to let go of a lot.
    #[cold]
    pub(super) fn make_much_room(&self) {
        self.ask_to_let_go(self.nodes.len() / 4 + BATCH);
    }

    #[cold]
    fn ask_to_let_go(&self, count: usize) {
        let Some(notices) = self.notices.get() else { return };
        if notices.is_behind() {
            return;
        }
        let mut coldest = Vec::new();
        self.nodes.coldest(count, &mut coldest);
        coldest.iter().filter_map(|(_, held)| self.let_go(held)).for_each(|notice| notices.push(notice));
    }

    /// What makes the kernel let go of a name.
    fn let_go(&self, held: &Held) -> Option<Notice> {
        let (parent, name) = held.parent_and_name()?;
        let nodes = self.nodes_of(parent.identity(), self.shown_ino_of(&parent).ok()?);
        let (parent, _) = nodes.into_iter().find(|(_, known)| known.mount_id() == parent.mount_id())?;
        Some(Notice::InvalEntry { parent, name })
    }
}
