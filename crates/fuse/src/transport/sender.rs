//! The sender of notices through `/dev/fuse`.

use crate::notices::{Notice, Sender};
use crate::session::Session;
use fuser::{INodeNo, Notifier};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Weak;

/// Sends notices through `/dev/fuse`.
pub(crate) struct KernelSender {
    pub(crate) notifier: Notifier,
    pub(crate) session: Weak<Session>,
}

impl Sender for KernelSender {
    fn send(&self, notice: &Notice) -> io::Result<()> {
        match notice {
            Notice::InvalEntry { parent, name } => self.notifier.inval_entry(INodeNo(*parent), OsStr::from_bytes(name)),
            Notice::InvalInode { node, offset, len } => self.notifier.inval_inode(INodeNo(*node), *offset, *len),
        }
    }

    fn all(&self) -> io::Result<()> {
        let Some(session) = self.session.upgrade() else { return Ok(()) };
        session.everything().iter().try_for_each(|notice| self.send(notice))
    }
}
