//! Locks of the whole file, as in `std`, and locks of ranges. All are advisory: they exclude other
//! locks, not reads and writes.

use super::File;
use crate::error::error;
use std::fs::TryLockError;
use std::io;
use std::ops::Range;
use vfs::{Errno, LockInfo, LockKind, LockWait};

/// # Locks
///
/// ```
/// use lightfoot::{LockKind, LockWait, TryLockError, Vfs};
///
/// let ctx = Vfs::ram().context();
/// let mine = ctx.create("/lock")?;
/// let other = ctx.create("/lock")?; // Another process, for example, through a mount.
/// mine.lock()?;
/// assert!(matches!(other.try_lock(), Err(TryLockError::WouldBlock)));
/// mine.unlock()?;
///
/// // Ranges of a file.
/// mine.lock_range(LockKind::Exclusive, 0..10, LockWait::Forever)?;
/// other.lock_range(LockKind::Exclusive, 10..20, LockWait::Never)?;
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Locks the file exclusively; blocks until no other lock conflicts: `flock(2)` with `LOCK_EX`.
    /// Closing the file releases the lock. Clones share the lock.
    ///
    /// # Errors
    /// `EBADF` on a file opened with `O_PATH`.
    pub fn lock(&self) -> io::Result<()> {
        self.flock(LockKind::Exclusive, LockWait::Forever).map_err(error)
    }

    /// Locks the file, shared with other such locks; blocks until no exclusive lock conflicts:
    /// `flock(2)` with `LOCK_SH`.
    ///
    /// # Errors
    /// As for [`File::lock`].
    pub fn lock_shared(&self) -> io::Result<()> {
        self.flock(LockKind::Shared, LockWait::Forever).map_err(error)
    }

    /// As [`File::lock`], but does not block.
    ///
    /// # Errors
    /// `WouldBlock` if another open file has a conflicting lock; as for [`File::lock`].
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        self.try_flock(LockKind::Exclusive)
    }

    /// As [`File::lock_shared`], but does not block.
    ///
    /// # Errors
    /// As for [`File::try_lock`].
    pub fn try_lock_shared(&self) -> Result<(), TryLockError> {
        self.try_flock(LockKind::Shared)
    }

    /// Releases the lock of the whole file, if there is one: `flock(2)` with `LOCK_UN`.
    ///
    /// # Errors
    /// As for [`File::lock`].
    pub fn unlock(&self) -> io::Result<()> {
        self.flock(LockKind::Unlock, LockWait::Never).map_err(error)
    }

    fn try_flock(&self, kind: LockKind) -> Result<(), TryLockError> {
        self.flock(kind, LockWait::Never).map_err(|errno| match errno {
            Errno::EAGAIN => TryLockError::WouldBlock,
            errno => TryLockError::Error(error(errno)),
        })
    }

    fn flock(&self, kind: LockKind, wait: LockWait) -> Result<(), Errno> {
        self.inner().flock(kind, wait)
    }

    /// Sets, changes or releases a lock on a range of bytes (`u64::MAX`: to the end of the file,
    /// even if the end moves): `fcntl(2)` with `F_OFD_SETLK`, or with `F_OFD_SETLKW` to wait. Such
    /// locks do not conflict with locks of the whole file.
    ///
    /// # Errors
    /// `EAGAIN` if another open file has a conflicting lock and `wait` is `Never`; `ETIMEDOUT`; `EINVAL` for an empty
    /// range; `EBADF` for a shared lock on a file not open for reading, an exclusive one on a file not open for
    /// writing.
    pub fn lock_range(&self, kind: LockKind, range: Range<u64>, wait: LockWait) -> io::Result<()> {
        self.inner().lock_range(kind, range, wait).map_err(error)
    }

    /// Returns the first lock of another open file that conflicts with a lock of `kind` on `range`:
    /// `F_OFD_GETLK`.
    ///
    /// # Errors
    /// `EINVAL` for an empty range, and for `Unlock`.
    pub fn test_lock(&self, kind: LockKind, range: Range<u64>) -> io::Result<Option<LockInfo>> {
        self.inner().test_lock(kind, range).map_err(error)
    }
}
