//! Listings.
//!
//! # What it is
//! A listing is read in large pieces and given out in small ones, so a *stream* (a descriptor, and entries that were
//! read and not given out) is kept between calls and found again by the directory and the cookie where it stands. Any
//! other cookie is sought. Cookies are the host's own (`d_off`), which say where the next entry is.
//!
//! A listing that begins anew must not be given what was read before it began: it ends the streams of its directory,
//! and one that is in use meanwhile loses what it had read when it comes back.
//!
//! # How it is locked
//! A mutex around the streams, held for no call to the host: a stream is taken out to be used.
//!
//! # Where it comes from
//! `getdents64(2)`; `lo_dirp` of libfuse's `passthrough_ll`; own code.

use crate::core::Core;
use crate::errno::errno;
use crate::host;
use crate::identity::dev_of;
use core::mem::MaybeUninit;
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags, RawDir, SeekFrom};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use vfs::{DirEntry, Errno, Inode, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK};

/// Streams that are kept.
const MOST: usize = 16;

/// Bytes that are read at once.
const PIECE: usize = 32 << 10;

/// An entry and its cookie.
type Entry = (DirEntry, u64);

#[derive(Debug)]
struct Stream {
    fd: OwnedFd,
    /// The directory's device.
    dev: u64,
    dir: u64,
    /// The cookie of the entry that was given out last.
    at: u64,
    /// Entries that were read and not given out.
    read: VecDeque<Entry>,
    is_at_end: bool,
    /// Nothing was read yet.
    is_fresh: bool,
}

#[derive(Debug, Default)]
struct Kept {
    streams: VecDeque<Stream>,
    /// Listings that began.
    begun: u64,
}

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(crate) struct Streams(Mutex<Kept>);

impl Streams {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// How many descriptors they have.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().streams.len()
    }

    /// The stream of `dir` that stands after the entry with the cookie `after`, and how many listings have begun.
    fn take(&self, dir: u64, after: u64) -> (Option<Stream>, u64) {
        let mut ended = Vec::new();
        let mut kept = self.0.lock();
        if after != 0 {
            let place = kept.streams.iter().position(|stream| (stream.dir, stream.at) == (dir, after));
            return (place.and_then(|place| kept.streams.remove(place)), kept.begun);
        }
        kept.begun += 1;
        let mut at = 0;
        while at < kept.streams.len() {
            if kept.streams[at].dir == dir {
                ended.extend(kept.streams.remove(at));
            } else {
                at += 1;
            }
        }
        let begun = kept.begun;
        drop(kept);
        // One of them is as good as a new one, from the start.
        let again = ended.pop().map(|stream| Stream { at: 0, read: VecDeque::new(), is_at_end: false, ..stream });
        (again, begun)
    }

    /// Keeps a stream that was taken when so many listings had begun.
    fn put(&self, stream: Stream, begun: u64, most: usize) {
        let mut kept = self.0.lock();
        if kept.begun != begun && !stream.read.is_empty() {
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

impl Core {
    /// See [`vfs::FileSystem::read_dir`].
    pub(crate) fn read_dir(
        &self,
        dir: &Inode,
        after: u64,
        emit: &mut dyn FnMut(DirEntry, u64) -> bool,
    ) -> Result<(), Errno> {
        self.doubt_root(dir);
        let node = self.node(dir)?;
        let (kept, begun) = self.streams.take(node.id, after);
        let mut stream = match kept {
            Some(stream) if after != 0 => stream,
            kept => {
                let path = self.path_fd(node)?;
                self.watch(node, &path);
                let stream = match kept {
                    Some(stream) => stream,
                    None => {
                        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                        let fd = self.open_at(path.as_fd(), b".", flags, 0).map_err(errno)?;
                        let dev = if node.is_elsewhere { self.dev_of(fd.as_fd())? } else { self.identities.dev() };
                        Stream { fd, dev, dir: node.id, at: 0, read: VecDeque::new(), is_at_end: false, is_fresh: true }
                    }
                };
                if after != 0 || !stream.is_fresh {
                    rustix::fs::seek(&stream.fd, SeekFrom::Start(after)).map_err(errno)?;
                }
                stream
            }
        };
        loop {
            while let Some((entry, cookie)) = stream.read.pop_front() {
                stream.at = cookie;
                if !emit(entry, cookie) {
                    self.streams.put(stream, begun, MOST.min(self.budget.max() / 4));
                    return Ok(());
                }
            }
            if stream.is_at_end {
                self.streams.put(stream, begun, MOST.min(self.budget.max() / 4));
                return Ok(());
            }
            self.read_piece(&mut stream)?;
        }
    }

    fn dev_of(&self, fd: BorrowedFd<'_>) -> Result<u64, Errno> {
        host::stat_fd(fd).map(|stat| dev_of(&stat)).map_err(errno)
    }

    /// Reads the next entries of a stream that has given out all.
    fn read_piece(&self, stream: &mut Stream) -> Result<(), Errno> {
        stream.is_fresh = false;
        let mut buf = [MaybeUninit::<u8>::uninit(); PIECE];
        let mut raw = RawDir::new(&stream.fd, &mut buf);
        loop {
            match raw.next() {
                None => {
                    stream.is_at_end = true;
                    return Ok(());
                }
                Some(Err(error)) => return Err(errno(error)),
                Some(Ok(entry)) => {
                    let name = entry.file_name().to_bytes();
                    if !matches!(name, b"." | b"..") {
                        let entry_of = DirEntry {
                            name: name.into(),
                            ino: self.identities.shown_ino(stream.dev, entry.ino()),
                            kind: kind_of(entry.file_type(), stream.fd.as_fd(), name),
                        };
                        stream.read.push_back((entry_of, entry.next_entry_cookie()));
                    }
                }
            }
            if raw.is_buffer_empty() && !stream.read.is_empty() {
                return Ok(());
            }
        }
    }
}

/// The type of an entry. Where a listing does not say it, its attributes do.
fn kind_of(kind: FileType, dir: BorrowedFd<'_>, name: &[u8]) -> u32 {
    match kind {
        FileType::RegularFile => S_IFREG,
        FileType::Directory => S_IFDIR,
        FileType::Symlink => S_IFLNK,
        FileType::Fifo => S_IFIFO,
        FileType::Socket => S_IFSOCK,
        FileType::CharacterDevice => S_IFCHR,
        FileType::BlockDevice => S_IFBLK,
        FileType::Unknown => host::stat_at(dir, name).map_or(0, |stat| u32::from(stat.stx_mode) & S_IFMT),
    }
}
