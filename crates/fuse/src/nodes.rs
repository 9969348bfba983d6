//! Nodes: what the kernel knows by number, and how often it was told.
//!
//! # What it is
//! FUSE names files by a node id. Each answer to a lookup tells the kernel of a node once more, and a forget takes back
//! so many of these at once; when none is left the kernel will not use the number again, and the node goes. The table
//! leads from the caller's key to the node, so that a file has one number, and from the number to the caller's value.
//!
//! # What it is not
//! A cache: what is in it is there because the kernel has it. [`Nodes::coldest`] says which nodes were not asked for
//! lately, so that the kernel can be asked to let go of them; only its forget makes them go.
//!
//! # How it is locked
//! By the hash of its key a node belongs to one of 64 shards, whose number is part of the id: one [`Mutex`] for all that
//! is known of it, held for one step through the table or one slot. No lock is held where values are made or dropped;
//! they are cloned under it, so that should be cheap, an `Arc` say. The root lies beside the shards: no lock at all.
//!
//! A forget and a lookup of one key meet in its shard, and the count is raised where the node was found and lowered
//! where it is removed, each in one section. So a lookup that comes first keeps the node, and one that comes second
//! does not find it and makes a new one: never an answer with a number that is gone, and no count lost.
//!
//! # Memory
//! Beside key and value 28 to 40 bytes a node: 16 in its slot, 1 in the chunk that has the slot, 5 to 11 in the shard's
//! index, the rest from what alignment adds. An empty table has 8 KiB; a shard with one node about 1.5 KiB more.
//!
//! # Source
//! `nlookup` in Linux's `fs/fuse/inode.c` and `FUSE_FORGET` in `fuse(4)`; the second chance is Corbató's clock (1968).
//!
//! # Limitations
//! A slot that was reused 2^32 times gives out an id and a generation that were there before.

#[path = "nodes/shard.rs"]
mod shard;

use core::fmt;
use core::hash::{Hash, Hasher};
use prim::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use prim::seed;
use shard::{Forgotten, Shard};
use sync::Mutex;

/// The id of the root, which the kernel knows without a lookup and never forgets.
pub(crate) const ROOT: u64 = 1;

/// Places with a lock of their own. (loom tracks every lock.)
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = if cfg!(loom) { 0 } else { 6 };

/// Ids below: none, and the root.
const FIRST_ID: u64 = 2;

/// Chunks of 32 slots that the clock looks at before it gives the shard's lock back.
const CHUNKS_AT_ONCE: usize = 64;

/// How the kernel names a node: a number is used again when its node is gone, with a generation that is one more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId {
    pub(crate) id: u64,
    pub(crate) generation: u64,
}

/// The table; see the module's description. `K` is what makes a file the same file, `V` what requests need of it.
pub(crate) struct Nodes<K, V> {
    root: (K, V),
    shards: Box<[Line<K, V>]>,
    seed: u64,
    /// Nodes in all shards. One word for all: it moves only where a node comes or goes.
    known: AtomicUsize,
    /// Lookups that were forgotten and never told.
    excess: AtomicU64,
    /// The shard that the clock looks at next.
    hand: AtomicUsize,
}

/// Two cache lines, for the prefetcher fetches in pairs.
#[repr(align(128))]
struct Line<K, V>(Mutex<Shard<K, V>>);

impl<K: Copy + Eq + Hash, V: Clone> Nodes<K, V> {
    /// A table that knows the root alone.
    pub(crate) fn new(root_key: K, root: V) -> Self {
        Self {
            root: (root_key, root),
            shards: (0..SHARDS).map(|_| Line(Mutex::new(Shard::new()))).collect(),
            seed: seed::random_u64(),
            known: AtomicUsize::new(0),
            excess: AtomicU64::new(0),
            hand: AtomicUsize::new(0),
        }
    }

    /// The kernel is told of `key` once more: raises its count, from 0 if it is not known. Then `make` is called, with no
    /// lock held; its value is dropped if another thread has made the node meanwhile.
    pub(crate) fn look_up(&self, key: K, make: impl FnOnce() -> V) -> (NodeId, V) {
        if key == self.root.0 {
            return (NodeId { id: ROOT, generation: 0 }, self.root.1.clone());
        }
        let hash = self.hash(&key);
        let at = place(hash);
        let shard = &self.shards[at].0;
        // A block of its own: the lock is not held while `make` runs.
        let known = { shard.lock().tell(tag(hash), &key) };
        if let Some((index, generation, value)) = known {
            return (named(at, index, generation), value);
        }
        let made = make();
        let mut held = shard.lock();
        // Again, for another lookup may have come between the sections.
        if let Some((index, generation, value)) = held.tell(tag(hash), &key) {
            drop(held);
            return (named(at, index, generation), value);
        }
        let (index, generation) = held.add(tag(hash), key, made.clone());
        // Relaxed, here and below: a figure, that orders nothing. Inside the section, so that it never goes below 0.
        self.known.fetch_add(1, Relaxed);
        drop(held);
        (named(at, index, generation), made)
    }

    /// The node with the number `id`, for a request that names it; marks it as used. `None` if the kernel was told of no
    /// such node, or has forgotten it.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<V> {
        if id == ROOT {
            return Some(self.root.1.clone());
        }
        let (at, index) = split(id)?;
        self.shards[at].0.lock().get(index)
    }

    /// The node of `key`, if the kernel knows it, for a word to the kernel about it. Counts and marks nothing.
    pub(crate) fn find(&self, key: K) -> Option<(NodeId, V)> {
        if key == self.root.0 {
            return Some((NodeId { id: ROOT, generation: 0 }, self.root.1.clone()));
        }
        let hash = self.hash(&key);
        let at = place(hash);
        let (index, generation, value) = self.shards[at].0.lock().find(tag(hash), &key)?;
        Some((named(at, index, generation), value))
    }

    /// The kernel takes back `lookups` of what it was told of `id`. When none is left the node goes, and its value is
    /// handed to the caller, who drops it where it holds no lock. More than was told counts as all, and so does a number
    /// that is not known: that is counted, and logged the first time. Of the root nothing is counted.
    pub(crate) fn forget(&self, id: u64, lookups: u64) -> Option<V> {
        if id == ROOT || lookups == 0 {
            return None;
        }
        let Some((at, index)) = split(id) else {
            self.too_many(id, lookups);
            return None;
        };
        let forgotten = {
            let mut held = self.shards[at].0.lock();
            let forgotten = held.forget(index, lookups);
            if matches!(forgotten, Forgotten::Gone(..)) {
                self.known.fetch_sub(1, Relaxed);
            }
            forgotten
        };
        match forgotten {
            Forgotten::Stays => None,
            Forgotten::Gone(value, excess) => {
                if excess != 0 {
                    self.too_many(id, excess);
                }
                Some(value)
            }
            Forgotten::Unknown => {
                self.too_many(id, lookups);
                None
            }
        }
    }

    /// How often the kernel was told of `id` and has not taken back; 1 for the root.
    pub(crate) fn lookups(&self, id: u64) -> Option<u64> {
        if id == ROOT {
            return Some(1);
        }
        let (at, index) = split(id)?;
        self.shards[at].0.lock().lookups(index)
    }

    /// Nodes that are known, the root among them. One load.
    pub(crate) fn len(&self) -> usize {
        self.known.load(Relaxed) + 1
    }

    /// The sum of all counts, shard by shard; the root's is not in it.
    pub(crate) fn total_lookups(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.lock().told()).sum()
    }

    /// Bytes of the table without what values point to, shard by shard.
    pub(crate) fn bytes(&self) -> usize {
        let below = |shard: &Line<K, V>| shard.0.lock().bytes();
        size_of::<Self>() + self.shards.iter().map(|shard| size_of::<Line<K, V>>() + below(shard)).sum::<usize>()
    }

    /// How many lookups the kernel took back that it was never told. Not 0: one of the two miscounts.
    pub(crate) fn excess_forgets(&self) -> u64 {
        self.excess.load(Relaxed)
    }

    /// Up to `n` nodes that nobody asked for since the clock last came by, pushed to `out`: the hand goes over the slots,
    /// takes the mark off those that were used, and gives those that had none. Ends after one round at the latest, so
    /// fewer than `n` come out where most nodes were used; the next call finds more. They stay until the kernel forgets
    /// them. Never the root.
    pub(crate) fn coldest(&self, n: usize, out: &mut Vec<(u64, V)>) {
        let full = out.len().saturating_add(n);
        for _ in 0..SHARDS {
            if out.len() >= full {
                return;
            }
            // Relaxed: two hands at one shard do no harm.
            let at = self.hand.fetch_add(1, Relaxed) % SHARDS;
            // A part from each shard, so that the clock goes round in all of them alike.
            let enough = full.min(out.len() + n.div_ceil(SHARDS));
            self.sweep(at, enough, out);
        }
    }

    /// The clock in one shard, until `out` is `enough` long or it has gone round.
    fn sweep(&self, at: usize, enough: usize, out: &mut Vec<(u64, V)>) {
        let mut left = self.shards[at].0.lock().chunks();
        while left > 0 && out.len() < enough {
            let mut held = self.shards[at].0.lock();
            for _ in 0..left.min(CHUNKS_AT_ONCE) {
                if out.len() >= enough {
                    return;
                }
                held.sweep(enough - out.len(), |index, value| out.push((named(at, index, 0).id, value.clone())));
                left -= 1;
            }
        }
    }

    /// Calls `f` for the root and then for every node, with no lock held: what comes or goes meanwhile may be left out.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, V)) {
        f(ROOT, self.root.1.clone());
        let mut few = Vec::new();
        for (at, shard) in self.shards.iter().enumerate() {
            let mut chunk = 0;
            // (A condition's guard does not live on in the loop, so the lock is given back before `f`.)
            while shard.0.lock().clone_chunk(chunk, &mut few) {
                few.drain(..).for_each(|(index, value)| f(named(at, index, 0).id, value));
                chunk += 1;
            }
        }
    }

    #[cold]
    fn too_many(&self, id: u64, lookups: u64) {
        let before = self.excess.fetch_add(lookups, Relaxed);
        // (loom's test includes this file where there is no `tracing`.)
        #[cfg(not(loom))]
        if before == 0 {
            tracing::warn!(id, lookups, "the kernel forgot a node more often than it was told of it");
        }
        let _ = (before, id);
    }

    fn hash(&self, key: &K) -> u64 {
        let mut hasher = Folding(self.seed);
        key.hash(&mut hasher);
        hasher.finish()
    }
}

impl<K, V> fmt::Debug for Nodes<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("known", &self.known).field("excess", &self.excess).finish_non_exhaustive()
    }
}

/// The shard of a hash: its low bits.
fn place(hash: u64) -> usize {
    hash as usize & (SHARDS - 1)
}

/// What a shard has of a hash: bits that did not choose the shard.
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn named(at: usize, index: u32, generation: u32) -> NodeId {
    let id = (u64::from(index) << SHARD_BITS | at as u64) + FIRST_ID;
    NodeId { id, generation: generation.into() }
}

/// The shard of a number, and the slot in it; `None` for one that cannot have been given out.
fn split(id: u64) -> Option<(usize, u32)> {
    let place = id.checked_sub(FIRST_ID)?;
    Some((place as usize & (SHARDS - 1), u32::try_from(place >> SHARD_BITS).ok()?))
}

/// Hashes words by folded multiplication, from a seed that others do not know. Source: wyhash (Wang Yi, 2019).
struct Folding(u64);

impl Folding {
    fn fold(a: u64, b: u64) -> u64 {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    }
}

impl Hasher for Folding {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = Self::fold(self.0 ^ word, 0xA076_1D64_78BD_642F).wrapping_add(0xE703_7ED1_A0B4_28DB);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        Self::fold(self.0, 0x8EBC_6AF0_9C88_C6E3)
    }
}

#[cfg(all(test, not(loom)))]
#[path = "nodes/tests.rs"]
mod tests;
