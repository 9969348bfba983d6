//! Name locks: one change of a name at a time, while no lock of its directory is held.
//!
//! # What it is
//! A thread that changes a name in a remote file system
//! ([`OwnNames::remote`](crate::OwnNames::remote)) must not hold the directory's lock during the
//! call. It locks the name instead. A second thread that changes the name waits until the first
//! thread has released the name, or until its own deadline. Other names of the directory can be
//! looked up, listed and changed meanwhile, and the name itself can be looked up.
//!
//! Before a thread removes a directory, or replaces it by a rename, it *closes* the directory: it
//! waits until no name in the directory is locked, and delays new locks until it has released its
//! own names. A thread whose lock was delayed finds the directory removed.
//!
//! # What it is not
//! A lock of the cache: entries are changed under the directory's lock. A lookup's answer, an
//! invalidation or an eviction may change the cache's entry of a locked name. From the check before
//! the call until the name's release (*in flight*), no answer removes its positive entry, and
//! nothing is mounted on it.
//!
//! # States of a name, and of a directory
//! ```text
//!              lock                     begin: checked, with the directory locked
//!   free -----------------> locked ---------------------------------------------> in flight
//!     ^    (waits while       |                                                         |
//!     |   locked, or the    |                                                         | call of the file system, then the
//!     |  directory is closed) |                                                         | cache, with the directory locked
//!     +----------------------- give back: wakes the threads that wait for the name <----+
//!
//!          close              no name in it is locked          give back: wakes the threads that wait for it
//!   open --------> closing -----------------------------> closed --------------------------------------------> open
//!     ^              | deadline
//!     +--------------+
//! ```
//!
//! # How it is locked
//! One mutex, a leaf. A thread locks names before directories ([`Rank::Name`]), so no thread waits
//! for a name while it has the lock of a directory.
//!
//! A thread that needs two names locks both or none, and waits only while it has none. So a thread
//! that has locked a name waits only to close the directory with this name, that is for threads
//! with names in that directory. Each of these does not wait, or waits to close a directory in that
//! directory, and so on downwards; the lowest thread does not wait. The exception is a move of a
//! directory to another directory, over a third one: this thread has names in two places. It took
//! the tree's `rename_lock` before the names, so there is at most one such thread. It does not
//! replace an ancestor of the old name, so a way down from the replaced directory does not lead
//! back to the thread.
//!
//! # Where it comes from
//! `i_rwsem` of a directory, one name at a time; the exclusion of `d_alloc_parallel` in Linux.

use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::cache::superblock::SuperBlock;
use crate::slots::dentry::Dentry;
use core::cell::Cell;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::park;
use prim::shared::Arc;
use std::collections::BTreeMap;
use sync::Mutex;
use sync::lockdep::Held;

/// A directory, by its address, and the hash of a name in it. Two names with one hash wait for each other, without need.
type Key = (usize, u64);

/// The word on which threads sleep until the obstacle ends.
type Turn = Arc<AtomicU32>;

const THERE: u32 = 0;
const GONE: u32 = 1;

/// The locked names of a file system.
#[derive(Default)]
pub(crate) struct NameLockTable(Mutex<Table>);

#[derive(Default)]
struct Table {
    names: BTreeMap<Key, Name>,
    closed: BTreeMap<usize, Closed>,
}

/// A locked name.
#[derive(Default)]
struct Name {
    is_in_flight: bool,
    /// Set by the first thread that waits.
    turn: Option<Turn>,
}

/// A directory in which no name can be locked.
#[derive(Default)]
struct Closed {
    /// The closing thread sleeps on it while a name is locked.
    emptied: Option<Turn>,
    /// The others sleep on it.
    reopened: Option<Turn>,
}

impl Table {
    fn has_names(&self, dir: usize) -> bool {
        self.names.range((dir, 0)..=(dir, u64::MAX)).next().is_some()
    }

    /// Returns the obstacle that a thread that needs the names must wait for.
    fn obstacle(&mut self, keys: [Key; 2]) -> Option<Turn> {
        for key in keys {
            let turn = match (self.closed.get_mut(&key.0), self.names.get_mut(&key)) {
                (Some(closed), _) => &mut closed.reopened,
                (None, Some(name)) => &mut name.turn,
                (None, None) => continue,
            };
            return Some(wait_for(turn));
        }
        None
    }
}

fn wait_for(turn: &mut Option<Turn>) -> Turn {
    turn.get_or_insert_with(|| Turn::new(AtomicU32::new(THERE))).clone()
}

/// Sleeps until the obstacle of `turn` ends: `ETIMEDOUT`.
fn sleep(turn: &Turn, deadline: Deadline) -> Result<(), Errno> {
    // Relaxed, here and in `wake`: the table's lock, which the thread takes next, orders the table.
    while turn.load(Relaxed) == THERE {
        if !deadline.park(turn, THERE) {
            return Err(Errno::ETIMEDOUT);
        }
    }
    Ok(())
}

fn wake(turn: &Turn) {
    turn.store(GONE, Relaxed);
    park::unpark_all(turn);
}

impl NameLockTable {
    /// Reserves both names, which may be one.
    fn attempt(&self, keys: [Key; 2]) -> Result<(), Turn> {
        let mut table = self.0.lock();
        if let Some(turn) = table.obstacle(keys) {
            return Err(turn);
        }
        keys.into_iter().for_each(|key| drop(table.names.insert(key, Name::default())));
        Ok(())
    }

    fn wait(&self, keys: [Key; 2], deadline: Deadline) -> Result<(), Errno> {
        while let Err(turn) = self.attempt(keys) {
            sleep(&turn, deadline)?;
        }
        Ok(())
    }

    /// Waits until no name in the directory is locked, and holds new locks back from the beginning.
    fn close(&self, dir: usize, deadline: Deadline) -> Result<(), Errno> {
        loop {
            let (turn, is_mine) = {
                let mut table = self.0.lock();
                let is_empty = !table.has_names(dir);
                // (Another thread cannot close it: that would need the same name of it.)
                let is_mine = !table.closed.contains_key(&dir);
                let closed = table.closed.entry(dir).or_default();
                match (is_mine, is_empty) {
                    (true, true) => return Ok(()),
                    (true, false) => (wait_for(&mut closed.emptied), true),
                    (false, _) => (wait_for(&mut closed.reopened), false),
                }
            };
            let slept = sleep(&turn, deadline);
            if is_mine {
                return slept.inspect_err(|_| self.give_back(None, Some(dir)));
            }
            slept?;
        }
    }

    fn give_back(&self, keys: Option<[Key; 2]>, closed: Option<usize>) {
        let mut turns: [Option<Turn>; 5] = Default::default();
        {
            let mut table = self.0.lock();
            let keys = || keys.into_iter().flatten();
            for (key, turn) in keys().zip(&mut turns) {
                *turn = table.names.remove(&key).and_then(|name| name.turn);
            }
            for (key, turn) in keys().zip(&mut turns[2..]) {
                let is_empty = !table.has_names(key.0);
                *turn = table.closed.get(&key.0).filter(|_| is_empty).and_then(|closed| closed.emptied.clone());
            }
            turns[4] = closed.and_then(|dir| table.closed.remove(&dir)).and_then(|closed| closed.reopened);
        }
        turns.iter().flatten().for_each(wake);
    }
}

/// Names that this thread has locked, and the directory that it has closed, if any. The drop
/// releases them.
#[must_use = "dropped, it gives the names back"]
pub(crate) struct NameLocks<'s> {
    of: &'s NameLockTable,
    keys: [Key; 2],
    is_given_back: Cell<bool>,
    closed: Cell<Option<usize>>,
    _ranked: Held<'s, Rank>,
}

impl NameLocks<'_> {
    /// Closes the directory `dir`, which has one of these names, until their release.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub(crate) fn close(&self, dir: &Dentry, deadline: Deadline) -> Result<(), Errno> {
        self.of.close(address(dir), deadline)?;
        self.closed.set(Some(address(dir)));
        Ok(())
    }

    /// Gives the names back.
    pub(crate) fn give_back(&self) {
        if !self.is_given_back.replace(true) {
            self.of.give_back(Some(self.keys), self.closed.take());
        }
    }

    /// Notes that the names are in flight. Their directories are locked.
    pub(crate) fn begin_change(&self) {
        let mut table = self.of.0.lock();
        for key in &self.keys {
            table.names.get_mut(key).into_iter().for_each(|name| name.is_in_flight = true);
        }
    }
}

impl Drop for NameLocks<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

fn address(dir: &Dentry) -> usize {
    core::ptr::from_ref(dir) as usize
}

impl SuperBlock {
    /// Reserves two names, which may be one, by their hashes, in directories that the caller holds. `None`: the file system is fast, and
    /// locks none.
    ///
    /// # Errors
    /// `ETIMEDOUT`.
    pub(crate) fn lock_remote_names(
        &self,
        names: [(&Dentry, u64); 2],
        deadline: Deadline,
    ) -> Result<Option<NameLocks<'_>>, Errno> {
        let Some(of) = self.name_locks.as_deref() else { return Ok(None) };
        let ranked = self.ranks.acquire(Rank::Name);
        let keys = names.map(|(dir, hash)| (address(dir), hash));
        self.ranks.take_by(Rank::Name, || of.attempt(keys).ok().map(Ok), || of.wait(keys, deadline))?;
        let (is_given_back, closed) = Default::default();
        Ok(Some(NameLocks { of, keys, is_given_back, closed, _ranked: ranked }))
    }

    /// Returns whether a thread changes the name with the hash `hash` in the locked directory
    /// `dir`.
    pub(crate) fn is_in_flight(&self, dir: &Dentry, hash: u64) -> bool {
        let Some(of) = self.name_locks.as_deref() else { return false };
        of.0.lock().names.get(&(address(dir), hash)).is_some_and(|name| name.is_in_flight)
    }
}
