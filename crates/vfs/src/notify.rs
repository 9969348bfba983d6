//! Change events: notification of watchers of a directory, a subtree or a file.
//!
//! # What it is
//! [`Watches`], one for each tree, holds the watched places. A thread that makes a change calls
//! [`Watches::publish`] and climbs from the changed file to the root, step by step. [`Watch`], the
//! watcher's end, is a bounded queue of [`Event`]s. Without any watch, publishing is one load. If
//! only other places are watched, it costs the climb and one load for each step. Only a step that
//! may be watched takes a lock.
//!
//! Events for a change to `f` in the directory `d`:
//!
//! | change                                         | watch of `f` | of `d`   | of a subtree above |
//! |------------------------------------------------|--------------|----------|--------------------|
//! | `Created`, `Deleted`, `MovedFrom`, `MovedTo`   | no           | path `f` | path `../d/f`      |
//! | `Attributes`, `Modified`                       | empty path   | path `f` | path `../d/f`      |
//! | `DeletedSelf`, `MovedSelf`                     | empty path   | no       | no                 |
//!
//! A watch of a subtree gets only names that its watcher could list at the time of the event: of
//! each directory between the watched one and the name, its credentials need read and search
//! permission. The caller that publishes decides that ([`Watches::publish`]).
//!
//! # What it is not
//! A proof of order: events of one directory come in the order of the changes if the caller
//! publishes under the lock that orders the changes. Others, such as `Modified`, may be swapped if
//! they happen at the same time. Events are not permission requests (`fanotify(7)`), and a watcher
//! cannot choose among kinds: it skips unwanted events.
//!
//! # How it is locked
//! The table of watched places has a mutex, and each queue has one. These mutexes are leaves: a
//! thread that holds one takes no other lock, and runs no code of the caller (the climb comes
//! before). Only one of them is held at a time. Callers may hold any lock of the crate.
//!
//! The counts are read without a lock, relaxed. A thread that has learned of a new watch sees the
//! change of the counts too, by the same order. A change concurrent with the new watch may be
//! reported or not.
//!
//! # Places
//! A place is a `u64` that the caller chooses: the address of its dentry or inode. It must not be
//! reused for another place while it is watched; so each watch keeps a [`Home`], which pins the
//! place until the watch is dropped.
//!
//! # Where it comes from
//! `inotify(7)`: the kinds, the cookies, the bound of a queue and its one overflow event, and the
//! drop of an event equal to the last one in the queue. `fanotify(7)`: whole subtrees, and names
//! with every event.
//!
//! # Limitations
//! Each `Watch` has its own queue. A thread that waits for several needs a bell for each
//! ([`Watch::set_bell`]). A change of a file with several names is reported only to the parent by
//! which it was reached, or by which the caller climbs.

mod queue;
#[cfg(test)]
mod tests;

use crate::base::access::credentials::Credentials;
use core::fmt;
use core::time::Duration;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use queue::Queue;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use sync::Mutex;

/// The default capacity of a queue, in events: `/proc/sys/fs/inotify/max_queued_events`.
pub const DEFAULT_QUEUED_EVENTS: usize = 16_384;

/// Counters in the filter of watched places; a power of two.
const FILTER: usize = 64;

/// The kind of an event; `inotify(7)`'s word in parentheses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum EventKind {
    /// A name was created or linked in the directory (`IN_CREATE`).
    Created,
    /// A name was removed from the directory (`IN_DELETE`).
    Deleted,
    /// A name was moved away (`IN_MOVED_FROM`); the `MovedTo` of the same move has the same cookie.
    MovedFrom,
    /// A name was moved into the directory (`IN_MOVED_TO`).
    MovedTo,
    /// Mode, owner, times, link count or extended attributes changed (`IN_ATTRIB`).
    Attributes,
    /// Contents were written or truncated (`IN_MODIFY`).
    Modified,
    /// The watched file or directory was removed (`IN_DELETE_SELF`).
    DeletedSelf,
    /// The watched file or directory was moved (`IN_MOVE_SELF`). The watch stays with it.
    MovedSelf,
    /// The file system was unmounted (`IN_UNMOUNT`). No event follows.
    Unmounted,
    /// The queue was full: events after this one were lost (`IN_Q_OVERFLOW`). Read everything again.
    Overflow,
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Event {
    /// The kind of the change.
    pub kind: EventKind,
    /// Whether it happened to a directory.
    pub is_dir: bool,
    /// Equal in a `MovedFrom` and the `MovedTo` of that move; else 0.
    pub cookie: u32,
    /// The path from the watched place, without a leading slash; one name, unless a subtree is watched.
    /// Empty: the watched place itself.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::base::serde::path"))]
    pub path: PathBuf,
}

impl Event {
    /// Returns the last component of the path; empty for the watched place itself.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or_default()
    }
}

/// The scope of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Scope {
    /// The place itself, and the names in it if it is a directory.
    Directory,
    /// The place and everything below it.
    Subtree,
}

/// The owner of a watched place: pins the place while the watch lives, and leads back to the tree's
/// [`Watches`].
pub(crate) trait Home: Send + Sync {
    /// Returns the table of the watch; always the same one.
    fn watches(&self) -> &Watches;
}

/// A watcher's end: the queued events of one watched place. The watch ends when this is dropped.
///
/// Threads may share it: each event is returned to one of them.
pub struct Watch {
    key: u64,
    watcher: Arc<Watcher>,
    home: Box<dyn Home>,
}

impl Watch {
    /// Returns the oldest queued event, if there is one. Does not block.
    #[must_use = "an event is given once"]
    pub fn try_next(&self) -> Option<Event> {
        self.watcher.queue.try_next()
    }

    /// Returns the oldest event; blocks until there is one, for at most `timeout` (`None`: without
    /// a limit).
    ///
    /// `None` after the timeout, and after [`EventKind::Unmounted`] was returned: then no event can come.
    #[must_use = "an event is given once"]
    pub fn next(&self, timeout: Option<Duration>) -> Option<Event> {
        self.watcher.queue.next(timeout)
    }

    /// Calls `ring` after each later event that finds the queue empty, and at once if an event is
    /// queued now. The thread that makes the change calls `ring`, with directories locked, so
    /// `ring` must neither block nor use the tree. Does nothing if there is a bell already.
    pub fn set_bell(&self, ring: impl Fn() + Send + Sync + 'static) {
        self.watcher.queue.set_bell(Box::new(ring));
    }

    /// Returns the number of queued events, with an overflow as one: `FIONREAD`, in events.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.watcher.queue.pending()
    }

    /// Returns the scope of the watch.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.watcher.scope
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.home.watches().remove(self.key, &self.watcher);
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").field("scope", &self.scope()).field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// A change, as its author publishes it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) kind: EventKind,
    pub(crate) is_dir: bool,
    /// From [`Watches::new_cookie`] for both ends of a move; else 0.
    pub(crate) cookie: u32,
}

/// The way from a changed thing up to the root, as far as a watch may cover it. With each step the caller leaves a `D`, by
/// which it decides later whether a watcher may see the names in that directory.
pub(crate) struct Trail<D> {
    /// The number of steps that can matter.
    reach: usize,
    steps: Vec<TrailStep<D>>,
    /// The path, backwards byte by byte.
    names: Vec<u8>,
}

struct TrailStep<D> {
    key: u64,
    /// The length of the path from this place to the changed thing, in `names`.
    end: usize,
    dir: D,
}

impl<D> Trail<D> {
    /// Adds the next step: the place `key`, with the name `name` in the place of the step that follows. The
    /// first step is the changed thing, by the name in question (for `MovedFrom` the old one). The root's
    /// name does not matter. Returns whether a further step can matter.
    pub(crate) fn push(&mut self, key: u64, name: &[u8], dir: D) -> bool {
        if self.steps.len() < self.reach {
            self.steps.push(TrailStep { key, end: self.names.len(), dir });
            if self.steps.len() > 1 {
                self.names.push(b'/');
            }
            self.names.extend(name.iter().rev());
        }
        self.steps.len() < self.reach
    }

    /// Removes all steps: the way changed while the caller climbed, and the caller climbs again.
    pub(crate) fn restart(&mut self) {
        self.steps.clear();
        self.names.clear();
    }

    /// Returns whether `sees` holds for all directories between the changed thing and the place
    /// `depth` steps up.
    fn is_seen(&self, depth: usize, sees: impl Fn(&D) -> Option<bool>) -> Option<bool> {
        let between = self.steps[..depth].iter().skip(1);
        between.map(|step| sees(&step.dir)).try_fold(true, |all, one| Some(all && one?))
    }
}

/// The data that a watch and the table of watched places share.
struct Watcher {
    scope: Scope,
    /// Of the thread that began to watch.
    cred: Credentials,
    queue: Queue,
}

/// The watched places of one tree.
pub(crate) struct Watches {
    /// Watches, of either scope, and observers of changes.
    count: AtomicU32,
    /// Watches of subtrees.
    subtrees: AtomicU32,
    /// For each counter, the watches whose place hashes to it.
    filter: [AtomicU32; FILTER],
    /// Wraps, as inotify's: two moves of one cookie are 2^32 moves apart.
    last_cookie: AtomicU32,
    places: Mutex<BTreeMap<u64, Vec<Arc<Watcher>>>>,
}

impl Watches {
    pub(crate) fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            subtrees: AtomicU32::new(0),
            filter: core::array::from_fn(|_| AtomicU32::new(0)),
            last_cookie: AtomicU32::new(0),
            places: Mutex::new(BTreeMap::new()),
        }
    }

    /// Counts an observer of changes as a watch that no place has: a thread that publishes notifies it.
    pub(crate) fn count_observer(&self) {
        self.count.fetch_add(1, Relaxed);
    }

    pub(crate) fn uncount_observer(&self) {
        self.count.fetch_sub(1, Relaxed);
    }

    /// Returns whether there are neither watches nor observers of changes.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        // Relaxed, as all loads of the counts: "How it is locked" at the head of this module.
        self.count.load(Relaxed) == 0
    }

    /// Watches the place `key`, which `home` pins, for a watcher with the credentials `cred`. The queue holds at most
    /// `capacity` events (at least one), and an overflow.
    pub(crate) fn watch(
        home: impl Home + 'static,
        key: u64,
        scope: Scope,
        cred: Credentials,
        capacity: usize,
    ) -> Watch {
        let watcher = Arc::new(Watcher { scope, cred, queue: Queue::new(capacity) });
        home.watches().add(key, watcher.clone());
        Watch { key, watcher, home: Box::new(home) }
    }

    /// Returns a number that connects the two ends of a move: not 0, and not reused for a long
    /// time.
    pub(crate) fn new_cookie(&self) -> u32 {
        loop {
            // Relaxed: each caller only needs a different value.
            let cookie = self.last_cookie.fetch_add(1, Relaxed).wrapping_add(1);
            if cookie != 0 {
                return cookie;
            }
        }
    }

    /// Notifies the watchers of a change. `climb` pushes the steps from the changed object to the
    /// root onto the trail, until `push` returns that no further step matters. `climb` is called
    /// only if there are watches, and once. `sees` returns whether these credentials may read and
    /// search a directory of the trail; `None` if it cannot decide: the watcher then gets an
    /// overflow for the event. Neither closure is called under a lock of this module.
    #[inline]
    pub(crate) fn publish<D>(
        &self,
        change: Change,
        climb: impl FnOnce(&mut Trail<D>),
        sees: impl Fn(&D, &Credentials) -> Option<bool>,
    ) {
        if !self.is_idle() {
            let mut trail = Trail { reach: self.reach(change.kind), steps: Vec::new(), names: Vec::new() };
            climb(&mut trail);
            self.deliver(change, &trail, sees);
        }
    }

    /// Notifies the watchers of every place for which `is_gone` returns true: its file system is unmounted.
    /// Nothing reaches their queues after that.
    pub(crate) fn unmounted(&self, is_gone: impl Fn(u64) -> bool) {
        let places: Vec<u64> = self.places.lock().keys().copied().collect();
        let gone: Vec<u64> = places.into_iter().filter(|&key| is_gone(key)).collect();
        let watchers: Vec<_> = {
            let places = self.places.lock();
            gone.iter().filter_map(|key| places.get(key)).flatten().cloned().collect()
        };
        for watcher in watchers {
            watcher.queue.push(Event { kind: EventKind::Unmounted, is_dir: false, cookie: 0, path: PathBuf::new() });
        }
    }

    /// Returns the number of steps up within which a change can have watchers.
    #[cold]
    fn reach(&self, kind: EventKind) -> usize {
        match kind {
            EventKind::DeletedSelf | EventKind::MovedSelf => 1,
            _ if self.subtrees.load(Relaxed) == 0 => 2,
            _ => usize::MAX,
        }
    }

    #[cold]
    fn deliver<D>(&self, change: Change, trail: &Trail<D>, sees: impl Fn(&D, &Credentials) -> Option<bool>) {
        use EventKind::{Created, Deleted, MovedFrom, MovedTo};
        let of_name = matches!(change.kind, Created | Deleted | MovedFrom | MovedTo);
        let steps = || trail.steps.iter().enumerate().skip(usize::from(of_name));
        if !steps().any(|(_, step)| self.filter[counter_of(step.key)].load(Relaxed) != 0) {
            return;
        }
        let mut found = Vec::new();
        {
            let places = self.places.lock();
            for (depth, step) in steps() {
                let watchers = places.get(&step.key).into_iter().flatten();
                let covering = watchers.filter(|watcher| depth <= 1 || watcher.scope == Scope::Subtree);
                found.extend(covering.map(|watcher| (watcher.clone(), depth, step.end)));
            }
        }
        for (watcher, depth, end) in found {
            let event = match trail.is_seen(depth, |dir| sees(dir, &watcher.cred)) {
                Some(false) => continue,
                Some(true) => {
                    let path = trail.names[..end].iter().rev().copied().collect();
                    let path = OsString::from_vec(path).into();
                    Event { kind: change.kind, is_dir: change.is_dir, cookie: change.cookie, path }
                }
                None => Event { kind: EventKind::Overflow, is_dir: false, cookie: 0, path: PathBuf::new() },
            };
            watcher.queue.push(event);
        }
    }

    fn add(&self, key: u64, watcher: Arc<Watcher>) {
        let mut places = self.places.lock();
        self.counters(key, watcher.scope).for_each(|counter| {
            counter.fetch_add(1, Relaxed);
        });
        places.entry(key).or_default().push(watcher);
    }

    fn remove(&self, key: u64, watcher: &Arc<Watcher>) {
        let mut places = self.places.lock();
        let Some(watchers) = places.get_mut(&key) else {
            return;
        };
        let Some(at) = watchers.iter().position(|one| Arc::ptr_eq(one, watcher)) else {
            return;
        };
        watchers.remove(at);
        if watchers.is_empty() {
            places.remove(&key);
        }
        self.counters(key, watcher.scope).for_each(|counter| {
            counter.fetch_sub(1, Relaxed);
        });
    }

    /// Returns the counters of a watch.
    fn counters(&self, key: u64, scope: Scope) -> impl Iterator<Item = &AtomicU32> {
        let subtrees = (scope == Scope::Subtree).then_some(&self.subtrees);
        [&self.count, &self.filter[counter_of(key)]].into_iter().chain(subtrees)
    }
}

/// Returns the index of the counter of `key`. Keys are addresses: their low bits hardly differ.
fn counter_of(key: u64) -> usize {
    (key.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - FILTER.ilog2())) as usize
}
