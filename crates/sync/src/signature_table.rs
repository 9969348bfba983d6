//! A table of facts by their signatures: lookups without a store, entries that may go at any time.
//!
//! # What it is
//! A cache of a fixed size. A key is any string of at most 256 bytes, with one number beside it;
//! the table keeps the key's [`Signature`], 128 bits, and no key. An entry has two words: an
//! address of a thing that is aligned to 64 bytes, and a word of checks. The user gives them their
//! meaning; the table promises that a lookup returns the two words of one
//! [`put`](SignatureTable::put) of the same signature.
//!
//! # What it is not
//! A map: an entry disappears when another entry needs its room. A lookup does not show that the
//! address is still valid; the caller uses the word of checks for that.
//!
//! # Layout
//! An entry is 32 bytes: the signature, the *place* word, the word of checks. Two entries are a
//! line. A signature has two lines anywhere in the table, so four ways. If all four are in use, one
//! of their entries moves to its other line: see `room.rs`. The number of lines is even, and need
//! not be a power of two: a line is chosen by a multiplication.
//!
//! | bits of the place word | |
//! |---|---|
//! | 63..22 | the address, divided by 64; 0: the entry is vacant |
//! | 21..1  | the version: how often the entry was written |
//! | 0      | BUSY: it is being written |
//!
//! # Orderings
//! An entry is a sequence lock whose count is the place word.
//!
//! | here | partner | so |
//! |---|---|---|
//! | `read`: load of the place word, Acquire | `write`: its store, Release | the other words are not older |
//! | `read`: fence Acquire, then the load again | `write`: BUSY, then fence Release | they are not newer |
//! | `claim`: compare-exchange, Acquire | `write`: its store, Release | a writer sees what the last one wrote |
//!
//! A thread that moves an entry holds both BUSY bits, and ends the write of the new place first. A lookup that reads the
//! new place before, and the old one after, finds nothing.
//!
//! # Limitations
//! Two threads that put one signature at one time can make two entries of it, if between their
//! choices an entry became vacant or stale. Each entry has the words of one of the two puts.
//! Lookups and later puts use the first entry; the second entry wastes its room until a put needs
//! it.
//!
//! An entry that moves while [`clear`](SignatureTable::clear) runs can stay.
//!
//! A lookup that sleeps between its two loads of the place word while the entry is written 2^21 times, at last with the
//! same address, can take words of two entries. A write takes some 50 ns and happens after a lookup that missed, so the
//! lookup must sleep for a tenth of a second, and go on at exactly that count.
//!
//! # Source
//! The table of signatures is from Tsai and others, "How to Get More Value From Your File System
//! Directory Cache" (SOSP '15); the layout is new. Signatures: `nh.rs`.

mod nh;
mod room;

pub use nh::Signature;
pub use room::Worth;

use crate::zeroed::{Zeroed, Zeroes};
use core::num::NonZeroUsize;
use nh::Key;
use prim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// See the [module documentation](self).
///
/// ```
/// use lightfoot_sync::signature_table::{SignatureTable, Worth};
/// let table = SignatureTable::new(1 << 16).expect("memory");
/// let signature = table.sign(7, b"usr/bin/env").expect("a short path");
/// assert_eq!(table.find(signature), None);
/// table.put(signature, 640, 5, |_| Worth::Current);
/// let found = table.find(signature).expect("it is there");
/// assert_eq!((found.address.get(), found.check), (640, 5));
/// ```
pub struct SignatureTable {
    lines: Zeroed<Line>,
    key: Key,
}

/// Two entries, in one cache line.
#[repr(C, align(64))]
#[derive(Default)]
struct Line([Entry; 2]);

// SAFETY: two entries of atomics; an entry of zeros is vacant.
unsafe impl Zeroes for Line {}

#[repr(C, align(32))]
#[derive(Default)]
struct Entry {
    signature: [AtomicU64; 2],
    place: AtomicU64,
    check: AtomicU64,
}

/// The result of a lookup: the words of one [`SignatureTable::put`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The address: a multiple of 64.
    pub address: NonZeroUsize,
    /// The word of checks.
    pub check: u64,
}

/// The place word while the entry is being written.
const BUSY: u64 = 1;

/// Where the address begins in the place word; below it are the version and [`BUSY`].
const ADDRESS: u32 = 22;

/// The version and [`BUSY`].
const LOW: u64 = (1 << ADDRESS) - 1;

/// The bits of an address that is aligned to 64 bytes below this: 48 bits, as x86-64 and aarch64 have in user space.
const ADDRESS_BITS: u32 = 48;

impl SignatureTable {
    /// Returns a table of at most `bytes`, and at least four entries. `None` if the system has no
    /// room for it.
    #[must_use]
    pub fn new(bytes: usize) -> Option<Self> {
        Some(Self { lines: Zeroed::new(((bytes / size_of::<Line>()) & !1).max(2))?, key: Key::random() })
    }

    /// Returns the bytes of its entries.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(self.lines.get())
    }

    /// Returns the signature of `bytes` with the number `beside`. `None`: `bytes` are too long for
    /// this table.
    #[inline(always)]
    #[must_use]
    pub fn sign(&self, beside: u64, bytes: &[u8]) -> Option<Signature> {
        self.key.sign(beside, bytes)
    }

    /// Returns the entry of `signature`. Stores nothing.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, signature: Signature) -> Option<Found> {
        let at = self.line_of(signature);
        let lines = self.lines.get();
        let line = lines.get(at)?;
        // Which of the two, without a branch that is taken half of the time.
        let is_second = line.0[0].signature[0].load(Relaxed) != signature.low;
        match line.0[usize::from(is_second)].read(signature) {
            None => self.find_in_other(signature, at),
            found => found,
        }
    }

    /// Requests both lines that [`find`](SignatureTable::find) may read.
    #[inline(always)]
    pub fn prefetch(&self, signature: Signature) {
        let at = self.line_of(signature);
        for line in [at, self.other_line(signature, at)] {
            if let Some(line) = self.lines.get().get(line) {
                prim::hint::prefetch(line);
            }
        }
    }

    /// Changes the word of checks of `signature`'s entry from `found`'s to `check`. Does nothing if
    /// the word has changed.
    pub fn update(&self, signature: Signature, found: Found, check: u64) {
        if let Some(entry) = self.ways(signature).find(|entry| entry.has(signature)) {
            entry.update(signature, found, check);
        }
    }

    /// Removes every entry.
    pub fn clear(&self) {
        self.lines.get().iter().flat_map(|line| &line.0).for_each(Entry::clear);
    }

    /// Returns the number of entries in use, by a pass over all. `is_counted` gets the word of
    /// checks.
    pub fn count(&self, is_counted: impl Fn(u64) -> bool) -> usize {
        let entries = self.lines.get().iter().flat_map(|line| &line.0);
        // Relaxed: a figure of one moment or another.
        entries
            .filter(|entry| entry.place.load(Relaxed) >> ADDRESS != 0 && is_counted(entry.check.load(Relaxed)))
            .count()
    }

    #[inline(always)]
    fn line_of(&self, signature: Signature) -> usize {
        // A model must do the same in each execution, and signatures depend on addresses.
        if cfg!(loom) {
            return 0;
        }
        self.scale(signature.spread())
    }

    /// Returns the other line of a signature, one of whose lines is `at`.
    fn other_line(&self, signature: Signature, at: usize) -> usize {
        let spread = signature.spread();
        // For the second line: another number of the same 64 random bits.
        let respread = spread.rotate_left(32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        let (first, second) = (self.scale(spread), self.scale(respread));
        match () {
            () if cfg!(loom) => at ^ 1,
            () if first != second => first ^ second ^ at,
            // The number of lines is even.
            () => at ^ 1,
        }
    }

    /// Returns the line of a number that is spread over all 64 bits.
    #[inline(always)]
    fn scale(&self, spread: u64) -> usize {
        ((u128::from(spread) * self.lines.get().len() as u128) >> 64) as usize
    }

    /// Returns the entry of `signature` in its second line; its first is `at`.
    #[inline(never)]
    fn find_in_other(&self, signature: Signature, at: usize) -> Option<Found> {
        self.entries_of(self.other_line(signature, at)).find_map(|entry| entry.read(signature))
    }

    fn entries_of(&self, line: usize) -> impl Iterator<Item = &Entry> {
        self.lines.get().get(line).into_iter().flat_map(|line| &line.0)
    }

    /// Returns the entries that can have `signature`, in the order in which a lookup reads them.
    fn ways(&self, signature: Signature) -> impl Iterator<Item = &Entry> {
        let at = self.line_of(signature);
        self.entries_of(at).chain(self.entries_of(self.other_line(signature, at)))
    }
}

impl Entry {
    /// Returns the words of the entry, if they are of `signature`.
    #[inline(always)]
    fn read(&self, signature: Signature) -> Option<Found> {
        // ORDERING: Acquire, pairs with the Release store in `write`: the words below are not older than this one.
        let place = self.place.load(Acquire);
        // Relaxed: ordered by the load above and the fence below.
        let check = self.check.load(Relaxed);
        if !self.has(signature) {
            return None;
        }
        // ORDERING: the Acquire fence pairs with the Release fence in `claim`: if one of the words above is of a later write,
        // the load below sees its BUSY, or what came after.
        fence(Acquire);
        if place & BUSY != 0 || self.place.load(Relaxed) != place {
            return None;
        }
        NonZeroUsize::new((place >> ADDRESS << 6) as usize).map(|address| Found { address, check })
    }

    #[inline(always)]
    fn has(&self, signature: Signature) -> bool {
        // Relaxed: `read` orders them; for others it is a hint.
        self.signature[0].load(Relaxed) == signature.low && self.signature[1].load(Relaxed) == signature.high
    }

    /// Begins a write, unless one is under way or the place word is not `place`. Returns whether it did.
    fn claim(&self, place: u64) -> bool {
        // ORDERING: Acquire, pairs with the Release store in `write`: this writer's stores come after the last one's.
        let begun = place & BUSY == 0 && self.place.compare_exchange(place, place | BUSY, Acquire, Relaxed).is_ok();
        // ORDERING: the Release fence pairs with the Acquire fence in `read`.
        fence(Release);
        begun
    }

    /// Ends a write: the entry's address is `address`, and its version is one above the version in
    /// `place`.
    fn publish(&self, place: u64, address: usize) {
        let version = (place & LOW).wrapping_add(2) & LOW & !BUSY;
        // ORDERING: Release, pairs with the Acquire loads in `read` and `claim`.
        self.place.store((address as u64 >> 6) << ADDRESS | version, Release);
    }

    fn write(&self, signature: Signature, address: usize, check: u64) {
        // Relaxed: checked by the exchange.
        let place = self.place.load(Relaxed);
        if self.claim(place) {
            self.fill(place, signature, address, check);
        }
    }

    /// Writes all words of an entry that this thread has claimed, and ends the write.
    fn fill(&self, place: u64, signature: Signature, address: usize, check: u64) {
        // Relaxed: inside the write.
        self.signature[0].store(signature.low, Relaxed);
        self.signature[1].store(signature.high, Relaxed);
        self.check.store(check, Relaxed);
        self.publish(place, address);
    }

    fn update(&self, signature: Signature, found: Found, check: u64) {
        // Relaxed: checked by the exchange.
        let place = self.place.load(Relaxed);
        if self.claim(place) {
            let address = (place >> ADDRESS << 6) as usize;
            // Relaxed: no other thread writes them now, and `claim` ordered the last one's stores before.
            if self.has(signature) && address == found.address.get() && self.check.load(Relaxed) == found.check {
                self.check.store(check, Relaxed);
            }
            self.publish(place, address);
        }
    }

    fn clear(&self) {
        // Relaxed: checked by the exchange.
        let mut place = self.place.load(Relaxed);
        while place >> ADDRESS != 0 || place & BUSY != 0 {
            if self.claim(place) {
                return self.publish(place, 0);
            }
            prim::hint::spin_loop();
            place = self.place.load(Relaxed);
        }
    }
}

impl core::fmt::Debug for SignatureTable {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("SignatureTable").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests;
