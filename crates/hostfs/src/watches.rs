//! Watches of directories: `inotify(7)`, and what the VFS was given of names.
//!
//! # What it is
//! The table from watches to directories, and the names that this file system changed lately, so that their events can
//! be recognised as its own ([`crate::events`]).
//!
//! # How it is locked
//! One mutex around the table of watches, one around the names; both are leaves, never held during an invalidation or a
//! call to the host.
//!
//! # Where it comes from
//! `inotify(7)`; Robert Love, "Kernel Korner: Intro to inotify" (2005).

use crate::host::ProcPath;
use crate::node::{NameAt, Node};
use crate::table::AsIs;
use core::hash::{BuildHasher, BuildHasherDefault};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;
use rustix::event::EventfdFlags;
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
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
    /// The node that the VFS was given last for the name, or that there is none.
    reported: HashMap<NameKey, Option<u64>>,
    /// In the order of their first change.
    order: VecDeque<NameKey>,
    /// Names that threads are changing now, with the number of threads.
    changing: HashMap<NameKey, u32>,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Watches {
    pub(crate) inotify: OwnedFd,
    /// An eventfd, written when the file system ends.
    pub(crate) stop: OwnedFd,
    /// Nodes by watch.
    nodes: Mutex<HashMap<u64, u64, BuildHasherDefault<AsIs>>>,
    recent: Mutex<Recent>,
    names: RandomState,
    /// A directory could not be watched.
    is_partial: AtomicBool,
    invalidations: AtomicU64,
}

impl Watches {
    pub(crate) fn new() -> Result<Self, HostErrno> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            stop: rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?,
            nodes: Mutex::default(),
            recent: Mutex::default(),
            names: RandomState::new(),
            is_partial: AtomicBool::new(false),
            invalidations: AtomicU64::new(0),
        })
    }

    /// The number of watched directories.
    pub(crate) fn len(&self) -> usize {
        self.nodes.lock().len()
    }

    /// How many times the caches were notified of a change.
    pub(crate) fn invalidations(&self) -> u64 {
        // Relaxed: a counter.
        self.invalidations.load(Relaxed)
    }

    /// Counts a notification of the caches.
    pub(crate) fn note_invalidation(&self) {
        // Relaxed: a counter.
        self.invalidations.fetch_add(1, Relaxed);
    }

    /// Whether a directory could not be watched.
    pub(crate) fn is_partial(&self) -> bool {
        // Relaxed: a flag that is never cleared.
        self.is_partial.load(Relaxed)
    }

    /// Watches a directory from now on. Where that fails, it is not tried again.
    pub(crate) fn add(&self, dir: &Node, fd: &OwnedFd) {
        {
            let state = dir.state();
            if state.watch != 0 || state.is_unwatched {
                return;
            }
        }
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::ATTRIB
            | WatchFlags::MODIFY
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::EXCL_UNLINK
            | WatchFlags::ONLYDIR;
        let has_room = self.len() < MAX_WATCHES;
        let made = has_room.then(|| inotify::add_watch(&self.inotify, ProcPath::new(fd).bytes(), flags));
        let Some(Ok(watch)) = made else {
            dir.state().is_unwatched = true;
            // Relaxed: read at the next interval.
            if !self.is_partial.swap(true, Relaxed) {
                tracing::warn!(
                    ?made,
                    "a directory cannot be watched: all caches are refreshed at intervals from now on"
                );
            }
            return;
        };
        self.nodes.lock().insert(key(watch), dir.id);
        dir.state().watch = watch;
    }

    /// Ends a watch.
    pub(crate) fn remove(&self, watch: i32) {
        self.nodes.lock().remove(&key(watch));
        // It may have ended already, with its directory.
        let _ = inotify::remove_watch(&self.inotify, watch);
    }

    /// Drops a watch that the host has ended.
    pub(crate) fn forget(&self, watch: i32) {
        self.nodes.lock().remove(&key(watch));
    }

    /// The directory of a watch.
    pub(crate) fn dir(&self, watch: i32) -> Option<u64> {
        self.nodes.lock().get(&key(watch)).copied()
    }

    /// Makes the thread end.
    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    fn name_key(&self, at: NameAt<'_>) -> NameKey {
        (at.dir, self.names.hash_one(at.name))
    }

    /// Notes the node that the VFS was given for a name, if this file system changes the name now or did so lately.
    pub(crate) fn note_reported(&self, at: NameAt<'_>, node: Option<u64>, is_changed: bool) {
        let mut recent = self.recent.lock();
        if !is_changed && recent.reported.is_empty() {
            return;
        }
        let key = self.name_key(at);
        if let Some(reported) = recent.reported.get_mut(&key) {
            *reported = node;
        } else if is_changed {
            recent.reported.insert(key, node);
            recent.order.push_back(key);
            if recent.order.len() > RECENT
                && let Some(oldest) = recent.order.pop_front()
            {
                recent.reported.remove(&oldest);
            }
        }
    }

    /// Whether the VFS was given this node last for a name (`None`: that there is none).
    pub(crate) fn was_reported(&self, at: NameAt<'_>, node: Option<u64>) -> bool {
        self.recent.lock().reported.get(&self.name_key(at)) == Some(&node)
    }

    /// Begins a change of a name: its events wait.
    pub(crate) fn begin_change(&self, at: NameAt<'_>) {
        *self.recent.lock().changing.entry(self.name_key(at)).or_default() += 1;
    }

    /// Ends what [`Watches::begin_change`] began.
    pub(crate) fn end_change(&self, at: NameAt<'_>) {
        let mut recent = self.recent.lock();
        if let Entry::Occupied(mut entry) = recent.changing.entry(self.name_key(at)) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// Whether a thread is changing a name.
    pub(crate) fn is_changing(&self, at: NameAt<'_>) -> bool {
        self.recent.lock().changing.contains_key(&self.name_key(at))
    }
}

fn key(watch: i32) -> u64 {
    u64::from(watch.unsigned_abs())
}
