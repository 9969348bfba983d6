//! LSEEK: where data and holes are, also in files whose data the kernel has not sent yet.
//!
//! # What it is
//! With writeback, the tree does not have all data of a file that is open for writing, so it would
//! report a hole, or the end of the file, where there are data; a program that copies a file by its
//! data would lose them. So such a request first makes the kernel send its data, by a notice. The
//! writes come before the notice's end and are served by the threads that serve requests; none of
//! those threads may wait for the notice.
//!
//! # Where it comes from
//! `fuse_lseek` in Linux's `fs/fuse/file.c`, which sends the request without the data before it; `lseek(2)`.

use super::Transport;
use super::reply::{Channel, Reply};
use crate::metrics::{Op, Timer};
use crate::session::Session;
use fusedev::wire::abi::{LseekIn, LseekOut};
use fusedev::wire::{Body, Request};
use std::sync::Arc;
use std::thread;
use vfs::Errno;

impl Transport {
    /// Replies to LSEEK; later and from another thread, if the kernel must send data before.
    pub(super) fn seek(&self, channel: &Arc<dyn Channel>, request: &Request<'_>, seek: &LseekIn, body: &mut Body) {
        let (node, unique) = (request.header.nodeid, request.header.unique);
        let metrics = self.session.metrics();
        let reply = Reply::new(&**channel, unique);
        if !self.session.may_be_behind(node) {
            return reply.answer(metrics, Op::Lseek, body, |body, _| find(&self.session, node, seek, body));
        }
        let Some(write_back) = self.session.write_back(node) else {
            // As a file system without holes and data. Programs then read everything.
            return reply.answer(metrics, Op::Lseek, body, |_, _| Err(Errno::EINVAL));
        };
        let (session, to, seek) = (self.session.clone(), channel.clone(), *seek);
        let serve = move || {
            let work = |body: &mut Body, _: &Timer<'_>| {
                write_back.wait();
                find(&session, node, &seek, body)
            };
            Reply::new(&*to, unique).answer(session.metrics(), Op::Lseek, &mut Body::new(), work);
        };
        if let Err(error) = thread::Builder::new().name("lightfoot-seek".into()).spawn(serve) {
            tracing::warn!(%error, "a request to find data failed with EIO: no thread to wait on");
            reply.failed(Errno::EIO);
        }
    }
}

fn find(session: &Session, node: u64, seek: &LseekIn, body: &mut Body) -> Result<(), Errno> {
    // Linux fails so too: no file has data before its start.
    let from = i64::try_from(seek.offset).map_err(|_| Errno::ENXIO)?;
    let offset = session.lseek(node, seek.fh, from as u64, seek.whence)?;
    body.put_struct(&LseekOut { offset });
    Ok(())
}
