//! Nodes: what the kernel knows by number, and how often it was told.
//!
//! # What it is
//! FUSE names files by a node id. Each answer to a lookup tells the kernel of a node once more, and a forget takes back
//! so many of these at once; when none is left the kernel will not use the number again, and the node goes. The caller
//! chooses the id (a file's inode number, so that it is the same when the file is found again), and the table says if
//! another file that the kernel knows has it.
//!
//! # What it is not
//! A cache: what is in it is there because the kernel has it. [`Nodes::coldest`] says which nodes were not asked for
//! lately, so that the kernel can be asked to let go of them; only its forget makes them go.
//!
//! # How it is locked
//! By the hash of its id a node belongs to one of 64 shards: one [`Mutex`] for all that is known of it, held for one step
//! through the table or one slot. No lock is held where values are made or dropped;
//! they are cloned under it, so that should be cheap, an `Arc` say. The root lies beside the shards: no lock at all.
//!
//! A forget and a lookup of one id meet in its shard, and the count is raised where the node was found and lowered
//! where it is removed, each in one section. So a lookup that comes first keeps the node, and one that comes second
//! does not find it and makes a new one: never an answer with a number that is gone, and no count lost.
//!
//! # Memory
//! Beside id and value 28 to 40 bytes a node: 16 in its slot, 1 in the chunk that has the slot, 5 to 11 in the shard's
//! index, the rest from what alignment adds. An empty table has 8 KiB; a shard with one node about 1.5 KiB more.
//!
//! # Source
//! `nlookup` in Linux's `fs/fuse/inode.c` and `FUSE_FORGET` in `fuse(4)`; the second chance is Corbató's clock (1968).
//!
//! # Limitations
//! After 2^32 nodes an id can be given out with a generation that it had before.

#[path = "nodes/shard.rs"]
mod shard;

use core::fmt;
use prim::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use prim::seed;
use shard::{Forgotten, Shard, Told};
use sync::Mutex;

/// The id of the root, which the kernel knows without a lookup and never forgets.
pub(crate) const ROOT: u64 = 1;

/// Places with a lock of their own. (loom tracks every lock.)
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = if cfg!(loom) { 0 } else { 6 };

/// Chunks of 32 slots that the clock looks at before it gives the shard's lock back.
const CHUNKS_AT_ONCE: usize = 64;

/// How the kernel names a node: a number may be used again when its node is gone, with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId {
    pub(crate) id: u64,
    pub(crate) generation: u64,
}

/// The table; see the module's description. `V` is what requests need of a file.
pub(crate) struct Nodes<V> {
    root: V,
    shards: Box<[Line<V>]>,
    seed: u64,
    /// Nodes in all shards. One word for all: it moves only where a node comes or goes.
    known: AtomicUsize,
    /// Nodes that were ever made: generations.
    made: AtomicU32,
    /// Lookups that were forgotten and never told.
    excess: AtomicU64,
    /// The shard that the clock looks at next.
    hand: AtomicUsize,
}

/// Two cache lines, for the prefetcher fetches in pairs.
#[repr(align(128))]
struct Line<V>(Mutex<Shard<V>>);

impl<V: Clone> Nodes<V> {
    /// A table that knows the root alone.
    pub(crate) fn new(root: V) -> Self {
        Self {
            root,
            shards: (0..SHARDS).map(|_| Line(Mutex::new(Shard::new()))).collect(),
            seed: seed::random_u64(),
            known: AtomicUsize::new(0),
            made: AtomicU32::new(0),
            excess: AtomicU64::new(0),
            hand: AtomicUsize::new(0),
        }
    }

    /// The kernel is told once more of the node `id` (not the root's, and not 0): raises its count, from 0 if it is not
    /// known. Then `make` is called, with no lock held; its value is dropped if another thread has made the node meanwhile.
    /// `None`: another file has the id; `is_same` says whether a value is of the file that is meant.
    pub(crate) fn look_up(
        &self,
        id: u64,
        is_same: impl Fn(&V) -> bool,
        make: impl FnOnce() -> V,
    ) -> Option<(NodeId, V)> {
        if id <= ROOT {
            return None;
        }
        let (shard, tag) = self.place(id);
        let named = |generation: u32| NodeId { id, generation: generation.into() };
        // A block of its own: the lock is not held while `make` runs.
        let known = { shard.lock().tell(tag, id, &is_same) };
        match known {
            Told::Known(generation, value) => return Some((named(generation), value)),
            Told::Another => return None,
            Told::Unknown => {}
        }
        let made = make();
        let mut held = shard.lock();
        // Again, for another lookup may have come between the sections.
        match held.tell(tag, id, &is_same) {
            Told::Known(generation, value) => {
                drop(held);
                Some((named(generation), value))
            }
            Told::Another => {
                drop(held);
                None
            }
            Told::Unknown => {
                // Relaxed, here and below: figures, that order nothing. Inside the section, so that the sum never goes below 0.
                let generation = self.made.fetch_add(1, Relaxed);
                self.known.fetch_add(1, Relaxed);
                held.add((tag, id), generation, made.clone());
                drop(held);
                Some((named(generation), made))
            }
        }
    }

    /// The node with the number `id`, for a request that names it; marks it as used. `None` if the kernel was told of no
    /// such node, or has forgotten it.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<V> {
        if id == ROOT {
            return Some(self.root.clone());
        }
        let (shard, tag) = self.place(id);
        let mut held = shard.lock();
        held.get(tag, id)
    }

    /// The node `id`, if the kernel knows it, for a word to the kernel about it. Counts and marks nothing.
    pub(crate) fn find(&self, id: u64) -> Option<(NodeId, V)> {
        if id == ROOT {
            return Some((NodeId { id: ROOT, generation: 0 }, self.root.clone()));
        }
        let (shard, tag) = self.place(id);
        let found = shard.lock().find(tag, id);
        found.map(|(generation, value)| (NodeId { id, generation: generation.into() }, value))
    }

    /// The kernel takes back `lookups` of what it was told of `id`. When none is left the node goes, and its value is
    /// handed to the caller, who drops it where it holds no lock. More than was told counts as all, and so does a number
    /// that is not known: that is counted, and logged the first time. Of the root nothing is counted.
    pub(crate) fn forget(&self, id: u64, lookups: u64) -> Option<V> {
        if id == ROOT || lookups == 0 {
            return None;
        }
        let (shard, tag) = self.place(id);
        let forgotten = {
            let mut held = shard.lock();
            let forgotten = held.forget(tag, id, lookups);
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

    /// The kernel knows nothing any more: all nodes but the root go, and their values are handed to the caller.
    pub(crate) fn forget_all(&self) -> Vec<V> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut held = shard.0.lock();
            let before = all.len();
            held.take_all(&mut all);
            self.known.fetch_sub(all.len() - before, Relaxed);
        }
        all
    }

    /// How often the kernel was told of `id` and has not taken back; 1 for the root.
    #[cfg(any(test, loom))]
    pub(crate) fn lookups(&self, id: u64) -> Option<u64> {
        if id == ROOT {
            return Some(1);
        }
        let (shard, tag) = self.place(id);
        let held = shard.lock();
        held.lookups(tag, id)
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
    #[cfg(any(test, loom))]
    pub(crate) fn bytes(&self) -> usize {
        let below = |shard: &Line<V>| shard.0.lock().bytes();
        size_of::<Self>() + self.shards.iter().map(|shard| size_of::<Line<V>>() + below(shard)).sum::<usize>()
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
                held.sweep(enough - out.len(), |id, value| out.push((id, value.clone())));
                left -= 1;
            }
        }
    }

    /// Calls `f` for the root and then for every node, with no lock held: what comes or goes meanwhile may be left out.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, V)) {
        f(ROOT, self.root.clone());
        let mut few = Vec::new();
        for shard in &self.shards {
            let mut chunk = 0;
            // (A condition's guard does not live on in the loop, so the lock is given back before `f`.)
            while shard.0.lock().clone_chunk(chunk, &mut few) {
                few.drain(..).for_each(|(id, value)| f(id, value));
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

    /// The shard of an id, and what it has of the id's hash: bits that did not choose the shard. Folded multiplication by a
    /// seed that others do not know; source: wyhash (Wang Yi, 2019).
    fn place(&self, id: u64) -> (&Mutex<Shard<V>>, u32) {
        let product = u128::from(id ^ self.seed) * u128::from(self.seed | 1);
        let hash = (product as u64 ^ (product >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (&self.shards[(hash >> 58) as usize & (SHARDS - 1)].0, (hash >> 24) as u32)
    }
}

impl<V> fmt::Debug for Nodes<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nodes").field("known", &self.known).field("excess", &self.excess).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
#[path = "nodes/tests.rs"]
mod tests;
