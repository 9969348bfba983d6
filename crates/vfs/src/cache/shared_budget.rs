//! One budget for the caches of many file systems.
//!
//! # What it is
//! A file system that is mounted with a [`SharedBudget`] takes the bytes of its entries and listings from it, so all together have
//! a limit, however many they are. The *share* of each is the budget, divided by their number. If little of the budget is free, a
//! thread that needs a slot moves the clock of a file system above the share: the one where an entry was evicted last, then the next.
//! If these have only entries in use, it moves the clock of one with more entries than the thread's file system. A file system above its
//! share takes entries only of those that have more, and evicts its own otherwise. So an idle file system gives the entries above
//! its share to busy ones, and keeps the others.
//!
//! # How it is locked
//! A mutex, held while the clock of another file system moves. The end of that file system waits for it. The thread may have
//! directories locked. So it only tries the locks of the other file system, and [`evict`](crate::FileSystem::evict) must not wait
//! for a call of another thread.
//!
//! # Where it comes from
//! Linux's reclaim of memory control groups above their `memory.low`, and `shrink_slab` over all superblocks.

use crate::cache::budget::{Budget, SLOT, STEP, SecondChance, SlotKind, credits};
use crate::cache::listings::ListingTable;
use crate::slots::slot::Members;
use core::marker::PhantomPinned;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;
use sync::PerCpuCredits;

/// A [`Budget`] for the caches of many file systems together. Each has a share: the budget, divided by their number. Entries of those
/// above their share are evicted first. Clones are one budget.
#[derive(Clone)]
pub struct SharedBudget(Arc<Pool>);

struct Pool {
    budget: Budget,
    entries: Part,
    negatives: Part,
    listings: Arc<ListingTable>,
    members: Members<dyn Evict>,
}

/// A cache with a shared budget.
pub(crate) trait Evict: Sync {
    /// Returns the bytes of its slots.
    fn used(&self, kind: SlotKind) -> Option<u64>;

    /// Moves its clock over `count` slots. Returns how many there were, and how many entries were evicted.
    fn evict(&self, kind: SlotKind, count: usize, mercy: SecondChance) -> (usize, u64);
}

/// The part of the budget for one kind of slots.
struct Part {
    credits: PerCpuCredits,
    /// The key of the member whose clock moves next.
    hand: AtomicU64,
}

impl Part {
    fn new(budget: u64) -> Self {
        Self { credits: credits(budget), hand: AtomicU64::new(0) }
    }
}

impl SharedBudget {
    /// Returns a budget that no file system uses. Each part has room for at least 4,096 entries.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        let budget = budget.raised();
        Self(Arc::new(Pool {
            budget,
            entries: Part::new(budget.entries),
            negatives: Part::new(budget.negatives),
            listings: Arc::default(),
            members: Members::new(),
        }))
    }

    /// Returns a number that no other budget has, and no file system.
    pub(crate) fn id(&self) -> u64 {
        Arc::as_ptr(&self.0) as u64
    }

    fn part(&self, kind: SlotKind) -> &Part {
        match kind {
            SlotKind::Entry => &self.0.entries,
            SlotKind::Negative => &self.0.negatives,
        }
    }

    pub(crate) fn credits(&self, kind: SlotKind) -> &PerCpuCredits {
        &self.part(kind).credits
    }

    /// Adds the cache of a file system with this number, which leaves in its drop.
    pub(crate) fn join(&self, dev: u64, cache: &(dyn Evict + 'static)) {
        self.0.members.add(dev, cache);
    }

    /// Removes a cache. No other thread uses it after this.
    pub(crate) fn leave(&self, dev: u64) {
        self.0.members.remove(dev);
    }

    /// Moves the clocks of other caches than `own`, which uses `own_use` bytes, over `count` slots each, until an entry was evicted or
    /// [`STEP`] slots were examined. Returns how many slots there were, and how many entries were evicted.
    #[cold]
    pub(crate) fn turn(
        &self,
        own: u64,
        (kind, own_use): (SlotKind, u64),
        count: usize,
        mercy: SecondChance,
    ) -> (usize, u64) {
        let turn = |most, is_chosen: &dyn Fn(u64) -> bool| self.turn_of(own, kind, (count, mercy), most, is_chosen);
        if mercy == SecondChance::None {
            return turn(usize::MAX, &|_| true);
        }
        let share = self.credits(kind).bound() / (self.0.members.len() as u64).max(1);
        let is_above = |used| used + SLOT > share;
        if is_above(own_use) {
            // One each time: own entries are evicted otherwise.
            return turn(1, &|used| used > own_use);
        }
        let (looked, evicted) = turn(usize::MAX, &is_above);
        if evicted != 0 {
            return (looked, evicted);
        }
        let others = turn(usize::MAX, &|used| used > own_use);
        (looked + others.0, others.1)
    }

    /// `most`: how many caches are looked at.
    fn turn_of(
        &self,
        own: u64,
        kind: SlotKind,
        (count, mercy): (usize, SecondChance),
        mut most: usize,
        is_chosen: &dyn Fn(u64) -> bool,
    ) -> (usize, u64) {
        let hand = &self.part(kind).hand;
        let mut sum = (0, 0);
        // Relaxed, here and below: a hint.
        self.0.members.visit(hand.load(Relaxed), |dev, cache| {
            most -= 1;
            let is_chosen = dev != own && cache.used(kind).is_some_and(is_chosen);
            let (looked, evicted) = if is_chosen { cache.evict(kind, count, mercy) } else { (0, 0) };
            sum = (sum.0 + looked, evicted);
            // All that it has may be in use.
            hand.store(dev + u64::from(evicted == 0), Relaxed);
            (evicted != 0 || sum.0 >= count.max(STEP) || most == 0).then_some(())
        });
        sum
    }
}

impl core::fmt::Debug for SharedBudget {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("SharedBudget").field(&self.0.budget).finish()
    }
}

/// The limits of one file system's cache: a [`Budget`] for it alone, or a [`SharedBudget`].
#[derive(Debug)]
pub struct Limits {
    pub(crate) budget: Budget,
    pub(crate) shared: Option<SharedBudget>,
    /// A cache with a shared budget is reached by a pointer, also at the beginning of its drop: so no `&mut` to it is exclusive.
    _pinned: PhantomPinned,
}

impl Limits {
    /// Returns the table of the listings that the budget limits.
    pub(crate) fn listings(&self) -> Arc<ListingTable> {
        self.shared.as_ref().map(|shared| shared.0.listings.clone()).unwrap_or_default()
    }
}

impl From<Budget> for Limits {
    fn from(budget: Budget) -> Self {
        Self { budget: budget.raised(), shared: None, _pinned: PhantomPinned }
    }
}

impl From<&SharedBudget> for Limits {
    fn from(shared: &SharedBudget) -> Self {
        Self { budget: shared.0.budget, shared: Some(shared.clone()), _pinned: PhantomPinned }
    }
}
