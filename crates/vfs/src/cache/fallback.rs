//! Reasons of walks to leave rcu-walk, and their counters; and a count of names that were requested
//! from a file system.
//!
//! Counters are per CPU index and written by their owner only. A walk that stays in rcu-walk
//! touches none.

use prim::atomic::{AtomicU64, Ordering::Relaxed};

/// A way out of rcu-walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
#[non_exhaustive]
pub enum Fallback {
    /// The name is not cached, and its directory is not known to be complete.
    Miss,
    /// The directory's name, parent or object changed while its entry was looked up.
    DirectoryChanged,
    /// The entry changed while it was read.
    EntryChanged,
    /// A rename ran while a search did not find a name.
    RenameInProgress,
    /// A symbolic link's body is not in memory.
    LinkNotCached,
    /// The entry expired.
    Revalidate,
    /// The walk ends at a file with flags (`chattr(1)`), whose file system must be called to see whether it may be written.
    Permission,
    /// The attributes are stale.
    Attributes,
    /// A directory moved or a mount changed while a bounded walk climbed.
    TreeChanged,
    /// The mount is being unmounted.
    Unmounting,
    /// Not a reason to leave but to begin again: the reached place could not be held.
    Restart,
}

impl Fallback {
    /// All reasons, in the order of their counters.
    pub const ALL: [Fallback; 11] = [
        Fallback::Miss,
        Fallback::DirectoryChanged,
        Fallback::EntryChanged,
        Fallback::RenameInProgress,
        Fallback::LinkNotCached,
        Fallback::Revalidate,
        Fallback::Permission,
        Fallback::Attributes,
        Fallback::TreeChanged,
        Fallback::Unmounting,
        Fallback::Restart,
    ];

    /// Returns the reason's name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fallback::Miss => "miss",
            Fallback::DirectoryChanged => "directory-changed",
            Fallback::EntryChanged => "entry-changed",
            Fallback::RenameInProgress => "rename-in-progress",
            Fallback::LinkNotCached => "link-not-cached",
            Fallback::Revalidate => "revalidate",
            Fallback::Permission => "permission",
            Fallback::Attributes => "attributes",
            Fallback::TreeChanged => "tree-changed",
            Fallback::Unmounting => "unmounting",
            Fallback::Restart => "restart",
        }
    }
}

/// The counters of one CPU index.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Fallbacks {
    reasons: [AtomicU64; Fallback::ALL.len()],
    asked: AtomicU64,
}

impl Fallbacks {
    /// Counts one. Called by the owner of the index only.
    #[cold]
    pub(crate) fn count(&self, reason: Fallback) {
        let counter = &self.reasons[reason as usize];
        counter.store(counter.load(Relaxed) + 1, Relaxed);
    }

    /// Counts a name that is requested from a file system. Called by the owner of the index only.
    #[cold]
    pub(crate) fn count_asked(&self) {
        self.asked.store(self.asked.load(Relaxed) + 1, Relaxed);
    }

    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }

    pub(crate) fn get(&self, reason: Fallback) -> u64 {
        self.reasons[reason as usize].load(Relaxed)
    }
}
