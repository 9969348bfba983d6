//! Limits of a file system in memory: bytes and inodes, of all users together and of each user.
//!
//! # What it is
//! [`Limits`] counts what is in use. Each of the two totals is a [`Room`]: a thread takes units from the stock of its CPU
//! index and refills that from the shared rest, many units at a time. Before a request is refused, the thread collects
//! all stocks, so that the count is exact near the limit. [`Quotas`] counts for each user, if users have limits.
//!
//! # What it is not
//! A measure of memory: it counts pages, attributes and inodes, not what keeps them.
//!
//! # How it is locked
//! A stock is an atomic number of one CPU index, changed by the threads with that index and by collecting threads. A mutex
//! covers the shared rest and transfers between it and the stocks. Users have one mutex for each share of the ids. All are
//! leaves.
//!
//! # Where it comes from
//! tmpfs (`size=`, `nr_inodes=`, `usrquota_block_hardlimit=`) and its errors: the total is checked before the quota.
//! Stocks are Linux's `percpu_counter` the other way round: they are exact near the limit, where that one sums up.
//!
//! # Limitations
//! Threads of one user share a lock if there are quotas (Linux has one, too).

use crate::contents::PAGE_BYTES;
use prim::PerCpu;
use prim::atomic::{AtomicU64, Ordering::Relaxed};
use std::collections::BTreeMap;
use sync::Mutex;
use vfs::{Errno, StatFs};

/// The magic number of tmpfs: `statfs(2)`.
const TMPFS_MAGIC: u64 = 0x0102_1994;

/// Longest name.
const NAME_MAX: u32 = 255;

/// The most units in a stock after a refill: bytes (64 pages), inodes.
const STOCK_BYTES: u64 = 64 * PAGE_BYTES;
const STOCK_INODES: u64 = 1024;

/// A stock is refilled with at most this part of the shared rest.
const STOCK_PART: u64 = 64;

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
    /// No limits; `statfs(2)` then reports a size of 0, as that of tmpfs does.
    #[must_use]
    pub const fn none() -> Self {
        Self { bytes: None, inodes: None, per_user: None }
    }
}

impl Default for RamLimits {
    /// As tmpfs: half of the machine's memory, and an inode for each two pages of memory.
    fn default() -> Self {
        let half = prim::mem::total_bytes() / 2;
        Self { bytes: Some(half), inodes: Some(half / PAGE_BYTES), per_user: None }
    }
}

/// An amount of storage.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Amount {
    pub(crate) bytes: u64,
    pub(crate) inodes: u64,
}

/// The account that is charged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Payer {
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

    /// Whether users are counted separately.
    pub(crate) fn has_quotas(&self) -> bool {
        self.users.is_some()
    }

    /// Takes all of `amount` or nothing: `ENOSPC`, `EDQUOT`.
    pub(crate) fn take(&self, payer: Payer, amount: Amount) -> Result<(), Errno> {
        if !self.bytes.take(amount.bytes) {
            return Err(Errno::ENOSPC);
        }
        if !self.inodes.take(amount.inodes) {
            self.bytes.give(amount.bytes);
            return Err(Errno::ENOSPC);
        }
        let Some(users) = &self.users else { return Ok(()) };
        users.take(payer, amount).inspect_err(|_| {
            self.bytes.give(amount.bytes);
            self.inodes.give(amount.inodes);
        })
    }

    /// Takes an inode for a further name of a file: `ENOSPC`. As on tmpfs, users are not charged for it.
    pub(crate) fn take_link(&self) -> Result<(), Errno> {
        if self.inodes.take(1) { Ok(()) } else { Err(Errno::ENOSPC) }
    }

    /// Returns what [`Limits::take_link`] took so many times.
    pub(crate) fn give_links(&self, links: u64) {
        self.inodes.give(links);
    }

    /// Returns `amount` to the account of `uid`.
    pub(crate) fn give(&self, uid: u32, amount: Amount) {
        if let Some(users) = &self.users {
            users.give(uid, amount);
        }
        self.bytes.give(amount.bytes);
        self.inodes.give(amount.inodes);
    }

    /// Moves `amount` from one account to another: `EDQUOT`.
    pub(crate) fn transfer(&self, from: u32, to: Payer, amount: Amount) -> Result<(), Errno> {
        if let Some(users) = &self.users {
            users.take(to, amount)?;
            users.give(from, amount);
        }
        Ok(())
    }

    /// The totals and the free rest.
    pub(crate) fn statfs(&self) -> StatFs {
        let blocks_free = self.bytes.free() / PAGE_BYTES;
        StatFs {
            kind: TMPFS_MAGIC,
            block_size: PAGE_BYTES as u32,
            blocks: self.bytes.limit.unwrap_or(0) / PAGE_BYTES,
            blocks_free,
            blocks_available: blocks_free,
            files: self.inodes.limit.unwrap_or(0),
            files_free: self.inodes.free(),
            name_max: NAME_MAX,
        }
    }
}

/// A number of units that many threads take and give back. Nothing is counted if there is no limit.
#[derive(Debug)]
struct Room {
    limit: Option<u64>,
    /// The most that a single call may take if there is no limit: the machine's memory.
    most: u64,
    /// The most units in a stock after a refill.
    fill: u64,
    /// Free units that are in no stock.
    shared: Mutex<u64>,
    own: PerCpu<Stock>,
}

/// Free units of one CPU index.
#[derive(Debug)]
#[repr(align(128))]
struct Stock(AtomicU64);

impl Room {
    fn new(limit: Option<u64>, fill: u64) -> Self {
        let shared = Mutex::new(limit.unwrap_or(0));
        Self { limit, most: prim::mem::total_bytes(), fill, shared, own: PerCpu::small(|| Stock(AtomicU64::new(0))) }
    }

    /// Takes `units` if there are enough.
    fn take(&self, units: u64) -> bool {
        if units == 0 || self.limit.is_none() {
            return units <= self.most;
        }
        let own = &self.own.this().0;
        // Relaxed, here and below: counts only. Other locks order the use of the storage itself.
        let mut has = own.load(Relaxed);
        while has >= units {
            match own.compare_exchange(has, has - units, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => has = now,
            }
        }
        self.take_shared(units)
    }

    #[cold]
    fn take_shared(&self, units: u64) -> bool {
        let mut shared = self.shared.lock();
        // More than one round if threads return units to stocks that were visited already.
        while *shared < units {
            let found: u64 = self.own.iter().map(|stock| stock.0.swap(0, Relaxed)).sum();
            if found == 0 {
                return false;
            }
            *shared += found;
        }
        *shared -= units;
        let fill = self.fill.min(*shared / STOCK_PART);
        *shared -= fill;
        self.own.this().0.fetch_add(fill, Relaxed);
        true
    }

    /// Returns `units` that were taken.
    fn give(&self, units: u64) {
        if self.limit.is_none() || units == 0 {
            return;
        }
        let own = &self.own.this().0;
        if own.fetch_add(units, Relaxed) + units > 2 * self.fill {
            let mut shared = self.shared.lock();
            *shared += own.swap(0, Relaxed);
        }
    }

    /// Free units; exact if no thread takes or returns any meanwhile.
    fn free(&self) -> u64 {
        let shared = self.shared.lock();
        self.own.iter().map(|stock| stock.0.load(Relaxed)).sum::<u64>() + *shared
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

    fn take(&self, payer: Payer, amount: Amount) -> Result<(), Errno> {
        let mut users = self.share(payer.uid).lock();
        let used = users.get(&payer.uid).copied().unwrap_or_default();
        let after = Amount { bytes: used.bytes + amount.bytes, inodes: used.inodes + amount.inodes };
        // A user above one limit may still take the other kind: taking 0 units is never over a limit.
        let over = |take: u64, after: u64, limit: Option<u64>| take > 0 && limit.is_some_and(|limit| after > limit);
        let refused =
            over(amount.bytes, after.bytes, self.limit.bytes) || over(amount.inodes, after.inodes, self.limit.inodes);
        if refused && !payer.privileged {
            return Err(Errno::EDQUOT);
        }
        if after != Amount::default() {
            users.insert(payer.uid, after);
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
