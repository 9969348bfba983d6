//! The sender of notices through `/dev/fuse`.
//!
//! # What it is
//! A notice about a name only expires it (`FUSE_EXPIRE_ONLY`, Linux 6.2) where the kernel can. Without that flag,
//! `FUSE_NOTIFY_INVAL_ENTRY` unhashes the name and unmounts what is mounted there: `getcwd(2)` then fails in a process that
//! has its working directory there.
//!
//! # Where it comes from
//! `fuse_reverse_inval_entry` and `fuse_notify_prune` in Linux's `fs/fuse`; `linux/fuse.h`.

use crate::notices::{Notice, Sender};
use crate::session::Session;
use fusedev::Device;
use fusedev::wire::notice::{self, DELETE, EXPIRE_ONLY, INVAL_ENTRY, INVAL_INODE, PRUNE};
use rustix::io::Errno;
use std::io;
use std::sync::{Arc, Weak};

/// Sends notices through `/dev/fuse`.
pub(crate) struct KernelSender {
    /// The connection.
    pub(crate) device: Arc<Device>,
    pub(crate) session: Weak<Session>,
}

impl Sender for KernelSender {
    fn send(&self, sent: &Notice) -> io::Result<()> {
        match sent {
            Notice::Expire { parent, name } => {
                self.device.notify(INVAL_ENTRY, &notice::entry(*parent, name, EXPIRE_ONLY))
            }
            Notice::Drop { parent, name } => self.device.notify(INVAL_ENTRY, &notice::entry(*parent, name, 0)),
            Notice::Delete { parent, child, name } => {
                self.device.notify(DELETE, &notice::deleted(*parent, *child, name))
            }
            Notice::InvalInode { node, offset, len } => {
                self.device.notify(INVAL_INODE, &notice::inode(*node, *offset, *len))
            }
            Notice::Prune(nodes) => {
                let done = self.device.notify(PRUNE, &notice::nodes(nodes));
                let is_unknown = done.as_ref().is_err_and(|error| Errno::from_io_error(error) == Some(Errno::INVAL));
                if let (true, Some(session)) = (is_unknown, self.session.upgrade()) {
                    session.note_kernel_without_prune();
                    return Ok(());
                }
                done
            }
        }
    }

    fn all(&self) -> io::Result<()> {
        let Some(session) = self.session.upgrade() else { return Ok(()) };
        let mut result = Ok(());
        session.everything(|notice| {
            let sent = self.send(&notice);
            let is_known = |error: &io::Error| Errno::from_io_error(error) == Some(Errno::NOENT);
            // One that fails does not end the others.
            if let Err(error) = sent
                && !is_known(&error)
            {
                result = Err(error);
            }
        });
        result
    }
}
