//! LSEEK: where data and holes are, also in files whose data the kernel has not sent yet.
//!
//! # What it is
//! With writeback, the tree does not have all data of a file that is open for writing, so it would report a hole, or the end
//! of the file, where there are data; a program that copies a file by its data would lose them. So such a request first makes
//! the kernel send what it has, by a notice. The writes come before the notice's end and are served by the threads that serve
//! requests; the notice must not be waited for on one of those.
//!
//! # Where it comes from
//! `fuse_lseek` in Linux's `fs/fuse/file.c`, which sends the request without the data before it; `lseek(2)`.

use super::{Transport, reply};
use crate::metrics::Op;
use crate::session::Session;
use fuser::ReplyLseek;
use vfs::Errno;

/// The place that is looked for.
#[derive(Clone, Copy)]
struct Seek {
    node: u64,
    handle: u64,
    offset: i64,
    whence: u32,
}

impl Seek {
    fn find(self, session: &Session) -> Result<u64, Errno> {
        // Linux fails so too: no file has data before its start.
        let offset = u64::try_from(self.offset).map_err(|_| Errno::ENXIO)?;
        session.lseek(self.node, self.handle, offset, self.whence)
    }
}

impl Transport {
    /// Replies to LSEEK.
    pub(super) fn seek(&self, node: u64, handle: u64, offset: i64, whence: u32, reply: ReplyLseek) {
        let seek = Seek { node, handle, offset, whence };
        let send = |reply: ReplyLseek, at: u64| reply.offset(at as i64);
        if !self.session.may_be_behind(node) {
            return reply::reply(self.session.metrics(), Op::Lseek, reply, || seek.find(&self.session), send);
        }
        let Some(write_back) = self.session.write_back(node) else {
            // As a file system without holes and data. Programs then read everything.
            return self.refuse(Op::Lseek, reply, Errno::EINVAL);
        };
        let session = self.session.clone();
        let serve = move || {
            let work = || {
                write_back.wait();
                seek.find(&session)
            };
            reply::reply(session.metrics(), Op::Lseek, reply, work, send);
        };
        if let Err(error) = std::thread::Builder::new().name("lightfoot-seek".into()).spawn(serve) {
            tracing::warn!(%error, "a request to find data failed with EIO: no thread to wait on");
        }
    }
}
