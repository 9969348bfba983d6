//! **The store-free walk** (Nick Piggin, 2009; Linux 2.6.38 as rcu-walk): a walk that writes nothing but at its end.
//!
//! The walk reads each entry between two samples of its sequence: it samples the child's before it trusts what it has read
//! of the child, and checks the directory's after it found the child there. Only the last entry is counted, under its lock, if
//! its sequence shows that it is still what was found.
//!
//! Two answers to trouble (an entry that changed, or a name that is not there: the search may have been carried off by a
//! move, so a miss is never believed):
//!
//! * [`Restart`], the first patches of 2009: the whole walk again, counting each step. The entry still has the layout of
//!   before, with the count and the lock on the line that walks read.
//! * [`GoOn`], Linux 2.6.38: what was reached is counted, and the walk goes on from there, counting each step; from the
//!   beginning only if that has changed too. With the new layout.
//!
//! What hurts now: the lock and the count of the last component, if it is everybody's; `rename_lock` in reverse paths.

use crate::era::{Error, Result};
use crate::path::{Component, Components, Route};
use crate::tree::Tree;
use crate::tree::count::LockedCount;
use crate::tree::dentry::{Dentry, Early, Late, UNHASHED};
use crate::tree::fine_locks::{Fine, FineLocks};
use crate::tree::fs_struct::FsStruct;
use crate::tree::mount::Mounts;
use crate::tree::name::Name;
use crate::tree::renames::SeqSpin;
use crate::tree::walk::{counted_walk, go_on};
use core::marker::PhantomData;
use locks::TicketLock;
use sync::rcu::ReadGuard;
use sync::{AlwaysQueue, RawLock};

/// Starts again on trouble.
pub(crate) struct Restart;

/// Goes on on trouble; with the entries' and the buckets' locks of some kind.
pub(crate) struct GoOn<R = TicketLock>(PhantomData<R>);

impl Fine for Restart {
    type Dentry = Early<LockedCount<TicketLock>>;
    type Spin = TicketLock;
    type Renames = SeqSpin<TicketLock>;
    type Readers = AlwaysQueue;
    const LOCKS_EACH: bool = true;
    const LISTS_MOUNTS: bool = true;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        let guard = tree.domain.read();
        let ended = store_free(tree, fs, route, &guard)?;
        drop(guard);
        match ended {
            Ended::At(entry) => Ok(entry),
            Ended::Stuck { .. } => counted_walk(tree, fs, route),
        }
    }
}

impl<R: RawLock + 'static> Fine for GoOn<R> {
    type Dentry = Late<LockedCount<R>>;
    type Spin = R;
    type Renames = SeqSpin<R>;
    type Readers = AlwaysQueue;
    const LOCKS_EACH: bool = true;
    const LISTS_MOUNTS: bool = false;

    fn walk(tree: &Tree<FineLocks<Self>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
        walk_and_go_on(tree, fs, route)
    }
}

/// The walk that goes on where it got stuck.
pub(crate) fn walk_and_go_on<F: Fine>(tree: &Tree<FineLocks<F>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
    let guard = tree.domain.read();
    let (at, left) = match store_free(tree, fs, route, &guard)? {
        Ended::At(entry) => return Ok(entry),
        Ended::Stuck { at, left } => (take(tree, at), left),
    };
    drop(guard);
    match at {
        Some(at) => go_on(tree, at, left, route.to_directory),
        None => counted_walk(tree, fs, route),
    }
}

/// How a store-free walk ended.
enum Ended<'p> {
    /// At its end, counted, and with it the mount.
    At(u32),
    /// At something that has changed, or before the components that are left.
    Stuck { at: Found, left: Components<'p> },
}

/// An entry and the sequence that it had when it was found.
#[derive(Clone, Copy)]
struct Found {
    entry: u32,
    seq: u32,
}

/// An error is certain: it follows from what was there, and an entry does not become another in a read section.
fn store_free<'p, F: Fine>(
    tree: &Tree<FineLocks<F>>,
    fs: &FsStruct,
    route: &Route<'p>,
    guard: &ReadGuard<'_>,
) -> Result<Ended<'p>> {
    let sample = |entry: u32| tree.entry(entry).state().seq.begin();
    let (entry, seq) = fs.start_rcu(route.is_absolute, guard, sample);
    let mut at = Found { entry, seq };
    let mut left = route.components;
    loop {
        let before = left;
        let Some(component) = left.next() else { break };
        match step_rcu(tree, at, component, guard)? {
            Some(next) => at = next,
            None => return Ok(Ended::Stuck { at, left: before }),
        }
    }
    if route.to_directory && !tree.inode(at.entry).is_directory() {
        return Err(Error::NotDirectory);
    }
    Ok(take(tree, at).map_or(Ended::Stuck { at, left }, Ended::At))
}

/// A reference to what was found, and to the mount, if it is still that.
fn take<F: Fine>(tree: &Tree<FineLocks<F>>, found: Found) -> Option<u32> {
    let seq = &tree.entry(found.entry).state().seq;
    let is_taken = FineLocks::legitimize(tree, found.entry, || !seq.retry(found.seq));
    is_taken.then(|| {
        tree.mounts.get();
        found.entry
    })
}

fn changed_rcu<F: Fine>(tree: &Tree<FineLocks<F>>, found: Found, _guard: &ReadGuard<'_>) -> bool {
    tree.entry(found.entry).state().seq.retry(found.seq)
}

/// One step. `None`: trouble.
fn step_rcu<F: Fine>(
    tree: &Tree<FineLocks<F>>,
    at: Found,
    component: Component<'_>,
    guard: &ReadGuard<'_>,
) -> Result<Option<Found>> {
    let next = match tree.look(at.entry, component)? {
        Some(name) => search_rcu(tree, at.entry, &name, guard),
        None => {
            let entry = tree.entry(at.entry).parent();
            Some(Found { entry, seq: tree.entry(entry).state().seq.begin() })
        }
    };
    // The child was there while the directory was what it was, or the parent was its parent.
    Ok(next.filter(|_| !changed_rcu(tree, at, guard)))
}

/// The entry of this name, as it was at the sequence that comes with it.
fn search_rcu<F: Fine>(tree: &Tree<FineLocks<F>>, dir: u32, name: &Name<'_>, _guard: &ReadGuard<'_>) -> Option<Found> {
    tree.chain(dir, name.hash).find_map(|entry| {
        if !tree.resembles(entry, dir, name) {
            return None;
        }
        let state = tree.entry(entry).state();
        let seq = state.seq.begin();
        let is_it = tree.resembles(entry, dir, name) && !tree.entry(entry).has(UNHASHED) && tree.is_named(entry, name);
        (is_it && !state.seq.retry(seq)).then_some(Found { entry, seq })
    })
}
