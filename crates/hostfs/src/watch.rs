//! What others change: `inotify(7)`.
//!
//! # What it is
//! A directory in which something is looked up, made or listed is watched from before that on, until its inode leaves the cache. A
//! thread reads the events and puts in doubt what they speak of ([`vfs::Invalidator`]). So what is cached of a watched directory
//! is good until the host says otherwise, a moment after it happens.
//!
//! # What it is not
//! Immediate: between a change and its event what was cached is still shown. It sees no changes by other machines (NFS), none through
//! maps of memory (`mmap(2)`), and those by another name of a file only in that name's directory: so a file with several names has its
//! time. `fanotify(7)` is not used; it would need no watch for each directory but the whole file system's events and privilege.
//!
//! # Limits
//! At most [`MOST`] directories, and as many as `fs.inotify.max_user_watches` allows. Once one could not be watched, everything is
//! put in doubt at each interval of [`crate::Revalidate::Ttl`]. So it is when the queue of events has overflowed, once.
//!
//! Changes by this file system are events too: what it made is asked for once more.
//!
//! # How it is locked
//! One mutex around the table from watches to nodes, held for no push. The thread holds no lock while it pushes.
//!
//! # Where it comes from
//! `inotify(7)`; Robert Love, "Kernel Korner: Intro to inotify" (2005).

use crate::core::{Core, nanoseconds};
use crate::host::ProcPath;
use crate::node::Node;
use crate::options::Revalidate;
use crate::table::AsIs;
use core::hash::BuildHasherDefault;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno as HostErrno;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use vfs::Invalidator;

/// Directories that are watched at most: each holds about a kilobyte of the kernel's memory.
const MOST: usize = 65_536;

/// Events after which a directory has other attributes than before.
const CHANGES_DIR: ReadFlags =
    ReadFlags::CREATE.union(ReadFlags::DELETE).union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);

/// Bytes of events that are read at once.
const PIECE: usize = 64 << 10;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Watches {
    inotify: OwnedFd,
    /// Is written to when the file system ends.
    stop: OwnedFd,
    /// Nodes by watch.
    nodes: Mutex<HashMap<u64, u64, BuildHasherDefault<AsIs>>>,
    /// Something could not be watched.
    is_partial: AtomicBool,
    pushes: AtomicU64,
}

impl Watches {
    pub(crate) fn new() -> Result<Self, HostErrno> {
        Ok(Self {
            inotify: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            stop: rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?,
            nodes: Mutex::default(),
            is_partial: AtomicBool::new(false),
            pushes: AtomicU64::new(0),
        })
    }

    /// How many directories are watched, and how often the caches were told of something.
    pub(crate) fn counts(&self) -> (usize, u64) {
        // Relaxed: a counter.
        (self.nodes.lock().len(), self.pushes.load(Relaxed))
    }

    /// Ends a watch.
    pub(crate) fn remove(&self, watch: i32) {
        self.nodes.lock().remove(&key(watch));
        // It may have ended by itself, with its directory.
        let _ = inotify::remove_watch(&self.inotify, watch);
    }

    /// Lets the thread end.
    pub(crate) fn stop(&self) {
        let _ = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
    }

    fn note_push(&self) {
        // Relaxed: a counter.
        self.pushes.fetch_add(1, Relaxed);
    }
}

fn key(watch: i32) -> u64 {
    u64::from(watch.unsigned_abs())
}

impl Core {
    /// Watches a directory from now on, if it is to be watched.
    #[inline]
    pub(crate) fn watch(&self, dir: &Node, fd: &OwnedFd) {
        if let Some(watches) = &self.watches {
            self.watch_dir(watches, dir, fd);
        }
    }

    fn watch_dir(&self, watches: &Watches, dir: &Node, fd: &OwnedFd) {
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
        let has_room = watches.nodes.lock().len() < MOST;
        let made = has_room.then(|| inotify::add_watch(&watches.inotify, ProcPath::new(fd).bytes(), flags));
        let Some(Ok(watch)) = made else {
            dir.state().is_unwatched = true;
            // Relaxed: read at the next interval.
            if !watches.is_partial.swap(true, Relaxed) {
                tracing::warn!(?made, "a directory cannot be watched: caches are refreshed at intervals from now on");
            }
            return;
        };
        watches.nodes.lock().insert(key(watch), dir.id);
        dir.state().watch = watch;
    }
}

/// The thread's work: until it is told to stop.
pub(crate) fn run(core: &Core, invalidator: &Invalidator) {
    let Some(watches) = &core.watches else { return };
    let ttl = match core.options.policy {
        Revalidate::Ttl(ttl) => nanoseconds(ttl).max(1_000_000),
        _ => u64::MAX,
    };
    let interval = Timespec {
        tv_sec: i64::try_from(ttl / 1_000_000_000).unwrap_or(i64::MAX).min(i64::from(i32::MAX)),
        tv_nsec: (ttl % 1_000_000_000) as i64,
    };
    let mut buf = vec![MaybeUninit::<u8>::uninit(); PIECE];
    loop {
        let mut fds = [PollFd::new(&watches.inotify, PollFlags::IN), PollFd::new(&watches.stop, PollFlags::IN)];
        match rustix::event::poll(&mut fds, Some(&interval)) {
            Ok(_) | Err(HostErrno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "no events of the host are read any more");
                return;
            }
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        if !fds[0].revents().is_empty() {
            read_events(watches, invalidator, &mut buf);
        } else if watches.is_partial.load(Relaxed) {
            // Relaxed: a flag that is never taken back.
            watches.note_push();
            invalidator.all();
        }
    }
}

/// Reads the events that there are, and tells the caches of them.
fn read_events(watches: &Watches, invalidator: &Invalidator, buf: &mut [MaybeUninit<u8>]) {
    let mut inodes = BTreeSet::new();
    let mut entries: BTreeSet<(u64, Box<[u8]>)> = BTreeSet::new();
    let mut is_lost = false;
    let mut reader = inotify::Reader::new(&watches.inotify, buf);
    while let Ok(event) = reader.next() {
        let mask = event.events();
        if mask.contains(ReadFlags::QUEUE_OVERFLOW) {
            is_lost = true;
        } else if mask.contains(ReadFlags::IGNORED) {
            watches.nodes.lock().remove(&key(event.wd()));
        } else if let Some(dir) = watches.nodes.lock().get(&key(event.wd())).copied() {
            match event.file_name() {
                // Of the directory itself.
                None => drop(inodes.insert(dir)),
                Some(name) => {
                    entries.insert((dir, name.to_bytes().into()));
                    // Names that come and go change the directory.
                    if mask.intersects(CHANGES_DIR) {
                        inodes.insert(dir);
                    }
                }
            }
        }
        if reader.is_buffer_empty() {
            break;
        }
    }
    if is_lost {
        watches.note_push();
        tracing::warn!("events of the host were lost: all that is cached is asked for again");
        invalidator.all();
        return;
    }
    for (dir, name) in &entries {
        watches.note_push();
        invalidator.entry(*dir, name);
    }
    for dir in inodes {
        watches.note_push();
        invalidator.inode(dir);
    }
}

/// Begins to read events.
pub(crate) fn begin(core: &Arc<Core>, invalidator: &Invalidator) {
    if core.watches.is_none() {
        return;
    }
    let (core, invalidator) = (core.clone(), invalidator.clone());
    let work = move || run(&core, &invalidator);
    if let Err(error) = std::thread::Builder::new().name("lightfoot-watch".into()).spawn(work) {
        tracing::error!(%error, "no thread for events of the host");
    }
}
