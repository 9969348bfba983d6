//! Locks of `fcntl(2)` in the tree, with which they exclude the locks of its other users.
//!
//! # What it is
//! The kernel numbers the owners of locks. Each pair of node and owner has an open file of the tree, which holds its locks. It
//! is closed, and the locks end, when the owner closes the file.
//!
//! A request that waits needs a separate thread, so their number is limited, for all and for each user. It fails with
//! `EDEADLK` when it would wait for an owner that waits for it. It ends with `EINTR` when its thread has a signal: the kernel
//! cannot interrupt a request here, so `/proc` is read several times a second.
//!
//! # What it is not
//! `flock(2)`: the kernel keeps those locks of this mount by itself, and the tree's other users do not see them.
//!
//! # How it is locked
//! Two mutexes, for the open files and for the waits; the files may be locked under the waits. No thread has either while it
//! waits for a lock.
//!
//! # Where it comes from
//! `fcntl_locking(2)`; `posix_locks_deadlock` in Linux's `fs/locks.c`; `request_wait_answer` in `fs/fuse/dev.c`.
//!
//! # Limitations
//! A deadlock with waits of other users of the tree, or by way of a second mount point of one file, is not detected. As on
//! Linux, threads of one process are one owner.

use super::{Caller, Session};
use crate::metrics::{Gauge, Metrics};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use vfs::{Errno, LockInfo, LockKind, LockWait, OpenFile, OpenFlags};

/// The last byte of a lock to the end of the file: `OFFSET_MAX` in Linux.
const TO_END: u64 = i64::MAX as u64;

/// The most requests that wait at once.
const MOST_WAITERS: usize = 256;

/// The most requests of one user that wait at once.
const MOST_OF_A_USER: usize = 64;

/// How long a request waits before it looks for a signal and for a deadlock again.
const ROUND: Duration = Duration::from_millis(200);

/// A lock of `fcntl(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLock {
    /// Shared, exclusive, or unlock.
    pub kind: LockKind,
    /// First byte.
    pub start: u64,
    /// Last byte. `i64::MAX` or more: to the end of the file, which replies show as `i64::MAX`.
    pub end: u64,
}

impl FileLock {
    fn range(&self) -> core::ops::Range<u64> {
        self.start..if self.end >= TO_END { u64::MAX } else { self.end + 1 }
    }
}

/// Open files by node and owner, and the requests that wait.
#[derive(Default)]
pub(crate) struct Locks {
    files: Mutex<BTreeMap<(u64, u64), Arc<OpenFile>>>,
    waits: Arc<Mutex<Waits>>,
}

impl Locks {
    /// Releases all locks of `owner` on `node`.
    fn end(&self, node: u64, owner: u64) {
        let file = self.files.lock().remove(&(node, owner));
        drop(file);
    }

    pub(super) fn clear(&self) {
        let all = core::mem::take(&mut *self.files.lock());
        drop(all);
    }

    /// The owners whose locks on `node` keep `file` from `lock`.
    fn blockers(&self, node: u64, file: &OpenFile, lock: &FileLock) -> Vec<u64> {
        let numbers = file.lock_blockers(lock.kind, lock.range());
        let files = self.files.lock();
        let owners = files.range((node, 0)..=(node, u64::MAX));
        owners.filter(|(_, file)| numbers.contains(&file.lock_number())).map(|(&(_, owner), _)| owner).collect()
    }
}

/// The requests that wait.
#[derive(Default)]
struct Waits {
    of_users: HashMap<u32, usize>,
    count: usize,
    /// By its number: the owner of a request, and the owners that it waits for.
    requests: HashMap<u64, (u64, Vec<u64>)>,
    last: u64,
}

impl Waits {
    /// Whether one of `owners` waits for `target`, or for one that does.
    fn lead_to(&self, owners: &[u64], target: u64) -> bool {
        let (mut to_visit, mut visited) = (owners.to_vec(), Vec::new());
        while let Some(owner) = to_visit.pop() {
            if owner == target {
                return true;
            }
            if !visited.contains(&owner) {
                visited.push(owner);
                let waiting = self.requests.values().filter(|(waiting, _)| *waiting == owner);
                to_visit.extend(waiting.flat_map(|(_, blockers)| blockers));
            }
        }
        false
    }
}

/// The permit of a request to wait. It ends on drop.
pub struct LockWaiter {
    waits: Arc<Mutex<Waits>>,
    metrics: Arc<Metrics>,
    uid: u32,
    number: u64,
}

impl Drop for LockWaiter {
    fn drop(&mut self) {
        let mut waits = self.waits.lock();
        waits.count -= 1;
        waits.requests.remove(&self.number);
        if let Some(count) = waits.of_users.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                waits.of_users.remove(&self.uid);
            }
        }
        self.metrics.set(Gauge::LockWaiters, waits.count as u64);
    }
}

impl core::fmt::Debug for LockWaiter {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("LockWaiter").field("uid", &self.uid).finish_non_exhaustive()
    }
}

impl Session {
    /// FLUSH: `lock_owner` has closed a descriptor of the open file `handle`, which ends its locks on the node.
    ///
    /// # Errors
    /// Those of [`OpenFile::flush`], which `close(2)` returns; `ENOSYS` without [`locks`](crate::SessionOptions::locks) if no
    /// file system of the tree can fail here ([`Vfs::wants_flushes`](vfs::Vfs::wants_flushes)): the kernel then sends no more
    /// FLUSH.
    pub fn flush(&self, node: u64, handle: u64, lock_owner: u64) -> Result<(), Errno> {
        if self.options.locks {
            self.locks.end(node, lock_owner);
        } else if !self.vfs.wants_flushes() {
            return Err(Errno::ENOSYS);
        }
        self.files.get(handle).map_or(Ok(()), |open| open.file.flush())
    }

    /// Whether FLUSH of the open file `handle` has an effect. (With writeback the kernel sends it also if it has none.)
    pub(crate) fn wants_flush(&self, handle: u64) -> bool {
        self.options.locks || self.files.get(handle).is_some_and(|open| open.file.wants_flush())
    }

    /// GETLK: the first lock that conflicts with `lock`.
    ///
    /// # Errors
    /// `EINVAL`, `ESTALE`; `ENOSYS` without [`locks`](crate::SessionOptions::locks).
    pub fn getlk(&self, _caller: &Caller, node: u64, owner: u64, lock: FileLock) -> Result<Option<FileLock>, Errno> {
        let file = self.locker(node, owner)?;
        let found = file.test_lock(lock.kind, lock.range())?;
        Ok(found.map(|LockInfo { kind, start, end, .. }| FileLock { kind, start, end: (end - 1).min(TO_END) }))
    }

    /// SETLK: takes, changes or releases a lock.
    ///
    /// # Errors
    /// `EAGAIN`, `EINVAL`, `ESTALE`; `ENOSYS` without [`locks`](crate::SessionOptions::locks).
    pub fn setlk(&self, _caller: &Caller, node: u64, owner: u64, lock: FileLock) -> Result<(), Errno> {
        self.locker(node, owner)?.lock_range(lock.kind, lock.range(), LockWait::Never)
    }

    /// Permits one more request to wait, on a separate thread.
    ///
    /// # Errors
    /// `ENOLCK`: too many wait, of this user or of all.
    pub fn lock_waiter(&self, caller: &Caller) -> Result<LockWaiter, Errno> {
        let mut waits = self.locks.waits.lock();
        let of_user = waits.of_users.get(&caller.uid).copied().unwrap_or_default();
        if waits.count >= MOST_WAITERS || of_user >= MOST_OF_A_USER {
            return Err(Errno::ENOLCK);
        }
        waits.of_users.insert(caller.uid, of_user + 1);
        waits.count += 1;
        waits.last += 1;
        self.metrics.set(Gauge::LockWaiters, waits.count as u64);
        let (waits, number) = (self.locks.waits.clone(), waits.last);
        Ok(LockWaiter { waits, metrics: self.metrics.clone(), uid: caller.uid, number })
    }

    /// SETLKW: as [`setlk`](Self::setlk), but waits, without limit.
    ///
    /// # Errors
    /// `EDEADLK`: an owner that it would wait for waits for `owner`. `EINTR`: the caller has a signal, or has exited. Otherwise
    /// those of [`setlk`](Self::setlk) except `EAGAIN`.
    pub fn setlk_waiting(
        &self,
        caller: &Caller,
        (node, owner): (u64, u64),
        lock: FileLock,
        waiter: &LockWaiter,
    ) -> Result<(), Errno> {
        let file = self.locker(node, owner)?;
        loop {
            let mut waits = self.locks.waits.lock();
            // Under the mutex: of two requests that close a circle, the second sees the first.
            let blockers = self.locks.blockers(node, &file, &lock);
            if waits.lead_to(&blockers, owner) {
                return Err(Errno::EDEADLK);
            }
            waits.requests.insert(waiter.number, (owner, blockers));
            drop(waits);
            match file.lock_range(lock.kind, lock.range(), LockWait::AtMost(ROUND)) {
                Err(Errno::ETIMEDOUT) if has_signal(caller.pid) => return Err(Errno::EINTR),
                Err(Errno::ETIMEDOUT) => {}
                done => return done,
            }
        }
    }

    fn locker(&self, node: u64, owner: u64) -> Result<Arc<OpenFile>, Errno> {
        if !self.options.locks {
            return Err(Errno::ENOSYS);
        }
        if let Some(file) = self.locks.files.lock().get(&(node, owner)) {
            return Ok(file.clone());
        }
        let held = self.node(node)?;
        let opened = |flags| self.callers.everyone().open_held(&held, flags);
        let file = match opened(OpenFlags::RDWR) {
            // On a read-only mount only shared locks are possible.
            Err(Errno::EROFS) => opened(OpenFlags::RDONLY)?,
            file => file?,
        };
        Ok(self.locks.files.lock().entry((node, owner)).or_insert_with(|| Arc::new(file)).clone())
    }
}

/// Whether the thread `pid` has exited, or a signal interrupts what it waits for. `false` if it is unknown (0).
fn has_signal(pid: u32) -> bool {
    if pid == 0 {
        return false;
    }
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return true };
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let mask = |name: &str| u64::from_str_radix(line(name), 16).unwrap_or_default();
    let pending = mask("SigPnd:") | mask("ShdPnd:");
    line("State:").starts_with(['Z', 'X']) || pending & !mask("SigBlk:") & !mask("SigIgn:") != 0
}
