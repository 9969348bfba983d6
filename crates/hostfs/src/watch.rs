//! What others change: `inotify(7)`.
//!
//! # What it is
//! A directory in which something is looked up, made or listed is watched from before that on, until its inode leaves
//! the cache. A thread reads the events and puts in doubt what they speak of ([`vfs::Invalidator`]). So what is cached
//! of a watched directory is good until the host says otherwise, a moment after it happens.
//!
//! # What it is not
//! Immediate: between a change and its event what was cached is still shown. It sees no changes by other machines
//! (NFS), none through maps of memory (`mmap(2)`), and those by another name of a file only in that name's directory:
//! so a file with several names has its time. `fanotify(7)` is not used; it would need no watch for each directory but
//! the whole file system's events and privilege.
//!
//! # Limits
//! At most [`MOST`] directories, and as many as `fs.inotify.max_user_watches` allows. Once one could not be watched,
//! everything is put in doubt at each interval of [`crate::Revalidate::Ttl`]. So it is when the queue of events has
//! overflowed, once.
//!
//! # Its own changes
//! They are events too. An event puts nothing in doubt if the VFS knows already: if its name leads to what was said of
//! it last (kept for [`RECENT`] names that this file system changed), and the file has the attributes that were said of
//! it last, or is in doubt. To find out takes a `statx(2)` on the thread.
//!
//! # How it is locked
//! One mutex around the table from watches to nodes, one around what was said of names; leaves, held for no push and no
//! call to the host.
//!
//! # Where it comes from
//! `inotify(7)`; Robert Love, "Kernel Korner: Intro to inotify" (2005).

use crate::change::Name;
use crate::core::Core;
use crate::host::ProcPath;
use crate::identity::change_hash;
use crate::node::Node;
use crate::options::Revalidate;
use crate::table::AsIs;
use core::hash::{BuildHasher, BuildHasherDefault};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use rustix::fs::Statx;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno as HostErrno;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::RandomState;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;
use vfs::{Errno, Invalidator};

/// Directories that are watched at most: each holds about a kilobyte of the kernel's memory.
const MOST: usize = 65_536;

/// Events after which a directory has other attributes than before.
const CHANGES_DIR: ReadFlags =
    ReadFlags::CREATE.union(ReadFlags::DELETE).union(ReadFlags::MOVED_FROM).union(ReadFlags::MOVED_TO);

/// Names whose last change is remembered.
const RECENT: usize = 8192;

/// For so long events gather before they are read.
const GATHERING: Timespec = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };

/// The longest interval.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Bytes of events that are read at once.
const PIECE: usize = 64 << 10;

/// What was said last of names that this file system changed: a node, or that there is none.
#[derive(Debug, Default)]
struct Recent {
    said: HashMap<(u64, u64), Option<u64>>,
    /// In the order in which they were changed first.
    order: VecDeque<(u64, u64)>,
    /// Names that are being changed, and by how many.
    changing: HashMap<(u64, u64), u32>,
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Watches {
    inotify: OwnedFd,
    /// Is written to when the file system ends.
    stop: OwnedFd,
    /// Nodes by watch.
    nodes: Mutex<HashMap<u64, u64, BuildHasherDefault<AsIs>>>,
    recent: Mutex<Recent>,
    names: RandomState,
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
            recent: Mutex::default(),
            names: RandomState::new(),
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

    /// Notes what was said of a name: if it was changed, or had been changed.
    fn told(&self, dir: u64, name: &[u8], node: Option<u64>, is_changed: bool) {
        let mut recent = self.recent.lock();
        if !is_changed && recent.said.is_empty() {
            return;
        }
        let key = (dir, self.names.hash_one(name));
        if let Some(said) = recent.said.get_mut(&key) {
            *said = node;
        } else if is_changed {
            recent.said.insert(key, node);
            recent.order.push_back(key);
            if recent.order.len() > RECENT
                && let Some(oldest) = recent.order.pop_front()
            {
                recent.said.remove(&oldest);
            }
        }
    }

    /// A change of a name begins: its events wait.
    pub(crate) fn begin_change(&self, (dir, name): Name<'_>) {
        *self.recent.lock().changing.entry((dir, self.names.hash_one(name))).or_default() += 1;
    }

    /// It is over.
    pub(crate) fn end_change(&self, (dir, name): Name<'_>) {
        let mut recent = self.recent.lock();
        if let Entry::Occupied(mut entry) = recent.changing.entry((dir, self.names.hash_one(name))) {
            *entry.get_mut() -= 1;
            if *entry.get() == 0 {
                entry.remove();
            }
        }
    }

    /// Whether a name is being changed.
    fn is_changing(&self, dir: u64, name: &[u8]) -> bool {
        self.recent.lock().changing.contains_key(&(dir, self.names.hash_one(name)))
    }

    /// Whether it was said last that a name leads to this node, or to none.
    fn has_said(&self, dir: u64, name: &[u8], node: Option<u64>) -> bool {
        self.recent.lock().said.get(&(dir, self.names.hash_one(name))) == Some(&node)
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
    /// Notes what the VFS is told of a name, so that it is not told again when its event comes.
    #[inline]
    pub(crate) fn told(&self, dir: u64, name: &[u8], node: Option<u64>, is_changed: bool) {
        if let Some(watches) = &self.watches {
            watches.told(dir, name, node, is_changed);
        }
    }

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
fn run(core: &Core) {
    let Some(watches) = &core.watches else { return };
    // Without a time, nothing depends on events (`Core::valid`).
    let ttl = match core.options.policy {
        Revalidate::Ttl(ttl) => ttl.clamp(Duration::from_millis(1), LONGEST),
        _ => LONGEST,
    };
    let interval = Timespec { tv_sec: ttl.as_secs() as i64, tv_nsec: ttl.subsec_nanos().into() };
    let mut refreshed = Instant::now();
    let mut buf = vec![MaybeUninit::<u8>::uninit(); PIECE];
    let mut events = Events::default();
    loop {
        let mut fds = [PollFd::new(&watches.inotify, PollFlags::IN), PollFd::new(&watches.stop, PollFlags::IN)];
        let patience = if events.names.is_empty() { &interval } else { &GATHERING };
        match rustix::event::poll(&mut fds, Some(patience)) {
            Ok(_) | Err(HostErrno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "no events of the host are read any more");
                return;
            }
        }
        if !fds[1].revents().is_empty() {
            return;
        }
        if !fds[0].revents().is_empty() || !events.names.is_empty() {
            let mut stop = [PollFd::new(&watches.stop, PollFlags::IN)];
            if rustix::event::poll(&mut stop, Some(&GATHERING)) == Ok(1) {
                return;
            }
            read_events(watches, &mut buf, &mut events);
            // What nobody has mounted nobody has cached.
            events = core.invalidator.get().map_or_else(Events::default, |invalidator| {
                tell(core, watches, invalidator, core::mem::take(&mut events))
            });
        }
        // Relaxed: a flag that is never taken back.
        if let Some(invalidator) = core.invalidator.get()
            && watches.is_partial.load(Relaxed)
            && refreshed.elapsed() >= ttl
        {
            refreshed = Instant::now();
            watches.note_push();
            invalidator.all();
        }
    }
}

/// What happened, each once.
#[derive(Default)]
struct Events {
    /// Directories themselves.
    dirs: BTreeSet<u64>,
    /// Names, and whether they came or went.
    names: BTreeMap<(u64, Box<[u8]>), bool>,
    /// Some were lost.
    are_lost: bool,
}

/// Reads the events that there are, and adds them to those that wait.
fn read_events(watches: &Watches, buf: &mut [MaybeUninit<u8>], events: &mut Events) {
    let mut reader = inotify::Reader::new(&watches.inotify, buf);
    while let Ok(event) = reader.next() {
        let mask = event.events();
        if mask.contains(ReadFlags::QUEUE_OVERFLOW) {
            events.are_lost = true;
        } else if mask.contains(ReadFlags::IGNORED) {
            watches.nodes.lock().remove(&key(event.wd()));
        } else if let Some(dir) = watches.nodes.lock().get(&key(event.wd())).copied() {
            match event.file_name() {
                None => drop(events.dirs.insert(dir)),
                Some(name) => {
                    let comes_or_goes = mask.intersects(CHANGES_DIR);
                    *events.names.entry((dir, name.to_bytes().into())).or_default() |= comes_or_goes;
                }
            }
        }
        if reader.is_buffer_empty() {
            break;
        }
    }
}

/// Puts in doubt what the VFS does not know. Gives back the events of names that are being changed.
fn tell(core: &Core, watches: &Watches, invalidator: &Invalidator, events: Events) -> Events {
    let mut waiting = Events::default();
    if events.are_lost {
        watches.note_push();
        tracing::warn!("events of the host were lost: all that is cached is asked for again");
        invalidator.all();
        return waiting;
    }
    let mut inodes = events.dirs;
    for (at, comes_or_goes) in &events.names {
        let (dir, name) = at;
        if watches.is_changing(*dir, name) {
            waiting.names.insert(at.clone(), *comes_or_goes);
            continue;
        }
        let stat = core.stat_in(*dir, name);
        let node = stat.as_ref().ok().map(|stat| core.identities.node(stat));
        let is_known = is_certain(&stat) && watches.has_said(*dir, name, node);
        // The VFS takes what it made for good until told, but not all of that is told.
        let is_told = stat.as_ref().map_or(true, |stat| core.is_told(node.unwrap_or(0), stat));
        if *comes_or_goes && !(is_known && is_told) {
            watches.note_push();
            invalidator.entry(*dir, name);
        }
        if *comes_or_goes && !is_known {
            inodes.insert(*dir);
        }
        if let (Ok(stat), Some(node)) = (&stat, node)
            && !core.knows(node, stat)
        {
            watches.note_push();
            invalidator.inode(node);
        }
    }
    for dir in inodes {
        let known = core.table.get(dir).is_some_and(|node| core.stat(&node).is_ok_and(|stat| core.knows(dir, &stat)));
        if !known {
            watches.note_push();
            invalidator.inode(dir);
        }
    }
    waiting
}

/// Whether it is known what a name leads to, if to anything.
fn is_certain(stat: &Result<Statx, Errno>) -> bool {
    matches!(stat, Ok(_) | Err(Errno::ENOENT))
}

impl Core {
    /// What a name in a directory is now.
    fn stat_in(&self, dir: u64, name: &[u8]) -> Result<Statx, Errno> {
        let dir = self.table.get(dir).ok_or(Errno::ESTALE)?;
        let fd = self.path_fd(&dir)?;
        self.stat_at(fd.as_fd(), name)
    }

    /// Whether the VFS knows what `stat` says of a file, or will ask for it. What has no record it does not know at
    /// all.
    fn knows(&self, node: u64, stat: &Statx) -> bool {
        // The table, this function and the inode. With a second inode, it is not known which of them is meant.
        self.table.get(node).is_none_or(|node| Arc::strong_count(&node) <= 3 && node.knows(change_hash(stat)))
    }
}

/// Begins to read events.
///
/// # Errors
/// Those of a thread that cannot be made.
pub(crate) fn begin(core: &Arc<Core>) -> std::io::Result<()> {
    if core.watches.is_some() {
        let core = core.clone();
        std::thread::Builder::new().name("lightfoot-watch".into()).spawn(move || run(&core))?;
    }
    Ok(())
}
