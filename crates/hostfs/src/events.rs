//! Changes by other programs: the thread that reads `inotify(7)` events and invalidates caches.
//!
//! # What it is
//! A directory is watched from before the first lookup, creation or listing in it until the VFS
//! evicts its inode. A thread reads the events and invalidates the names and inodes that they
//! concern ([`vfs::Invalidator`]). So the cached state of a watched directory stays valid until the
//! host reports a change; the invalidation follows a moment later.
//!
//! # What it is not
//! Immediate: between a change and its event the caches still show the old state. Changes by other machines (NFS) and
//! through memory maps (`mmap(2)`) cause no events. A change of a file is reported only in the directory of the name by
//! which it was made, so a file with several names is cached for the time of [`crate::Revalidate::Ttl`] instead. `link(2)` is
//! reported only in the directory of the new name: if this directory is not watched, the caches take the file for one with
//! one name until the new name is looked up.
//! `fanotify(7)` would need no watch for each directory, and reports the process of each change, but needs privilege, and
//! reports on the whole file system.
//!
//! # Limits
//! At most [`MAX_WATCHES`](crate::watches::MAX_WATCHES) directories, and at most
//! `fs.inotify.max_user_watches`. Contents of other directories are cached for the time of
//! [`crate::Revalidate::Ttl`]. When the queue of events has overflowed, the thread invalidates
//! everything.
//!
//! # Own changes
//! This file system's own changes cause events, too. The thread skips only these events:
//! - An event of a name, if the name is as this file system's last change has left it (remembered
//!   for [`RECENT`](crate::watches::RECENT) names), and if one change can have made all its events. This check takes one
//!   `statx(2)`. After other events, the directory and the file are invalidated a little later ([`crate::settling`]).
//! - An event of a file's contents or attributes, if this file system has just changed the file; the file is then
//!   invalidated a little later, since the event may also be one of another program ([`crate::settling`]).
//!
//! An event is not skipped because the VFS has received newer state. The VFS may have passed older
//! state on, for example to the kernel, which drops contents only at an invalidation.
//!
//! # Rounds
//! The thread reads until the host has no more events, which ends a *round*. A change causes its
//! events before the call of the change returns. So the thread reads these events at the latest in
//! the round after the round in which the change has ended. If no events come, the thread ends
//! [`IDLE_ROUNDS`] more rounds, so that it does not take a later event for one of an own change.
//!
//! # How it is locked
//! As [`crate::watches`]; the thread itself holds no lock.

use crate::node::NameAt;
use crate::settling::Settling;
use crate::shared::{Shared, is_watched};
use crate::system;
use crate::watches::Watches;
use core::mem::MaybeUninit;
use core::time::Duration;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::Statx;
use rustix::fs::inotify::{Event, ReadFlags};
use rustix::io::Errno as HostErrno;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Instant;
use vfs::{Errno, Invalidator};

/// Events of a name that appeared, or leads elsewhere.
const APPEARS: ReadFlags = ReadFlags::CREATE.union(ReadFlags::MOVED_TO);

/// Events of a file's contents or attributes.
const CHANGES_FILE: ReadFlags = ReadFlags::MODIFY.union(ReadFlags::ATTRIB);

/// How long events gather before they are read.
const GATHERING: Duration = Duration::from_millis(1);

/// How long the thread waits for events before it ends a round without any.
const IDLE: Duration = Duration::from_millis(10);

/// The number of rounds without events after which all events of own changes were read.
const IDLE_ROUNDS: u32 = 2;

/// The longest wait.
const MAX_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// Bytes of events in one read.
const PIECE: usize = 64 << 10;

/// Reads in one turn at most, if other programs make events faster than the thread reads them.
const MAX_READS: usize = 16;

/// Files whose time has come that are invalidated in one turn, so that the observers' queues do not become full.
const MAX_SETTLED: usize = 64;

/// Starts the thread, if directories must be watched.
///
/// # Errors
/// The thread cannot be started.
pub(crate) fn start(shared: &Arc<Shared>) -> std::io::Result<()> {
    if shared.watches.is_some() {
        let shared = shared.clone();
        std::thread::Builder::new().name("lightfoot-watch".into()).spawn(move || run(&shared))?;
    }
    Ok(())
}

/// Handles events until [`Watches::stop`] is called. The thread of the watches runs this.
fn run(shared: &Shared) {
    let Some(watches) = &shared.watches else { return };
    let mut reading = Reading::new(shared, watches);
    loop {
        let timeout = timespec(reading.wait(Instant::now()));
        let mut fds = [PollFd::new(&watches.inotify, PollFlags::IN), PollFd::new(&watches.stop, PollFlags::IN)];
        match system::poll(&mut fds, &timeout) {
            Ok(_) | Err(HostErrno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "poll: changes by other programs are no longer seen");
                return;
            }
        }
        let has_events = !fds[0].revents().is_empty();
        let mut stop = [PollFd::new(&watches.stop, PollFlags::IN)];
        let gathering = if has_events { GATHERING } else { Duration::ZERO };
        if system::poll(&mut stop, &timespec(gathering)) == Ok(1) {
            return;
        }
        reading.guarded_turn(Instant::now());
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}

/// The events of a name.
#[derive(Clone, Copy, Default)]
struct Happened {
    /// The name appeared, or leads elsewhere.
    appears: bool,
    /// The name was removed.
    is_removed: bool,
    /// The file was moved to another name.
    is_moved: bool,
    /// The contents or attributes of the file changed.
    changes: bool,
}

impl Happened {
    fn disappears(self) -> bool {
        self.is_removed || self.is_moved
    }

    /// Returns whether one change of the name made all its events, after which the name existed or not.
    fn is_one_change(self, exists: bool) -> bool {
        (self.appears, self.disappears()) == (exists, !exists)
    }
}

/// Events, each change once.
#[derive(Default)]
struct Events {
    /// Directories that changed themselves.
    dirs: BTreeSet<u64>,
    names: BTreeMap<(u64, Box<[u8]>), Happened>,
    /// The queue has overflowed.
    are_lost: bool,
}

impl Events {
    fn is_empty(&self) -> bool {
        self.dirs.is_empty() && self.names.is_empty() && !self.are_lost
    }

    fn add(&mut self, watches: &Watches, event: &Event<'_>) {
        let mask = event.events();
        if mask.contains(ReadFlags::QUEUE_OVERFLOW) {
            self.are_lost = true;
        } else if mask.contains(ReadFlags::IGNORED) {
            watches.forget(event.wd());
        } else if let Some(dir) = watches.dir(event.wd()) {
            match event.file_name() {
                None => drop(self.dirs.insert(dir)),
                Some(name) => {
                    let happened = self.names.entry((dir, name.to_bytes().into())).or_default();
                    happened.appears |= mask.intersects(APPEARS);
                    happened.is_removed |= mask.contains(ReadFlags::DELETE);
                    happened.is_moved |= mask.contains(ReadFlags::MOVED_FROM);
                    happened.changes |= mask.intersects(CHANGES_FILE);
                }
            }
        }
    }
}

/// The state of the thread.
struct Reading<'a> {
    shared: &'a Shared,
    watches: &'a Watches,
    buf: Vec<MaybeUninit<u8>>,
    /// Events of names that threads are changing.
    waiting: Events,
    settling: Settling,
    /// Rounds without events since the last round with an event.
    idle_rounds: u32,
}

impl<'a> Reading<'a> {
    fn new(shared: &'a Shared, watches: &'a Watches) -> Self {
        Self {
            shared,
            watches,
            buf: vec![MaybeUninit::uninit(); PIECE],
            waiting: Events::default(),
            settling: Settling::default(),
            idle_rounds: IDLE_ROUNDS,
        }
    }

    /// Returns how long to wait for events.
    fn wait(&self, now: Instant) -> Duration {
        if !self.waiting.is_empty() {
            return GATHERING;
        }
        let idle = if self.idle_rounds < IDLE_ROUNDS { IDLE } else { MAX_INTERVAL };
        // Waits at least a moment, so that observers can send the invalidations of the last turn.
        self.settling.next_time().map_or(idle, |next| idle.min(next.saturating_duration_since(now).max(GATHERING)))
    }

    /// [`Reading::turn`]. A panic of an observer must not end the thread: the caches would keep
    /// their contents for ever.
    fn guarded_turn(&mut self, now: Instant) {
        let turn = std::panic::catch_unwind(AssertUnwindSafe(|| self.turn(now)));
        if turn.is_err() {
            tracing::error!("an invalidation panicked: all caches are invalidated (report this, please)");
            self.waiting.are_lost = true;
        }
    }

    /// Reads the events that the host has, and invalidates their files and names, and the files
    /// that have waited long enough. Returns whether it read or invalidated anything.
    fn turn(&mut self, now: Instant) -> bool {
        let mut events = core::mem::take(&mut self.waiting);
        let is_all = self.read(&mut events);
        let is_empty = events.is_empty();
        // Before the mount of the file system, no cache has anything of it.
        if let Some(invalidator) = self.shared.invalidator.get() {
            self.invalidate(invalidator, &events, now);
            self.settle(invalidator, now);
        }
        if is_all {
            self.watches.end_round();
        }
        self.idle_rounds = if is_empty { self.idle_rounds.saturating_add(1) } else { 0 };
        !is_empty
    }

    /// Reads events. Returns whether the host has no more.
    fn read(&mut self, events: &mut Events) -> bool {
        let Self { watches, buf, .. } = self;
        (0..MAX_READS).any(|_| !system::read_events(&watches.inotify, buf, |event| events.add(watches, event)))
    }

    /// Invalidates the changes of other programs.
    fn invalidate(&mut self, invalidator: &Invalidator, events: &Events, now: Instant) {
        if events.are_lost {
            self.watches.note_invalidation();
            tracing::warn!("events of the host were lost: all caches are invalidated");
            self.settling.clear();
            invalidator.all();
            return;
        }
        // Files that other programs changed, and files that any program may have changed.
        let (mut others, mut changed) = (BTreeSet::new(), events.dirs.clone());
        for (key, happened) in &events.names {
            let at = NameAt { dir: key.0, name: &key.1 };
            if self.watches.is_changing(at) {
                self.waiting.names.insert(key.clone(), *happened);
                continue;
            }
            let stat = stat_in(self.shared, at);
            let node = stat.as_ref().ok().map(|stat| self.shared.identities.node(stat));
            // A removal changes the number of links before it removes the name; the event of the removal follows.
            // That event could not report the end of the file if this one made the name stale.
            let is_leaving = stat.as_ref().is_ok_and(|stat| stat.stx_nlink == 0);
            if happened.changes && !is_leaving {
                changed.extend(node);
            }
            if !happened.appears && !happened.disappears() {
                continue;
            }
            let record = |node| self.shared.table.get(node);
            // An own change was made by one inode of the directory.
            let has_one_inode = record(at.dir).is_none_or(|dir| !dir.had_other_names());
            let is_own = is_certain(&stat) && self.watches.is_own_result(at, node) && has_one_inode;
            // The VFS caches its own new files until it is notified, but not all files are watched.
            let is_watched = match (&stat, node) {
                (Ok(stat), Some(node)) => record(node).is_none_or(|node| is_watched(&node, stat)),
                _ => true,
            };
            if !(is_own && is_watched) {
                self.watches.note_invalidation();
                let is_removal = happened.is_removed && !happened.appears && !happened.is_moved;
                if is_removal && matches!(stat, Err(Errno::ENOENT)) {
                    invalidator.removed(at.dir, at.name);
                } else {
                    invalidator.entry(at.dir, at.name);
                }
            }
            let is_one_change = happened.is_one_change(node.is_some());
            if !is_own || !is_one_change {
                // Another program may change the name again, to the own result.
                self.watches.forget_result(at);
            }
            // The times and the size of the directory changed, and the number of links of the file.
            if !is_own {
                others.insert(at.dir);
                others.extend(node);
            } else if !is_one_change {
                // Another program may have changed the name and put it back, and a cache may have the attributes of
                // the time between.
                node.into_iter().chain([at.dir]).for_each(|node| self.settling.add(node, now));
            }
        }
        let round = self.watches.round();
        for node in changed.difference(&others) {
            if self.shared.table.get(*node).is_some_and(|node| node.may_be_own_change(round)) {
                self.settling.add(*node, now);
            } else {
                self.watches.note_invalidation();
                invalidator.inode(*node);
            }
        }
        for node in others {
            self.watches.note_invalidation();
            invalidator.inode(node);
        }
    }

    /// Invalidates files that have waited long enough.
    fn settle(&mut self, invalidator: &Invalidator, now: Instant) {
        for _ in 0..MAX_SETTLED {
            let Some(node) = self.settling.take(now) else { return };
            self.watches.note_invalidation();
            invalidator.inode(node);
        }
    }
}

/// Returns whether the host's answer is about the name: the file that it leads to, or that it does
/// not exist.
fn is_certain(stat: &Result<Statx, Errno>) -> bool {
    matches!(stat, Ok(_) | Err(Errno::ENOENT))
}

/// Returns the attributes of a name now.
fn stat_in(shared: &Shared, at: NameAt<'_>) -> Result<Statx, Errno> {
    let dir = shared.table.get(at.dir).ok_or(Errno::ESTALE)?;
    let fd = shared.path_fd(&dir)?;
    shared.stat_at(fd.as_fd(), at.name)
}

#[cfg(test)]
mod tests;
