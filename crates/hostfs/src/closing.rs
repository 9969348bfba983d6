//! Descriptors that another thread closes.
//!
//! # What it is
//! The VFS evicts an inode on any thread, also on one that serves requests, and an eviction has no
//! deadline. To close a file on a server may need a request to the server (`close(2)` of NFSv4, SMB
//! and FUSE), and such a request hangs if the server hangs. So one thread closes the descriptors of
//! evicted inodes.
//!
//! # Limitations
//! While one close hangs, the descriptors of further evicted inodes stay open, and do not count in the budget.
//!
//! # How it is locked
//! A channel. The thread ends with the file system, when it has closed everything.
//!
//! # Where it comes from
//! `delayed_fput` of Linux.

use crate::node::Fds;
use std::sync::mpsc::{Sender, channel};
use std::thread;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Closer(Option<Sender<Fds>>);

impl Closer {
    /// Starts the thread if a close may send a request to a server (`may_wait`). Without the thread
    /// the caller closes.
    pub(crate) fn new(may_wait: bool) -> Self {
        let start = || {
            let (sender, receiver) = channel::<Fds>();
            let closes = move || receiver.into_iter().for_each(drop);
            let started = thread::Builder::new().name("lightfoot-close".into()).spawn(closes);
            started.is_ok().then_some(sender)
        };
        Self(may_wait.then(start).flatten())
    }

    /// Closes the descriptors of an evicted inode. An `O_PATH` descriptor needs no server.
    pub(crate) fn close(&self, fds: Fds) {
        if let ([_, Some(_)], Some(sender)) = (&fds, &self.0) {
            let _ = sender.send(fds);
        }
    }
}
