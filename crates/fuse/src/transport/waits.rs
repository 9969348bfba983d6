//! Requests on locks. Those that wait have no thread: the one that ends the wait replies.

use super::Transport;
use super::convert::{UNLCK, caller, file_lock, lock_type};
use super::reply::{Channel, Later};
use crate::metrics::Op;
use crate::session::LockOwner;
use fusedev::wire::abi::{FileLock, LkIn, LkOut};
use fusedev::wire::{Body, Operation, Request};
use std::sync::Arc;
use vfs::Errno;

fn owner(request: &Request<'_>, lock: &LkIn) -> LockOwner {
    LockOwner { node: request.header.nodeid, owner: lock.owner, handle: lock.fh }
}

impl Transport {
    /// Replies to GETLK and SETLK, and to requests that are not served.
    pub(super) fn answer_lock(&self, request: &Request<'_>, body: &mut Body) -> Result<(), Errno> {
        match request.operation {
            Operation::Getlk(get) => {
                let found = self.session.getlk(&caller(request), owner(request, &get), file_lock(&get)?)?;
                let lk = found.map_or(FileLock { kind: UNLCK, ..FileLock::default() }, |lock| FileLock {
                    start: lock.start,
                    end: lock.end,
                    kind: lock_type(lock.kind),
                    pid: lock.pid,
                });
                body.put_struct(&LkOut { lk });
                Ok(())
            }
            Operation::Setlk(set) => self.session.setlk(&caller(request), owner(request, &set), file_lock(&set)?),
            _ => Err(Errno::ENOSYS),
        }
    }

    /// Replies to SETLKW, perhaps later and from another thread: it may wait for ever, so it must not block a thread that serves
    /// other requests.
    pub(super) fn wait_for_lock(&self, channel: &Arc<dyn Channel>, request: &Request<'_>, set: &LkIn) {
        let (unique, session) = (request.header.unique, &self.session);
        let later = Later::new(channel.clone(), unique, session.metrics().clone(), Op::Setlk);
        match file_lock(set) {
            Ok(lock) => {
                let answer = Box::new(move |done| later.ends(done));
                session.setlk_waiting(&caller(request), unique, owner(request, set), lock, answer);
            }
            Err(errno) => later.ends(Err(errno)),
        }
    }
}
