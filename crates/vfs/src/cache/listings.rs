//! Cached listings, of directories whose file system allows them.
//!
//! # What it is
//! If a directory did not change while it was listed from beginning to end, the cache keeps the listing.
//! Until the directory changes, it answers further listings, and lookups of names that it does not contain,
//! without the file system. All listings together take no more bytes than their budget; second chance decides
//! which ones are evicted.
//!
//! # How it is locked
//! One mutex, held to read one listing or to move the clock. It is a leaf.
//!
//! # Where it comes from
//! Solaris's directory name lookup cache with complete directories; macOS's and ZFS's cached directory contents.

use crate::fs::DirEntry;
use crate::slots::dentry::Dentry;
use core::mem::size_of;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use std::collections::{BTreeMap, VecDeque};
use sync::Mutex;

/// A whole listing: entries with their cookies, in the order of the file system, and their order by name.
#[derive(Debug)]
pub(crate) struct Whole {
    entries: Vec<(DirEntry, u64)>,
    by_name: Vec<u32>,
    bytes: u64,
}

impl Whole {
    fn new(entries: Vec<(DirEntry, u64)>, bytes: u64) -> Self {
        let mut by_name: Vec<u32> = (0..u32::try_from(entries.len()).unwrap_or(u32::MAX)).collect();
        by_name.sort_unstable_by(|&a, &b| entries[a as usize].0.name.cmp(&entries[b as usize].0.name));
        Self { entries, by_name, bytes }
    }

    /// Returns its memory, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn has(&self, name: &[u8]) -> bool {
        self.by_name.binary_search_by(|&at| (*self.entries[at as usize].0.name).cmp(name)).is_ok()
    }

    /// At most `most` entries, beginning after the one with the cookie `after`.
    pub(crate) fn from(&self, start: usize, most: usize) -> &[(DirEntry, u64)] {
        let start = start.min(self.entries.len());
        &self.entries[start..(start + most).min(self.entries.len())]
    }
}

/// Memory of an entry of a listing, in bytes.
pub(crate) fn entry_bytes(entry: &DirEntry) -> u64 {
    (size_of::<(DirEntry, u64)>() + size_of::<u32>() + entry.name.len()) as u64
}

#[derive(Debug)]
struct Kept {
    /// The sequence of the directory: its address may serve another one later.
    seq: u32,
    version: u64,
    bytes: u64,
    used: bool,
    whole: Arc<Whole>,
}

/// The number of a file system, and the address of one of its directories.
type Key = (u64, usize);

#[derive(Debug, Default)]
pub(crate) struct CachedListings {
    kept: BTreeMap<Key, Kept>,
    /// The order of the clock.
    order: VecDeque<Key>,
    bytes: u64,
}

/// The listings of all file systems with one budget.
pub(crate) type ListingTable = Mutex<CachedListings>;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Listings {
    /// The number of the file system.
    dev: u64,
    budget: u64,
    table: Arc<ListingTable>,
    pub(crate) answered: AtomicU64,
}

impl Listings {
    pub(crate) fn new(dev: u64, budget: u64, table: Arc<ListingTable>) -> Self {
        Self { dev, budget, table, answered: AtomicU64::new(0) }
    }

    fn key(&self, dir: &Dentry) -> (Key, u32) {
        ((self.dev, core::ptr::from_ref(dir) as usize), dir.seq.current())
    }

    /// Returns the length of the longest listing that is collected, in bytes.
    pub(crate) fn most(&self) -> u64 {
        self.budget / 4
    }

    fn keys(&self) -> core::ops::RangeInclusive<Key> {
        (self.dev, 0)..=(self.dev, usize::MAX)
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.table.lock().kept.range(self.keys()).map(|(_, kept)| kept.bytes).sum()
    }

    /// Stores the listing of `dir`, made while its counter of changes was `version`.
    pub(crate) fn put(&self, dir: &Dentry, version: u64, entries: Vec<(DirEntry, u64)>) {
        let bytes = entries.iter().map(|(entry, _)| entry_bytes(entry)).sum::<u64>() + size_of::<Kept>() as u64;
        if bytes > self.most() {
            return;
        }
        let (key, seq) = self.key(dir);
        let kept = Kept { seq, version, bytes, used: false, whole: Arc::new(Whole::new(entries, bytes)) };
        let mut table = self.table.lock();
        table.drop_at(key);
        table.make_room(self.budget - bytes);
        table.bytes += bytes;
        table.kept.insert(key, kept);
        table.order.push_back(key);
    }

    /// Returns the cached listing of `dir`, if the directory's counter still is `version`.
    pub(crate) fn get(&self, dir: &Dentry, version: u64) -> Option<Arc<Whole>> {
        let (key, seq) = self.key(dir);
        let mut table = self.table.lock();
        let kept = table.kept.get_mut(&key)?;
        if (kept.seq, kept.version) != (seq, version) {
            table.drop_at(key);
            return None;
        }
        kept.used = true;
        Some(kept.whole.clone())
    }

    /// Returns whether a cached listing of `dir` shows that `name` does not exist.
    pub(crate) fn lacks(&self, dir: &Dentry, version: u64, name: &[u8]) -> bool {
        let lacks = self.get(dir, version).is_some_and(|whole| !whole.has(name));
        if lacks {
            self.answered.fetch_add(1, Relaxed);
        }
        lacks
    }
}

impl Drop for Listings {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        let ended: Vec<Key> = table.kept.range(self.keys()).map(|(key, _)| *key).collect();
        ended.into_iter().for_each(|key| table.drop_at(key));
    }
}

impl CachedListings {
    fn drop_at(&mut self, key: Key) {
        if let Some(old) = self.kept.remove(&key) {
            self.bytes -= old.bytes;
            self.order.retain(|&at| at != key);
        }
    }

    /// Evicts listings until at most `room` bytes are used.
    fn make_room(&mut self, room: u64) {
        while self.bytes > room
            && let Some(key) = self.order.pop_front()
        {
            let Some(kept) = self.kept.get_mut(&key) else { continue };
            if kept.used {
                kept.used = false;
                self.order.push_back(key);
                continue;
            }
            self.bytes -= kept.bytes;
            self.kept.remove(&key);
        }
    }
}
