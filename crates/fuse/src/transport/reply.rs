//! Replies: one request, from before its work until the kernel has the reply.
//!
//! # What it is
//! [`reply`] is the way from a request to its reply: it starts the timer, does the work, and sends the value or the error.
//! The work is a closure, so that it cannot begin before the timer. A panic in it fails this request with `EIO`, and no
//! other. Handlers neither time nor reply by themselves. Below are the functions that send one kind of value.

use super::convert::file_attr;
use crate::metrics::{Metrics, Op};
use crate::panics::contained;
use crate::session::{Entry, Session};
use fuser::{
    FileAttr, Generation, ReplyAttr, ReplyBmap, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty,
    ReplyEntry, ReplyIoctl, ReplyLock, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr,
};
use std::time::Duration;
use vfs::{Attr, Errno, StatVfs};

/// A reply that can be an error.
pub(super) trait ErrorReply {
    /// Sends the error.
    fn send_error(self, errno: Errno);
}

macro_rules! error_replies {
    ($($reply:ty),* $(,)?) => {
        $(impl ErrorReply for $reply {
            fn send_error(self, errno: Errno) {
                self.error(fuser::Errno::from_i32(errno.raw()));
            }
        })*
    };
}

error_replies! {
    ReplyAttr, ReplyBmap, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyIoctl,
    ReplyLock, ReplyLseek, ReplyOpen, ReplyPoll, ReplyStatfs, ReplyWrite, ReplyXattr,
}

/// Serves a request: does `work`, sends its value by `send` or its error, and records under `op` how long that took and how
/// it ended.
pub(super) fn reply<R: ErrorReply, T>(
    metrics: &Metrics,
    op: Op,
    reply: R,
    work: impl FnOnce() -> Result<T, Errno>,
    send: impl FnOnce(R, T),
) {
    fill(metrics, op, reply, |_| work(), send);
}

/// As [`reply`], for a reply that the work fills.
pub(super) fn fill<R: ErrorReply, T>(
    metrics: &Metrics,
    op: Op,
    mut reply: R,
    work: impl FnOnce(&mut R) -> Result<T, Errno>,
    send: impl FnOnce(R, T),
) {
    let timer = metrics.time(op);
    let result = contained(metrics, op.name(), || work(&mut reply)).unwrap_or(Err(Errno::EIO));
    match result {
        // A reply that a panic drops is sent by `fuser`, with EIO.
        Ok(value) => {
            contained(metrics, op.name(), || send(reply, value)).unwrap_or_else(|| timer.failed(Errno::EIO.raw()))
        }
        Err(errno) => {
            timer.failed(errno.raw());
            metrics.note_error(op, errno);
            reply.send_error(errno);
        }
    }
}

/// The reply to a lookup in the directory `parent`: for some time the kernel may cache that the name does not exist.
pub(super) struct LookupReply<'a> {
    pub(super) reply: ReplyEntry,
    pub(super) session: &'a Session,
    pub(super) parent: u64,
}

impl ErrorReply for LookupReply<'_> {
    fn send_error(self, errno: Errno) {
        let ttl = if errno == Errno::ENOENT { self.session.negative_ttl(self.parent) } else { Duration::ZERO };
        if !ttl.is_zero() {
            // A node id of 0: there is none, and the kernel may cache that.
            self.reply.entry_with_ttls(&ttl, &ttl, &file_attr(&Attr::default(), 0), Generation(0));
        } else {
            self.reply.send_error(errno);
        }
    }
}

pub(super) fn ok(reply: ReplyEmpty, (): ()) {
    reply.ok();
}

pub(super) fn attributes(reply: ReplyAttr, (attr, ttl): (Attr, Duration)) {
    reply.attr(&ttl, &file_attr(&attr, attr.ino));
}

pub(super) fn entry(reply: ReplyEntry, entry: Entry) {
    let (attr, generation) = shown(&entry);
    reply.entry_with_ttls(&entry.attr_ttl, &entry.entry_ttl, &attr, generation);
}

pub(super) fn shown(entry: &Entry) -> (FileAttr, Generation) {
    (file_attr(&entry.attr, entry.node), Generation(entry.generation))
}

/// The size of an extended attribute or of a list of them is requested with `size` 0, as in `getxattr(2)`.
pub(super) fn xattr(reply: ReplyXattr, value: &[u8], size: u32) {
    if size == 0 {
        reply.size(u32::try_from(value.len()).unwrap_or(u32::MAX));
    } else {
        reply.data(value);
    }
}

/// `ERANGE` if a value does not fit into `size` bytes, as in `getxattr(2)`.
pub(super) fn fits<V: AsRef<[u8]>>(value: V, size: u32) -> Result<V, Errno> {
    if size != 0 && value.as_ref().len() > size as usize { Err(Errno::ERANGE) } else { Ok(value) }
}

pub(super) fn statfs(reply: ReplyStatfs, stat: StatVfs) {
    let fs = stat.fs;
    let (free, available) = (fs.blocks_free, fs.blocks_available);
    // The fragment size is the block size.
    let fragment_size = fs.block_size;
    reply.statfs(fs.blocks, free, available, fs.files, fs.files_free, fs.block_size, fs.name_max, fragment_size);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Gauge;
    use std::cell::RefCell;

    /// A reply that writes down what is sent by it, after what was done before.
    struct Recorded<'a>(&'a RefCell<Vec<String>>);

    impl ErrorReply for Recorded<'_> {
        fn send_error(self, errno: Errno) {
            self.0.borrow_mut().push(format!("{errno:?}"));
        }
    }

    #[test]
    fn a_request_that_panics_fails_with_eio_and_is_counted() {
        let (metrics, log) = (Metrics::new(), RefCell::new(Vec::new()));
        let sent = |_: Recorded<'_>, ()| ();
        reply(&metrics, Op::Lookup, Recorded(&log), || panic!("on purpose"), sent);
        reply(&metrics, Op::Lookup, Recorded(&log), || Ok(()), |_, ()| panic!("on purpose"));
        reply(&metrics, Op::Lookup, Recorded(&log), || Ok(()), sent);
        assert_eq!(log.borrow()[..], ["EIO"]);
        let ops = metrics.snapshot().ops;
        assert_eq!((ops[0].count, &ops[0].errnos[..]), (3, &[(5, 2)][..]));
        assert_eq!(metrics.get(Gauge::Panics), 2);
    }

    fn check(result: Result<u32, Errno>, expected: &[&str], errnos: &[(i32, u64)]) {
        let (metrics, log) = (Metrics::new(), RefCell::new(Vec::new()));
        let work = || {
            assert_eq!(metrics.snapshot().ops, [], "the request has not ended");
            log.borrow_mut().push("work".into());
            result
        };
        let send = |reply: Recorded<'_>, value: u32| {
            assert_eq!(metrics.snapshot().ops, [], "the request has not ended");
            reply.0.borrow_mut().push(value.to_string());
        };
        reply(&metrics, Op::Setattr, Recorded(&log), work, send);
        assert_eq!(log.borrow()[..], *expected);
        let ops = metrics.snapshot().ops;
        assert_eq!((ops.len(), &*ops[0].name, ops[0].count, &ops[0].errnos[..]), (1, "setattr", 1, errnos));
    }

    #[test]
    fn a_request_is_recorded_once_after_its_reply() {
        check(Ok(7), &["work", "7"], &[]);
        check(Err(Errno::EPERM), &["work", "EPERM"], &[(1, 1)]);
    }
}
