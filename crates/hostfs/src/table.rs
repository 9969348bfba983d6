//! The records of all files that the VFS may have, by node.
//!
//! # What it is
//! A hash table in shards. A node is a keyed hash already ([`crate::identity`]), so it is not hashed again. Two files
//! whose hashes are one, which is improbable beyond measure, lie beside each other.
//!
//! A file system is not told whether an answer to a lookup was used, so an inode may begin with a node just when the
//! inode before it with that node ends. So records whose inodes were evicted are kept for a while ([`COLD`] of them).
//!
//! # Limitations
//! An answer that the VFS threw away, and whose file was gone when it asked again, leaves a record until the file
//! system ends.
//!
//! # How it is locked
//! A mutex for each shard, held for no call to the host; a record's own lock is inside of it. One for the order of the
//! cold ones, inside of which nothing is taken.
//!
//! # Where it comes from
//! As `vfs::PathAdapter`; own code.

use crate::identity::{Identities, NEIGHBOURS, change_hash, dev_of};
use crate::node::Node;
use core::hash::{BuildHasherDefault, Hasher};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use parking_lot::Mutex;
use rustix::fs::Statx;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Parts with a lock of their own.
const SHARDS: usize = 64;

/// Records that are kept after their inodes went.
const COLD: usize = 1024;

/// Room that a shard keeps.
const LEAST: usize = 64;

/// Takes a number as its own hash.
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
    /// How often names moved or went by this file system.
    moves: AtomicU64,
}

/// A file that was found at a place when names had moved so often.
#[derive(Clone, Copy)]
pub(crate) struct Sighting<'a> {
    pub(crate) stat: &'a Statx,
    pub(crate) parent: u64,
    pub(crate) name: &'a [u8],
    pub(crate) moves: u64,
}

impl Table {
    pub(crate) fn new() -> Self {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { shards, cold: Mutex::default(), moves: AtomicU64::new(0) }
    }

    fn shard(&self, id: u64) -> &Mutex<ByNode> {
        // The table inside takes its bits from both ends.
        &self.shards[(id >> 24) as usize % SHARDS]
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// How often names moved. Read before the host is asked for a name.
    pub(crate) fn moves(&self) -> u64 {
        // Relaxed: what is read is compared under a record's lock, and a rename adds before it takes that lock.
        self.moves.load(Relaxed)
    }

    /// A name moved or went: what lookups that run now will find is not where it was. Called after the host was, and
    /// before records are changed.
    pub(crate) fn note_move(&self) {
        // Relaxed: as above.
        self.moves.fetch_add(1, Relaxed);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<Node>> {
        self.shard(id).lock().get(&id).cloned()
    }

    /// The record of a file that was found; a new one if there is none. `reachable` is called with a pinned record that
    /// has a name again.
    pub(crate) fn sighted(&self, identities: &Identities, at: &Sighting<'_>) -> (u64, bool) {
        let mut id = identities.node(at.stat);
        for _ in 0..NEIGHBOURS {
            match self.shard(id).lock().entry(id) {
                Entry::Vacant(vacant) => {
                    let is_elsewhere = dev_of(at.stat) != identities.dev();
                    let node = Node::new(id, at.stat.stx_ino, is_elsewhere, (at.parent, at.name));
                    node.note_told(change_hash(at.stat));
                    vacant.insert(Arc::new(node));
                    return (id, false);
                }
                Entry::Occupied(found) if found.get().ino == at.stat.stx_ino => {
                    return (id, self.seen_again(found.get(), at));
                }
                Entry::Occupied(_) => id = id.wrapping_add(1).max(1),
            }
        }
        // Four files of one hash: the last two are taken for one.
        (id.wrapping_sub(1).max(1), false)
    }

    /// Notes where a known file was seen. `true`: it was pinned, and has a name again.
    fn seen_again(&self, node: &Node, at: &Sighting<'_>) -> bool {
        node.note_told(change_hash(at.stat));
        let mut state = node.state();
        state.is_cold = false;
        if self.moves() != at.moves {
            return false;
        }
        state.place(at.parent, at.name);
        core::mem::take(&mut state.is_pinned)
    }

    /// Adds the record of a file that was made and that nobody knows yet.
    pub(crate) fn made(&self, identities: &Identities, at: &Sighting<'_>) -> Option<Arc<Node>> {
        let (id, _) = self.sighted(identities, at);
        self.get(id)
    }

    /// Adds a record.
    pub(crate) fn add(&self, node: Arc<Node>) {
        self.shard(node.id).lock().insert(node.id, node);
    }

    /// The record that stands for a file now, if this one was taken out and the file was found again.
    pub(crate) fn current(&self, node: &Arc<Node>) -> Arc<Node> {
        self.get(node.id).unwrap_or_else(|| node.clone())
    }

    /// Takes a record out that has so many users, but not another of its node.
    pub(crate) fn remove(&self, node: &Arc<Node>, users: usize) {
        let mut shard = self.shard(node.id).lock();
        if let Entry::Occupied(entry) = shard.entry(node.id)
            && Arc::ptr_eq(entry.get(), node)
            && Arc::strong_count(node) <= users
        {
            entry.remove();
            shrink(&mut shard);
        }
    }

    /// Keeps the record of a file whose inode went, for a while.
    pub(crate) fn cool(&self, node: &Node) {
        node.state().is_cold = true;
        let mut cold = self.cold.lock();
        cold.push_back(node.id);
        let oldest = if cold.len() > COLD { cold.pop_front() } else { None };
        drop(cold);
        let Some(oldest) = oldest else { return };
        let mut shard = self.shard(oldest).lock();
        if let Entry::Occupied(entry) = shard.entry(oldest)
            && entry.get().state().is_cold
            // Nobody took it up meanwhile.
            && Arc::strong_count(entry.get()) == 1
        {
            entry.remove();
            shrink(&mut shard);
        }
    }
}

/// Gives back memory of a shard that was much larger. Each removal pays for a part of the next time.
fn shrink(shard: &mut ByNode) {
    if shard.capacity() > LEAST && shard.len() < shard.capacity() / 8 {
        shard.shrink_to(shard.len() * 2);
    }
}
