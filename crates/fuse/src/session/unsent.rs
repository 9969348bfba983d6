//! Data that the kernel has collected and not sent: with writeback, the data of files that are open
//! for writing.
//!
//! # What it is
//! A request that depends on all data of a file first makes the kernel send them: a notice that invalidates the file's data
//! ends when they are written. The writes are requests too, so a thread that serves requests must not wait for that end.
//!
//! # Where it comes from
//! `fuse_reverse_inval_inode` in Linux's `fs/fuse/inode.c`, and `invalidate_inode_pages2_range`,
//! which writes dirty pages.

use super::Session;
use crate::notices::{Notice, Notices};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The most threads that wait at once for the kernel to send data.
const MOST: usize = 64;

/// The number of threads that wait.
#[derive(Default)]
pub(super) struct Waiting(AtomicUsize);

/// The permit of a thread to wait until the kernel has sent the data of a node. It ends on drop.
pub(crate) struct WriteBack {
    session: Arc<Session>,
    node: u64,
}

impl Session {
    /// Returns whether the kernel may have data of `node` that it has not sent.
    pub(crate) fn may_be_behind(&self, node: u64) -> bool {
        if !self.options.writeback {
            return false;
        }
        let has_writer =
            |inode| self.files.any(|open| open.file.flags().can_write() && open.file.held().identity() == inode);
        self.node(node).is_ok_and(|held| self.options.no_open || has_writer(held.identity()))
    }

    /// Permits a thread to wait for the data of `node`. `None`: too many wait.
    pub(crate) fn write_back(self: &Arc<Self>, node: u64) -> Option<WriteBack> {
        let add = |waiting: usize| (waiting < MOST).then_some(waiting + 1);
        // Relaxed: a number that orders nothing.
        let is_permitted = self.waiting_for_data.0.fetch_update(Relaxed, Relaxed, add).is_ok();
        is_permitted.then(|| WriteBack { session: self.clone(), node })
    }
}

impl WriteBack {
    /// Waits until the kernel has sent the data. A thread that serves requests must not call it.
    pub(crate) fn wait(&self) {
        let Some(notices) = self.session.notices.get() else { return };
        notices.push(Notice::InvalInode { node: self.node, offset: 0, len: 0 });
        Notices::flush(notices);
    }
}

impl Drop for WriteBack {
    fn drop(&mut self) {
        self.session.waiting_for_data.0.fetch_sub(1, Relaxed);
    }
}
