//! The sender of notices through `/dev/fuse`.
//!
//! # What it is
//! A notice about a name only expires it (`FUSE_EXPIRE_ONLY`, Linux 6.2) where the kernel can.
//! Without that flag, `FUSE_NOTIFY_INVAL_ENTRY` unhashes the name and unmounts a mount there:
//! `getcwd(2)` then fails in a process that has its working directory there.
//!
//! # Where it comes from
//! `fuse_reverse_inval_entry` and `fuse_notify_prune` in Linux's `fs/fuse`; `linux/fuse.h`.

use crate::notices::{Notice, Sender};
use crate::session::Session;
use core::time::Duration;
use fusedev::Device;
use fusedev::wire::notice::{self, DELETE, EXPIRE_ONLY, INVAL_ENTRY, INVAL_INODE, PRUNE};
use rustix::io::Errno;
use std::io;
use std::sync::{Arc, Weak};

/// The first wait for the kernel to take a reply; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_micros(250);

/// Longer than a process waits for a processor as a rule.
const LONGEST_WAIT: Duration = Duration::from_millis(32);

/// Sends notices through `/dev/fuse`.
pub(crate) struct KernelSender {
    /// The connection.
    pub(crate) device: Arc<Device>,
    pub(crate) session: Weak<Session>,
}

/// Returns whether the kernel does not have the node or name that a notice is about.
fn is_unknown(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::NOENT)
}

/// Sends a notice about a node. Sends it again while the kernel does not have the node and the
/// session `knows` it: a reply may be under way with the node's first attributes, which are older
/// than the notice. The kernel takes them when the process that waits for the reply runs.
fn until_known(send: impl Fn() -> io::Result<()>, knows: impl Fn() -> bool) -> io::Result<()> {
    let mut wait = FIRST_WAIT;
    loop {
        let sent = send();
        if !sent.as_ref().is_err_and(is_unknown) || wait > LONGEST_WAIT || !knows() {
            return sent;
        }
        std::thread::sleep(wait);
        wait *= 2;
    }
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
                let notice = notice::inode(*node, *offset, *len);
                let knows = || self.session.upgrade().is_some_and(|session| session.knows(*node));
                until_known(|| self.device.notify(INVAL_INODE, &notice), knows)
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
            // One that fails does not end the others.
            if let Err(error) = sent
                && !is_unknown(&error)
            {
                result = Err(error);
            }
        });
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[test]
    fn a_notice_about_a_node_that_the_kernel_does_not_know_yet_is_sent_again() {
        let unknown = || Err(Errno::NOENT.into());
        // How many times the kernel does not have the node, whether the session has it, and how
        // often the notice is sent.
        for (misses, knows, sends) in [(0, true, 1), (2, true, 3), (2, false, 1)] {
            let sent = Cell::new(0);
            let send = || {
                sent.set(sent.get() + 1);
                if sent.get() <= misses { unknown() } else { Ok(()) }
            };
            assert_eq!(until_known(send, || knows).is_ok(), sends > misses, "{misses}, {knows}");
            assert_eq!(sent.get(), sends, "{misses}, {knows}");
        }
        let (sent, knows) = (Cell::new(0), || true);
        let send = || {
            sent.set(sent.get() + 1);
            unknown()
        };
        assert!(until_known(send, knows).is_err() && sent.get() > 3, "it ends");
    }
}
