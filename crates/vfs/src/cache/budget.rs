//! Budgets of bytes for the names and listings that a cache keeps.

use crate::slots::dentry::Dentry;
use crate::slots::slot::ColdPart;
use core::mem::size_of;
use sync::PerCpuCredits;

/// Slots examined for each slot that is taken when few are free.
pub(crate) const STEP: usize = 32;

/// Bytes of a slot.
pub(crate) const SLOT: u64 = size_of::<Dentry>() as u64 + size_of::<ColdPart>() as u64;

/// Budgets of one file system's cache, in bytes. Each has room for at least 4,096 entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
#[cfg_attr(feature = "serde", serde(default))]
pub struct Budget {
    /// Entries with their inodes: 256 bytes each, plus names of more than 32 bytes and bodies of symbolic
    /// links. Ignored for a file system whose names live in the cache.
    pub entries: u64,
    /// Negative entries (names that do not exist): 256 bytes each.
    pub negatives: u64,
    /// Cached listings of directories, for file systems that allow them.
    pub listings: u64,
}

impl Budget {
    /// Returns how many entries with names of at most 32 bytes the budget has room for.
    #[must_use]
    pub fn names(&self) -> u64 {
        self.entries.max(LEAST) / SLOT
    }

    /// Returns the budgets as they hold.
    pub(crate) fn raised(self) -> Self {
        Self { entries: self.entries.max(LEAST), negatives: self.negatives.max(LEAST), ..self }
    }
}

impl Default for Budget {
    /// 256 MiB of entries (a million), 32 MiB of negative ones, 32 MiB of listings.
    fn default() -> Self {
        Self { entries: 256 << 20, negatives: 32 << 20, listings: 32 << 20 }
    }
}

/// The smallest budget.
const LEAST: u64 = 4096 * SLOT;

/// The most bytes that a CPU index takes from a budget at a time.
const MAX_FILL: u64 = 256 * SLOT;

/// Which of the two slabs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SlotKind {
    Entry,
    Negative,
}

/// The entries without a holder that stay when the hand passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SecondChance {
    /// Entries that were used since the hand's last visit.
    Used,
    None,
}

/// Returns the credits of a budget. Little of a small one lies in the stores.
pub(crate) fn credits(budget: u64) -> PerCpuCredits {
    PerCpuCredits::new(budget, (budget / 1024).clamp(SLOT, MAX_FILL))
}
