//! Nodes: the files that the kernel names by number, with the count of its lookups of each.
//!
//! # What it is
//! FUSE names files by a node id. Each reply to a lookup adds one to the kernel's count for a node.
//! A forget subtracts from the count. At 0 the kernel does not use the id again, and the table
//! removes the node. The caller of the table chooses the id (the file's inode number, so that the
//! id is the same when the file is found again). The table reports if another file in the kernel's
//! cache has the id.
//!
//! # What it is not
//! A cache: a node is here because the kernel has it. [`Nodes::coldest`] finds nodes that were not
//! used lately, so that the session can request that the kernel drops them. Only the kernel's
//! forget removes a node.
//!
//! # How it is locked
//! The hash of its id assigns a node to one of 64 shards. One [`Mutex`] protects a shard; a thread
//! holds it for one operation or for [`WINDOW`] slots. Values are made and dropped without a lock.
//! They are cloned under the lock, so a clone should be cheap: an `Arc`. The root is outside of the
//! shards and needs no lock.
//!
//! A forget and a lookup of one id take the same lock. A lookup finds the node and raises its count
//! in one critical section; a forget lowers the count and removes the node in one critical section.
//! If the lookup is first, the node stays. If the lookup is second, it does not find the node and
//! makes a new one. So no reply has the number of a removed node, and no count is lost.
//!
//! # Memory
//! Beside id and value 25 to 32 bytes a node from 10,000 nodes on: 16 in its slot, the rest for slots in reserve and for the
//! index. An empty table has 8 KiB; a shard with one node has 0.6 KiB more.
//!
//! # Source
//! `nlookup` in Linux's `fs/fuse/inode.c` and `FUSE_FORGET` in `fuse(4)`; the second chance is Corbató's clock (1968).
//!
//! # Limitations
//! After 2^32 nodes an id can be given out with a generation that it had before.

#[path = "nodes/shard.rs"]
mod shard;

use prim::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use prim::seed;
use shard::{Key, Lookup, Shard};
use sync::Mutex;

/// The id of the root, which the kernel has without a lookup and never forgets.
pub(crate) const ROOT: u64 = 1;

/// Shards, each with its own lock. (loom tracks every lock.)
const SHARDS: usize = 1 << SHARD_BITS;
const SHARD_BITS: u32 = if cfg!(loom) { 0 } else { 6 };

/// Slots that the clock or a visit looks at before it releases the shard's lock.
const WINDOW: usize = 1024;

/// The kernel's name of a node. After the node is removed, the number may be used again with
/// another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodeId {
    pub(crate) id: u64,
    pub(crate) generation: u64,
}

/// The table; see the module's description. `V` is the data that requests need of a file.
pub(crate) struct Nodes<V> {
    root: V,
    shards: Box<[NodeShard<V>]>,
    seed: u64,
    /// Nodes in all shards. Changes only where a node is added or removed.
    known: AtomicUsize,
    /// The next generation: nodes that were ever made.
    made: AtomicU32,
    /// Lookups that the kernel took back in excess of those that were counted.
    excess: AtomicU64,
    /// The shard that the clock looks at next.
    hand: AtomicUsize,
}

/// Two cache lines, since the prefetcher fetches pairs.
#[repr(align(128))]
struct NodeShard<V>(Mutex<Shard<V>>);

impl<V: Clone> Nodes<V> {
    /// Returns a table that has only the root.
    pub(crate) fn new(root: V) -> Self {
        let seed = seed::random_u64();
        Self {
            root,
            shards: (0..SHARDS).map(|_| NodeShard(Mutex::new(Shard::new(seed)))).collect(),
            seed,
            known: AtomicUsize::new(0),
            made: AtomicU32::new(0),
            excess: AtomicU64::new(0),
            hand: AtomicUsize::new(0),
        }
    }

    /// Counts one more lookup of the node `id` (neither the root's nor 0). If the node is unknown, adds it with the value
    /// that `make` returns. `make` runs without a lock; its value is dropped if another thread adds the node meanwhile.
    /// `None`: another file has the id. `is_same` decides whether a value belongs to the file of this lookup.
    pub(crate) fn look_up(
        &self,
        id: u64,
        is_same: impl Fn(&V) -> bool,
        make: impl FnOnce() -> V,
    ) -> Option<(NodeId, V)> {
        if id <= ROOT {
            return None;
        }
        let (shard, key) = self.place(id);
        let found = shard.lock().look_up(key, &is_same);
        let found = match found {
            Lookup::Unknown => self.add(shard, key, is_same, &make()),
            found => found,
        };
        match found {
            Lookup::Known(generation, value) => Some((NodeId { id, generation: generation.into() }, value)),
            Lookup::Taken | Lookup::Unknown => None,
        }
    }

    /// Adds a node. (`value` is borrowed, so that the caller drops it without a lock.)
    fn add(&self, shard: &Mutex<Shard<V>>, key: Key, is_same: impl Fn(&V) -> bool, value: &V) -> Lookup<V> {
        let mut locked = shard.lock();
        // Looks up again, since another lookup may have come between the two critical sections.
        match locked.look_up(key, is_same) {
            Lookup::Unknown => {
                // Relaxed, here and below: figures, which order nothing. Counted under the lock, so
                // that the sum never falls below 0.
                let generation = self.made.fetch_add(1, Relaxed);
                self.known.fetch_add(1, Relaxed);
                locked.add(key, generation, value.clone());
                Lookup::Known(generation, value.clone())
            }
            found => found,
        }
    }

    /// Returns the node `id`, for a request that names it; marks it as used. `None` if the kernel
    /// does not have the node, or has forgotten it.
    #[inline]
    pub(crate) fn get(&self, id: u64) -> Option<V> {
        if id == ROOT {
            return Some(self.root.clone());
        }
        let (shard, key) = self.place(id);
        let mut locked = shard.lock();
        locked.get(key)
    }

    /// Returns the node `id`, if the kernel has it, for a notice about it. Counts and marks
    /// nothing.
    pub(crate) fn find(&self, id: u64) -> Option<(NodeId, V)> {
        if id == ROOT {
            return Some((NodeId { id: ROOT, generation: 0 }, self.root.clone()));
        }
        let (shard, key) = self.place(id);
        let found = shard.lock().find(key);
        found.map(|(generation, value)| (NodeId { id, generation: generation.into() }, value))
    }

    /// Takes `lookups` off the kernel's count for `id`. At 0 removes the node and returns its
    /// value, so that the caller drops the value without a lock. More lookups than were counted
    /// remove the node. The excess lookups, and lookups of an unknown id, are counted, and logged
    /// the first time. Does nothing for the root.
    pub(crate) fn forget(&self, id: u64, lookups: u64) -> Option<V> {
        if id == ROOT || lookups == 0 {
            return None;
        }
        let (shard, key) = self.place(id);
        let (gone, excess) = {
            let mut locked = shard.lock();
            let (gone, excess) = locked.forget(key, lookups);
            if gone.is_some() {
                self.known.fetch_sub(1, Relaxed);
            }
            (gone, excess)
        };
        if excess != 0 {
            self.too_many(id, excess);
        }
        gone
    }

    /// Removes all nodes but the root and returns their values, when the kernel has dropped all.
    pub(crate) fn forget_all(&self) -> Vec<V> {
        let mut all = Vec::new();
        for shard in &self.shards {
            let mut locked = shard.0.lock();
            let before = all.len();
            locked.take_all(&mut all);
            self.known.fetch_sub(all.len() - before, Relaxed);
        }
        all
    }

    /// Returns the kernel's count for `id`; 1 for the root.
    #[cfg(any(test, loom))]
    pub(crate) fn lookups(&self, id: u64) -> Option<u64> {
        if id == ROOT {
            return Some(1);
        }
        let (shard, key) = self.place(id);
        let locked = shard.lock();
        locked.lookups(key)
    }

    /// Returns the number of nodes, with the root. One load.
    pub(crate) fn len(&self) -> usize {
        self.known.load(Relaxed) + 1
    }

    /// Returns the sum of all counts but the root's, shard by shard.
    pub(crate) fn total_lookups(&self) -> u64 {
        self.shards.iter().map(|shard| shard.0.lock().total_lookups()).sum()
    }

    /// Returns the bytes of the table, counted shard by shard, without the memory to which values
    /// point.
    #[cfg(any(test, loom))]
    pub(crate) fn bytes(&self) -> usize {
        let below = |shard: &NodeShard<V>| shard.0.lock().bytes();
        size_of::<Self>() + self.shards.iter().map(|shard| size_of::<NodeShard<V>>() + below(shard)).sum::<usize>()
    }

    /// Returns how many lookups the kernel took back in excess of its counts. If the number is not
    /// 0, the kernel or the session miscounts.
    pub(crate) fn excess_forgets(&self) -> u64 {
        self.excess.load(Relaxed)
    }

    /// Appends to `out` up to `n` nodes that no request used since the clock's hand passed them
    /// last. The hand passes over the slots, removes the mark of each node that was used, and takes
    /// each node that had no mark. The hand stops at the latest after it has passed all slots once.
    /// So it finds fewer than `n` nodes if most were used; the next call finds more. The nodes stay
    /// until the kernel forgets them. Never the root.
    pub(crate) fn coldest(&self, n: usize, out: &mut Vec<(u64, V)>) {
        let full = out.len().saturating_add(n);
        for _ in 0..SHARDS {
            if out.len() >= full {
                return;
            }
            // Relaxed: two hands in one shard do no harm.
            let at = self.hand.fetch_add(1, Relaxed) % SHARDS;
            // Takes a part from each shard, so that the clock runs equally fast in all shards.
            let enough = full.min(out.len() + n.div_ceil(SHARDS));
            self.sweep(at, enough, out);
        }
    }

    /// Runs the clock in one shard, until `out` has `enough` nodes or the hand has made one round.
    fn sweep(&self, at: usize, enough: usize, out: &mut Vec<(u64, V)>) {
        let mut left = self.shards[at].0.lock().slots();
        while left > 0 && out.len() < enough {
            let mut locked = self.shards[at].0.lock();
            for _ in 0..left.min(WINDOW) {
                if out.len() >= enough {
                    return;
                }
                out.extend(locked.sweep().map(|(id, value)| (id, value.clone())));
                left -= 1;
            }
        }
    }

    /// Calls `f` for the root and for every node, without a lock. May leave out nodes that are added or removed meanwhile,
    /// and may visit a node twice while others are removed.
    pub(crate) fn for_each(&self, mut f: impl FnMut(u64, V)) {
        f(ROOT, self.root.clone());
        self.all(|id, value| {
            f(id, value);
            true
        });
    }

    /// Returns at most `n` nodes that are wanted, any, but not the root.
    pub(crate) fn some(&self, n: usize, mut is_wanted: impl FnMut(&V) -> bool) -> Vec<u64> {
        let mut found = Vec::new();
        self.all(|id, value| {
            if found.len() < n && is_wanted(&value) {
                found.push(id);
            }
            found.len() < n
        });
        found
    }

    /// Calls `f` with all nodes but the root, until it returns `false`.
    fn all(&self, mut f: impl FnMut(u64, V) -> bool) {
        let mut few = Vec::new();
        for shard in &self.shards {
            // Downwards: a node that moves meanwhile moves to a lower slot, so none is left out.
            let mut end = shard.0.lock().slots();
            while end > 0 {
                let start = end.saturating_sub(WINDOW);
                shard.0.lock().clone_slots(start..end, &mut few);
                if !few.drain(..).all(|(id, value)| f(id, value)) {
                    return;
                }
                end = start;
            }
        }
    }

    #[cold]
    fn too_many(&self, id: u64, lookups: u64) {
        let before = self.excess.fetch_add(lookups, Relaxed);
        // (loom's test includes this file where there is no `tracing`.)
        #[cfg(not(loom))]
        if before == 0 {
            tracing::warn!(id, lookups, "the kernel took back more lookups of a node than it was given");
        }
        let _ = (before, id);
    }

    /// Returns the shard of an id, and the id with its hash. The index of a shard uses the lowest
    /// and the highest bits of the hash, so bits in the middle choose the shard.
    fn place(&self, id: u64) -> (&Mutex<Shard<V>>, Key) {
        let key = Key::new(id, self.seed);
        (&self.shards[(key.hash >> 40) as usize % SHARDS].0, key)
    }
}

#[cfg(all(test, not(loom)))]
#[path = "nodes/tests.rs"]
mod tests;
