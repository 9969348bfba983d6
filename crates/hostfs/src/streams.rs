//! Directory streams: descriptors with entries that were read ahead.
//!
//! # What it is
//! A listing is read from the host in large pieces and returned in small ones. A *stream* is kept between the calls: a
//! descriptor, and entries that were read and not returned yet. It is found again by its directory and the cookie where
//! it stands.
//!
//! A listing that starts must not get entries that were read before it started. So its start ends the other streams of
//! the directory; a stream that a thread is using at that moment loses its entries when the thread returns it.
//!
//! # How it is locked
//! A mutex around the streams, never held during a call to the host: a thread takes a stream out to use it.
//!
//! # Where it comes from
//! `lo_dirp` of libfuse's `passthrough_ll`; own code.

use parking_lot::Mutex;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use vfs::DirEntry;

/// An entry that was read.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) entry: DirEntry,
    /// The cookie after which the listing continues.
    pub(crate) cookie: u64,
}

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) fd: OwnedFd,
    /// The directory's device.
    pub(crate) dev: u64,
    /// The directory's node.
    pub(crate) dir: u64,
    /// The cookie of the last entry that was returned.
    pub(crate) at: u64,
    /// Entries that were read and not returned yet.
    pub(crate) read: VecDeque<Listed>,
    pub(crate) is_at_end: bool,
    /// Nothing was read yet.
    pub(crate) is_fresh: bool,
}

#[derive(Debug, Default)]
struct Kept {
    streams: VecDeque<Stream>,
    /// The number of listings that have started.
    starts: u64,
}

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<Kept>);

impl Streams {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The number of descriptors.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().streams.len()
    }

    /// Takes the stream of `dir` that stands after the entry with the cookie `after`. Also returns the number of
    /// listings that have started, for [`Streams::put`].
    pub(crate) fn take(&self, dir: u64, after: u64) -> (Option<Stream>, u64) {
        let mut ended = Vec::new();
        let mut kept = self.0.lock();
        if after != 0 {
            let place = kept.streams.iter().position(|stream| (stream.dir, stream.at) == (dir, after));
            return (place.and_then(|place| kept.streams.remove(place)), kept.starts);
        }
        kept.starts += 1;
        let mut at = 0;
        while at < kept.streams.len() {
            if kept.streams[at].dir == dir {
                ended.extend(kept.streams.remove(at));
            } else {
                at += 1;
            }
        }
        let starts = kept.starts;
        drop(kept);
        // One of the ended streams serves as the new one, from the start.
        let again = ended.pop().map(|stream| Stream { at: 0, read: VecDeque::new(), is_at_end: false, ..stream });
        (again, starts)
    }

    /// Keeps a stream that was taken when `starts` listings had started; at most `most` streams are kept.
    pub(crate) fn put(&self, stream: Stream, starts: u64, most: usize) {
        let mut kept = self.0.lock();
        if kept.starts != starts && !stream.read.is_empty() {
            drop(kept);
            return;
        }
        kept.streams.push_back(stream);
        let oldest = if kept.streams.len() > most { kept.streams.pop_front() } else { None };
        drop(kept);
        drop(oldest);
    }

    /// Ends the streams of a directory.
    pub(crate) fn end(&self, dir: u64) {
        let mut kept = self.0.lock();
        if kept.streams.iter().any(|stream| stream.dir == dir) {
            let (ended, others): (VecDeque<_>, _) = kept.streams.drain(..).partition(|stream| stream.dir == dir);
            kept.streams = others;
            drop(kept);
            drop(ended);
        }
    }
}
