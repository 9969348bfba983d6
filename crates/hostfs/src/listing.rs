//! Listings.
//!
//! # What it is
//! A listing is read from the host in large pieces and returned in small ones. Each open directory
//! has a *stream* after its first listing: a descriptor, and entries that were read and not
//! returned yet. A listing continues at the stream's position; for any other cookie it seeks.
//! Cookies are the host's (`d_off`), which locate the next entry. A listing that starts again reads
//! from the host again, and returns no entries that were read before. If a user has many open
//! directories, their streams keep no entries between two calls ([`crate::pieces`]): they seek, and
//! read the entries again.
//!
//! # How it is locked
//! A stream has a mutex, never held during a call to the host: a thread takes the stream out to use
//! it. If another thread lists the same open directory at that time, it makes a second stream, and
//! one of both streams is kept.
//!
//! # Where it comes from
//! `getdents64(2)`; `lo_dirp` of libfuse's `passthrough_ll`.

use crate::errno::errno;
use crate::host;
use crate::identity::dev_of;
use crate::node::Node;
use crate::options::AccessTimes;
use crate::pieces::Piece;
use crate::shared::Shared;
use crate::system;
use core::mem::MaybeUninit;
use parking_lot::Mutex;
use rustix::fs::{FileType, OFlags, RawDirEntry, SeekFrom};
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use vfs::{DirEntry, Errno, Open, S_IFMT};

/// Bytes of one read.
const PIECE: usize = 32 << 10;

/// An open directory: its state for the VFS.
#[derive(Debug)]
pub(crate) struct HostDir {
    stream: Mutex<Option<Stream>>,
    /// The user that is charged.
    pub(crate) uid: u32,
}

impl HostDir {
    /// Returns the state without a stream. The first listing opens the stream, since the caches may
    /// have all entries.
    pub(crate) fn new(uid: u32) -> Self {
        Self { stream: Mutex::new(None), uid }
    }
}

/// An entry that was read.
#[derive(Debug)]
struct Listed {
    entry: DirEntry,
    /// The cookie after which the listing continues.
    cookie: u64,
}

/// A descriptor of a directory, and the entries that were read from it.
#[derive(Debug)]
struct Stream {
    fd: OwnedFd,
    /// The directory's device.
    dev: u64,
    /// The cookie of the last entry that was returned.
    at: u64,
    /// Entries that were read and not returned yet.
    read: VecDeque<Listed>,
    is_at_end: bool,
    /// Nothing was read yet.
    is_fresh: bool,
    /// The descriptor is behind entries that were dropped.
    has_dropped: bool,
    /// The right to keep entries.
    piece: Option<Piece>,
}

impl Shared {
    /// See [`vfs::FileSystem::read_dir`].
    pub(crate) fn read_dir(
        &self,
        dir: &Open<'_>,
        after: u64,
        emit: &mut dyn FnMut(vfs::Listed) -> bool,
    ) -> Result<(), Errno> {
        self.mark_root_stale(dir.inode);
        let node = self.node(dir.inode)?;
        let open = dir.state.get::<HostDir>();
        let kept = open.and_then(|open| open.stream.lock().take());
        let mut stream = match kept {
            Some(stream) if after != 0 && stream.at == after && !stream.has_dropped => stream,
            kept => self.stream_at(node, kept, after)?,
        };
        let done = self.give_out(&mut stream, emit);
        if let Some(open) = open {
            self.keep_piece(&mut stream, open.uid);
            let other = open.stream.lock().replace(stream);
            drop(other);
        }
        done
    }

    /// Keeps the entries that a stream has not returned, or drops them.
    fn keep_piece(&self, stream: &mut Stream, uid: u32) {
        if stream.read.is_empty() {
            (stream.read, stream.piece) = (VecDeque::new(), None);
            return;
        }
        stream.piece = stream.piece.take().or_else(|| self.pieces.keep(uid));
        if stream.piece.is_none() {
            stream.read = VecDeque::new();
            (stream.has_dropped, stream.is_at_end) = (true, false);
        }
    }

    /// Returns the next entries of a stream, until `emit` takes no more.
    fn give_out(&self, stream: &mut Stream, emit: &mut dyn FnMut(vfs::Listed) -> bool) -> Result<(), Errno> {
        loop {
            while let Some(Listed { entry, cookie }) = stream.read.pop_front() {
                stream.at = cookie;
                if !emit(vfs::Listed::new(entry, cookie)) {
                    return Ok(());
                }
            }
            if stream.is_at_end {
                return Ok(());
            }
            self.read_piece(stream)?;
        }
    }

    /// Returns a stream whose position is after `after`: a kept one or a new one.
    fn stream_at(&self, node: &Arc<Node>, kept: Option<Stream>, after: u64) -> Result<Stream, Errno> {
        let path = self.path_fd(node)?;
        self.watch(node, &path);
        let stream = match kept {
            Some(stream) => Stream { at: after, read: VecDeque::new(), is_at_end: false, has_dropped: false, ..stream },
            None => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                let fd = self.open_at(path.as_fd(), b".", flags).map_err(errno)?;
                if self.options.access_times != AccessTimes::Host {
                    host::keep_access_time(&fd);
                }
                let dev = if node.is_elsewhere { device(fd.as_fd())? } else { self.identities.dev };
                let (read, is_fresh) = (VecDeque::new(), true);
                Stream { fd, dev, at: after, read, is_at_end: false, is_fresh, has_dropped: false, piece: None }
            }
        };
        if after != 0 || !stream.is_fresh {
            system::seek(&stream.fd, SeekFrom::Start(after)).map_err(errno)?;
        }
        Ok(stream)
    }

    /// Reads the next entries of a stream, all of whose entries were returned.
    fn read_piece(&self, stream: &mut Stream) -> Result<(), Errno> {
        stream.is_fresh = false;
        let mut buf = [MaybeUninit::<u8>::uninit(); PIECE];
        while stream.read.is_empty() && !stream.is_at_end {
            let Stream { fd, dev, read, .. } = stream;
            let each = |entry: &RawDirEntry<'_>| {
                let name = entry.file_name().to_bytes();
                if !matches!(name, b"." | b"..") {
                    let found = DirEntry {
                        name: name.into(),
                        ino: self.identities.shown_ino(*dev, entry.ino()),
                        kind: kind_of(entry.file_type(), fd.as_fd(), name),
                    };
                    read.push_back(Listed { entry: found, cookie: entry.next_entry_cookie() });
                }
            };
            stream.is_at_end = !system::read_entries(fd, &mut buf, each).map_err(errno)?;
        }
        Ok(())
    }
}

fn device(fd: BorrowedFd<'_>) -> Result<u64, Errno> {
    host::stat_fd(fd).map(|stat| dev_of(&stat)).map_err(errno)
}

/// Returns the type of an entry, from the entry's attributes if the listing has no type.
fn kind_of(kind: FileType, dir: BorrowedFd<'_>, name: &[u8]) -> u32 {
    match kind {
        FileType::Unknown => host::stat_at(dir, name).map_or(0, |stat| u32::from(stat.stx_mode) & S_IFMT),
        kind => kind.as_raw_mode(),
    }
}

#[cfg(test)]
mod tests {
    use crate::filesystem::HostFs;
    use crate::options::HostOptions;
    use std::collections::BTreeSet;
    use std::sync::Arc;
    use vfs::{Base, OpenFlags, Vfs, Want};

    #[test]
    fn few_of_many_open_directories_keep_entries_and_all_list_each_name_once() {
        const DIRS: usize = 60;
        const NAMES: usize = 2500;
        let source = tempfile::tempdir().unwrap();
        for name in 0..NAMES {
            std::fs::write(source.path().join(format!("a-name-{name}")), "").unwrap();
        }
        let fs = HostFs::new(source.path(), &HostOptions::default()).unwrap();
        let shared = Arc::clone(&fs.shared);
        let at = Vfs::new(fs).context();
        let open = || at.open(Base::CWD, b"/", OpenFlags::RDONLY.union(OpenFlags::DIRECTORY), 0).unwrap();
        let dirs: Vec<_> = (0..DIRS).map(|_| open()).collect();
        let mut seen = vec![(0, Vec::new()); DIRS];
        for _ in 0..=NAMES / 500 {
            for (dir, (after, names)) in dirs.iter().zip(&mut seen) {
                let most = names.len() + 500;
                let mut next = *after;
                dir.entries_after(*after, Want::NAMES, &mut |entry, cookie| {
                    if names.len() >= most {
                        return false;
                    }
                    names.push(entry.name.clone());
                    next = cookie;
                    true
                })
                .unwrap();
                *after = next;
                dir.trim_listing();
                assert_eq!(dir.listing_bytes(), 0);
                assert!(shared.pieces.len() <= 16);
            }
        }
        for (_, names) in &seen {
            assert_eq!((names.len(), names.iter().collect::<BTreeSet<_>>().len()), (NAMES, NAMES));
        }
        drop(dirs);
        assert_eq!(shared.pieces.len(), 0);
    }
}
