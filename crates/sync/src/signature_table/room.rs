//! How a put finds room in a table of signatures: entries move to their other lines, as in cuckoo hashing.
//!
//! # What it is
//! If all four ways of a signature are in use, [`SignatureTable::put`] moves one of the four
//! entries to its other line. If that line is full, it moves an entry of that line away first. So a
//! table that is three quarters full keeps nearly all entries. If the moves fail, an entry is
//! overwritten: an old one, or any.
//!
//! # How it is ordered
//! See [`signature_table`](super).
//!
//! # Where it comes from
//! R. Pagh, F. Rodler, "Cuckoo Hashing" (J. Algorithms 51, 2004); M. Dietzfelbinger, C. Weidling, "Balanced Allocation and
//! Dictionaries with Tightly Packed Constant Size Bins" (TCS 380, 2007), for lines of two entries.

use super::{ADDRESS, BUSY, Entry, Signature, SignatureTable};
use prim::atomic::Ordering::Relaxed;

/// How many entries a put moves at most, each to the room of the one before.
const MOVES: u32 = if cfg!(loom) { 1 } else { 2 };

/// How useful an entry is, by its word of checks, to a put that needs room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Worth {
    /// The entry will never be used again: its room counts as vacant.
    Useless,
    /// The entry is replaced before a current entry.
    Old,
    /// The entry is replaced only if no other entry can be.
    Current,
}

/// The use of an entry for a signature that needs one: a put writes the first of these.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Use {
    Own,
    Vacant,
    Other(Worth),
}

impl SignatureTable {
    /// Adds an entry, or changes the one of this signature: `address` is a multiple of 64 below 2^48 and not 0. If no room is
    /// vacant, and none can be made by moving entries, it takes the room of an entry that is worth least. Does nothing if
    /// another thread writes that entry.
    pub fn put(&self, signature: Signature, address: usize, check: u64, worth: impl Fn(u64) -> Worth) {
        debug_assert!(
            address != 0 && address.is_multiple_of(64) && address >> super::ADDRESS_BITS == 0,
            "{address:#x}"
        );
        // Where all ways are in use, the signature chooses one.
        let turn = if cfg!(loom) { 0 } else { signature.high as usize % 4 };
        let uses = self.ways(signature).enumerate().map(|(way, entry)| match entry.use_for(signature, &worth) {
            // The entry that a lookup reads first. (Threads that put one signature at one time can
            // make two entries of it.)
            found @ (Use::Own | Use::Vacant) => (found, way, entry),
            other => (other, way ^ turn, entry),
        });
        let Some((found, _, entry)) = uses.min_by_key(|&(found, way, _)| (found, way)) else { return };
        let entry = match found {
            Use::Own | Use::Vacant | Use::Other(Worth::Useless) => entry,
            Use::Other(_) => self.make_room(signature).unwrap_or(entry),
        };
        entry.write(signature, address, check);
    }

    /// Returns whether a way of `signature` is vacant.
    #[must_use]
    pub fn has_room(&self, signature: Signature) -> bool {
        self.ways(signature).any(Entry::is_vacant)
    }

    /// Moves an entry out of a way of `signature`. Returns the way.
    #[cold]
    fn make_room(&self, signature: Signature) -> Option<&Entry> {
        // Few moves first.
        let at = self.line_of(signature);
        let lines = [at, self.other_line(signature, at)];
        (1..=MOVES).find_map(|moves| lines.into_iter().find_map(|line| self.vacate(line, moves)))
    }

    /// Moves the entry of `signature`, if its other line has room: for models, whose tables have two lines.
    #[cfg(loom)]
    pub fn move_entry(&self, signature: Signature) -> bool {
        let at = self.line_of(signature);
        let lines = [at, self.other_line(signature, at)];
        lines.into_iter().any(|line| {
            let mut own = self.entries_of(line).filter(|entry| entry.has(signature));
            own.any(|entry| self.move_from(line, entry, 1))
        })
    }

    /// Returns an entry of a line that was moved away, and up to `moves` entries in all with it.
    fn vacate(&self, line: usize, moves: u32) -> Option<&Entry> {
        self.entries_of(line).find(|entry| self.move_from(line, entry, moves))
    }

    /// Moves an entry of a line to its other line, and up to `moves` entries in all. Returns whether it did.
    fn move_from(&self, line: usize, entry: &Entry, moves: u32) -> bool {
        // (If the entry does not have this signature, the other line may be any, and `move_to` does nothing.)
        let signature = entry.signature();
        let other = self.other_line(signature, line);
        let room = match moves {
            1 => self.entries_of(other).find(|entry| entry.is_vacant()),
            _ => self.vacate(other, moves - 1),
        };
        room.is_some_and(|room| entry.move_to(room, signature))
    }
}

impl Entry {
    fn use_for(&self, signature: Signature, worth: impl Fn(u64) -> Worth) -> Use {
        match () {
            () if self.has(signature) => Use::Own,
            () if self.is_vacant() => Use::Vacant,
            // Relaxed: a choice; an exchange makes sure that one thread writes.
            () => Use::Other(worth(self.check.load(Relaxed))),
        }
    }

    /// Returns whether the way looks vacant. Only a guess: an exchange makes sure that one thread writes.
    fn is_vacant(&self) -> bool {
        // Relaxed: see above.
        let place = self.place.load(Relaxed);
        place >> ADDRESS == 0 && place & BUSY == 0
    }

    /// Returns a guess of the entry's signature.
    fn signature(&self) -> Signature {
        // Relaxed: `move_to` looks again.
        Signature { low: self.signature[0].load(Relaxed), high: self.signature[1].load(Relaxed) }
    }

    /// Moves the entry of `signature` to the vacant entry `target`, and makes this entry vacant.
    /// Does nothing if one of the two changed.
    fn move_to(&self, target: &Entry, signature: Signature) -> bool {
        // Relaxed, both: checked by the exchanges.
        let (place, free) = (self.place.load(Relaxed), target.place.load(Relaxed));
        if place >> ADDRESS == 0 || !self.claim(place) {
            return false;
        }
        let address = (place >> ADDRESS << 6) as usize;
        // Relaxed: no other thread writes the words now, and `claim` ordered the last one's stores before.
        let is_moved = self.has(signature) && free >> ADDRESS == 0 && target.claim(free);
        if is_moved {
            target.fill(free, signature, address, self.check.load(Relaxed));
        }
        self.publish(place, if is_moved { 0 } else { address });
        is_moved
    }
}
