//! The transport: serves the messages of the kernel's protocol with a [`Session`].
//!
//! # What it is
//! [`Transport::serve`] reads a request from its bytes, hands it to the session, and sends the reply. Requests are timed here,
//! from before the call until the reply is sent. [`Server`] does that for all messages of a connection, on several threads: those
//! that come through io_uring, where the kernel offers it, or those of `/dev/fuse`.
//!
//! # What it is not
//! A judge of messages: [`fusedev::wire`] reads them. What is malformed gets `EIO`, and nothing else happens.
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
use crate::session::Session;
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
    /// The kernel lists directories without opening them.
    refuses_opendir: AtomicBool,
    backings: Backings,
}

/// What comes after a message.
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
        let only = (!options.allow_other).then(|| rustix::process::geteuid().as_raw());
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
            // If the reply was sent before the panic, the kernel knows no such request any more.
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
            operation => {
                let reply = match operation {
                    Operation::Lookup(_) => reply.of_lookup(&self.session, request.header.nodeid),
                    _ => reply,
                };
                let Some(op) = op_of(&operation) else { return Next::More };
                self.session.interruptible(request.header.unique, || {
                    let answer = |body: &mut Body, timer: &Timer<'_>| self.answer(channel, request, body, timer);
                    reply.answer(self.session.metrics(), op, body, answer);
                });
            }
        }
        Next::More
    }

    /// Whether OPENDIR is refused with ENOSYS, after which the kernel lists directories by their nodes.
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

    /// Whether the sender may use the mount. The kernel lets nobody else in; of a user who could slip by, requests that the
    /// kernel may make for everybody are served, as they were before.
    fn may_send(&self, request: &Request<'_>) -> bool {
        self.only.is_none_or(|only| only == request.header.uid)
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

    /// Writes the body of the reply.
    fn answer(
        &self,
        channel: &Arc<dyn Channel>,
        request: &Request<'_>,
        body: &mut Body,
        timer: &Timer<'_>,
    ) -> Result<(), Errno> {
        match request.operation {
            Operation::Lookup(_)
            | Operation::Mknod(..)
            | Operation::Mkdir(..)
            | Operation::Symlink(..)
            | Operation::Link(..)
            | Operation::Unlink(_)
            | Operation::Rmdir(_)
            | Operation::Rename(..) => self.answer_entry(request, body),
            Operation::Getattr
            | Operation::Setattr(_)
            | Operation::Statx(_)
            | Operation::Readlink
            | Operation::Statfs
            | Operation::Access(_)
            | Operation::Setxattr(..)
            | Operation::Getxattr(..)
            | Operation::Listxattr(_)
            | Operation::Removexattr(_) => self.answer_attributes(request, body),
            Operation::Opendir(_)
            | Operation::Readdir(_)
            | Operation::Readdirplus(_)
            | Operation::Releasedir(_)
            | Operation::Fsyncdir(_) => self.answer_directory(request, body),
            Operation::Getlk(_) | Operation::Setlk(_) => self.answer_lock(request, body),
            Operation::Open(_) | Operation::Create(..) | Operation::Tmpfile(_) => {
                self.answer_open(channel, request, body)
            }
            _ => self.answer_contents(request, body, timer),
        }
    }
}

/// Whether a thread of the kernel, which is root, sends times that it has kept with writeback: `fuse_flush_times`.
fn is_of_flush(request: &Request<'_>) -> bool {
    const SENT: u32 = fattr::MTIME | fattr::CTIME | fattr::FH;
    let Operation::Setattr(set) = request.operation else { return false };
    request.header.uid == 0 && set.valid & fattr::MTIME != 0 && set.valid & !SENT == 0
}

/// What is counted for a request. `None`: it has no reply, or is not served.
fn op_of(operation: &Operation<'_>) -> Option<Op> {
    Some(match operation {
        Operation::Lookup(_) => Op::Lookup,
        Operation::Getattr => Op::Getattr,
        Operation::Setattr(_) => Op::Setattr,
        Operation::Readlink => Op::Readlink,
        Operation::Symlink(..) => Op::Symlink,
        Operation::Mknod(..) => Op::Mknod,
        Operation::Mkdir(..) => Op::Mkdir,
        Operation::Unlink(_) => Op::Unlink,
        Operation::Rmdir(_) => Op::Rmdir,
        Operation::Rename(..) => Op::Rename,
        Operation::Link(..) => Op::Link,
        Operation::Open(_) => Op::Open,
        Operation::Read(_) => Op::Read,
        Operation::Write(..) => Op::Write,
        Operation::Statfs => Op::Statfs,
        Operation::Release(_) => Op::Release,
        Operation::Fsync(_) => Op::Fsync,
        Operation::Setxattr(..) => Op::Setxattr,
        Operation::Getxattr(..) => Op::Getxattr,
        Operation::Listxattr(_) => Op::Listxattr,
        Operation::Removexattr(_) => Op::Removexattr,
        Operation::Flush(_) => Op::Flush,
        Operation::Opendir(_) => Op::Opendir,
        Operation::Readdir(_) => Op::Readdir,
        Operation::Readdirplus(_) => Op::Readdirplus,
        Operation::Releasedir(_) => Op::Releasedir,
        Operation::Fsyncdir(_) => Op::Fsyncdir,
        Operation::Getlk(_) => Op::Getlk,
        Operation::Setlk(_) | Operation::Setlkw(_) => Op::Setlk,
        Operation::Access(_) => Op::Access,
        Operation::Create(..) => Op::Create,
        Operation::Tmpfile(_) => Op::Tmpfile,
        Operation::Bmap => Op::Bmap,
        Operation::Ioctl(..) => Op::Ioctl,
        Operation::Poll => Op::Poll,
        Operation::Statx(_) => Op::Statx,
        Operation::Fallocate(_) => Op::Fallocate,
        Operation::Lseek(_) => Op::Lseek,
        Operation::CopyFileRange(_) | Operation::CopyFileRange64(_) => Op::CopyFileRange,
        Operation::Forget(_)
        | Operation::BatchForget(_)
        | Operation::Init(_)
        | Operation::Interrupt(_)
        | Operation::Destroy
        | Operation::NotifyReply
        | Operation::Unknown => return None,
    })
}
