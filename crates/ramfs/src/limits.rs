//! Limits of a file system in memory: bytes and inodes, of all users together and of each user.
//!
//! # What it is
//! [`Limits`] counts the bytes and inodes in use. Each of the two totals is a [`PerCpuCredits`]:
//! units by CPU index, exact near the limit. [`Quotas`] counts for each user, if users have limits.
//!
//! # What it is not
//! A measure of memory: it counts pages, attributes and inodes, not the structures that keep them.
//!
//! # How it is locked
//! [`PerCpuCredits`] protects the totals; a thread that has units in the store of its CPU index
//! takes no lock. Each share of the user ids has one mutex. All these locks are leaves.
//!
//! # Where it comes from
//! tmpfs (`size=`, `nr_inodes=`, `usrquota_block_hardlimit=`) and its errors: the total is checked before the quota.
//!
//! # Limitations
//! Threads of one user share a lock if there are quotas (Linux has one, too).

use crate::contents::PAGE_BYTES;
use std::collections::BTreeMap;
use sync::{Mutex, PerCpuCredits};
use vfs::{Errno, StatFs};

/// The magic number of tmpfs: `statfs(2)`.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Longest name.
const NAME_MAX: u32 = 255;

/// Memory of a name with its file, at most (`a_name_takes_272_bytes_at_most` of the crate `lightfoot`).
const NAME_BYTES: u64 = 272;

/// The most units in a store after a refill: bytes (64 pages), inodes.
const STOCK_BYTES: u64 = 64 * PAGE_BYTES;
const STOCK_INODES: u64 = 1024;

/// Shares of the user ids, each with its lock.
const SHARES: usize = 64;

/// Limits of all users together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RamLimits {
    /// Bytes of contents and extended attributes; `None`: no limit.
    pub bytes: Option<u64>,
    /// Files of any type, the root directory among them, and each further name of a file; `None`: no limit.
    pub inodes: Option<u64>,
    /// Limits of each user; `None`: users are not counted separately.
    pub per_user: Option<UserLimits>,
}

/// Limits of each user, for the files that the user owns, whichever user wrote them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UserLimits {
    /// Bytes; `None`: no limit.
    pub bytes: Option<u64>,
    /// Files; `None`: no limit.
    pub inodes: Option<u64>,
}

impl RamLimits {
    /// Returns no limits; `statfs(2)` of such a file system reports a size of 0, as for tmpfs.
    #[must_use]
    pub const fn none() -> Self {
        Self { bytes: None, inodes: None, per_user: None }
    }

    /// Returns the limits that a tmpfs has by default: half of the machine's memory, and an inode
    /// for each two pages of memory.
    #[must_use]
    pub fn tmpfs() -> Self {
        let half = half_of_machine();
        Self { bytes: Some(half), inodes: Some(half / PAGE_BYTES), per_user: None }
    }
}

impl Default for RamLimits {
    /// Half of the machine's memory for contents, and as many names as fit into that half: 4 million for each GiB of it.
    fn default() -> Self {
        let half = half_of_machine();
        Self { bytes: Some(half), inodes: Some(half / NAME_BYTES), per_user: None }
    }
}

/// Returns half of the machine's memory, in bytes of whole pages: the machine may have an odd
/// number of pages.
fn half_of_machine() -> u64 {
    prim::mem::total_bytes() / 2 / PAGE_BYTES * PAGE_BYTES
}

/// An amount of storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

/// The account that is charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotaHandle {
    /// The owner of the file.
    pub(crate) uid: u32,
    /// Whether the user's limit does not apply (`CAP_SYS_RESOURCE`). The usage is counted nevertheless.
    pub(crate) privileged: bool,
}

/// The counts of one file system.
#[derive(Debug)]
pub(crate) struct Limits {
    bytes: Room,
    inodes: Room,
    users: Option<Quotas>,
}

impl Limits {
    pub(crate) fn new(limits: &RamLimits) -> Self {
        Self {
            bytes: Room::new(limits.bytes, STOCK_BYTES),
            inodes: Room::new(limits.inodes, STOCK_INODES),
            users: limits.per_user.map(Quotas::new),
        }
    }

    /// Returns whether users are counted separately.
    pub(crate) fn has_quotas(&self) -> bool {
        self.users.is_some()
    }

    /// Takes all of `amount` or nothing: `ENOSPC`, `EDQUOT`.
    #[inline(always)]
    pub(crate) fn take(&self, handle: QuotaHandle, amount: Amount) -> Result<(), Errno> {
        if !self.bytes.take(amount.bytes) {
            return Err(Errno::ENOSPC);
        }
        if !self.inodes.take(amount.inodes) {
            self.bytes.give(amount.bytes);
            return Err(Errno::ENOSPC);
        }
        let Some(users) = &self.users else { return Ok(()) };
        users.take(handle, amount).inspect_err(|_| {
            self.bytes.give(amount.bytes);
            self.inodes.give(amount.inodes);
        })
    }

    /// Takes an inode for a further name of a file: `ENOSPC`. As on tmpfs, users are not charged for it.
    pub(crate) fn take_link(&self) -> Result<(), Errno> {
        if self.inodes.take(1) { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    /// Gives back `links` inodes that [`Limits::take_link`] took.
    pub(crate) fn give_links(&self, links: u64) {
        self.inodes.give(links);
    }

    /// Returns `amount` to the account of `uid`.
    #[inline(always)]
    pub(crate) fn give(&self, uid: u32, amount: Amount) {
        if let Some(users) = &self.users {
            users.give(uid, amount);
        }
        self.bytes.give(amount.bytes);
        self.inodes.give(amount.inodes);
    }

    /// Moves `amount` from one account to another: `EDQUOT`.
    pub(crate) fn transfer(&self, from: u32, to: QuotaHandle, amount: Amount) -> Result<(), Errno> {
        if let Some(users) = &self.users {
            users.take(to, amount)?;
            users.give(from, amount);
        }
        Ok(())
    }

    /// Returns the totals and the free rest.
    pub(crate) fn statfs(&self) -> StatFs {
        let blocks_free = self.bytes.free() / PAGE_BYTES;
        StatFs {
            kind: TMPFS_MAGIC,
            block_size: PAGE_BYTES as u32,
            blocks: self.bytes.limit() / PAGE_BYTES,
            blocks_free,
            blocks_available: blocks_free,
            files: self.inodes.limit(),
            files_free: self.inodes.free(),
            name_max: NAME_MAX,
        }
    }
}

/// The units of one kind, for all users together; without a limit, any number.
#[derive(Debug)]
struct Room {
    credits: Option<PerCpuCredits>,
    /// The most that a request without a limit may take.
    most: u64,
}

impl Room {
    /// Returns a room whose credits for a CPU index are filled with `fill` units at a time.
    fn new(limit: Option<u64>, fill: u64) -> Self {
        Self { credits: limit.map(|limit| PerCpuCredits::new(limit, fill)), most: prim::mem::total_bytes() }
    }

    #[inline(always)]
    fn take(&self, units: u64) -> bool {
        match &self.credits {
            Some(credits) if units != 0 => credits.take(units),
            _ => units <= self.most,
        }
    }

    #[inline(always)]
    fn give(&self, units: u64) {
        if units != 0 {
            self.credits.iter().for_each(|credits| credits.give(units));
        }
    }

    fn free(&self) -> u64 {
        self.credits.as_ref().map_or(0, PerCpuCredits::free)
    }

    fn limit(&self) -> u64 {
        self.credits.as_ref().map_or(0, PerCpuCredits::bound)
    }
}

/// The usage of each user.
#[derive(Debug)]
struct Quotas {
    limit: UserLimits,
    shares: Box<[Share]>,
}

/// The users of one share of the ids. A user without usage has no entry.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Share(Mutex<BTreeMap<u32, Amount>>);

impl Quotas {
    fn new(limit: UserLimits) -> Self {
        Self { limit, shares: (0..SHARES).map(|_| Share::default()).collect() }
    }

    fn share(&self, uid: u32) -> &Mutex<BTreeMap<u32, Amount>> {
        &self.shares[uid as usize % SHARES].0
    }

    fn take(&self, handle: QuotaHandle, amount: Amount) -> Result<(), Errno> {
        let mut users = self.share(handle.uid).lock();
        let used = users.get(&handle.uid).copied().unwrap_or_default();
        let after = Amount { bytes: used.bytes + amount.bytes, inodes: used.inodes + amount.inodes };
        // A user above one limit may still take the other kind: taking 0 units is never over a limit.
        let over = |take: u64, after: u64, limit: Option<u64>| take > 0 && limit.is_some_and(|limit| after > limit);
        let refused =
            over(amount.bytes, after.bytes, self.limit.bytes) || over(amount.inodes, after.inodes, self.limit.inodes);
        if refused && !handle.privileged {
            return Err(Errno::EDQUOT);
        }
        if after != Amount::default() {
            users.insert(handle.uid, after);
        }
        Ok(())
    }

    fn give(&self, uid: u32, amount: Amount) {
        let mut users = self.share(uid).lock();
        let Some(used) = users.get_mut(&uid) else { return };
        used.bytes = used.bytes.saturating_sub(amount.bytes);
        used.inodes = used.inodes.saturating_sub(amount.inodes);
        if *used == Amount::default() {
            users.remove(&uid);
        }
    }
}

#[cfg(test)]
mod tests;
