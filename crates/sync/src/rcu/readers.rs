//! The read side and the grace period: a set of per-CPU reader slots and an epoch.
//!
//! # What it is
//! The common part of [`RcuDomain`](super::RcuDomain) and [`PerCpuArc`](crate::PerCpuArc). Entering a section stores
//! the current epoch into the thread's slot, leaving stores 0; a grace period raises the epoch and waits until no slot
//! holds an older one. `P` is data that the user keeps in the same cache lines (deferred callbacks; a count).
//!
//! ```text
//! Slot.state   0                        quiescent
//!              epoch (44 bits) | count  in `count` (20 bits) sections, the outermost entered in that epoch
//! epoch        number (44 bits) | 1     what the outermost entry stores; a grace period adds 1 to the number
//! ```
//! One word holds epoch and count, and the stored values do not depend on loaded values, so the
//! loop "enter, leave" is not a dependency chain through memory.
//!
//! # Invariants
//! 1. Only the thread that owns the slot's index (`prim::cpu`) writes `state`. An index changes hands through a mutex,
//!    so the next owner sees what the last one wrote.
//! 2. A section entered and not left keeps `state` at the epoch of the outermost entry, or at an
//!    older epoch, with a count of 1 or more. A leaked section (forgotten, or dropped after its
//!    thread returned the index) keeps `state` so for ever: no later grace period ends. This is a
//!    stall, never a use after free, even for the next owner of the index: all its sections nest in
//!    the leaked section.
//! 3. A section that did not see a store made before [`Readers::start`] holds an epoch older than the one `start`
//!    returned, and the scan after `start` sees it. Proof: had it read the new epoch, the Acquire there would make it
//!    see the store. So it read an older one, and its entry's fence precedes `start`'s fence (or it would see the
//!    store), so the scan sees its slot or something newer.
//! 4. The actions of a section happen before the return of a [`Readers::wait`] that waited for it:
//!    the scan reads 0 from its leaving or a state from a later entry of the same slot, all stored
//!    with Release. (Entries must be Release too: since C++20 a plain store does not continue the
//!    release sequence of the store before.)
//! 5. Neither half of a state overflows: the entry or the `start` that would come near panics.
//! 6. No grace period ends that [`Readers::start`] could not begin: where it fails, nothing may be freed.
//!
//! Orderings come in two flavours. Where `membarrier(2)` works, the entry has only a compiler fence and `start` makes
//! every running thread execute a full fence: flavour `memb` of Desnoyers et al., "User-Level Implementations of
//! Read-Copy Update", IEEE TPDS 23(2), 2012. Elsewhere both sides have a full fence (flavour `mb`). Unlike there, no
//! second barrier follows the scan: release and acquire on the slot give the same here, at no cost to the reader. If the
//! system refuses `membarrier(2)` later, [`Asymmetric`] changes to the other flavour, or [`Readers::start`] fails.
//!
//! In the child of a fork the slots stay as the parent's threads left them, so there `start` always fails.

use core::hint::cold_path;
use core::marker::PhantomData;
use prim::PerCpu;
use prim::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    compiler_fence, fence,
};
use prim::barrier::{Asymmetric, Expensive};

/// Why readers cannot be waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The system granted `membarrier(2)` at first and refuses it now, and `sched_setaffinity(2)`
    /// or `/proc/self/task` too: a seccomp filter. (If it refuses only the first, readers execute
    /// full fences after that.)
    Membarrier,
    /// The process is a fork of the one that made the instance.
    Forked,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Membarrier => "membarrier(2) was granted and is now refused: no grace period can begin",
            Self::Forked => {
                "the process was forked: RCU of the parent cannot be used in the child (exec, or make another)"
            }
        })
    }
}

impl core::error::Error for Refused {}

/// The count in a slot's state.
const COUNT: u64 = (1 << 20) - 1;
/// One epoch.
const EPOCH: u64 = COUNT + 1;

/// Pauses before a waiter reads the clock and yields its CPU.
const TURNS: u32 = if cfg!(loom) { 1 } else { 256 };

/// One index's reader state; two cache lines, so that the adjacent-line prefetcher does not make neighbours share.
#[repr(C, align(128))]
struct Slot<P> {
    state: AtomicU64,
    /// Sections of this slot that were dropped by a thread which no longer owned the index.
    leaked: AtomicU32,
    own: P,
}

impl<P> Slot<P> {
    /// Enters a section inside another one; the outer one's epoch protects both.
    #[inline(always)]
    fn nest(&self, state: u64) {
        if state & COUNT == COUNT {
            too_many();
        }
        // ORDERING: Release pairs with the Acquire in `is_past`: as the outermost entry's, which it replaces. (not
        // visible to loom: there the fence of the outermost entry releases as well)
        self.state.store(state + 1, Release);
    }

    #[inline]
    fn is_past(&self, target: u64) -> bool {
        // ORDERING: Acquire pairs with the Release stores in `Readers::enter`, `Slot::nest` and `Section::drop`:
        // what a section did is visible once its slot is seen left or entered anew.
        let state = self.state.load(Acquire);
        state == 0 || state >= target
    }
}

/// The slots and the epoch. The words that an entry loads are in one cache line, which only grace periods write.
#[repr(C)]
pub(crate) struct Readers<P> {
    /// Whether readers execute a full fence, and writers need no `membarrier(2)`. First, at the address that a reader
    /// has anyway.
    pub(super) asymmetric: Asymmetric,
    /// The era of the process that made this.
    era: u32,
    epoch: AtomicU64,
    slots: PerCpu<Slot<P>>,
    /// loom does not switch threads at a fence; a step on this word before the fence makes it.
    #[cfg(loom)]
    step: AtomicU32,
}

impl<P: Default> Readers<P> {
    /// With full fences if `fences` is set or `membarrier(2)` is not available. `is_small`: a process may have thousands.
    pub(crate) fn new(fences: bool, is_small: bool) -> Self {
        Self {
            epoch: AtomicU64::new(EPOCH | 1),
            asymmetric: Asymmetric::new(fences),
            era: prim::era::current(),
            slots: PerCpu::sized(
                || Slot { state: AtomicU64::new(0), leaked: AtomicU32::new(0), own: P::default() },
                is_small,
            ),
            #[cfg(loom)]
            step: AtomicU32::new(0),
        }
    }
}

impl<P> Readers<P> {
    /// Enters a section. Sections nest, in any order of leaving.
    #[inline(always)]
    pub(crate) fn enter(&self) -> Section<'_, P> {
        let id = prim::cpu::id();
        let slot = self.slots.get(id);
        // Relaxed: the owner reads its own store (invariant 1).
        let state = slot.state.load(Relaxed);
        if state != 0 {
            cold_path();
            slot.nest(state);
            return Section { slot, id, not_send: PhantomData };
        }
        // ORDERING: Acquire pairs with the Release in `start`: a reader of the new epoch sees what was unlinked before
        // it was raised. (not visible to loom: there the fence below acquires as well)
        let epoch = self.epoch.load(Acquire);
        // ORDERING: Release pairs with the Acquire in `Slot::is_past`: a scan that finds the slot entered anew
        // concludes that the section before is over.
        slot.state.store(epoch, Release);
        // ORDERING: SeqCst pairs with `expensive` in `start`, which turns it into a full fence when it matters. It also
        // keeps the question below behind the store: a thread that reads "no fence" has stored before. (not visible to
        // loom: it has no membarrier)
        compiler_fence(SeqCst);
        if self.asymmetric.is_fence() {
            cold_path();
            #[cfg(loom)]
            self.step.fetch_add(1, Relaxed);
            // ORDERING: SeqCst pairs with the fence in `start`: either the scan sees the store above, or the loads of
            // this section see what was stored before `start`.
            fence(SeqCst);
        }
        Section { slot, id, not_send: PhantomData }
    }

    /// Returns whether the calling thread is in a section.
    pub(crate) fn is_inside(&self) -> bool {
        // Relaxed: the owner reads its own store.
        self.slots.this().state.load(Relaxed) != 0
    }

    /// Begins a grace period. Returns the epoch that every slot must reach (or leave for 0).
    ///
    /// # Errors
    /// If readers cannot be waited for (invariant 6).
    pub(crate) fn start(&self) -> Result<u64, Refused> {
        self.check_era()?;
        // ORDERING: Release pairs with the Acquire in `enter`: the stores that unlinked come with the new epoch.
        let target = self.epoch.fetch_add(EPOCH, Release).wrapping_add(EPOCH);
        assert!(target <= u64::MAX / 2, "2^43 grace periods");
        // `Done` pairs with the compiler fence in `enter`.
        match self.asymmetric.expensive() {
            Expensive::Done => Ok(target),
            Expensive::Refused => Err(Refused::Membarrier),
            Expensive::Fence => {
                #[cfg(loom)]
                self.step.fetch_add(1, Relaxed);
                // ORDERING: SeqCst pairs with the fence in `enter`.
                fence(SeqCst);
                Ok(target)
            }
        }
    }

    /// Fails in the child of a fork.
    pub(crate) fn check_era(&self) -> Result<(), Refused> {
        if self.era == prim::era::current() { Ok(()) } else { Err(Refused::Forked) }
    }

    /// Returns whether the grace period that [`Readers::start`] began has ended.
    pub(crate) fn has_passed(&self, target: u64) -> bool {
        self.slots.iter().all(|slot| slot.is_past(target))
    }

    /// Waits until the grace period that [`Readers::start`] began has ended. Calls `idle` now and then; stops waiting
    /// and returns `false` when `idle` returns `false`.
    pub(crate) fn wait(&self, target: u64, mut idle: impl FnMut() -> bool) -> bool {
        self.slots.iter().all(|slot| {
            while !prim::hint::spin_until_bounded(TURNS, || slot.is_past(target)) {
                if !idle() {
                    return false;
                }
            }
            true
        })
    }

    /// Returns the calling thread's `P`.
    #[inline(always)]
    pub(crate) fn this(&self) -> &P {
        &self.slots.this().own
    }

    /// Returns every `P` made so far.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        self.slots.iter().map(|slot| &slot.own)
    }

    /// Returns how many sections were leaked because their thread returned its index first.
    pub(crate) fn leaked(&self) -> u64 {
        // Relaxed: a counter.
        self.slots.iter().map(|slot| u64::from(slot.leaked.load(Relaxed))).sum()
    }
}

/// A read section; left when dropped. `!Send`: it belongs to a slot of its thread.
pub(crate) struct Section<'r, P> {
    slot: &'r Slot<P>,
    id: usize,
    not_send: PhantomData<*const ()>,
}

impl<'r, P> Section<'r, P> {
    /// Returns the calling thread's `P`.
    #[inline(always)]
    pub(crate) fn own(&self) -> &'r P {
        &self.slot.own
    }

    /// Dropped in a thread-local destructor after the index was returned: the slot may have a new owner, so this leaves
    /// it as it is (invariant 2).
    #[cold]
    #[inline(never)]
    fn leak(&self) {
        // Relaxed: a counter.
        self.slot.leaked.fetch_add(1, Relaxed);
    }
}

impl<P> Drop for Section<'_, P> {
    #[inline(always)]
    fn drop(&mut self) {
        if !prim::cpu::is(self.id) {
            return self.leak();
        }
        // Relaxed: the owner reads its own store (invariant 1).
        let state = self.slot.state.load(Relaxed);
        if state & COUNT == 1 {
            // ORDERING: Release pairs with the Acquire in `Slot::is_past`: the section's accesses come before the
            // end of the grace period that waits for it.
            self.slot.state.store(0, Release);
        } else {
            cold_path();
            // ORDERING: Release pairs with the Acquire in `Slot::is_past`: as the outermost entry's, which it replaces.
            // (not visible to loom: there the fence of the outermost entry releases as well)
            self.slot.state.store(state - 1, Release);
        }
    }
}

#[cold]
#[inline(never)]
fn too_many() -> ! {
    panic!("a thread is in 2^20 read sections at once")
}
