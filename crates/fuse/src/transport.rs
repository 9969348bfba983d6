//! The transport: serves the messages of the kernel's protocol with a [`Session`].
//!
//! # What it is
//! [`Transport::serve`] reads a request from its bytes, hands it to the session, and sends the
//! reply. Each of the functions `answer_open`, `answer_contents`, `answer_entry`,
//! `answer_attributes`, `answer_directory` and `answer_lock` writes the replies of some operations,
//! and passes the others on to the next. Requests are timed here, from before the call until the
//! reply is sent. [`Server`] does that for all messages of a connection, on several threads:
//! through io_uring, where the kernel offers it, or `/dev/fuse`.
//!
//! # What it is not
//! A judge of messages: [`fusedev::wire`] reads them. A malformed message gets `EIO`, and nothing
//! else happens.
//!
//! # How it is locked
//! Threads share the session and the registrations of backing files, which have their own locks. Each thread has its buffers.
//!
//! # Where it comes from
//! `linux/fuse.h`. The capabilities that are requested, and why, are in `flags`.

mod attributes;
mod contents;
mod convert;
mod directories;
mod entries;
mod flags;
mod ioctls;
mod passthrough;
mod pool;
mod reply;
mod rings;
mod seek;
mod sender;
mod server;
mod stop;
mod threads;
mod trace;
mod waits;

use crate::metrics::{Gauge, Op, Timer};
use crate::options::MountOptions;
use crate::panics::contained;
use crate::session::{Session, Subject};
use fusedev::wire::abi::fattr;
use fusedev::wire::{Body, Malformed, Operation, Request};
use passthrough::Backings;
use reply::Reply;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trace::line;
use vfs::Errno;

pub use reply::Channel;
pub(crate) use sender::KernelSender;
pub(crate) use server::{Server, ServerError};

/// Serves the messages of one connection.
#[derive(Debug)]
pub struct Transport {
    session: Arc<Session>,
    /// The only user who may send requests; `None`: all.
    only: Option<u32>,
    /// Whether OPENDIR is refused, so that the kernel lists directories without opening them.
    refuses_opendir: AtomicBool,
    backings: Backings,
}

/// The next step after a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// More messages.
    More,
    /// Nothing: it was the last of the connection.
    End,
}

impl Transport {
    /// Serves `session`, as a mount with these options has it.
    #[must_use]
    pub fn new(session: Arc<Session>, options: &MountOptions) -> Self {
        // With `idmap` few requests name their user: the kernel alone lets nobody else in.
        let is_checked = !options.allow_other && !options.session.idmap;
        let only = is_checked.then(|| rustix::process::geteuid().as_raw());
        Self { session, only, refuses_opendir: AtomicBool::new(false), backings: Backings::default() }
    }

    /// Serves one message, and replies through `channel`; some replies come later, from another thread. `body` is memory that
    /// the calls of a thread share.
    pub fn serve(&self, channel: &Arc<dyn Channel>, message: &[u8], body: &mut Body) -> Next {
        let request = match Request::parse(message) {
            Ok(request) => request,
            Err(malformed) => {
                tracing::error!(?malformed, len = message.len(), "the kernel sent a malformed message");
                if let Malformed::Request(unique) = malformed {
                    Reply::new(&**channel, unique).failed(Errno::EIO);
                }
                return Next::More;
            }
        };
        let _serving = self.session.serving();
        let served = contained(self.session.metrics(), "message", || self.serve_request(channel, &request, body));
        served.unwrap_or_else(|| {
            // If the reply was sent before the panic, the kernel has no such request any more.
            Reply::new(&**channel, request.header.unique).failed(Errno::EIO);
            Next::More
        })
    }

    fn serve_request(&self, channel: &Arc<dyn Channel>, request: &Request<'_>, body: &mut Body) -> Next {
        let reply = Reply::new(&**channel, request.header.unique);
        if !self.may_send(request) {
            reply.failed(Errno::EACCES);
            return Next::More;
        }
        match request.operation {
            Operation::Destroy => {
                reply.done(&[]);
                return Next::End;
            }
            Operation::Forget(forget) => {
                line!("FORGET\t{}\t{}", request.header.nodeid, forget.nlookup);
                self.forget(request.header.nodeid, forget.nlookup);
            }
            Operation::BatchForget(nodes) => {
                line!("BATCH_FORGET{}", trace::Forgotten(nodes));
                nodes.iter().for_each(|node| self.forget(node.nodeid, node.nlookup));
            }
            Operation::NotifyReply => {}
            Operation::Init(_) => reply.failed(Errno::EIO),
            Operation::Unknown => reply.failed(Errno::ENOSYS),
            Operation::Interrupt(interrupt) => {
                // After ENOSYS the kernel sends no more INTERRUPT; otherwise it expects no reply.
                if let Err(errno) = self.session.interrupt(interrupt.unique) {
                    reply.failed(errno);
                }
            }
            Operation::Setlkw(lock) => self.wait_for_lock(channel, request, &lock),
            Operation::Lseek(seek) => {
                self.session.interruptible(request.header.unique, || self.seek(channel, request, &seek, body));
            }
            _ => {
                let Some(op) = Op::of(request.header.opcode) else { return Next::More };
                let under_way = subject(request).and_then(|subject| self.session.under_way(subject));
                let reply = match op {
                    Op::Lookup => reply.of_lookup(&self.session, request.header.nodeid),
                    _ => reply,
                };
                let reply = reply.under_way(under_way.as_ref());
                self.session.interruptible(request.header.unique, || {
                    let answer = |body: &mut Body, timer: &Timer<'_>| self.answer_open(channel, request, body, timer);
                    reply.answer(self.session.metrics(), op, body, answer);
                });
            }
        }
        Next::More
    }

    /// Sets whether OPENDIR is refused with ENOSYS, after which the kernel lists directories by
    /// their nodes.
    pub(crate) fn refuse_opendir(&self, refuses: bool) {
        // Relaxed: a flag by itself, set before the first request.
        self.refuses_opendir.store(refuses, Relaxed);
    }

    /// Ends the session: the connection is over.
    pub(crate) fn end(&self) {
        self.session.measure();
        let (nodes, lookups) =
            (self.session.known_nodes().saturating_sub(1), self.session.metrics().get(Gauge::Lookups));
        line!("END\t{nodes}\t{lookups}");
        let _ = contained(self.session.metrics(), "destroy", || self.session.end());
    }

    /// Returns whether the sender may use the mount. The kernel lets nobody else in; of a user who
    /// could slip by, requests that the kernel may make for everybody are served, as they were
    /// before.
    fn may_send(&self, request: &Request<'_>) -> bool {
        self.only.is_none_or(|only| convert::who(request).is(only))
            || is_of_flush(request)
            || matches!(
                request.operation,
                Operation::Init(_)
                    | Operation::Destroy
                    // Its header has no user.
                    | Operation::Interrupt(_)
                    | Operation::Read(_)
                    | Operation::Readdir(_)
                    | Operation::Readdirplus(_)
                    | Operation::Forget(_)
                    | Operation::BatchForget(_)
                    | Operation::NotifyReply
                    | Operation::Write(..)
                    | Operation::Fsync(_)
                    | Operation::Fsyncdir(_)
                    | Operation::Release(_)
                    | Operation::Releasedir(_)
            )
    }

    fn forget(&self, node: u64, lookups: u64) {
        let _timer = self.session.metrics().time(Op::Forget);
        let _ = contained(self.session.metrics(), "forget", || self.session.forget(node, lookups));
    }
}

/// Returns the facts in the reply that the kernel may take after a newer notice about them.
fn subject<'r>(request: &Request<'r>) -> Option<Subject<'r>> {
    let node = request.header.nodeid;
    match request.operation {
        Operation::Lookup(name) => Some(Subject::Name(node, name)),
        Operation::Setattr(_) => Some(Subject::Attributes(node)),
        Operation::Link(link, _) => Some(Subject::Attributes(link.oldnodeid)),
        _ => None,
    }
}

/// Returns whether a thread of the kernel, which is root, sends times that it has kept with
/// writeback: `fuse_flush_times`.
fn is_of_flush(request: &Request<'_>) -> bool {
    const SENT: u32 = fattr::MTIME | fattr::CTIME | fattr::FH;
    let Operation::Setattr(set) = request.operation else { return false };
    convert::who(request).is_root() && set.valid & fattr::MTIME != 0 && set.valid & !SENT == 0
}

#[cfg(test)]
#[path = "transport/overtaken.rs"]
mod overtaken;
