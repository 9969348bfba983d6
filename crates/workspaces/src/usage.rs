//! The bytes and inodes that a fork uses, and their limits.
//!
//! # What it is
//! A fork begins with the use of its parent: shared pages and records count in both. So a limit holds whatever other forks do. A part
//! of the bytes is for records of changes that must not fail: a removed name of the base is a record, too.
//!
//! # How it is locked
//! Two atomic numbers.

use prim::atomic::{AtomicU64, Ordering::Relaxed};
use serde::{Deserialize, Serialize};
use vfs::{Errno, StatFs};

/// The most that a fork may use.
///
/// ```
/// use lightfoot_workspaces::ForkLimits;
///
/// let limits = ForkLimits { bytes: 64 << 20, ..ForkLimits::default() };
/// assert!(limits.inodes > 0);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ForkLimits {
    /// Bytes of contents that the fork has changed, and of its records.
    pub bytes: u64,
    /// Files and directories that the fork has made.
    pub inodes: u64,
}

impl ForkLimits {
    /// Returns the bytes that contents and new names may take. The others are for removals.
    fn unreserved(&self) -> u64 {
        self.bytes - (self.bytes / 64).max(64 << 10).min(self.bytes / 8)
    }
}

impl Default for ForkLimits {
    /// 8 GiB, and 4 million inodes.
    fn default() -> Self {
        Self { bytes: 8 << 30, inodes: 4 << 20 }
    }
}

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Usage {
    pub(crate) limits: ForkLimits,
    bytes: AtomicU64,
    inodes: AtomicU64,
}

impl Usage {
    pub(crate) fn new(limits: ForkLimits, (bytes, inodes): (u64, u64)) -> Self {
        Self { limits, bytes: AtomicU64::new(bytes), inodes: AtomicU64::new(inodes) }
    }

    /// Returns the bytes and the inodes in use.
    pub(crate) fn now(&self) -> (u64, u64) {
        // Relaxed, here and below: numbers by themselves.
        (self.bytes.load(Relaxed), self.inodes.load(Relaxed))
    }

    /// Takes bytes: `ENOSPC`.
    pub(crate) fn take(&self, bytes: u64) -> Result<(), Errno> {
        take(&self.bytes, bytes, self.limits.unreserved())
    }

    /// Checks that there is space for more bytes: `ENOSPC`.
    pub(crate) fn check(&self, more: u64) -> Result<(), Errno> {
        let (bytes, _) = self.now();
        if more == 0 || bytes.saturating_add(more) <= self.limits.unreserved() { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    /// Notes that the records have grown or shrunk.
    pub(crate) fn settle(&self, before: u64, after: u64) {
        self.bytes.fetch_add(after.saturating_sub(before), Relaxed);
        self.give(before.saturating_sub(after));
    }

    /// Gives bytes back.
    pub(crate) fn give(&self, bytes: u64) {
        let _ = self.bytes.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(bytes)));
    }

    /// Takes an inode: `ENOSPC`.
    pub(crate) fn take_inode(&self) -> Result<(), Errno> {
        take(&self.inodes, 1, self.limits.inodes)
    }

    /// Counts an inode that is there already.
    pub(crate) fn count_inode(&self) {
        self.inodes.fetch_add(1, Relaxed);
    }

    /// Replaces the use, in one step of its fork: `ENOSPC`.
    pub(crate) fn replace(&self, (bytes, inodes): (u64, u64)) -> Result<(), Errno> {
        if bytes > self.limits.bytes || inodes > self.limits.inodes {
            return Err(Errno::ENOSPC);
        }
        self.bytes.store(bytes, Relaxed);
        self.inodes.store(inodes, Relaxed);
        Ok(())
    }

    /// Gives an inode back.
    pub(crate) fn give_inode(&self) {
        let _ = self.inodes.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_sub(1)));
    }

    /// Returns the limits and the use as `statfs(2)` shows them. `left`: the pages that all forks together may take.
    pub(crate) fn statfs(&self, left: u64) -> StatFs {
        const BLOCK: u64 = 4096;
        let (bytes, inodes) = self.now();
        let free = self.limits.unreserved().saturating_sub(bytes) / BLOCK;
        let free = free.min(left);
        StatFs {
            block_size: BLOCK as u32,
            blocks: self.limits.bytes / BLOCK,
            blocks_free: free,
            blocks_available: free,
            files: self.limits.inodes,
            files_free: self.limits.inodes.saturating_sub(inodes),
            name_max: vfs::NAME_MAX as u32,
            ..StatFs::default()
        }
    }
}

fn take(of: &AtomicU64, more: u64, limit: u64) -> Result<(), Errno> {
    let within = |now: u64| now.checked_add(more).filter(|sum| *sum <= limit);
    of.fetch_update(Relaxed, Relaxed, within).map(drop).map_err(|_| Errno::ENOSPC)
}
