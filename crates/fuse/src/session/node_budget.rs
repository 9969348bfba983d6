//! Nodes in a full cache: a request that finds no room waits until the kernel has forgotten a node.
//!
//! # What it is
//! Nodes pin the cache, and only the kernel's FORGET removes a node. If the cache is full and all
//! its entries are in use, or if the caller's [share](super::user_budget) is used up, the session
//! requests that the kernel drops names that were not used lately. The caller's request waits for a
//! FORGET and tries again, until a deadline.
//!
//! # What it is not
//! For all requests: a FORGET arrives on the same threads as other requests. So one of these
//! threads must not wait, and each user has at most one request that waits.
//!
//! # How it is locked
//! One mutex around the users whose requests wait; each removal of a node signals the condition
//! variable meanwhile.
//!
//! # Where it comes from
//! `shrink_dcache_sb` and the waits of `prune_dcache` in Linux, whose cache has no other user.

use super::user_budget::Level;
use super::who::Account;
use super::{Caller, Session};
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use vfs::{Errno, PathRef};

/// How long a request waits for room.
const DEADLINE: Duration = Duration::from_secs(1);

/// How long a request waits for one FORGET before it tries again anyway.
const ROUND: Duration = Duration::from_millis(20);

/// The requests that wait for room.
#[derive(Default)]
pub(super) struct NodeBudget {
    users: Mutex<Vec<Account>>,
    /// The number of `users` that wait.
    waiting: AtomicUsize,
    /// The most that may wait.
    most: AtomicUsize,
    forgotten: Condvar,
}

/// The permit of a request of a user to wait. It ends on drop.
struct BudgetWaiter<'a> {
    node_budget: &'a NodeBudget,
    account: Account,
}

impl NodeBudget {
    /// Sets how many requests may wait at once.
    pub(super) fn allow(&self, most: usize) {
        // Relaxed, here and below: numbers that order nothing. A signal that is missed costs one round.
        self.most.store(most, Relaxed);
    }

    /// Wakes the requests that wait for room, as the kernel has forgotten a node.
    pub(super) fn forgot(&self) {
        if self.waiting.load(Relaxed) != 0 {
            self.forgotten.notify_all();
        }
    }

    fn waiter(&self, account: Account) -> Option<BudgetWaiter<'_>> {
        let mut users = self.users.lock();
        if users.len() >= self.most.load(Relaxed) || users.contains(&account) {
            return None;
        }
        users.push(account);
        self.waiting.store(users.len(), Relaxed);
        Some(BudgetWaiter { node_budget: self, account })
    }
}

impl BudgetWaiter<'_> {
    fn wait(&self) {
        self.node_budget.forgotten.wait_for(&mut self.node_budget.users.lock(), ROUND);
    }
}

impl Drop for BudgetWaiter<'_> {
    fn drop(&mut self) {
        let mut users = self.node_budget.users.lock();
        users.retain(|account| *account != self.account);
        self.node_budget.waiting.store(users.len(), Relaxed);
    }
}

impl Session {
    /// Calls `f`, which looks up or makes names in `dir`. If it fails because the cache is full, calls it again when there may be
    /// room.
    pub(super) fn with_room<R>(
        &self,
        caller: &Caller,
        dir: &PathRef,
        mut f: impl FnMut() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        match f() {
            Err(Errno::ENOMEM) => self.when_there_is_room(caller, dir, f),
            done => done,
        }
    }

    #[cold]
    fn when_there_is_room<R>(
        &self,
        caller: &Caller,
        dir: &PathRef,
        mut f: impl FnMut() -> Result<R, Errno>,
    ) -> Result<R, Errno> {
        let make_space = || match self.user_budgets.level(caller, dir) {
            Level::Over => self.make_room_of(caller),
            _ => self.make_much_room(),
        };
        make_space();
        let Some(waiter) = self.node_budget.waiter(caller.who.account()) else { return Err(Errno::ENOMEM) };
        let deadline = Instant::now() + DEADLINE;
        loop {
            waiter.wait();
            match f() {
                Err(Errno::ENOMEM) if Instant::now() < deadline => make_space(),
                done => return done,
            }
        }
    }

    /// # Errors
    /// `ENOMEM`: the nodes of the caller have its share of the cache of the file system of `place`.
    pub(super) fn check_share(&self, caller: &Caller, place: &PathRef) -> Result<(), Errno> {
        match self.user_budgets.level(caller, place) {
            Level::Low => Ok(()),
            Level::High => {
                self.make_room_of(caller);
                Ok(())
            }
            Level::Over => Err(Errno::ENOMEM),
        }
    }

    /// [`check_share`](Self::check_share) for the result of a lookup, which needs no room if the kernel has its node already.
    pub(super) fn check_found(&self, caller: &Caller, found: &PathRef) -> Result<(), Errno> {
        let Err(errno) = self.check_share(caller, found) else { return Ok(()) };
        let known = self.nodes_of(found.identity(), self.shown_ino_of(found)?);
        let is_known = known.iter().any(|(_, known)| known.mount_id() == found.mount_id());
        if is_known { Ok(()) } else { Err(errno) }
    }
}
