//! What the cache of one file system may hold, and what goes when it is full.
//!
//! # What it is
//! Three hard budgets of bytes: for entries (a slot of 256 bytes each, and long names and link bodies besides), for negative
//! entries, and for listings ([`crate::listing_cache`]). Entries and negative entries lie in slabs of their own with a limit of their
//! own. When a slab is nearly full, whoever needs a slot first looks at the next few slots after the slab's *clock hand*
//! and takes out what was not used since the hand came by last. So there is no list to keep in order: a hit stores one
//! flag at most, and only the first after the hand; nobody looks at more than [`STEP`] slots for a slot while any is free.
//!
//! An entry goes if it was not found again since it came, or since the hand came by last, nobody holds it, nothing is mounted on it,
//! and nothing below it is cached. So what a scan leaves behind goes before what is used. Negative entries stay for longer if they
//! were hit twice.
//!
//! Entries of a file system that leaves its names to the cache are its data: they are not evicted, and not limited.
//!
//! # States of an entry under the clock
//! ```text
//! entries     new: COLD    COLD --hand--> gone    COLD --hit--> used    used --hand--> COLD
//! negatives   the same, and  used --hit--> HOT    HOT --hand--> used
//! ```
//!
//! # How it is locked
//! The hand: by the slab. To take an entry out its directory's lock is tried, never waited for; a directory's own too.
//!
//! # Where it comes from
//! Second chance: F. Corbató, "A Paging Experiment with the Multics System" (1968). Hot and cold negative entries: FreeBSD's
//! `vfs_cache.c`. The budgets are hard where Linux's are asked for by memory pressure.

use crate::dentry::{COLD, DIR, Dentry, HASHED, HOT, INODE, MOUNTED};
use crate::errno::Errno;
use crate::rank::Rank;
use crate::superblock::SuperBlock;
use core::mem::size_of;
use prim::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use sync::slab::SlabCursor;

/// Slots that are looked at for each slot that is taken when few are free.
pub(crate) const STEP: usize = 32;

/// Slots that are looked at at once when none is free.
const STRIDE: usize = 256;

/// Bytes of a slot.
pub(crate) const SLOT: u64 = size_of::<Dentry>() as u64 + size_of::<crate::slot::Rest>() as u64;

/// What the cache of one file system may hold, in bytes. Each has room for 4,096 entries at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Entries with their inodes: 256 bytes each, and names of more than 32 bytes and bodies of symbolic links. Not a limit for a
    /// file system whose names live in the cache.
    pub entries: u64,
    /// Names that are known not to be there: 256 bytes each.
    pub negatives: u64,
    /// Listings of directories, for file systems that allow them to be kept.
    pub listings: u64,
}

impl Budget {
    /// So many entries with names of 32 bytes and less fit into it.
    #[must_use]
    pub fn names(&self) -> u64 {
        self.entries.max(LEAST) / SLOT
    }
}

impl Default for Budget {
    /// 256 MiB of entries (a million), 32 MiB of negative ones, 32 MiB of listings.
    fn default() -> Self {
        Self { entries: 256 << 20, negatives: 32 << 20, listings: 32 << 20 }
    }
}

/// The least that is given.
const LEAST: u64 = 4096 * SLOT;

/// How full one of the two slabs is.
#[derive(Debug)]
pub(crate) struct Share {
    budget: u64,
    /// Bytes in use: slots, and what hangs off them.
    used: AtomicI64,
    pub(crate) evicted: AtomicU64,
    /// Slots looked at by the clock.
    pub(crate) looked: AtomicU64,
    /// The most slots that one caller has looked at for one slot.
    pub(crate) longest: AtomicU64,
    hand: SlabCursor,
}

impl Share {
    pub(crate) fn new(budget: u64) -> Self {
        Self {
            budget: budget.max(LEAST),
            used: AtomicI64::new(0),
            evicted: AtomicU64::new(0),
            looked: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            hand: SlabCursor::new(),
        }
    }

    /// The most slots that there may be.
    pub(crate) fn slots(&self) -> usize {
        usize::try_from(self.budget / SLOT).unwrap_or(usize::MAX)
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> u64 {
        u64::try_from(self.used.load(Relaxed)).unwrap_or(0)
    }

    /// Takes or gives back bytes.
    pub(crate) fn charge(&self, bytes: i64) {
        // Relaxed: a sum.
        self.used.fetch_add(bytes, Relaxed);
    }

    /// Whether so little is left that the clock must move.
    fn is_tight(&self) -> bool {
        self.used() + self.budget / 16 > self.budget
    }

    fn is_over(&self) -> bool {
        self.used() + SLOT > self.budget
    }
}

/// Bytes that a name takes besides its slot.
pub(crate) fn name_bytes(len: usize) -> i64 {
    if len > crate::dentry::INLINE_MAX { (len + size_of::<Box<[u8]>>()) as i64 } else { 0 }
}

/// Which of the two slabs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Entry,
    Negative,
}

/// A slot that was taken for a new entry; it goes back if no entry is made.
pub(crate) struct FreeSlot<'s> {
    sb: &'s SuperBlock,
    dentry: Option<&'s Dentry>,
    kind: Kind,
}

impl<'s> FreeSlot<'s> {
    /// The slot, to be made an entry.
    pub(crate) fn take(mut self) -> &'s Dentry {
        self.dentry.take().expect("taken once")
    }
}

impl Drop for FreeSlot<'_> {
    fn drop(&mut self) {
        if let Some(dentry) = self.dentry.take() {
            self.sb.free_slot(dentry, self.kind);
        }
    }
}

impl SuperBlock {
    /// A slot for a new entry. The caller may hold the lock of the directory `locked`, and of no other.
    ///
    /// # Errors
    /// `ENOMEM`: the budget is used up, and all of it is held.
    #[inline]
    pub(crate) fn slot(&self, kind: Kind, locked: Option<&Dentry>) -> Result<FreeSlot<'_>, Errno> {
        if !self.is_limited {
            return Ok(FreeSlot { sb: self, dentry: Some(self.slab.alloc()), kind });
        }
        let dentry = self.limited_slot(kind, locked)?;
        Ok(FreeSlot { sb: self, dentry: Some(dentry), kind })
    }

    #[cold]
    fn limited_slot(&self, kind: Kind, locked: Option<&Dentry>) -> Result<&Dentry, Errno> {
        let (share, slab) = (self.share(kind), self.slab_of(kind));
        let mut looked = 0;
        while share.is_tight() && looked < STEP {
            let before = share.evicted.load(Relaxed);
            looked += self.turn(kind, STEP / 4, locked).max(1);
            if share.evicted.load(Relaxed) != before {
                break;
            }
        }
        // All slots twice: once to mark, once to take.
        let all = 2 * share.slots() + STRIDE;
        let dentry = loop {
            if !share.is_over()
                && let Some(dentry) = slab.try_alloc()
            {
                break dentry;
            }
            if looked >= all {
                return Err(Errno::ENOMEM);
            }
            looked += self.turn(kind, STRIDE, locked).max(1);
        };
        share.longest.fetch_max(looked as u64, Relaxed);
        share.charge(SLOT as i64);
        Ok(dentry)
    }

    /// Gives a slot back to its slab.
    #[inline]
    pub(crate) fn free_slot(&self, dentry: &Dentry, kind: Kind) {
        if self.is_limited {
            self.share(kind).charge(-(SLOT as i64));
        }
        self.slab_of(kind).free(dentry);
    }

    /// Moves the hand over so many slots; says how many there were.
    fn turn(&self, kind: Kind, count: usize, locked: Option<&Dentry>) -> usize {
        let share = self.share(kind);
        let mut evicted = 0;
        let looked = self.slab_of(kind).scan(&share.hand, count, |dentry| {
            let goes = match kind {
                Kind::Entry => is_unused(dentry),
                Kind::Negative => is_unwanted(dentry),
            };
            evicted += u64::from(goes && self.try_evict(dentry, locked));
        });
        share.looked.fetch_add(looked as u64, Relaxed);
        share.evicted.fetch_add(evicted, Relaxed);
        looked
    }

    /// Takes an entry out of the cache, if nobody uses it or its directory just now.
    fn try_evict(&self, dentry: &Dentry, locked: Option<&Dentry>) -> bool {
        let Some(dir) = dentry.parent() else { return false };
        let is_locked = locked.is_some_and(|locked| core::ptr::eq(locked, dir));
        let dir_lock = if is_locked { None } else { dir.lock.try_lock() };
        if dir_lock.is_none() && !is_locked {
            return false;
        }
        let _ranked = dir_lock.is_some().then(|| self.ranks.acquire_nested(Rank::Directory));
        let is_dir = dentry.has(DIR);
        if is_dir && locked.is_some_and(|locked| core::ptr::eq(locked, dentry)) {
            return false;
        }
        let own_lock = if is_dir { dentry.lock.try_lock() } else { None };
        if is_dir && own_lock.is_none() {
            return false;
        }
        let _own_ranked = own_lock.is_some().then(|| self.ranks.acquire_nested(Rank::Directory));
        let stays = !dentry.is_in(dir) || !dentry.has(HASHED) || dentry.has(MOUNTED) || !dentry.has(COLD);
        if stays || dentry.first_child.get().is_some() || !dentry.count.try_kill(1) {
            return false;
        }
        self.evict_entry(dir, dentry);
        true
    }
}

/// Whether an entry was not used since the hand came by last; if it was, that is forgotten.
fn is_unused(dentry: &Dentry) -> bool {
    let object = dentry.object();
    if object & HASHED == 0 || object & MOUNTED != 0 || dentry.is_in(dentry) {
        return false;
    }
    if dentry.count.count() != 1 || dentry.first_child.get().is_some() {
        return false;
    }
    if object & COLD == 0 {
        dentry.change_flags(0, COLD);
        return false;
    }
    true
}

/// Whether a negative entry was not hit, or not for long enough; if it was, it sinks by one step.
fn is_unwanted(dentry: &Dentry) -> bool {
    let object = dentry.object();
    if object & HASHED == 0 {
        return false;
    }
    if object & HOT != 0 {
        dentry.change_flags(HOT, 0);
        return false;
    }
    if object & COLD == 0 {
        dentry.change_flags(0, COLD);
        return false;
    }
    true
}

impl Dentry {
    /// A lookup came to the entry: it was used. Stores nothing if that is known.
    #[cold]
    pub(crate) fn hit(&self, object: u64) {
        if object & COLD != 0 {
            self.change_flags(COLD, 0);
        } else if object & (INODE | HOT) == 0 {
            self.change_flags(0, HOT);
        }
    }
}
