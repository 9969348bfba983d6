//! Requests that wait for a lock.
//!
//! # What it is
//! A request that conflicts is parked in the tree, without a thread. The thread that grants the
//! lock sends the reply. INTERRUPT, the end of the session, or a circle of waits ends the request
//! earlier. The number of parked requests is limited, in all and for each user.
//!
//! A request fails with `EDEADLK` if it would wait for an owner that waits for the owner of the
//! request. The session searches all waits before it parks a request. It searches again when an
//! owner that waits gets another lock, which another thread of the owner can request.
//!
//! # How it is locked
//! One mutex, under which requests are parked and withdrawn, and the table of open files is locked. Replies are sent without it,
//! so a closure that the tree calls can take it.
//!
//! # Where it comes from
//! `posix_locks_deadlock` in Linux's `fs/locks.c`; `request_wait_answer` in `fs/fuse/dev.c`.
//!
//! # Limitations
//! A deadlock with waits of other users of the tree, or by way of a second mount point of one file, is not detected; nor is one
//! of `flock(2)`, as on Linux.

use super::early::Early;
use super::locks::{FileLock, LockFamily, LockOwner, Locks};
use super::who::Account;
use super::{Caller, Session};
use crate::metrics::{Gauge, Metrics};
use crate::panics::contained;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use vfs::{Errno, OpenFile, ParkedLock};

/// The most requests that wait at once.
const MAX_WAITERS: usize = 256;

/// The most requests of one user that wait at once.
const MAX_PER_USER: usize = 64;

/// The most interrupts that are kept for requests that do not wait yet. Most are of requests that
/// never wait.
const MAX_EARLY: usize = 1024;

/// Replies to a request that waited. The closure must not block.
pub type LockAnswer = Box<dyn FnOnce(Result<(), Errno>) + Send>;

/// See the [module documentation](self).
pub(super) struct Waits {
    state: Mutex<State>,
    metrics: Arc<Metrics>,
}

#[derive(Default)]
struct State {
    /// The requests that wait, by the numbers that the kernel gave them.
    requests: BTreeMap<u64, Wait>,
    /// Requests that were interrupted before they waited.
    early: Early<MAX_EARLY>,
    is_over: bool,
}

/// A request that waits.
struct Wait {
    account: Account,
    of: LockOwner,
    lock: FileLock,
    file: Arc<OpenFile>,
    parked: ParkedLock,
    answer: LockAnswer,
}

impl Wait {
    fn ends(self, result: Result<(), Errno>) {
        (self.answer)(result);
    }
}

impl State {
    /// Checks whether the request `unique` of `account` may wait.
    fn check(&mut self, unique: u64, account: Account) -> Result<(), Errno> {
        if self.early.take(unique) {
            return Err(Errno::EINTR);
        }
        if self.is_over {
            return Err(Errno::EINTR);
        }
        // The kernel never has two requests of one number.
        if self.requests.contains_key(&unique) {
            return Err(Errno::EIO);
        }
        let of_user = self.requests.values().filter(|wait| wait.account == account).count();
        if self.requests.len() >= MAX_WAITERS || of_user >= MAX_PER_USER {
            return Err(Errno::ENOLCK);
        }
        Ok(())
    }
}

impl Waits {
    pub(super) fn new(metrics: &Arc<Metrics>) -> Self {
        Self { state: Mutex::default(), metrics: metrics.clone() }
    }

    /// Ends all requests, and lets no other request wait.
    pub(super) fn end(&self) {
        let all = {
            let mut state = self.state.lock();
            state.is_over = true;
            core::mem::take(&mut state.requests)
        };
        for wait in all.into_values() {
            wait.file.unpark_lock(wait.parked);
            wait.ends(Err(Errno::EINTR));
        }
        self.metrics.set(Gauge::LockWaiters, 0);
    }

    fn removed(&self, state: &mut State, unique: u64) -> Option<Wait> {
        let wait = state.requests.remove(&unique);
        self.metrics.set(Gauge::LockWaiters, state.requests.len() as u64);
        wait
    }

    /// Ends the request `unique` if it is not being granted.
    fn withdrawn(&self, state: &mut State, unique: u64) -> Option<Wait> {
        let is_withdrawn = state.requests.get(&unique).is_some_and(|wait| wait.file.unpark_lock(wait.parked));
        if is_withdrawn { self.removed(state, unique) } else { None }
    }
}

impl Locks {
    /// Returns whether one of `owners` waits for `target`, directly or through other owners.
    fn lead_to(&self, state: &State, mut owners: Vec<u64>, target: u64) -> bool {
        let mut visited = Vec::new();
        while let Some(owner) = owners.pop() {
            if owner == target {
                return true;
            }
            if !visited.contains(&owner) {
                visited.push(owner);
                let waiting = state.requests.values().filter(|wait| wait.of.owner == owner);
                owners.extend(waiting.flat_map(|wait| self.owners_before(wait.of, &wait.file, &wait.lock)));
            }
        }
        false
    }

    fn owners_before(&self, of: LockOwner, file: &OpenFile, lock: &FileLock) -> Vec<u64> {
        if lock.family == LockFamily::Whole {
            return Vec::new();
        }
        self.blockers(of.node, file, lock).into_iter().map(|(owner, _)| owner).collect()
    }

    /// Ends requests on the node of `of` with `EDEADLK` if they wait for `of` and `of` waits for
    /// them.
    pub(super) fn end_circles_through(&self, of: LockOwner) {
        let ended: Vec<_> = {
            let mut state = self.waits.state.lock();
            if !state.requests.values().any(|wait| wait.of.owner == of.owner) {
                return;
            }
            let of_node = state.requests.iter().filter(|(_, wait)| wait.of.node == of.node);
            let numbers: Vec<_> = of_node.map(|(unique, _)| *unique).collect();
            let close = |unique: &u64| {
                let wait = state.requests.get(unique)?;
                let owners = self.owners_before(wait.of, &wait.file, &wait.lock);
                let is_circle = self.lead_to(&state, owners, wait.of.owner);
                is_circle.then(|| self.waits.withdrawn(&mut state, *unique)).flatten()
            };
            numbers.iter().filter_map(close).collect()
        };
        ended.into_iter().for_each(|wait| wait.ends(Err(Errno::EDEADLK)));
    }

    /// Replies to the request `unique`, which the tree has granted. Then ends requests that now
    /// wait in a circle.
    fn granted(&self, unique: u64) {
        let wait = self.waits.removed(&mut self.waits.state.lock(), unique);
        // None: the session has ended.
        let Some(wait) = wait else { return };
        let (of, file) = (wait.of, wait.file.clone());
        self.note(of.node, of.owner, &wait.lock);
        wait.ends(Ok(()));
        self.end_circles_through(of);
        drop(file);
    }
}

impl Session {
    /// SETLKW: as [`setlk`](Self::setlk), but waits, without limit and without this thread. `answer` gets the result, perhaps
    /// from another thread. `unique` is the number of the request.
    ///
    /// # Errors
    /// `EDEADLK`: an owner for which the request would wait waits for this owner. `EINTR`:
    /// [`interrupt`](Self::interrupt), or the session has ended. `ENOLCK`: too many requests wait,
    /// of this user or of all. Otherwise as for [`setlk`](Self::setlk) except `EAGAIN`.
    pub fn setlk_waiting(&self, caller: &Caller, unique: u64, of: LockOwner, lock: FileLock, answer: LockAnswer) {
        let mut answer = Some(answer);
        let done = self.set_or_park(caller, unique, of, lock, &mut answer);
        if let Some(answer) = answer {
            answer(done);
        }
    }

    /// Parks the request, which takes `answer`, or returns how it ends.
    fn set_or_park(
        &self,
        caller: &Caller,
        unique: u64,
        of: LockOwner,
        lock: FileLock,
        answer: &mut Option<LockAnswer>,
    ) -> Result<(), Errno> {
        let (file, locks) = (self.locker(of)?, &self.locks);
        loop {
            match self.set(&file, of, &lock) {
                Err(Errno::EAGAIN) => {}
                done => return done,
            }
            // Under the mutex: of two requests that close a circle, the second sees the first.
            let mut state = locks.waits.state.lock();
            state.check(unique, caller.who.account())?;
            if locks.lead_to(&state, locks.owners_before(of, &file, &lock), of.owner) {
                return Err(Errno::EDEADLK);
            }
            let weak = Arc::downgrade(locks);
            let granted = move || {
                let Some(locks) = weak.upgrade() else { return };
                let _ = contained(&locks.waits.metrics, "lock", || locks.granted(unique));
            };
            let Some(parked) = file.park_lock(lock.kind, lock.range(), Box::new(granted))? else { continue };
            if let Some(answer) = answer.take() {
                state.requests.insert(unique, Wait { account: caller.who.account(), of, lock, file, parked, answer });
                self.metrics.set(Gauge::LockWaiters, state.requests.len() as u64);
            }
            return Ok(());
        }
    }

    /// INTERRUPT: the program that waits for the request `unique` has a signal. The request may have ended, or may come later.
    ///
    /// # Errors
    /// `ENOSYS` without [`locks`](crate::SessionOptions::locks), and if no file system of the tree
    /// can be cancelled: in this case no waiting request can be ended.
    pub fn interrupt(&self, unique: u64) -> Result<(), Errno> {
        let is_cancellable = self.vfs.is_cancellable();
        let is_cancelled = is_cancellable && self.interrupts.cancel(unique);
        if is_cancelled || !self.options.locks {
            return if is_cancellable { Ok(()) } else { Err(Errno::ENOSYS) };
        }
        let waits = &self.locks.waits;
        let mut state = waits.state.lock();
        let wait = waits.withdrawn(&mut state, unique);
        if wait.is_none() && !state.requests.contains_key(&unique) {
            state.early.keep(unique);
        }
        drop(state);
        wait.into_iter().for_each(|wait| wait.ends(Err(Errno::EINTR)));
        Ok(())
    }
}
