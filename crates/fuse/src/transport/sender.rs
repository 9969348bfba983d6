//! The sender of notices through `/dev/fuse`.
//!
//! # What it is
//! Notices are written here and not by `fuser`, whose notices cannot only expire a name (`FUSE_EXPIRE_ONLY`, Linux 6.2) and
//! cannot prune (`FUSE_NOTIFY_PRUNE`, Linux 6.18). Without the first, `FUSE_NOTIFY_INVAL_ENTRY` unhashes the name and
//! unmounts what is mounted there: `getcwd(2)` then fails in a process that has its working directory there.
//!
//! # Where it comes from
//! `fuse_reverse_inval_entry` and `fuse_notify_prune` in Linux's `fs/fuse`; `linux/fuse.h`.

use crate::notices::{Notice, Sender};
use crate::session::Session;
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::os::fd::OwnedFd;
use std::sync::Weak;

/// `enum fuse_notify_code`.
const INVAL_INODE: u32 = 2;
const INVAL_ENTRY: u32 = 3;
const PRUNE: u32 = 9;

/// Flag of [`INVAL_ENTRY`]: the kernel looks the name up before it uses it again, and does nothing else.
const EXPIRE_ONLY: u32 = 1;

/// Bytes of `struct fuse_out_header`.
const HEADER: usize = 16;

/// Sends notices through `/dev/fuse`.
pub(crate) struct KernelSender {
    /// The connection.
    pub(crate) device: OwnedFd,
    pub(crate) session: Weak<Session>,
}

impl KernelSender {
    /// Writes one message.
    fn write(&self, code: u32, body: &[u8]) -> io::Result<()> {
        let len = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
        let mut header = [0; HEADER];
        header[..4].copy_from_slice(&len.to_ne_bytes());
        header[4..8].copy_from_slice(&code.to_ne_bytes());
        // The last 8 bytes, the number of the request, are 0 in a notice.
        rustix::io::writev(&self.device, &[IoSlice::new(&header), IoSlice::new(body)])?;
        Ok(())
    }
}

/// The body of [`INVAL_ENTRY`].
fn entry(parent: u64, name: &[u8], flags: u32) -> Vec<u8> {
    let len = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [&parent.to_ne_bytes()[..], &len.to_ne_bytes(), &flags.to_ne_bytes(), name, b"\0"].concat()
}

impl Sender for KernelSender {
    fn send(&self, notice: &Notice) -> io::Result<()> {
        match notice {
            Notice::Expire { parent, name } => self.write(INVAL_ENTRY, &entry(*parent, name, EXPIRE_ONLY)),
            Notice::Drop { parent, name } => self.write(INVAL_ENTRY, &entry(*parent, name, 0)),
            Notice::InvalInode { node, offset, len } => {
                self.write(INVAL_INODE, &[node.to_ne_bytes(), offset.to_ne_bytes(), len.to_ne_bytes()].concat())
            }
            Notice::Prune(nodes) => {
                let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
                let mut body = [&count.to_ne_bytes()[..], &[0; 12]].concat();
                body.extend(nodes.iter().flat_map(|node| node.to_ne_bytes()));
                let done = self.write(PRUNE, &body);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_sent_as_in_linux_fuse_h() {
        // `struct fuse_notify_inval_entry_out`, the name and its end.
        let expected = [&7u64.to_ne_bytes()[..], &3u32.to_ne_bytes(), &1u32.to_ne_bytes(), b"abc\0"].concat();
        assert_eq!(entry(7, b"abc", EXPIRE_ONLY), expected);
    }
}
