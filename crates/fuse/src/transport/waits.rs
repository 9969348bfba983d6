//! Requests on locks. Those that wait do so on another thread, which replies.

use super::Transport;
use super::convert::{UNLCK, caller, file_lock, lock_type};
use super::reply::{Channel, Reply};
use crate::metrics::Op;
use fusedev::wire::abi::{FileLock, LkIn, LkOut};
use fusedev::wire::{Body, Operation, Request};
use std::sync::Arc;
use std::thread;
use vfs::Errno;

impl Transport {
    /// Replies to GETLK and SETLK.
    pub(super) fn answer_lock(&self, request: &Request<'_>, body: &mut Body) -> Result<(), Errno> {
        let (session, caller, node) = (&self.session, caller(&request.header), request.header.nodeid);
        match request.operation {
            Operation::Getlk(get) => {
                let found = session.getlk(&caller, node, get.owner, file_lock(&get.lk)?)?;
                // Process 0: the tree does not know the one that has the lock.
                let lk = found.map_or(FileLock { kind: UNLCK, ..FileLock::default() }, |lock| FileLock {
                    start: lock.start,
                    end: lock.end,
                    kind: lock_type(lock.kind),
                    pid: 0,
                });
                body.put_struct(&LkOut { lk });
                Ok(())
            }
            Operation::Setlk(set) => session.setlk(&caller, node, set.owner, file_lock(&set.lk)?),
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Replies to SETLKW, later and from another thread: it may wait for ever, so it must not block a thread that serves other
    /// requests.
    pub(super) fn wait_for_lock(&self, channel: &Arc<dyn Channel>, request: &Request<'_>, set: &LkIn, body: &mut Body) {
        let (caller, session) = (caller(&request.header), self.session.clone());
        let (unique, owner) = (request.header.unique, (request.header.nodeid, set.owner));
        let waiter = match session.lock_waiter(&caller) {
            Ok(waiter) => waiter,
            Err(errno) => {
                let reply = Reply::new(&**channel, unique);
                return reply.answer(session.metrics(), Op::Setlk, body, |_| Err(errno));
            }
        };
        let (lock, to) = (file_lock(&set.lk), channel.clone());
        let serve = move || {
            let work = |_: &mut Body| session.setlk_waiting(&caller, owner, lock?, &waiter);
            Reply::new(&*to, unique).answer(session.metrics(), Op::Setlk, &mut Body::new(), work);
        };
        if let Err(error) = thread::Builder::new().name("lightfoot-lock".into()).spawn(serve) {
            tracing::warn!(%error, "lock request failed with EIO: no thread to wait on");
            Reply::new(&**channel, unique).failed(Errno::EIO);
        }
    }
}
