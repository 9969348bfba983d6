//! Access to a host file system that a tree owns: its counts, and the devices that it must not
//! show.

use crate::shared::Shared;
use crate::watches::Watches;
use std::sync::Arc;

/// Counts of a [`HostFs`](crate::HostFs).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostStats {
    /// Files of which this file system has a record.
    pub nodes: usize,
    /// Open descriptors of files and directories, without the source's descriptor. An open
    /// directory counts as one even before its first listing.
    pub open_fds: usize,
    /// Descriptors that were opened again after the budget had closed them.
    pub reopened: u64,
    /// Descriptors that the budget closed.
    pub evicted_fds: u64,
    /// How many times the caches were notified of a change by other programs.
    pub invalidations: u64,
    /// Watched directories.
    pub watches: usize,
}

/// A handle of a [`HostFs`](crate::HostFs) that was given to a tree. The handle keeps the records
/// of the file system in memory, but not the tree.
#[derive(Clone)]
pub struct HostHandle {
    pub(crate) shared: Arc<Shared>,
}

impl HostHandle {
    /// Returns the counts. Takes the lock of each table for a moment: for tests and reports.
    #[must_use]
    pub fn stats(&self) -> HostStats {
        let fds = self.shared.budget.counts();
        let watches = self.shared.watches.as_ref();
        HostStats {
            nodes: self.shared.table.len(),
            open_fds: fds.open + self.shared.opens.len(),
            reopened: fds.reopened,
            evicted_fds: fds.evicted,
            invalidations: watches.map_or(0, Watches::invalidations),
            watches: watches.map_or(0, Watches::len),
        }
    }

    /// Excludes the device `dev` (`st_dev`) of a mount through which this file system is shown:
    /// after this call names on it fail with `ELOOP`, and nothing on it is opened.
    pub fn exclude_dev(&self, dev: u64) {
        self.shared.exclude(dev);
    }
}

impl core::fmt::Debug for HostHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostHandle").field("source", &self.shared.source).finish_non_exhaustive()
    }
}
