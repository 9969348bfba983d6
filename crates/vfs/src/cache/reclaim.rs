//! Budgets of one file system's cache, and eviction when it is full.
//!
//! # What it is
//! Three hard budgets of bytes: for entries (a slot of 256 bytes each, plus long names and link
//! bodies), for negative entries, and for listings ([`crate::cache::listings`]). Entries and
//! negative entries lie in two slabs, each with its limit. When a slab is nearly full, a thread
//! that needs a slot first examines the next few slots after the slab's *clock hand* and evicts the
//! entries that were not used since the hand passed last. So there is no list to keep in order: a
//! hit stores at most one flag, and only the first hit after the hand. No thread examines more than
//! [`STEP`] slots for a slot while any is free.
//!
//! If no slot is free, the thread examines up to [`MAX_SCANNED`] slots: the first
//! [`SECOND_CHANCES`] by the same rule, the others without the second chance. If it can evict no
//! entry, it fails with `ENOMEM`, and the next thread examines the slots after these. So in a large
//! cache with nearly all entries held, a thread may fail although an entry far from the hand could
//! be evicted.
//!
//! The hand evicts an entry if no lookup found the entry since it was added or since the hand's
//! last visit. The entry must have no holder, must not be a mount point, and nothing below it may
//! be cached. So entries of a single scan are evicted before entries in use. Negative entries stay
//! longer if they were hit twice.
//!
//! Entries of a file system that leaves its names to the cache are its data: they have no limit and
//! are not evicted.
//!
//! # States of an entry under the clock
//! ```text
//! entries     new: COLD    COLD --hand--> free    COLD --hit--> used    used --hand--> COLD
//! negatives   the same, and  used --hit--> HOT    HOT --hand--> used
//! ```
//!
//! # How it is locked
//! The bytes in use are a [`PerCpuCredits`]: by CPU index, and exact before a slot is refused. The
//! slab locks the hand, once in 256 slots. Eviction tries the lock of the entry's directory, or the
//! lock of the entry's name if the directory is sharded, and a directory's own lock, and never
//! waits for them. So a directory stays while it is sharded.
//!
//! # Where it comes from
//! Second chance: F. Corbató, "A Paging Experiment with the Multics System" (1968). Hot and cold
//! negative entries: FreeBSD's `vfs_cache.c`. The budgets are hard; Linux reclaims under memory
//! pressure.

use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::cache::budget::{SLOT, STEP, SecondChance, SlotKind, credits};
use crate::cache::shared_budget::{Evict, Limits, SharedBudget};
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use crate::slots::object::ObjectFlags;
use crate::slots::slot::{DeadDentry, UnusedSlot};
use core::mem::size_of;
use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use sync::slab::SlabCursor;
use sync::{OnceBox, PerCpuCredits};

/// Slots examined at once when none is free.
const STRIDE: usize = 256;

/// The most slots examined for a slot.
pub(crate) const MAX_SCANNED: usize = 16_384;

/// Of them, those where an entry that was used stays.
const SECOND_CHANCES: usize = 4_096;

/// How full one of the two slabs is.
#[derive(Debug)]
pub(crate) struct Share {
    /// Bytes: slots, long names and link bodies.
    credits: PerCpuCredits,
    /// The budget that they are taken from, too.
    shared: Option<(SharedBudget, SlotKind)>,
    /// Made when the clock first moves.
    looks: OnceBox<PerCpu<OwnLooks>>,
    hand: SlabCursor,
}

/// The clock's counters, of the threads of one CPU index.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLooks {
    evicted: AtomicU64,
    looked: AtomicU64,
    longest: AtomicU64,
}

/// The clock's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looks {
    pub(crate) evicted: u64,
    /// Slots that the clock examined.
    pub(crate) looked: u64,
    /// The most slots that one caller has examined for one slot.
    pub(crate) longest: u64,
}

impl Looks {
    /// Returns the sum of both.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            evicted: self.evicted + other.evicted,
            looked: self.looked + other.looked,
            longest: self.longest.max(other.longest),
        }
    }
}

impl OwnLooks {
    /// Adds to the index's counts, which only its owner writes.
    fn add(&self, looked: u64, evicted: u64) {
        // Relaxed, here and below: counters with one writer each.
        self.looked.store(self.looked.load(Relaxed) + looked, Relaxed);
        self.evicted.store(self.evicted.load(Relaxed) + evicted, Relaxed);
    }

    fn note_longest(&self, looked: usize) {
        self.longest.store(self.longest.load(Relaxed).max(looked as u64), Relaxed);
    }

    fn get(&self) -> Looks {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        Looks { evicted: of(&self.evicted), looked: of(&self.looked), longest: of(&self.longest) }
    }
}

impl Share {
    pub(crate) fn new(limits: &Limits, kind: SlotKind) -> Self {
        let budget = if kind == SlotKind::Entry { limits.budget.entries } else { limits.budget.negatives };
        let shared = limits.shared.clone().map(|shared| (shared, kind));
        Self { credits: credits(budget), shared, looks: OnceBox::none(), hand: SlabCursor::default() }
    }

    /// Returns the count that runs out first.
    fn scarce(&self) -> &PerCpuCredits {
        self.shared.as_ref().map_or(&self.credits, |(shared, kind)| shared.credits(*kind))
    }

    fn take(&self, bytes: u64) -> bool {
        let is_taken = self.credits.take(bytes);
        if is_taken && self.shared.is_some() && !self.scarce().take(bytes) {
            self.credits.give(bytes);
            return false;
        }
        is_taken
    }

    /// Returns all counts that bytes are taken from.
    #[inline(always)]
    fn counts(&self) -> impl Iterator<Item = &PerCpuCredits> {
        core::iter::once(&self.credits).chain(self.shared.as_ref().map(|_| self.scarce()))
    }

    #[inline(always)]
    fn give(&self, bytes: u64) {
        self.counts().for_each(|credits| credits.give(bytes));
    }

    /// Returns the limit of bytes.
    pub(crate) fn budget(&self) -> u64 {
        self.credits.bound()
    }

    /// Returns the limit of slots.
    pub(crate) fn slots(&self) -> usize {
        usize::try_from(self.budget() / SLOT).unwrap_or(usize::MAX)
    }

    /// Bytes in use. Looks at the store of each CPU index.
    pub(crate) fn used(&self) -> u64 {
        self.credits.used()
    }

    fn own_looks(&self) -> &OwnLooks {
        self.looks.get_or_make(|| PerCpu::sized(OwnLooks::default, true)).this()
    }

    pub(crate) fn looks(&self) -> Looks {
        self.looks.get().into_iter().flat_map(PerCpu::iter).map(OwnLooks::get).fold(Looks::default(), Looks::and)
    }

    /// Adds bytes, beyond the budget if need be: then no slot is taken before as much was returned.
    /// Or subtracts them.
    pub(crate) fn charge(&self, bytes: i64) {
        if bytes < 0 {
            return self.give(bytes.unsigned_abs());
        }
        self.counts().for_each(|credits| credits.take_anyway(bytes.unsigned_abs()));
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let used = self.credits.used();
        self.counts().for_each(|credits| credits.give(used));
    }
}

/// Bytes that a name takes besides its slot.
pub(crate) fn name_bytes(len: usize) -> i64 {
    if len > crate::slots::dentry::INLINE_MAX { (len + size_of::<Box<[u8]>>()) as i64 } else { 0 }
}

/// The right of a thread that has directories locked to take slots ([`SuperBlock::slot_in`]) and to
/// search with the file system's help. Either may evict or remove entries of these directories,
/// which no other thread can do. So an entry that a search finds borrows this: before the thread
/// searches again or takes a slot, it must hold the entry, or be done with it.
#[derive(Debug)]
pub(crate) struct MayEvict(());

/// Held locks of directories, with the one right that belongs to them.
pub(crate) struct LockedDirs<L> {
    may_evict: MayEvict,
    _locks: L,
}

impl<L> LockedDirs<L> {
    pub(crate) fn new(locks: L) -> Self {
        Self { may_evict: MayEvict(()), _locks: locks }
    }

    pub(crate) fn may_evict(&mut self) -> &mut MayEvict {
        &mut self.may_evict
    }
}

/// A slot that was taken for a new entry. It returns to the slab unless an entry is made of it.
pub(crate) struct FreeSlot<'s> {
    sb: &'s SuperBlock,
    slot: Option<UnusedSlot<'s>>,
    kind: SlotKind,
}

impl<'s> FreeSlot<'s> {
    pub(crate) fn dentry(&self) -> &'s Dentry {
        self.slot.as_ref().expect("taken by value").dentry()
    }

    /// Returns the slot, to be made an entry.
    #[inline]
    pub(crate) fn take(self) -> &'s Dentry {
        core::mem::ManuallyDrop::new(self).slot.take().expect("taken once").dentry()
    }
}

impl Drop for FreeSlot<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.sb.free_slot(slot, self.kind);
        }
    }
}

impl SuperBlock {
    /// Returns a slot for a new entry. Entries of directories, and of names, that this thread has
    /// locked stay.
    ///
    /// # Errors
    /// `ENOMEM`: the budget is used up, and each entry among the next [`MAX_SCANNED`] is held.
    pub(crate) fn slot(&self, kind: SlotKind) -> Result<FreeSlot<'_>, Errno> {
        self.slot_beside(kind, None)
    }

    /// As `slot`, by a thread that has the directory `locked` locked: its entries may be evicted
    /// too.
    ///
    /// # Errors
    /// As for [`SuperBlock::slot`].
    #[inline]
    pub(crate) fn slot_in(
        &self,
        kind: SlotKind,
        locked: &Dentry,
        _may_evict: &mut MayEvict,
    ) -> Result<FreeSlot<'_>, Errno> {
        self.slot_beside(kind, Some(locked))
    }

    #[inline]
    fn slot_beside(&self, kind: SlotKind, locked: Option<&Dentry>) -> Result<FreeSlot<'_>, Errno> {
        if !self.is_evictable {
            return Ok(FreeSlot { sb: self, slot: Some(UnusedSlot::take(self.slab_of(SlotKind::Entry))), kind });
        }
        let slot = self.limited_slot(kind, locked)?;
        Ok(FreeSlot { sb: self, slot: Some(slot), kind })
    }

    #[cold]
    fn limited_slot(&self, kind: SlotKind, locked: Option<&Dentry>) -> Result<UnusedSlot<'_>, Errno> {
        let (share, slab) = (self.share(kind), self.slab_of(kind));
        let mut looked = 0;
        // The clock moves while few slots are free.
        while share.scarce().rest_seen() < share.budget() / 16 && looked < STEP {
            let (seen, evicted) = self.evict_some(kind, STEP / 4, locked, SecondChance::Used);
            looked += seen.max(1);
            if evicted != 0 {
                break;
            }
        }
        // In a small cache: all slots once without the second chance, after those with it.
        let most = MAX_SCANNED.min(SECOND_CHANCES + share.slots() + STRIDE);
        let slot = loop {
            if share.take(SLOT) {
                if let Some(slot) = UnusedSlot::try_take(slab) {
                    break Ok(slot);
                }
                share.give(SLOT);
            }
            if looked >= most {
                break Err(Errno::ENOMEM);
            }
            let mercy = if looked < SECOND_CHANCES { SecondChance::Used } else { SecondChance::None };
            looked += self.evict_some(kind, STRIDE.min(most - looked), locked, mercy).0.max(1);
        };
        if looked > 0 {
            share.own_looks().note_longest(looked);
        }
        slot
    }

    /// Returns a slot to its slab.
    #[inline(always)]
    pub(crate) fn free_slot(&self, slot: UnusedSlot<'_>, kind: SlotKind) {
        if self.is_evictable {
            self.share(kind).give(SLOT);
        }
        crate::slots::slot::free_slot(self.slab_of(kind), &self.domain, slot);
    }

    /// Moves the hand over `count` slots, or the one of another file system with the budget. Returns how many slots there were, and
    /// how many entries were evicted.
    fn evict_some(&self, kind: SlotKind, count: usize, locked: Option<&Dentry>, mercy: SecondChance) -> (usize, u64) {
        let share = self.share(kind);
        let own = || self.turn(kind, count, locked, mercy);
        let Some((shared, _)) = &share.shared else { return own() };
        let (looked, evicted) = shared.turn(self.slots().dev, (kind, share.used()), count, mercy);
        if evicted != 0 {
            return (looked, evicted);
        }
        let own = own();
        (looked + own.0, own.1)
    }

    /// Moves the hand over `count` slots; returns how many there were, and how many entries were
    /// evicted.
    fn turn(&self, kind: SlotKind, count: usize, locked: Option<&Dentry>, mercy: SecondChance) -> (usize, u64) {
        let share = self.share(kind);
        let mut evicted = 0;
        let visit = |dentry: &Dentry| {
            let goes = match (kind, mercy) {
                (SlotKind::Entry, _) if !is_evictable(dentry) => false,
                (_, SecondChance::None) => dentry.object().is_hashed(),
                (SlotKind::Entry, SecondChance::Used) => is_unused(dentry),
                (SlotKind::Negative, SecondChance::Used) => is_unwanted(dentry),
            };
            evicted += u64::from(goes && self.try_evict(dentry, locked, mercy));
        };
        let slab = self.slab_of(kind);
        let looked =
            if count < STEP { slab.step(&share.hand, count, visit) } else { slab.scan(&share.hand, count, visit) };
        share.own_looks().add(looked as u64, evicted);
        (looked, evicted)
    }

    /// Evicts an entry, if it has no holder and no other thread has its directory locked.
    fn try_evict(&self, dentry: &Dentry, locked: Option<&Dentry>, mercy: SecondChance) -> bool {
        let Some(dir) = dentry.parent() else { return false };
        let is_locked = locked.is_some_and(|locked| core::ptr::eq(locked, dir));
        let dir_lock = if is_locked { None } else { self.try_lock_of(dir, dentry) };
        if dir_lock.is_none() && !is_locked {
            return false;
        }
        let names = dir_lock.as_ref().and_then(|(_, names)| *names);
        let _ranked = dir_lock.is_some().then(|| self.ranks.acquire_nested(Rank::Directory));
        let is_dir = dentry.object().is_dir();
        if is_dir && locked.is_some_and(|locked| core::ptr::eq(locked, dentry)) {
            return false;
        }
        let own_lock = if is_dir { dentry.lock.try_lock() } else { None };
        if is_dir && own_lock.is_none() {
            return false;
        }
        let _own_ranked = own_lock.is_some().then(|| self.ranks.acquire_nested(Rank::Directory));
        let stays = !dentry.is_in(dir)
            || !dentry.object().is_hashed()
            || dentry.object().is_mountpoint()
            || (mercy == SecondChance::Used && !dentry.object().is_cold());
        if stays || dentry.first_child.get().is_some() {
            return false;
        }
        let dead = DeadDentry::kill(dentry, 1);
        if is_dir {
            self.versions.note_eviction(dir);
        }
        dead.map(|dead| self.evict_entry(names.as_ref(), dir, dead)).is_some()
    }
}

impl Evict for SuperBlock {
    fn used(&self, kind: SlotKind) -> Option<u64> {
        let shares = self.shares.as_deref()?;
        let share = if kind == SlotKind::Entry { Some(&shares.entries) } else { shares.negatives.get() };
        share.map(Share::used)
    }

    fn evict(&self, kind: SlotKind, count: usize, mercy: SecondChance) -> (usize, u64) {
        self.turn(kind, count, None, mercy)
    }
}

/// Returns whether an entry has no holder, is not a mount point, and has nothing below it.
fn is_evictable(dentry: &Dentry) -> bool {
    let object = dentry.object();
    object.is_hashed()
        && !object.is_mountpoint()
        && !dentry.is_in(dentry)
        && dentry.count.count() == 1
        && dentry.first_child.get().is_none()
}

/// Returns whether an entry was not used since the hand passed last; clears the mark of a used one.
fn is_unused(dentry: &Dentry) -> bool {
    if !dentry.object().is_cold() {
        dentry.update_object(|object| object.with(ObjectFlags::COLD));
        return false;
    }
    true
}

/// Returns whether a negative entry was not hit often enough; lowers its mark by one step
/// otherwise.
fn is_unwanted(dentry: &Dentry) -> bool {
    let object = dentry.object();
    if !object.is_hashed() {
        return false;
    }
    if object.is_hot() {
        dentry.update_object(|object| object.without(ObjectFlags::HOT));
        return false;
    }
    if !object.is_cold() {
        dentry.update_object(|object| object.with(ObjectFlags::COLD));
        return false;
    }
    true
}
