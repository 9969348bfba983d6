//! Watches of directories: `inotify(7)`, and the answers about names that the VFS received.
//!
//! # What it is
//! The table from watches to directories, and the names that this file system changed lately, so that their events can
//! be recognised as its own ([`crate::events`]).
//!
//! # How it is locked
//! One mutex protects the table of watches; a thread holds it while the host adds or removes a
//! watch. Another mutex protects the names. Both are leaves, never held during an invalidation or
//! another call to the host.
//!
//! # Where it comes from
//! `inotify(7)`; Robert Love, "Kernel Korner: Intro to inotify" (2005).

use crate::counts::count_down;
use crate::host::ProcPath;
use crate::node::{NameAt, Node};
use crate::system;
use crate::table::AsIs;
use core::hash::{BuildHasher, BuildHasherDefault};
use core::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use parking_lot::Mutex;
use rustix::fs::inotify::WatchFlags;
use rustix::io::Errno as HostErrno;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::RandomState;
use std::os::fd::OwnedFd;

/// Directories that are watched at most: each takes about a kilobyte of kernel memory.
pub(crate) const MAX_WATCHES: usize = 65_536;

/// Names whose last change is remembered.
pub(crate) const RECENT: usize = 8192;

/// A directory's node and the hash of a name in it.
type NameKey = (u64, u64);

/// The names that this file system changed lately.
#[derive(Debug, Default)]
struct Recent {
    /// The node to which this file system's last change has led the name; `None` if that change
    /// removed the name.
    results: HashMap<NameKey, Option<u64>>,
    /// In the order of their first change.
    order: VecDeque<NameKey>,
    /// Names that threads are changing now, with the number of threads.
    changing: HashMap<NameKey, usize>,
}

/// A directory with a watch.
#[derive(Clone, Copy, Debug)]
struct Watched {
    dir: u64,
    /// The host has one watch of a directory, however often it is added. An eviction may remove it after another inode of
    /// the directory has added it again.
    users: u32,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Watches {
    pub(crate) inotify: OwnedFd,
    /// An eventfd, written when the file system ends.
    pub(crate) stop: OwnedFd,
    watched: Mutex<HashMap<u64, Watched, BuildHasherDefault<AsIs>>>,
    recent: Mutex<Recent>,
    names: RandomState,
    /// A directory could not be watched.
    is_partial: AtomicBool,
    invalidations: AtomicU64,
    begun: AtomicU64,
    /// See [`Watches::round`].
    round: AtomicU32,
}

impl Watches {
    pub(crate) fn new() -> Result<Self, HostErrno> {
        Ok(Self {
            inotify: system::new_inotify()?,
            stop: system::new_eventfd()?,
            watched: Mutex::default(),
            recent: Mutex::default(),
            names: RandomState::new(),
            is_partial: AtomicBool::new(false),
            invalidations: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            round: AtomicU32::new(1),
        })
    }

    /// Returns the number of watched directories.
    pub(crate) fn len(&self) -> usize {
        self.watched.lock().len()
    }

    /// Returns the number of watches that were begun. Read before a query to the host.
    pub(crate) fn begun(&self) -> u64 {
        // ORDERING: Acquire pairs with the Release in `begin`; the query to the host is a system call behind it.
        self.begun.load(Acquire)
    }

    /// Returns how many times the caches were notified of a change.
    pub(crate) fn invalidations(&self) -> u64 {
        // Relaxed: a counter.
        self.invalidations.load(Relaxed)
    }

    /// Counts a notification of the caches.
    pub(crate) fn note_invalidation(&self) {
        // Relaxed: a counter.
        self.invalidations.fetch_add(1, Relaxed);
    }

    /// Returns the number of the round: never 0. In a round the thread reads all events that the
    /// host has when it begins to read.
    pub(crate) fn round(&self) -> u32 {
        // Relaxed: an old number makes an event of an own change look like one of another program, which is invalidated.
        self.round.load(Relaxed)
    }

    /// Ends a round, all of whose events were read.
    pub(crate) fn end_round(&self) {
        // Relaxed: only the thread writes it.
        self.round.store(self.round().wrapping_add(1).max(1), Relaxed);
    }

    /// Begins to watch a directory. If the host refuses, no thread tries this directory again.
    pub(crate) fn add(&self, dir: &Node, fd: &OwnedFd) {
        {
            let state = dir.state();
            if state.watch != 0 || state.is_unwatched {
                return;
            }
        }
        self.begin(dir, fd);
    }

    fn begin(&self, dir: &Node, fd: &OwnedFd) {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ATTRIB
            | WatchFlags::MODIFY
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        let made = {
            let mut watched = self.watched.lock();
            let has_room = watched.len() < MAX_WATCHES;
            let made = has_room.then(|| system::add_watch(&self.inotify, ProcPath::new(fd).bytes(), flags));
            if let Some(Ok(watch)) = made {
                watched.entry(key(watch)).or_insert(Watched { dir: dir.id, users: 0 }).users += 1;
            }
            made
        };
        let Some(Ok(watch)) = made else {
            dir.state().is_unwatched = true;
            // Relaxed: only so that it is logged once.
            if !self.is_partial.swap(true, Relaxed) {
                let limit = "/proc/sys/fs/inotify/max_user_watches";
                tracing::warn!(
                    ?made,
                    limit,
                    "a directory cannot be watched: what is in it, and in others like it, is cached for the time of `ttl`"
                );
            }
            return;
        };
        // ORDERING: Release pairs with the Acquire in `begun`. Before the watch is noted in `dir`, whose lock orders it: a thread
        // that sees the watch there sees the new number.
        self.begun.fetch_add(1, Release);
        let former = core::mem::replace(&mut dir.state().watch, watch);
        if former != 0 {
            // Another thread was faster.
            self.remove(former);
        }
    }

    /// Ends one use of a watch, and the watch with its last use.
    pub(crate) fn remove(&self, watch: i32) {
        let mut watched = self.watched.lock();
        if let Entry::Occupied(mut entry) = watched.entry(key(watch)) {
            entry.get_mut().users -= 1;
            if entry.get().users == 0 {
                entry.remove();
                system::remove_watch(&self.inotify, watch);
            }
        }
    }

    /// Drops a watch that the host has ended.
    pub(crate) fn forget(&self, watch: i32) {
        self.watched.lock().remove(&key(watch));
    }

    /// Returns the directory of a watch.
    pub(crate) fn dir(&self, watch: i32) -> Option<u64> {
        self.watched.lock().get(&key(watch)).map(|watched| watched.dir)
    }

    /// Makes the thread end.
    pub(crate) fn stop(&self) {
        system::wake(&self.stop);
    }

    fn name_key(&self, at: NameAt<'_>) -> NameKey {
        (at.dir, self.names.hash_one(at.name))
    }

    /// Notes the node to which a change by this file system has led a name (`None`: it removed the name), so that the
    /// change's event causes no invalidation.
    pub(crate) fn note_result(&self, at: NameAt<'_>, node: Option<u64>) {
        let mut recent = self.recent.lock();
        let key = self.name_key(at);
        if recent.results.insert(key, node).is_some() {
            return;
        }
        recent.order.push_back(key);
        if recent.order.len() > RECENT
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.results.remove(&oldest);
        }
    }

    /// Notes the node that a lookup found at a name. If this file system's last change led the name
    /// to another node, another program has changed the name since, and caches may have either
    /// node.
    pub(crate) fn note_found(&self, at: NameAt<'_>, node: Option<u64>) {
        let mut recent = self.recent.lock();
        if recent.results.is_empty() {
            return;
        }
        let key = self.name_key(at);
        if recent.results.get(&key).is_some_and(|result| *result != node) {
            recent.results.remove(&key);
        }
    }

    /// Forgets the result of this file system's last change of a name.
    pub(crate) fn forget_result(&self, at: NameAt<'_>) {
        let mut recent = self.recent.lock();
        let key = self.name_key(at);
        recent.results.remove(&key);
    }

    /// Returns whether a name is as this file system's last change has left it, if it leads to
    /// `node` now.
    pub(crate) fn is_own_result(&self, at: NameAt<'_>, node: Option<u64>) -> bool {
        self.recent.lock().results.get(&self.name_key(at)) == Some(&node)
    }

    /// Begins a change of a name: its events wait.
    pub(crate) fn begin_change(&self, at: NameAt<'_>) {
        *self.recent.lock().changing.entry(self.name_key(at)).or_default() += 1;
    }

    /// Ends what [`Watches::begin_change`] began.
    pub(crate) fn end_change(&self, at: NameAt<'_>) {
        count_down(&mut self.recent.lock().changing, self.name_key(at));
    }

    /// Returns whether a thread is changing a name.
    pub(crate) fn is_changing(&self, at: NameAt<'_>) -> bool {
        self.recent.lock().changing.contains_key(&self.name_key(at))
    }
}

fn key(watch: i32) -> u64 {
    u64::from(watch.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::inotify::Reader;
    use std::mem::{MaybeUninit, take};

    #[test]
    fn a_name_that_was_found_elsewhere_meanwhile_is_not_as_this_file_system_left_it() {
        let (watches, at) = (Watches::new().unwrap(), NameAt { dir: 1, name: b"name" });
        watches.note_result(at, Some(7));
        watches.note_found(at, Some(7));
        assert!(watches.is_own_result(at, Some(7)) && !watches.is_own_result(at, None));
        // Another program exchanged the file and put it back: a cache may have the other one.
        watches.note_found(at, Some(8));
        assert!(!watches.is_own_result(at, Some(7)));
        watches.note_result(at, None);
        assert!(watches.is_own_result(at, None));
    }

    #[test]
    fn a_directory_that_is_watched_again_while_its_eviction_ends_stays_watched() {
        let source = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(std::fs::File::open(source.path()).unwrap());
        let (watches, dir) = (Watches::new().unwrap(), Node::new(7, 7, false, NameAt { dir: 1, name: b"d" }));
        watches.add(&dir, &fd);
        // The eviction of one inode takes the watch, another inode with the same record begins, and
        // the eviction continues.
        let taken = take(&mut dir.state().watch);
        watches.add(&dir, &fd);
        watches.remove(taken);
        assert_eq!((watches.len(), watches.dir(dir.state().watch)), (1, Some(7)));
        std::fs::write(source.path().join("file"), "").unwrap();
        let mut buf = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(&watches.inotify, &mut buf);
        let event = reader.next().expect("an event");
        assert_eq!((event.wd(), event.file_name()), (dir.state().watch, Some(c"file")));
        watches.remove(take(&mut dir.state().watch));
        assert_eq!(watches.len(), 0, "the last user ends the watch");
    }

    #[test]
    fn a_directory_that_two_threads_watch_at_once_has_one_watch() {
        let source = tempfile::tempdir().unwrap();
        let fd = OwnedFd::from(std::fs::File::open(source.path()).unwrap());
        let (watches, dir) = (Watches::new().unwrap(), Node::new(7, 7, false, NameAt { dir: 1, name: b"d" }));
        watches.begin(&dir, &fd);
        watches.begin(&dir, &fd);
        watches.remove(take(&mut dir.state().watch));
        assert_eq!(watches.len(), 0, "the eviction ends it");
    }
}
