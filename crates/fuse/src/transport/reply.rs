//! A reply, and the work until the kernel has it.
//!
//! # What it is
//! [`Reply::answer`] is the way from a request to its reply: it starts the timer, does the work, and sends the body or the
//! error. The work is a closure, so that it cannot begin before the timer. A panic in it fails this request with `EIO`, and no
//! other. Handlers neither time nor reply by themselves.

use super::convert::absent;
use crate::metrics::{Metrics, Op, Timer};
use crate::panics::contained;
use crate::session::{Session, UnderWay};
use fusedev::Device;
use fusedev::wire::Body;
use fusedev::wire::abi::{AttrOut, EntryOut};
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;
use vfs::Errno;
use zerocopy::{FromBytes, IntoBytes};

/// The way back to the kernel. Any number of threads may use it.
pub trait Channel: Send + Sync + core::fmt::Debug {
    /// Replies to the request `unique` with `body`; if `error` is not 0, with that errno and without a body.
    ///
    /// # Errors
    /// As for [`Device::reply`].
    fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()>;

    /// Registers a file, so that the kernel reads and writes it without requests.
    ///
    /// # Errors
    /// As for [`Device::open_backing`].
    fn open_backing(&self, file: BorrowedFd<'_>) -> io::Result<i32>;

    /// Ends a registration.
    ///
    /// # Errors
    /// As for [`Device::close_backing`].
    fn close_backing(&self, id: i32) -> io::Result<()>;
}

impl Channel for Device {
    fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()> {
        Self::reply(self, unique, error, body)
    }

    fn open_backing(&self, file: BorrowedFd<'_>) -> io::Result<i32> {
        Self::open_backing(self, file)
    }

    fn close_backing(&self, id: i32) -> io::Result<()> {
        Self::close_backing(self, id)
    }
}

/// Sends the reply to one request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reply<'c> {
    channel: &'c dyn Channel,
    unique: u64,
    /// For how long the kernel may cache that a name does not exist.
    absent_ttl: Option<(&'c Session, u64)>,
    /// A reply that notices can overtake.
    under_way: Option<&'c UnderWay<'c>>,
}

impl<'c> Reply<'c> {
    pub(super) fn new(channel: &'c dyn Channel, unique: u64) -> Self {
        Self { channel, unique, absent_ttl: None, under_way: None }
    }

    /// Makes this the reply to a lookup in the directory `parent`.
    pub(super) fn of_lookup(self, session: &'c Session, parent: u64) -> Self {
        Self { absent_ttl: Some((session, parent)), ..self }
    }

    /// Makes this a reply that is valid for no time if a notice overtakes it.
    pub(super) fn under_way(self, under_way: Option<&'c UnderWay<'c>>) -> Self {
        Self { under_way, ..self }
    }

    /// Serves the request: does `work`, sends the body that it wrote or its error, and records under `op` how long that took, how
    /// it ended, and the bytes that `work` noted on the timer.
    pub(super) fn answer(
        self,
        metrics: &Metrics,
        op: Op,
        body: &mut Body,
        work: impl FnOnce(&mut Body, &Timer<'_>) -> Result<(), Errno>,
    ) {
        let timer = metrics.time(op);
        body.clear();
        let done = contained(metrics, op.name(), || work(&mut *body, &timer)).unwrap_or(Err(Errno::EIO));
        if done.is_ok() && self.under_way.is_some_and(UnderWay::is_overtaken) {
            expire(body);
        }
        self.end(metrics, op, &timer, done.map(|()| body.bytes()));
    }

    fn end(self, metrics: &Metrics, op: Op, timer: &Timer<'_>, result: Result<&[u8], Errno>) {
        match result {
            Ok(body) => self.done(body),
            Err(errno) => {
                timer.failed(errno.raw());
                metrics.note_error(op, errno);
                self.failed(errno);
            }
        }
    }

    /// Sends a body.
    pub(super) fn done(self, body: &[u8]) {
        self.send(0, body);
    }

    /// Sends an error.
    pub(super) fn failed(self, errno: Errno) {
        let ttl = self.absent_ttl.filter(|_| errno == Errno::ENOENT);
        let ttl = ttl.map_or(Duration::ZERO, |(session, parent)| session.negative_ttl(parent));
        if ttl.is_zero() { self.send(errno.raw(), &[]) } else { self.send(0, absent(ttl).as_bytes()) }
    }

    fn send(self, error: i32, body: &[u8]) {
        let Err(refused) = self.channel.reply(self.unique, error, body) else { return };
        // The program that waited has been killed, or the connection is over.
        if refused.raw_os_error() == Some(Errno::ENOENT.raw()) {
            return tracing::debug!(unique = self.unique, "nobody waits for a reply any more");
        }
        tracing::error!(%refused, error, len = body.len(), "the kernel refused a reply");
        if error == 0 {
            let _ = self.channel.reply(self.unique, Errno::EIO.raw(), &[]);
        }
    }
}

/// Makes the name and the attributes of a reply valid for no time.
fn expire(body: &mut Body) {
    if let Ok(entry) = EntryOut::read_from_bytes(body.bytes()) {
        let (entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec) = (0, 0, 0, 0);
        body.clear();
        body.put_struct(&EntryOut { entry_valid, attr_valid, entry_valid_nsec, attr_valid_nsec, ..entry });
    } else if let Ok(attr) = AttrOut::read_from_bytes(body.bytes()) {
        body.clear();
        body.put_struct(&AttrOut { attr_valid: 0, attr_valid_nsec: 0, ..attr });
    }
}

/// The reply to a request that ends later, without a body. Dropped without one, it fails the request with `EIO`.
#[derive(Debug)]
pub(super) struct Later {
    channel: Arc<dyn Channel>,
    unique: u64,
    metrics: Arc<Metrics>,
    op: Op,
    began_ns: i64,
    result: Result<(), Errno>,
}

impl Later {
    /// Starts the timer: the request is in flight.
    pub(super) fn new(channel: Arc<dyn Channel>, unique: u64, metrics: Arc<Metrics>, op: Op) -> Self {
        let began_ns = metrics.begin();
        Self { channel, unique, metrics, op, began_ns, result: Err(Errno::EIO) }
    }

    /// Replies.
    pub(super) fn ends(mut self, result: Result<(), Errno>) {
        self.result = result;
    }
}

impl Drop for Later {
    fn drop(&mut self) {
        let timer = self.metrics.time_since(self.op, self.began_ns);
        let reply = Reply::new(&*self.channel, self.unique);
        reply.end(&self.metrics, self.op, &timer, self.result.map(|()| &[][..]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Gauge;
    use parking_lot::Mutex;

    /// A channel that logs each reply after the actions before it, and checks that the metrics have
    /// no record of the request yet.
    #[derive(Debug)]
    struct Recorded<'a>(&'a Mutex<Vec<String>>, &'a Metrics, usize);

    impl Channel for Recorded<'_> {
        fn reply(&self, unique: u64, error: i32, body: &[u8]) -> io::Result<()> {
            assert_eq!(unique, 7);
            assert_eq!(self.1.snapshot().ops.len(), self.2, "the request has not ended");
            self.0.lock().push(if error == 0 { body.escape_ascii().to_string() } else { error.to_string() });
            if body == b"refused" { Err(io::Error::from_raw_os_error(22)) } else { Ok(()) }
        }

        fn open_backing(&self, _: BorrowedFd<'_>) -> io::Result<i32> {
            Err(io::ErrorKind::Unsupported.into())
        }

        fn close_backing(&self, _: i32) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_request_that_panics_fails_with_eio_and_is_counted() {
        let (metrics, log) = (Metrics::new(), Mutex::new(Vec::new()));
        let channel = Recorded(&log, &metrics, 0);
        Reply::new(&channel, 7).answer(&metrics, Op::Lookup, &mut Body::new(), |_, _| panic!("on purpose"));
        let channel = Recorded(&log, &metrics, 1);
        Reply::new(&channel, 7).answer(&metrics, Op::Lookup, &mut Body::new(), |_, _| Ok(()));
        assert_eq!(log.lock()[..], ["5", ""]);
        let ops = metrics.snapshot().ops;
        assert_eq!((ops[0].count, &ops[0].errnos[..]), (2, &[("EIO".into(), 1)][..]));
        assert_eq!(metrics.get(Gauge::Panics), 1);
    }

    fn check(result: Result<&[u8], Errno>, expected: &[&str], errnos: &[(&str, u64)]) {
        let (metrics, log) = (Metrics::new(), Mutex::new(Vec::new()));
        let channel = Recorded(&log, &metrics, 0);
        let work = |body: &mut Body, _: &Timer<'_>| {
            assert_eq!(metrics.snapshot().ops, [], "the request has not ended");
            log.lock().push("work".into());
            body.put(result?);
            Ok(())
        };
        Reply::new(&channel, 7).answer(&metrics, Op::Setattr, &mut Body::new(), work);
        assert_eq!(log.lock()[..], *expected);
        let ops = metrics.snapshot().ops;
        assert_eq!((ops.len(), &*ops[0].name, ops[0].count), (1, "setattr", 1));
        assert!(ops[0].errnos.iter().map(|(errno, count)| (errno.as_str(), *count)).eq(errnos.iter().copied()));
    }

    #[test]
    fn a_request_is_recorded_once_after_its_reply() {
        check(Ok(b"body"), &["work", "body"], &[]);
        check(Err(Errno::EPERM), &["work", "1"], &[("EPERM", 1)]);
    }

    #[test]
    fn a_reply_that_the_kernel_refuses_becomes_eio() {
        check(Ok(b"refused"), &["work", "refused", "5"], &[]);
    }
}
