//! Locks of open files: `fcntl(2)` with `F_OFD_*`, `flock(2)`. The open file is the owner; its last close
//! releases the locks.

use crate::base::errno::Errno;
use crate::ops::file::OpenFile;
use crate::record_lock::{LockInfo, LockKind, LockQuota, LockWait, ParkedLock};
use core::ops::Range;
use prim::atomic::Ordering::Relaxed;
use prim::shared::PlainArc as Arc;

impl OpenFile {
    /// Sets, changes or releases a lock on a range of bytes (`u64::MAX`: to the end, also when the file
    /// grows): `F_OFD_SETLK`, and with waiting `F_OFD_SETLKW`. Advisory: it excludes other locks, not reads
    /// and writes.
    ///
    /// # Errors
    /// `EAGAIN` if a lock of another open file conflicts and `wait` is `Never`, `ETIMEDOUT`; `EINVAL` for an
    /// empty range; `EBADF` for a shared lock without reading, an exclusive one without writing, and on a
    /// place opened with `PATH`.
    pub fn lock_range(&self, kind: LockKind, range: Range<u64>, wait: LockWait) -> Result<(), Errno> {
        self.lock_range_within(None, kind, range, wait)
    }

    /// As [`lock_range`](Self::lock_range), but counts the locks of this open file in `quota`.
    /// The first quota stays, until all locks are released.
    ///
    /// # Errors
    /// As for [`lock_range`](Self::lock_range); `ENOLCK` if the file would have more locks, and the quota has no room. (To unlock the
    /// middle of a range makes two of it.)
    pub fn lock_range_within(
        &self,
        quota: Option<&Arc<LockQuota>>,
        kind: LockKind,
        range: Range<u64>,
        wait: LockWait,
    ) -> Result<(), Errno> {
        self.check_lock_of_range(kind)?;
        self.held.sb().record_locks.set((self.lock_key(), self.lock_number()), kind, range, wait, quota)
    }

    /// Returns the first lock of another open file that conflicts with `kind` on `range`:
    /// `F_OFD_GETLK`.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, and for `Unlock`; `EBADF` on a place opened with `PATH`.
    pub fn test_lock(&self, kind: LockKind, range: Range<u64>) -> Result<Option<LockInfo>, Errno> {
        Ok(self.first_blocker(kind, range)?.map(|(_, lock)| lock))
    }

    /// As [`test_lock`](Self::test_lock), but also returns the [number](Self::lock_number) of the other open file.
    ///
    /// # Errors
    /// As for [`test_lock`](Self::test_lock).
    pub fn first_blocker(&self, kind: LockKind, range: Range<u64>) -> Result<Option<(u64, LockInfo)>, Errno> {
        self.check_open()?;
        self.held.sb().record_locks.test(self.lock_key(), self.lock_number(), kind, range)
    }

    /// Returns whether a lock of the other open file with the [number](Self::lock_number) `other`
    /// conflicts with `kind` on `range`, for callers that detect deadlocks.
    #[must_use]
    pub fn is_blocked_by(&self, other: u64, kind: LockKind, range: Range<u64>) -> bool {
        self.held.sb().record_locks.is_blocked_by(self.lock_key(), (self.lock_number(), other), kind, range)
    }

    /// Sets, changes or releases the lock on the whole file: `flock(2)`. It does not conflict with locks on
    /// ranges.
    ///
    /// # Errors
    /// `EAGAIN` (`EWOULDBLOCK`) if a lock of another open file conflicts and `wait` is `Never`, `ETIMEDOUT`;
    /// `EBADF` on a place opened with `PATH`.
    pub fn flock(&self, kind: LockKind, wait: LockWait) -> Result<(), Errno> {
        self.check_open()?;
        self.held.sb().record_locks.flock(self.lock_key(), self.lock_number(), kind, wait)
    }

    /// Waits for a lock without a thread: queues a request that conflicts, for `range` as [`lock_range`](Self::lock_range), or
    /// as [`flock`](Self::flock) (`None`). Once it is granted, the thread that made room calls `granted`, which must not block.
    /// It holds no lock of the tree, but may be in any call of the tree. `None`: the request does not conflict, and nothing was done.
    ///
    /// The request is withdrawn when this open file ends. `quota`: see
    /// [`lock_range_within`](Self::lock_range_within); the granted range counts, also if the quota has no room at that moment.
    ///
    /// # Errors
    /// `EINVAL` and `EBADF` as for those two.
    pub fn park_lock(
        &self,
        kind: LockKind,
        range: Option<Range<u64>>,
        quota: Option<&Arc<LockQuota>>,
        granted: Box<dyn FnOnce() + Send>,
    ) -> Result<Option<ParkedLock>, Errno> {
        if range.is_some() {
            self.check_lock_of_range(kind)?;
        } else {
            self.check_open()?;
        }
        let sb = self.held.sb();
        let numbers = (self.lock_key(), self.lock_number(), sb.next_number());
        sb.record_locks.park(numbers, kind, range, quota, granted)
    }

    /// Withdraws a parked request. `false`: it was granted, and its closure was called or will be.
    pub fn unpark_lock(&self, parked: ParkedLock) -> bool {
        self.held.sb().record_locks.unpark(self.lock_key(), parked)
    }

    fn check_lock_of_range(&self, kind: LockKind) -> Result<(), Errno> {
        let is_allowed = match kind {
            LockKind::Shared => self.flags.can_read(),
            LockKind::Exclusive => self.flags.can_write(),
            LockKind::Unlock => return self.check_open(),
        };
        if is_allowed { Ok(()) } else { Err(Errno::EBADF) }
    }

    pub(super) fn release_locks(&self) {
        // Relaxed: the closing thread is the file's last user.
        let owner = self.owner.load(Relaxed);
        if owner != 0 {
            self.held.sb().record_locks.release_owner(self.lock_key(), owner);
        }
    }

    /// Returns the key of the file, independent of its names.
    fn lock_key(&self) -> u64 {
        self.held.dentry().object().inode_address()
    }

    /// Returns the number of this open file among the owners of locks in its file system, assigned at its first lock.
    #[must_use]
    pub fn lock_number(&self) -> u64 {
        let owner = self.owner.load(Relaxed);
        if owner != 0 {
            return owner;
        }
        // Relaxed: all users of the file only have to agree on one number.
        let new = self.held.sb().next_number();
        self.owner.compare_exchange(0, new, Relaxed, Relaxed).map_or_else(|first| first, |_| new)
    }
}
