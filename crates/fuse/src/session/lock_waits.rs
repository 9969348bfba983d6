//! Requests that wait for a lock.
//!
//! # What it is
//! A request that conflicts is parked in the tree, without a thread. The thread that grants the
//! lock sends the reply. INTERRUPT, the end of the session, or a circle of waits ends the request
//! earlier. The number of parked requests is limited, in all and for each user.
//!
//! A request fails with `EDEADLK` if it would wait for an owner that waits for the owner of the
//! request. The session searches all waits before it parks a request. It searches again when an
//! owner that waits gets another lock, which another thread of the owner can request. Only owners
//! that wait can be in a circle, so the work depends on the number of waits, which is limited, and
//! not on the number of locks.
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
use super::locks::{FileLock, LockOwner, Locker, Locks};
use super::who::Account;
use super::{Caller, Session};
use crate::metrics::{Gauge, Metrics};
use crate::panics::contained;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use vfs::{Errno, ParkedLock};

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
    locker: Arc<Locker>,
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
            wait.locker.file.unpark_lock(wait.parked);
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
        let is_withdrawn = state.requests.get(&unique).is_some_and(|wait| wait.locker.file.unpark_lock(wait.parked));
        if is_withdrawn { self.removed(state, unique) } else { None }
    }
}

impl Locks {
    /// Returns whether a request waits, or would wait, for `target`: directly, or through other
    /// owners that wait.
    fn leads_to(&self, state: &State, (of, locker, lock): (LockOwner, &Locker, &FileLock), target: u64) -> bool {
        let mut others: BTreeSet<u64> = state.requests.values().map(|wait| wait.of.owner).collect();
        others.insert(target);
        let mut blocking = |(of, locker, lock): (LockOwner, &Locker, &FileLock)| -> Vec<u64> {
            let found = others.iter().filter(|&&other| self.is_blocked_by((of.node, other), locker, lock));
            let found: Vec<_> = found.copied().collect();
            found.iter().for_each(|owner| _ = others.remove(owner));
            found
        };
        let mut owners = blocking((of, locker, lock));
        while let Some(owner) = owners.pop() {
            if owner == target {
                return true;
            }
            let waiting = state.requests.values().filter(|wait| wait.of.owner == owner);
            owners.extend(waiting.flat_map(|wait| blocking((wait.of, &wait.locker, &wait.lock))));
        }
        false
    }

    /// Ends requests on the node of `of` with `EDEADLK` if they wait for `of` and `of` waits for
    /// them.
    pub(super) fn end_circles_through(&self, of: LockOwner) {
        let ended: Vec<_> = {
            let mut state = self.waits.state.lock();
            if !state.requests.values().any(|wait| wait.of.owner == of.owner) {
                return;
            }
            let is_for = |wait: &Wait| {
                wait.of.node == of.node && self.is_blocked_by((of.node, of.owner), &wait.locker, &wait.lock)
            };
            let waiting = state.requests.iter().filter(|(_, wait)| is_for(wait));
            let numbers: Vec<_> = waiting.map(|(unique, _)| *unique).collect();
            let close = |unique: &u64| {
                let wait = state.requests.get(unique)?;
                let is_circle = self.leads_to(&state, (wait.of, &wait.locker, &wait.lock), wait.of.owner);
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
        let (of, locker) = (wait.of, wait.locker.clone());
        self.note(of.node, of.owner, &wait.lock);
        wait.ends(Ok(()));
        self.end_circles_through(of);
        drop(locker);
    }
}

impl Session {
    /// SETLKW: as [`setlk`](Self::setlk), but waits, without limit and without this thread. `answer` gets the result, perhaps
    /// from another thread. `unique` is the number of the request.
    ///
    /// # Errors
    /// `EDEADLK`: an owner for which the request would wait waits for this owner. `EINTR`:
    /// [`interrupt`](Self::interrupt), or the session has ended. `ENOLCK`: too many requests wait,
    /// of this user or of all, or the user has too many locks. Otherwise as for [`setlk`](Self::setlk) except `EAGAIN`.
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
        let (locker, locks) = (self.locker(caller, of)?, &self.locks);
        loop {
            match self.set(&locker, of, &lock) {
                Err(Errno::EAGAIN) => {}
                done => return done,
            }
            // Under the mutex: of two requests that close a circle, the second sees the first.
            let mut state = locks.waits.state.lock();
            state.check(unique, caller.who.account())?;
            if locks.leads_to(&state, (of, &locker, &lock), of.owner) {
                return Err(Errno::EDEADLK);
            }
            let weak = Arc::downgrade(locks);
            let granted = move || {
                let Some(locks) = weak.upgrade() else { return };
                let _ = contained(&locks.waits.metrics, "lock", || locks.granted(unique));
            };
            let quota = locker.quota.as_ref();
            let parked = locker.file.park_lock(lock.kind, lock.range(), quota, Box::new(granted))?;
            let Some(parked) = parked else { continue };
            if let Some(answer) = answer.take() {
                state.requests.insert(unique, Wait { account: caller.who.account(), of, lock, locker, parked, answer });
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
