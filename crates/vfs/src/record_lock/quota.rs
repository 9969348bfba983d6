//! A limit for the locks of several open files, such as all files of one user.
//!
//! # How it is locked
//! It has atomic sums. A thread checks the limit before it adds, so threads that take locks at once can
//! exceed the limit by one lock each; a request that waits is counted when it is granted.
//!
//! # Where it comes from
//! `RLIMIT_LOCKS` of `setrlimit(2)`, and `ENOLCK` in `fcntl_locking(2)`.

use crate::base::errno::Errno;
use prim::atomic::{AtomicUsize, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;

/// The most ranges that open files may lock together ([`OpenFile::lock_range_within`](crate::OpenFile::lock_range_within)).
#[derive(Debug)]
pub struct LockQuota {
    most: usize,
    used: AtomicUsize,
}

impl LockQuota {
    /// Returns a limit of `most` ranges.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, used: AtomicUsize::new(0) })
    }

    /// Returns the number of ranges that are locked, and of [charges](LockCharge).
    #[must_use]
    pub fn used(&self) -> usize {
        // Relaxed, here and below: a sum.
        self.used.load(Relaxed)
    }

    /// Checks whether there is room for `more` ranges.
    pub(super) fn check(&self, more: usize) -> Result<(), Errno> {
        if self.used() + more > self.most { Err(Errno::ENOLCK) } else { Ok(()) }
    }

    /// Counts `after` ranges in place of `before`.
    pub(super) fn count(&self, before: usize, after: usize) {
        self.used.fetch_add(after, Relaxed);
        self.used.fetch_sub(before, Relaxed);
    }
}

/// A charge for something else than a range, such as an open file that exists for its locks; it ends on drop.
#[derive(Debug)]
pub struct LockCharge(Arc<LockQuota>);

impl LockCharge {
    /// Counts one range more in `quota`.
    ///
    /// # Errors
    /// `ENOLCK`: the limit is reached.
    pub fn new(quota: &Arc<LockQuota>) -> Result<Self, Errno> {
        quota.check(1)?;
        quota.count(0, 1);
        Ok(Self(quota.clone()))
    }
}

impl Drop for LockCharge {
    fn drop(&mut self) {
        self.0.count(1, 0);
    }
}
