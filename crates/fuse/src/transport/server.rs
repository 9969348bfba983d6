//! The server of a connection: threads that read the messages of `/dev/fuse`, from INIT to the end.
//!
//! # What it is
//! [`Server::negotiate`] answers INIT. [`Server::run`] starts the threads: each reads a message, serves it, and reads the next;
//! the kernel hands each message to one of them. It returns when the connection is over and all threads have ended.
//!
//! # How it is locked
//! Not at all. The threads share the [`Transport`].
//!
//! # Where it comes from
//! `fuse_send_init` in Linux's `fs/fuse/inode.c`; `fuse_session_loop_mt` in libfuse.

use super::flags::{limits, threads, wanted};
use super::reply::Channel;
use super::{Next, Transport};
use crate::options::MountOptions;
use fusedev::Device;
use fusedev::wire::abi::{InHeader, InitIn, MAJOR};
use fusedev::wire::init::{self, InitFlags, MAX_WRITE, OLDEST_MINOR};
use fusedev::wire::{Body, Operation, Request};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::thread;
use zerocopy::IntoBytes;

/// Bytes of a buffer beyond the longest write: the header, the structs, names.
const HEAD: usize = 4096 + 2 * 4096;

/// The longest message but writes: an extended attribute of 64 KiB.
const LONGEST_OTHER: u32 = 64 << 10;

/// See the [module documentation](self).
pub(crate) struct Server {
    transport: Transport,
    device: Arc<Device>,
    threads: usize,
    clone_fd: bool,
    /// Bytes of a thread's buffer.
    buffer: usize,
}

impl Server {
    /// Answers INIT.
    ///
    /// # Errors
    /// Those of the device; `EPROTO`: the kernel's protocol is too old; `ENOTCONN`: it has unmounted.
    pub(crate) fn negotiate(transport: Transport, device: Arc<Device>, options: &MountOptions) -> io::Result<Self> {
        let buffer = HEAD + options.max_write.clamp(LONGEST_OTHER, MAX_WRITE) as usize;
        let mut message = vec![0; buffer];
        loop {
            let len = device.read(&mut message)?.ok_or(Errno::NOTCONN)?;
            let Ok(Request { header, operation: Operation::Init(asked) }) = Request::parse(&message[..len]) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's first message is not INIT"));
            };
            if asked.major > MAJOR {
                // The kernel then sends INIT of this version.
                device.reply(header.unique, 0, init::version().as_bytes())?;
                continue;
            }
            if asked.major < MAJOR || asked.minor < OLDEST_MINOR {
                device.reply(header.unique, Errno::PROTO.raw_os_error(), &[])?;
                return Err(Errno::PROTO.into());
            }
            accept(&transport, &device, options, &header, &asked)?;
            let (threads, clone_fd) = (threads(options), options.clone_fd);
            return Ok(Self { transport, device, threads, clone_fd, buffer });
        }
    }

    /// Serves until the connection is over. Then the session has ended, too.
    ///
    /// # Errors
    /// That of the first thread that has one: `ECONNABORTED`; others are a defect.
    pub(crate) fn run(self) -> io::Result<()> {
        let Self { transport, device, threads, clone_fd, buffer } = self;
        let clone = || device.try_clone().inspect_err(|error| tracing::debug!(%error, "threads share a descriptor"));
        let channel = |_| clone_fd.then(clone).and_then(Result::ok).map_or_else(|| device.clone(), Arc::new);
        // The last has the connection's first descriptor.
        let channels = (1..threads).map(channel).chain([device.clone()]);
        let transport = &transport;
        let serve = |channel: Arc<Device>| move || serve(transport, &channel, buffer);
        let result = thread::scope(|scope| {
            let spawn = |(number, channel)| {
                let name = format!("lightfoot-{number}");
                thread::Builder::new().name(name).spawn_scoped(scope, serve(channel))
            };
            let started: Vec<_> = channels.enumerate().map(spawn).collect();
            // With fewer threads the mount is slower; without any it cannot be served.
            let failure = if started.iter().any(Result::is_ok) {
                None
            } else {
                started.iter().find_map(|one| one.as_ref().err())
            };
            let mut result = failure.map_or(Ok(()), |error| Err(io::Error::from(error.kind())));
            for thread in started.into_iter().flatten() {
                let ended = thread.join().unwrap_or_else(|_| Err(io::Error::other("a thread of the server panicked")));
                result = result.and(ended);
            }
            result
        });
        transport.end();
        result
    }
}

/// Accepts the kernel's INIT.
fn accept(
    transport: &Transport,
    device: &Device,
    options: &MountOptions,
    header: &InHeader,
    asked: &InitIn,
) -> io::Result<()> {
    let offered = init::offered(asked);
    let wanted = wanted(options);
    if !offered.contains(wanted) {
        tracing::debug!(missing = ?(wanted - offered), "the kernel does not have these capabilities");
    }
    transport.session.note_expiry(offered.contains(InitFlags::HAS_EXPIRE_ONLY));
    tracing::debug!(
        minor = asked.minor,
        passthrough = offered.contains(InitFlags::PASSTHROUGH),
        io_uring = offered.contains(InitFlags::OVER_IO_URING),
        "connected to the kernel"
    );
    device.reply(header.unique, 0, init::reply(asked, wanted, limits(options)).as_bytes())
}

/// The loop of one thread.
fn serve(transport: &Transport, device: &Arc<Device>, buffer: usize) -> io::Result<()> {
    let channel: Arc<dyn Channel> = device.clone();
    let (mut message, mut body) = (vec![0; buffer], Body::new());
    while let Some(len) = device.read(&mut message)? {
        if transport.serve(&channel, &message[..len], &mut body) == Next::End {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "server/tests.rs"]
mod tests;
