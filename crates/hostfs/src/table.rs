//! The records of all files that the VFS may have, by node.
//!
//! # What it is
//! A hash table in shards. A node is a keyed hash already ([`crate::identity`]), so the table does not hash it again.
//! Two files with the same hash, which is extremely unlikely, get neighbouring nodes.
//!
//! A file system does not learn whether the VFS used the answer to a lookup, so a new inode may start with a node just
//! when the previous inode with that node ends. Therefore the table keeps the records of evicted inodes for a while
//! ([`MAX_COLD`] of them).
//!
//! # Limitations
//! If the VFS discarded an answer and the file no longer existed at the next lookup, the record
//! stays until the file system ends.
//!
//! # How it is locked
//! A mutex for each shard, never held during a call to the host; a record's own lock nests inside it. One mutex around
//! the queue of cold records, a leaf.
//!
//! # Where it comes from
//! As the table of `lightfoot-pathfs`.

use crate::identity::{Identities, dev_of, is_dir};
use crate::node::{Attached, Fds, Life, NameAt, Node, State};
use core::hash::{BuildHasherDefault, Hasher};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;
use rustix::fs::Statx;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Parts of the table, each with its lock.
const SHARDS: usize = 64;

/// Records that are kept after the eviction of their inodes.
pub(crate) const MAX_COLD: usize = 1024;

/// The smallest capacity to which a shard shrinks.
const MIN_CAPACITY: usize = 64;

/// A hasher for keys that are hashes already.
#[derive(Clone, Copy, Default)]
pub(crate) struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number;
    }
}

/// A map whose keys are hashes.
type ByNode = HashMap<u64, Arc<Node>, BuildHasherDefault<AsIs>>;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Table {
    shards: Box<[Mutex<ByNode>]>,
    cold: Mutex<VecDeque<u64>>,
    /// How many names this file system has moved or removed.
    moves: AtomicU64,
}

/// A file that was found at a name.
#[derive(Clone, Copy)]
pub(crate) struct Sighting<'a> {
    pub(crate) stat: &'a Statx,
    pub(crate) at: NameAt<'a>,
    /// [`Table::moves`] from before the host was queried.
    pub(crate) moves: u64,
}

/// Resources of a record, to free after its last inode has ended.
pub(crate) struct Ended {
    pub(crate) fds: Fds,
    /// The inotify watch; 0: none.
    pub(crate) watch: i32,
    /// Where a watched directory is.
    pub(crate) place: Option<(u64, Box<[u8]>)>,
    /// The table keeps the record for a while.
    pub(crate) is_cold: bool,
}

impl Table {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, cold: Mutex::default(), moves: AtomicU64::new(0) }
    }

    fn shard(&self, id: u64) -> &Mutex<ByNode> {
        // The map inside uses the bits at both ends.
        &self.shards[(id >> 24) as usize % SHARDS]
    }

    /// Returns the number of records.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Returns how many names were moved or removed. Read before a query to the host about a name.
    pub(crate) fn moves(&self) -> u64 {
        // Relaxed: the value is compared under a record's lock, and a rename adds before it takes that lock.
        self.moves.load(Relaxed)
    }

    /// Notes that a name was moved or removed: a lookup that runs at this moment may return an old
    /// place. Called after the host has made the change and before records change.
    pub(crate) fn note_move(&self) {
        // Relaxed: see `moves`.
        self.moves.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Node>> {
        self.shard(id).lock().get(&id).cloned()
    }

    /// Returns the record of a file; makes one at the place `at` if there is none. For a record
    /// that exists, also returns the result of `known`.
    pub(crate) fn record(
        &self,
        identities: &Identities,
        stat: &Statx,
        at: NameAt<'_>,
        known: impl FnOnce(&mut State) -> bool,
    ) -> (Arc<Node>, bool) {
        let mut id = identities.node(stat);
        loop {
            match self.shard(id).lock().entry(id) {
                Entry::Vacant(vacant) => {
                    let node = Node::new(id, stat.stx_ino, dev_of(stat) != identities.dev, at);
                    return (vacant.insert(Arc::new(node)).clone(), false);
                }
                Entry::Occupied(found) if found.get().ino == stat.stx_ino => {
                    let mut state = found.get().state();
                    state.life = Life::Used;
                    return (found.get().clone(), known(&mut state));
                }
                Entry::Occupied(_) => id = id.wrapping_add(1).max(1),
            }
        }
    }

    /// Returns the record of a file that was found at a name. The flag is set if the record was
    /// pinned and now has a name again.
    pub(crate) fn note_sighting(&self, identities: &Identities, sighting: &Sighting<'_>) -> (Arc<Node>, bool) {
        let Sighting { stat, at, moves } = *sighting;
        let mut was_moved = false;
        let (node, is_reachable) = self.record(identities, stat, at, |state| {
            was_moved = is_dir(stat) && state.is_attached() && !state.is_at(at);
            if self.moves() != moves {
                return false;
            }
            state.set_place(at);
            core::mem::take(&mut state.is_pinned)
        });
        if was_moved {
            node.note_other_names();
        }
        (node, is_reachable)
    }

    /// Adds a record.
    pub(crate) fn add(&self, node: Arc<Node>) {
        self.shard(node.id).lock().insert(node.id, node);
    }

    /// Returns the record that the table has for a file now: another record than `node` if `node`
    /// was removed and the file was found again.
    pub(crate) fn current(&self, node: &Arc<Node>) -> Arc<Node> {
        self.get(node.id).unwrap_or_else(|| node.clone())
    }

    /// Returns the record of a new inode.
    pub(crate) fn attach(&self, id: u64) -> Option<Attached> {
        // Under the shard's lock: a record that is attached does not leave the table.
        let shard = self.shard(id).lock();
        let node = shard.get(&id)?;
        Some(Attached::new(node.clone(), &mut node.state()))
    }

    /// Ends the use of a record by an inode, whose data are `attached` if it used the record at all. `None` if other inodes have
    /// it. A record without a name leaves the table; others become cold: see [`Table::age`].
    pub(crate) fn end(&self, node: &Arc<Node>, attached: Option<&Attached>) -> Option<Ended> {
        let mut shard = self.shard(node.id).lock();
        let mut state = node.state();
        if let Some(attached) = attached {
            attached.end(&mut state);
        }
        if state.is_attached() {
            return None;
        }
        let is_here = shard.get(&node.id).is_some_and(|here| Arc::ptr_eq(here, node));
        let is_cold = is_here && !state.is_pinned;
        state.life = if is_cold { Life::Cold } else { Life::Dropped };
        state.opens = 0;
        let watch = core::mem::take(&mut state.watch);
        let place = (watch != 0 && !state.is_pinned).then(|| (state.parent, state.name.clone()));
        let ended = Ended { fds: state.take_fds(), watch, place, is_cold };
        drop(state);
        if is_here && !is_cold {
            shard.remove(&node.id);
            shrink(&mut shard);
        }
        Some(ended)
    }

    /// Keeps a record that has become cold until [`MAX_COLD`] others have followed. Returns the descriptors of the one that
    /// leaves the table instead: a thread may have opened some after the end of its inode.
    pub(crate) fn age(&self, id: u64) -> Fds {
        let mut cold = self.cold.lock();
        cold.push_back(id);
        let oldest = if cold.len() > MAX_COLD { cold.pop_front() } else { None };
        drop(cold);
        let Some(oldest) = oldest else { return Fds::default() };
        let mut shard = self.shard(oldest).lock();
        let Entry::Occupied(entry) = shard.entry(oldest) else { return Fds::default() };
        let fds = {
            let mut state = entry.get().state();
            if state.life != Life::Cold {
                return Fds::default();
            }
            state.life = Life::Dropped;
            state.take_fds()
        };
        entry.remove();
        shrink(&mut shard);
        fds
    }
}

/// Frees memory of a shard that was much larger before. The removals after that size pay for the
/// copying.
fn shrink(shard: &mut ByNode) {
    if shard.capacity() > MIN_CAPACITY && shard.len() < shard.capacity() / 8 {
        shard.shrink_to(shard.len() * 2);
    }
}
