//! The server of a connection: threads that receive its messages, from INIT to the end.
//!
//! # What it is
//! [`Server::negotiate`] answers INIT; if the kernel offers io_uring, the rings exist before the
//! answer. [`Server::begin`] registers their slots. [`Server::run`] serves, and returns when the
//! connection is over and all threads have ended. With io_uring, it reads the messages that still
//! come through `/dev/fuse`. Without io_uring, it starts threads: each reads a message, serves it,
//! and reads the next; the kernel gives each message to one thread. When all these threads are
//! inside calls that hang, others start ([`pool`](super::pool)); the others end when they were not
//! needed for [`IDLE`].
//!
//! # How it is locked
//! The threads share the [`Transport`].
//!
//! # Where it comes from
//! `fuse_send_init` in Linux's `fs/fuse/inode.c`; `fuse_session_loop_mt` in libfuse.

use super::flags::{limits, threads, wanted};
use super::pool::{Actions, EndOfAll, Member, Pools};
use super::reply::Channel;
use super::rings::{MANY_THREADS, Rings, plan, wake};
use super::stop::{Stop, StopAtEnd};
use super::threads::{END_LIMIT, Threads};
use super::{Next, Transport};
use crate::options::{MountOptions, Uring};
use crate::transport_kind::{NoRing, TransportKind};
use fusedev::wire::abi::{InHeader, InitIn, MAJOR, opcode};
use fusedev::wire::init::{self, InitFlags, MAX_WRITE, OLDEST_MINOR};
use fusedev::wire::{Body, Operation, Request};
use fusedev::{Device, Waker, payload_bytes};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a buffer beyond the longest write: the header, the structs, names.
const HEAD: usize = 4096 + 2 * 4096;

/// The longest message but writes: an extended attribute of 64 KiB.
const LONGEST_OTHER: u32 = 64 << 10;

/// With io_uring: the pause after a FORGET. The FORGETs that come during the pause make one
/// message, with one wake-up.
const PAUSE: Duration = Duration::from_millis(5);

/// The most threads that read the device when all of them hang, if it did not begin with more.
const MAX_THREADS: usize = 64;

/// How long all threads but the first ones must not have been needed before they end.
const IDLE: Duration = Duration::from_secs(10);

/// The minor version of the protocol since which the kernel surely checks callers that set flags of inodes. (7.33 is Linux 5.11 to
/// 5.13, of which only the last checks.)
const CHECKS_FLAGS: u32 = 34;

/// The number of a request that the kernel sends only to wake a thread. It has no reply.
const WOKEN: u64 = 1 << 62;

/// See the [module documentation](self).
pub(crate) struct Server {
    transport: Arc<Transport>,
    device: Arc<Device>,
    rings: Result<Rings, NoRing>,
    /// Ends the rings' threads, and the one that reads the device beside them.
    stop: Arc<Stop>,
    /// Threads without rings.
    threads: usize,
    clone_fd: bool,
    /// Bytes of a thread's buffer.
    buffer: usize,
}

/// Why a connection cannot be served.
#[derive(Debug)]
pub(crate) enum ServerError {
    /// Io_uring was [required](Uring::Required).
    NoRing(NoRing),
    /// The errors of the device; `EPROTO`: the kernel's protocol is too old; `ENOTCONN`: it has
    /// unmounted.
    Io(io::Error),
}

impl From<io::Error> for ServerError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Server {
    /// Answers INIT.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub(crate) fn negotiate(
        transport: Transport,
        device: Arc<Device>,
        options: &MountOptions,
    ) -> Result<Self, ServerError> {
        let transport = Arc::new(transport);
        let buffer = HEAD + options.max_write.clamp(LONGEST_OTHER, MAX_WRITE) as usize;
        let mut message = vec![0; buffer];
        loop {
            let len = device.read(&mut message)?.ok_or(io::Error::from(Errno::NOTCONN))?;
            let Ok(Request { header, operation: Operation::Init(asked), .. }) = Request::parse(&message[..len]) else {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the kernel's first message is not INIT").into());
            };
            if asked.major > MAJOR {
                // The kernel then sends INIT of this version.
                device.reply(header.unique, 0, init::version().as_bytes())?;
                continue;
            }
            if asked.major < MAJOR || asked.minor < OLDEST_MINOR {
                device.reply(header.unique, Errno::PROTO.raw_os_error(), &[])?;
                return Err(io::Error::from(Errno::PROTO).into());
            }
            let stop = Arc::new(Stop::default());
            let rings = accept(&transport, &device, options, (&header, &asked), &stop)?;
            let (threads, clone_fd) = (threads(options), options.clone_fd);
            return Ok(Self { transport, device, rings, stop, threads, clone_fd, buffer });
        }
    }

    /// Registers the slots of rings, which then serve. If the kernel refuses them, requests come through `/dev/fuse`.
    ///
    /// # Errors
    /// The kernel refuses the slots, and io_uring was [required](Uring::Required); or nothing
    /// carries requests.
    pub(crate) fn begin(&mut self, options: &MountOptions) -> Result<(), ServerError> {
        if let Ok(rings) = &mut self.rings
            && let Err(reason) = rings.register()?
        {
            if options.uring == Uring::Required {
                return Err(ServerError::NoRing(reason));
            }
            self.rings = Err(reason);
        }
        match &self.rings {
            Err(reason) if reason.is_surprise() => tracing::warn!(%reason, "io_uring is offered and not used"),
            Err(reason) => tracing::info!(%reason, "io_uring is not used"),
            Ok(_) => tracing::info!(carrier = %self.transport_kind(), "io_uring is used"),
        }
        Ok(())
    }

    /// Ends the connection, if it has rings.
    #[cfg(test)]
    pub(crate) fn stop(&self) -> Arc<Stop> {
        self.stop.clone()
    }

    /// Returns the transport of requests.
    pub(crate) fn transport_kind(&self) -> TransportKind {
        match &self.rings {
            Ok(rings) => TransportKind::Ring { queues: rings.queues(), threads: rings.threads() },
            Err(reason) => TransportKind::Device { threads: self.threads, reason: reason.clone() },
        }
    }

    /// Returns how many requests may wait at once until the kernel has forgotten names: another
    /// request must be able to arrive; with io_uring, another request of the same queue.
    pub(crate) fn waiting(&self) -> usize {
        match &self.rings {
            Ok(_) if self.transport.session.vfs().may_wait() => MANY_THREADS / 2 - 1,
            Ok(_) => 0,
            Err(_) => self.threads - 1,
        }
    }

    /// Serves until the connection is over. Then the session has ended, too. `abort` ends a connection that cannot be served.
    ///
    /// # Errors
    /// The error of the first thread that has one: `ECONNABORTED`; others are a defect.
    pub(crate) fn run(self, abort: impl FnOnce()) -> io::Result<()> {
        let Self { transport, device, rings, stop, threads, clone_fd, buffer } = self;
        let result = match rings {
            Ok(rings) => {
                let end = StopAtEnd::new(stop.clone());
                let result = end.ends(serve_beside_rings(&transport, &device, buffer, &stop));
                if stop.is_failed() {
                    abort();
                }
                result.and(rings.join())
            }
            Err(_) => serve_by_threads(&transport, &device, (threads, clone_fd, buffer), &stop, abort),
        };
        transport.end();
        result
    }
}

/// Serves all messages of the device.
fn serve_by_threads(
    transport: &Arc<Transport>,
    device: &Arc<Device>,
    (threads, clone_fd, buffer): (usize, bool, usize),
    stop: &Arc<Stop>,
    abort: impl FnOnce(),
) -> io::Result<()> {
    let clone = || device.try_clone().inspect_err(|error| tracing::debug!(%error, "threads share a descriptor"));
    let channel = || clone_fd.then(clone).and_then(Result::ok).map_or_else(|| device.clone(), Arc::new);
    let most = if transport.session.vfs().may_wait() { MAX_THREADS.max(threads) } else { threads };
    let pools = Pools::new(0, [(threads, most)]);
    let all = Arc::new(Threads::default());
    let start = |name: &str, channel, is_hired| {
        let (transport, stop, member) = (transport.clone(), stop.clone(), Member::new(&pools, 0));
        let reader = Reader { transport, stop, member, is_hired, buffer };
        all.spawn(name, move || reader.serve(&channel))
    };
    // The last has the connection's first descriptor.
    let channels = (1..threads).map(|_| channel()).chain([device.clone()]);
    let started: Vec<_> =
        channels.enumerate().map(|(number, channel)| start(&format!("lightfoot-{number}"), channel, false)).collect();
    // With fewer threads the mount is slower; without any it cannot be served.
    if !started.iter().any(Result::is_ok) {
        return started.into_iter().collect();
    }
    let wake_all = |_| {
        // Each is read by another thread, that which waits for longest.
        let files = transport.session.some_files();
        let _ = (0..most).try_for_each(|_| wake(device, &files, || WOKEN));
    };
    let spawn_at = |_| start("lightfoot-more", channel(), true);
    pools.lead(&Actions { spawn_at: &spawn_at, idle: Some(IDLE), wake: &wake_all });
    // One thread cannot read any more, and others still do.
    if stop.is_failed() {
        abort();
    }
    all.join(END_LIMIT)
}

/// A thread that reads the device.
struct Reader {
    transport: Arc<Transport>,
    stop: Arc<Stop>,
    member: Member,
    /// Whether the thread was started when the other threads were inside calls that hang.
    is_hired: bool,
    /// The size of the thread's buffer in bytes.
    buffer: usize,
}

impl Reader {
    /// Serves until the connection is over, or until it is not needed any more.
    fn serve(self, device: &Arc<Device>) -> io::Result<()> {
        // Dropped in the other order, also by a panic: whether it has failed is recorded when the
        // others end.
        let end = self.member.end_of_all();
        StopAtEnd::new(self.stop.clone()).ends(self.serve_all(device, &end))
    }

    fn serve_all(&self, device: &Arc<Device>, end: &EndOfAll) -> io::Result<()> {
        let channel: Arc<dyn Channel> = device.clone();
        let (mut message, mut body) = (vec![0; self.buffer], Body::new());
        while let Some(len) = device.read(&mut message)? {
            let next = {
                let _inside = self.member.enter();
                self.transport.serve(&channel, &message[..len], &mut body)
            };
            if next == Next::End {
                break;
            }
            if self.is_hired && self.member.leave() {
                end.is_mine_alone();
                break;
            }
        }
        Ok(())
    }
}

/// Accepts the kernel's INIT. Rings are made before: once the reply announces them, the kernel
/// keeps every request until each queue has slots.
fn accept(
    transport: &Arc<Transport>,
    device: &Arc<Device>,
    options: &MountOptions,
    (header, asked): (&InHeader, &InitIn),
    stop: &Arc<Stop>,
) -> Result<Result<Rings, NoRing>, ServerError> {
    let offered = init::offered(asked);
    let (wanted, limits) = (wanted(options, transport.session.exports()), limits(options));
    if !offered.contains(wanted) {
        tracing::debug!(missing = ?(wanted - offered), "the kernel does not have these capabilities");
    }
    if wanted.contains(InitFlags::REQUEST_TIMEOUT) && !offered.contains(InitFlags::REQUEST_TIMEOUT) {
        tracing::warn!("this kernel has no timeouts of requests: they come with Linux 6.15");
    }
    transport.session.note_expiry(offered.contains(InitFlags::HAS_EXPIRE_ONLY));
    transport.refuse_opendir((offered & wanted).contains(InitFlags::NO_OPENDIR_SUPPORT));
    transport.session.note_groups((offered & wanted).contains(InitFlags::CREATE_SUPP_GROUP));
    transport.session.note_checked_flags(asked.minor >= CHECKS_FLAGS);
    tracing::debug!(
        minor = asked.minor,
        passthrough = offered.contains(InitFlags::PASSTHROUGH),
        io_uring = offered.contains(InitFlags::OVER_IO_URING),
        "the kernel's offer"
    );
    let with_rings = init::reply(asked, wanted | InitFlags::OVER_IO_URING, limits);
    let start = || {
        let plan = plan(transport.session.vfs().may_wait(), options.pin).map_err(|error| NoRing::of(&error))?;
        Rings::start(transport, device, payload_bytes(&with_rings), plan, stop)
    };
    let rings = match options.uring {
        Uring::Never => Err(NoRing::NotWanted),
        _ if !offered.contains(InitFlags::OVER_IO_URING) => Err(NoRing::NotOffered),
        _ => start(),
    };
    let reply = match &rings {
        Err(reason) if options.uring == Uring::Required => {
            device.reply(header.unique, Errno::OPNOTSUPP.raw_os_error(), &[])?;
            return Err(ServerError::NoRing(reason.clone()));
        }
        Err(_) => init::reply(asked, wanted, limits),
        Ok(_) => with_rings,
    };
    device.reply(header.unique, 0, reply.as_bytes())?;
    Ok(rings)
}

/// Serves the messages that the kernel sends through the device beside io_uring. The thread rests
/// after a FORGET.
fn serve_beside_rings(transport: &Transport, device: &Arc<Device>, buffer: usize, stop: &Stop) -> io::Result<()> {
    let waker = Arc::new(Waker::new()?);
    stop.add(waker.clone());
    let channel: Arc<dyn Channel> = device.clone();
    let (mut message, mut body) = (vec![0; buffer], Body::new());
    loop {
        device.wait(&waker)?;
        if stop.is_stopped() {
            return Ok(());
        }
        let Some(len) = device.read(&mut message)? else { return Ok(()) };
        if transport.serve(&channel, &message[..len], &mut body) == Next::End {
            return Ok(());
        }
        if is_forget(&message) {
            thread::sleep(PAUSE);
        }
    }
}

fn is_forget(message: &[u8]) -> bool {
    let header = InHeader::read_from_prefix(message);
    header.is_ok_and(|(header, _)| matches!(header.opcode, opcode::FORGET | opcode::BATCH_FORGET))
}

#[cfg(test)]
#[path = "server/tests.rs"]
mod tests;
