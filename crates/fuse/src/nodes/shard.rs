//! One shard of the table of nodes: slots in chunks, and an index over their ids.
//!
//! # What it is
//! Nodes lie in chunks of 32 slots, which do not move while the shard grows. Chunks that have room are a list, the
//! first of it is filled next; a chunk that is empty and not the first gives its memory back. The index is open
//! addressing over slot numbers with linear probing; removal shifts back what follows, so there are no tombstones.
//!
//! # What it is not
//! Thread-safe: all of it is behind its shard's lock.
//!
//! # Invariants
//! 1. A bit of `live` is set where the slot holds a node, and such a node is in the index once.
//! 2. A chunk is on the list of those with room if and only if a bit of its `live` is unset.
//!
//! # Source
//! Removal: Knuth, TAOCP 3, 6.4, algorithm R.

/// Slots of a chunk: one bit each in a word.
const CHUNK: u32 = u32::BITS;

/// No chunk; no slot.
const NONE: u32 = u32::MAX;

/// The index's first size; it doubles at 3/4 and halves at 1/8.
const SMALLEST: usize = 16;

pub(super) struct Shard<V> {
    /// Slot numbers by tag, or `NONE`; empty, or a power of two.
    index: Vec<u32>,
    chunks: Vec<Chunk<V>>,
    /// The first chunk with room.
    roomy: u32,
    live: usize,
    /// The sum of all counts.
    told: u64,
    /// The chunk that the clock looks at next.
    hand: usize,
}

struct Chunk<V> {
    live: u32,
    /// Nodes that were asked for since the clock came by.
    used: u32,
    /// The next chunk with room.
    next: u32,
    slots: Box<[Slot<V>]>,
}

struct Slot<V> {
    held: Option<(u64, V)>,
    lookups: u64,
    generation: u32,
    tag: u32,
}

/// What came of [`Shard::tell`].
pub(super) enum Told<V> {
    /// The node's generation and value.
    Known(u32, V),
    /// Another node has the id.
    Another,
    /// No node has it.
    Unknown,
}

/// What came of [`Shard::forget`].
pub(super) enum Forgotten<V> {
    /// The kernel still knows the node.
    Stays,
    /// The node's value, and how many lookups there were too many.
    Gone(V, u64),
    /// There is no such node.
    Unknown,
}

impl<V: Clone> Shard<V> {
    pub(super) fn new() -> Self {
        Self { index: Vec::new(), chunks: Vec::new(), roomy: NONE, live: 0, told: 0, hand: 0 }
    }

    /// Counts one more lookup of `id`, and marks it as used, if it is the node that `is_same` means.
    pub(super) fn tell(&mut self, tag: u32, id: u64, is_same: impl FnOnce(&V) -> bool) -> Told<V> {
        let Some(place) = self.probe(tag, id) else { return Told::Unknown };
        let index = self.index[place];
        let (chunk, bit) = self.chunk_of(index);
        let slot = &mut chunk.slots[bit as usize];
        match &slot.held {
            Some((_, value)) if is_same(value) => {
                slot.lookups += 1;
                chunk.used |= 1 << bit;
                let known = Told::Known(slot.generation, value.clone());
                self.told += 1;
                known
            }
            _ => Told::Another,
        }
    }

    /// The generation and value of `id`.
    pub(super) fn find(&self, tag: u32, id: u64) -> Option<(u32, V)> {
        let slot = self.slot(self.index[self.probe(tag, id)?])?;
        slot.held.as_ref().map(|(_, value)| (slot.generation, value.clone()))
    }

    /// Adds a node with a count of 1. `id` is not there.
    pub(super) fn add(&mut self, (tag, id): (u32, u64), generation: u32, value: V) {
        if (self.live + 1) * 4 > self.index.len() * 3 {
            self.resize((self.index.len() * 2).max(SMALLEST));
        }
        let at = self.roomy_chunk();
        let chunk = &mut self.chunks[at as usize];
        let bit = (!chunk.live).trailing_zeros();
        chunk.live |= 1 << bit;
        chunk.used |= 1 << bit;
        let slot = &mut chunk.slots[bit as usize];
        (slot.held, slot.lookups, slot.tag, slot.generation) = (Some((id, value)), 1, tag, generation);
        if chunk.live == u32::MAX {
            self.roomy = chunk.next;
        }
        self.live += 1;
        self.told += 1;
        put(&mut self.index, tag, at * CHUNK + bit);
    }

    /// The value of `id`, which is marked as used.
    #[inline]
    pub(super) fn get(&mut self, tag: u32, id: u64) -> Option<V> {
        let index = self.index[self.probe(tag, id)?];
        let (chunk, bit) = self.chunk_of(index);
        // A store only where it says something new.
        if chunk.used & 1 << bit == 0 {
            chunk.used |= 1 << bit;
        }
        chunk.slots[bit as usize].held.as_ref().map(|(_, value)| value.clone())
    }

    #[cfg(any(test, loom))]
    pub(super) fn lookups(&self, tag: u32, id: u64) -> Option<u64> {
        self.slot(self.index[self.probe(tag, id)?]).map(|slot| slot.lookups)
    }

    pub(super) fn forget(&mut self, tag: u32, id: u64, lookups: u64) -> Forgotten<V> {
        let Some(place) = self.probe(tag, id) else { return Forgotten::Unknown };
        let index = self.index[place];
        let (chunk, bit) = self.chunk_of(index);
        let slot = &mut chunk.slots[bit as usize];
        let had = slot.lookups;
        slot.lookups = had.saturating_sub(lookups);
        self.told -= had.min(lookups);
        if lookups < had {
            return Forgotten::Stays;
        }
        self.unlink(place);
        match self.vacate(index) {
            Some(value) => Forgotten::Gone(value, lookups - had),
            None => Forgotten::Unknown,
        }
    }

    /// Takes all values out, and begins anew.
    pub(super) fn take_all(&mut self, out: &mut Vec<V>) {
        let old = core::mem::replace(self, Self::new());
        let slots = old.chunks.into_iter().flat_map(|chunk| chunk.slots);
        out.extend(slots.filter_map(|slot| Some(slot.held?.1)));
    }

    pub(super) fn told(&self) -> u64 {
        self.told
    }

    pub(super) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    #[cfg(any(test, loom))]
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.chunks.iter().map(|chunk| chunk.slots.len()).sum();
        self.index.capacity() * size_of::<u32>()
            + self.chunks.capacity() * size_of::<Chunk<V>>()
            + slots * size_of::<Slot<V>>()
    }

    /// The clock's look at one chunk: marks come off, and `cold` gets those that had none, `n` at most. The hand stays
    /// where more are left than that.
    pub(super) fn sweep(&mut self, n: usize, mut cold: impl FnMut(u64, &V)) {
        if self.hand >= self.chunks.len() {
            self.hand = 0;
        }
        let hand = self.hand;
        let Some(chunk) = self.chunks.get_mut(hand) else { return };
        let mut found = chunk.live & !chunk.used;
        for _ in 0..n {
            if found == 0 {
                break;
            }
            let bit = found.trailing_zeros();
            found &= found - 1;
            if let Some((id, value)) = &chunk.slots[bit as usize].held {
                cold(*id, value);
            }
            // As if used: the hand does not give it out again before it has gone round.
            chunk.used |= 1 << bit;
        }
        if found == 0 {
            chunk.used = 0;
            self.hand += 1;
        }
    }

    /// Clones the nodes of chunk `at` to `out`; whether there is such a chunk.
    pub(super) fn clone_chunk(&self, at: usize, out: &mut Vec<(u64, V)>) -> bool {
        let Some(chunk) = self.chunks.get(at) else { return false };
        out.extend(chunk.slots.iter().filter_map(|slot| slot.held.clone()));
        true
    }

    fn slot(&self, index: u32) -> Option<&Slot<V>> {
        self.chunks.get((index / CHUNK) as usize)?.slots.get((index % CHUNK) as usize)
    }

    /// Of a slot that is there.
    fn chunk_of(&mut self, index: u32) -> (&mut Chunk<V>, u32) {
        (&mut self.chunks[(index / CHUNK) as usize], index % CHUNK)
    }

    /// Where in the index `id` is.
    fn probe(&self, tag: u32, id: u64) -> Option<usize> {
        let mask = self.index.len().checked_sub(1)?;
        let mut at = tag as usize & mask;
        // Ends, for a quarter of the index is free.
        while self.index[at] != NONE {
            let slot = self.slot(self.index[at])?;
            if slot.tag == tag && slot.held.as_ref().is_some_and(|held| held.0 == id) {
                return Some(at);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Takes the entry at `hole` out of the index; entries behind that it stood in the way of move up.
    fn unlink(&mut self, mut hole: usize) {
        let mask = self.index.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.index[at] != NONE {
            let home = self.slot(self.index[at]).map_or(at, |slot| slot.tag as usize & mask);
            // How far the entry is from home, and the hole from the entry.
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                self.index[hole] = self.index[at];
                hole = at;
            }
            at = (at + 1) & mask;
        }
        self.index[hole] = NONE;
    }

    /// Takes the value out of a slot that is off the index.
    fn vacate(&mut self, index: u32) -> Option<V> {
        let at = index / CHUNK;
        let first = self.roomy;
        let (chunk, bit) = self.chunk_of(index);
        let was_full = chunk.live == u32::MAX;
        chunk.live &= !(1 << bit);
        chunk.used &= !(1 << bit);
        let (_, value) = chunk.slots[bit as usize].held.take()?;
        if was_full {
            chunk.next = first;
            self.roomy = at;
            self.give_back(first);
        } else if at != first {
            self.give_back(at);
        }
        self.live -= 1;
        if self.index.len() > SMALLEST && self.live * 8 < self.index.len() {
            self.resize(self.index.len() / 2);
        }
        Some(value)
    }

    /// Frees the slots of chunk `at` if none is in use.
    fn give_back(&mut self, at: u32) {
        if let Some(chunk) = self.chunks.get_mut(at as usize).filter(|chunk| chunk.live == 0) {
            chunk.slots = Box::default();
        }
    }

    /// The chunk to fill next, with its slots.
    fn roomy_chunk(&mut self) -> u32 {
        if self.roomy == NONE {
            self.roomy = self.chunks.len() as u32;
            self.chunks.push(Chunk { live: 0, used: 0, next: NONE, slots: Box::default() });
        }
        let chunk = &mut self.chunks[self.roomy as usize];
        if chunk.slots.is_empty() {
            chunk.slots = (0..CHUNK).map(|_| Slot { held: None, lookups: 0, generation: 0, tag: 0 }).collect();
        }
        self.roomy
    }

    /// Makes the index anew, from the slots in their order: entries need not be looked at.
    fn resize(&mut self, size: usize) {
        let mut index = vec![NONE; size];
        for (at, chunk) in (0..).zip(&self.chunks) {
            let held = (0..CHUNK).filter(|bit| chunk.live & 1 << bit != 0);
            held.for_each(|bit| put(&mut index, chunk.slots[bit as usize].tag, at * CHUNK + bit));
        }
        self.index = index;
    }
}

/// Enters a slot number at the first free place from its home on. There is one.
fn put(index: &mut [u32], tag: u32, slot: u32) {
    let mask = index.len() - 1;
    let mut at = tag as usize & mask;
    while index[at] != NONE {
        at = (at + 1) & mask;
    }
    index[at] = slot;
}
