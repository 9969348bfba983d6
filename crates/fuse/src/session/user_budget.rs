//! Budgets of users in the caches of the tree: the part that the nodes that each user has looked up
//! may pin.
//!
//! # What it is
//! A node pins an entry of a cache that has a budget, until the kernel forgets the node. The kernel
//! keeps the node of a watched or open file, or of a working directory, as long as the user wants.
//! So each node is charged to the user whose lookup made it, and a user gets no further ones beyond
//! a share: the charges of one user must not exceed the free part of the budget. One user can have
//! half of the budget, two users a third each, and so on: a part is always free for others.
//!
//! Root and the mounting user are trusted: they are charged nothing. All unknown users have one
//! share together ([`Account`]), so that they leave a part for users who are known. When a user has half of its
//! share, the session requests that the kernel drops names of that user. So only users whose files
//! cannot be dropped reach their share.
//!
//! # What it is not
//! Exact: a charge is the most that an entry can take, and the directories above it, which it pins too, are charged only while
//! the kernel has them.
//!
//! # How it is locked
//! One mutex for the table of users, held to find a user. Sums are atomic.
//!
//! # Where it comes from
//! Dynamic thresholds: A. Choudhury and E. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches" (1998).
//!
//! # Limitations
//! A user with many user numbers (a user namespace with `subuid(5)`) is as many users.

use super::Caller;
use super::who::Account;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use vfs::{Attr, OpenFile, PathRef};

/// When the table has so many users, those without a charge are removed.
const MOST: usize = 1024;

/// The place of a node, and the charge for it.
pub(crate) struct Node {
    place: PathRef,
    charge: Option<Charge>,
    /// The kernel has learned that the file has several names.
    had_names: AtomicBool,
    /// The version of the contents at the last open; 0: not known.
    opened: AtomicU64,
}

impl Node {
    /// Returns a node that nobody is charged for.
    pub(super) fn free(place: PathRef) -> Self {
        Self::new(place, None)
    }

    fn new(place: PathRef, charge: Option<Charge>) -> Self {
        Self { place, charge, had_names: AtomicBool::new(false), opened: AtomicU64::new(0) }
    }

    /// Returns whether the kernel has learned that the file has several names.
    pub(super) fn had_names(&self) -> bool {
        // Relaxed: a flag by itself.
        self.had_names.load(Relaxed)
    }

    /// Notes attributes that the kernel receives now. Returns whether it learned before that the file has several names.
    pub(super) fn note_names(&self, attr: &Attr) -> bool {
        // Relaxed: a flag by itself.
        let before = self.had_names.load(Relaxed);
        if !before && attr.nlink > 1 && !attr.is_dir() {
            self.had_names.store(true, Relaxed);
        }
        before
    }

    /// Notes the open of `file`, the file of the node. Returns whether the kernel may keep what it
    /// has cached of the contents since the open before.
    pub(super) fn note_open(&self, file: &OpenFile) -> bool {
        // Relaxed: a number by itself. Of two opens at once, one at most gets the other's number back.
        let version = file.version().map_or(0, NonZeroU64::get);
        self.opened.swap(version, Relaxed) == version && file.keeps_pages()
    }

    /// Returns whether the node is charged to `account`.
    pub(super) fn is_of(&self, account: Account) -> bool {
        self.charge.as_ref().is_some_and(|charge| charge.share.account == account)
    }
}

impl Deref for Node {
    type Target = PathRef;

    fn deref(&self) -> &PathRef {
        &self.place
    }
}

/// How much of its share a user has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Less than half.
    Low,
    /// The kernel should drop names.
    High,
    /// No more.
    Over,
}

/// The nodes of one user in one file system.
struct Share {
    account: Account,
    bytes: AtomicU64,
    /// The bytes of all users in that file system.
    of_all: Arc<AtomicU64>,
}

/// The bytes that one node takes of a share, until this is dropped.
struct Charge {
    share: Arc<Share>,
    bytes: u64,
}

impl Drop for Charge {
    fn drop(&mut self) {
        // Relaxed, here and below: sums.
        self.share.bytes.fetch_sub(self.bytes, Relaxed);
        self.share.of_all.fetch_sub(self.bytes, Relaxed);
    }
}

/// The shares of all users; see the [module documentation](self).
pub(super) struct UserBudgets {
    /// The mounting user.
    own_uid: u32,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    /// By the budget's number and user.
    users: HashMap<(u64, Account), Arc<Share>>,
    /// By the budget's number.
    sums: HashMap<u64, Arc<AtomicU64>>,
}

impl Table {
    fn share(&mut self, of: u64, account: Account) -> Arc<Share> {
        if let Some(share) = self.users.get(&(of, account)) {
            return share.clone();
        }
        if self.users.len() >= MOST {
            self.users.retain(|_, share| Arc::strong_count(share) > 1);
            self.sums.retain(|_, sum| Arc::strong_count(sum) > 1);
        }
        let of_all = self.sums.entry(of).or_default().clone();
        let share = Arc::new(Share { account, bytes: AtomicU64::new(0), of_all });
        self.users.insert((of, account), share.clone());
        share
    }
}

impl UserBudgets {
    pub(super) fn new() -> Self {
        Self { own_uid: rustix::process::geteuid().as_raw(), table: Mutex::default() }
    }

    /// Returns a node for `place`, charged to the caller.
    pub(super) fn node(&self, caller: &Caller, place: PathRef) -> Node {
        let Some(room) = place.cache_use().filter(|_| self.is_charged(caller)) else { return Node::free(place) };
        let share = self.table.lock().share(room.of, caller.who.account());
        share.bytes.fetch_add(room.bytes, Relaxed);
        share.of_all.fetch_add(room.bytes, Relaxed);
        Node::new(place, Some(Charge { share, bytes: room.bytes }))
    }

    /// Returns how much of its share the caller would have with one more node like `place`.
    pub(super) fn level(&self, caller: &Caller, place: &PathRef) -> Level {
        let Some(room) = place.cache_use().filter(|_| self.is_charged(caller)) else { return Level::Low };
        let Some(share) = self.table.lock().users.get(&(room.of, caller.who.account())).cloned() else {
            return Level::Low;
        };
        let bytes = share.bytes.load(Relaxed) + room.bytes;
        let limit = room.budget.entries.saturating_sub(share.of_all.load(Relaxed) + room.bytes);
        match bytes {
            bytes if bytes > limit => Level::Over,
            bytes if bytes > limit / 2 => Level::High,
            _ => Level::Low,
        }
    }

    fn is_charged(&self, caller: &Caller) -> bool {
        caller.who.account().is_limited(self.own_uid)
    }
}
