//! **The store-free walk of Linux 2.6.38** (Nick Piggin, 2010 and 2011, as rcu-walk): a walk that writes nothing shared but
//! at its end.
//!
//! The walk reads each entry between two samples of the entry's sequence. It samples the child's
//! sequence before it uses the fields of the child, and checks the directory's sequence after it
//! found the child. It counts only the last entry, under the entry's lock, if the sequence shows
//! that the entry has not changed since it was found.
//!
//! Trouble is an entry that changed, or a name that was not found: a move may have misled the
//! search, so a miss is never final. On trouble, the walk counts the entry that it has reached and
//! continues from there, counting each step. It begins again only if that entry has changed. `..`,
//! and the directories of names that change, are reached without a store; the first patches could
//! not do that ([`store_free_2009`](crate::store_free_2009)). Root and working directory are
//! sampled by a sequence. The walk holds the CPU's own mount lock, until Linux 3.13.
//!
//! The cost that remains: the lock and the count of the last component, if all share it;
//! `rename_lock` in reverse paths.

use crate::era::{Era, Error, Result};
use crate::options::Options;
use crate::path::{Component, Components, Route};
use crate::tree::Tree;
use crate::tree::count::{FineCount, LockedCount};
use crate::tree::dentry::{Dentry, Late, UNHASHED};
use crate::tree::fine_locks::{Fine, FineLocks, Sequence, Walk};
use crate::tree::fs_struct::FsStruct;
use crate::tree::grace::{AtOnce, Grace};
use crate::tree::mount::{Mounts, PerCpuMounts};
use crate::tree::mutex::{QueuedSpinning, Spinning};
use crate::tree::name::Name;
use crate::tree::operations::make;
use crate::tree::renames::{Renames, SeqSpin};
use crate::tree::walk::{counted_walk, go_on};
use core::marker::PhantomData;
use locks::TicketLock;
use sync::rcu::ReadGuard;
use sync::{AlwaysQueue, RawLock};

/// Continues on trouble: with a count and a way to exclude renames, the entries' and the buckets'
/// locks and a directory's mutex of some year, when files are freed, and whether a reverse path
/// takes the lock of each entry.
pub(crate) struct GoOn<C, N, M = Spinning, R = TicketLock, G = AtOnce, const LOCKS_EACH: bool = true>(
    PhantomData<(C, N, M, R, G)>,
);

/// Linux 2.6.38, with locks of some kind.
pub(crate) type Linux2638<R = TicketLock, M = Spinning> = GoOn<LockedCount<R>, SeqSpin<R>, M, R>;

/// As [`Linux2638`], with a queue in front of the directory's mutex: Linux 3.10.
pub(crate) type Linux310 = Linux2638<TicketLock, QueuedSpinning>;

impl<C, N, M, R, G, const LOCKS_EACH: bool> Fine for GoOn<C, N, M, R, G, LOCKS_EACH>
where
    C: FineCount + 'static,
    N: Renames,
    M: RawLock + 'static,
    R: RawLock + 'static,
    G: Grace,
{
    type Dentry = Late<C>;
    type Spin = R;
    type Mutex = M;
    type Renames = N;
    type Readers = AlwaysQueue;
    type Mounts = PerCpuMounts;
    type Grace = G;
    const LOCKS_EACH: bool = LOCKS_EACH;
    const LISTS_MOUNTS: bool = false;
    const HOLDS_MOUNTS: bool = true;
    const WALK: Walk<Self> = walk_and_go_on;
}

/// Returns an era with this walk, a lock of the caller's in entries and chains, and one for a
/// directory's mutex: for measurements of locks that are not in the catalogue.
#[must_use]
pub fn walk_of_2_6_38<R: RawLock + 'static, M: RawLock + 'static>(options: &Options) -> Box<dyn Era> {
    make::<FineLocks<Linux2638<R, M>>>(options)
}

/// Walks `route` without stores. A walk that gets stuck continues there and counts each step.
pub(crate) fn walk_and_go_on<F: Fine>(tree: &Tree<FineLocks<F>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
    let guard = tree.domain.read();
    let (at, left) = {
        let _mounts = F::HOLDS_MOUNTS.then(|| tree.mounts.still());
        match store_free(tree, fs, route, &guard)? {
            Ended::At(entry) => return Ok(entry),
            Ended::Stuck { at, left } => (take(tree, at), left),
        }
    };
    drop(guard);
    match at {
        Some(at) => go_on(tree, at, left, route.to_directory),
        None => counted_walk(tree, fs, route),
    }
}

/// Walks `route` without stores. A walk that gets stuck begins again from the beginning and counts
/// each step.
pub(crate) fn walk_and_restart<F: Fine>(tree: &Tree<FineLocks<F>>, fs: &FsStruct, route: &Route<'_>) -> Result<u32> {
    let ended = {
        let guard = tree.domain.read();
        let _mounts = F::HOLDS_MOUNTS.then(|| tree.mounts.still());
        store_free(tree, fs, route, &guard)?
    };
    match ended {
        Ended::At(entry) => Ok(entry),
        Ended::Stuck { .. } => counted_walk(tree, fs, route),
    }
}

/// How a store-free walk ended.
enum Ended<'p> {
    /// The walk reached its end: this entry, which is counted, as is the mount.
    At(u32),
    /// The walk got stuck: at an entry that has changed, or before the components `left`.
    Stuck { at: Found, left: Components<'p> },
}

/// An entry that a walk found, and a sequence: the entry's own at that time, or the sequence that
/// was sampled before the walk.
#[derive(Clone, Copy)]
struct Found {
    entry: u32,
    seq: u32,
}

/// Walks `route` without stores, to the end or until the walk gets stuck. An error is certain: the
/// error follows from the entries that were there, and an entry does not become another in a read
/// section.
fn store_free<'p, F: Fine>(
    tree: &Tree<FineLocks<F>>,
    fs: &FsStruct,
    route: &Route<'p>,
    guard: &ReadGuard<'_>,
) -> Result<Ended<'p>> {
    let mut at = begin(tree, fs, route, guard);
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

/// Returns the entry at which the walk begins, with the first sample.
fn begin<F: Fine>(tree: &Tree<FineLocks<F>>, fs: &FsStruct, route: &Route<'_>, guard: &ReadGuard<'_>) -> Found {
    let around = match F::SEQUENCE {
        Sequence::OfEntry => 0,
        Sequence::OfRenames => tree.scheme.renames.begin(),
    };
    let sample_of = |entry: u32| sample(tree, entry, around);
    if F::STARTS_LOCKED {
        let _fs = fs.read();
        let entry = fs.start(route.is_absolute);
        return Found { entry, seq: sample_of(entry) };
    }
    let (entry, seq) = fs.start_rcu(route.is_absolute, guard, sample_of);
    Found { entry, seq }
}

/// Returns the sequence of an entry that a walk comes to; `around` is the sequence that the walk
/// began with.
fn sample<F: Fine>(tree: &Tree<FineLocks<F>>, entry: u32, around: u32) -> u32 {
    match F::SEQUENCE {
        Sequence::OfEntry => tree.entry(entry).state().seq.begin(),
        Sequence::OfRenames => around,
    }
}

fn changed<F: Fine>(tree: &Tree<FineLocks<F>>, found: Found) -> bool {
    match F::SEQUENCE {
        Sequence::OfEntry => tree.entry(found.entry).state().seq.retry(found.seq),
        Sequence::OfRenames => tree.scheme.renames.retry(found.seq),
    }
}

/// Returns a reference to the entry that was found, and to the mount, if it is still that entry.
fn take<F: Fine>(tree: &Tree<FineLocks<F>>, found: Found) -> Option<u32> {
    let _caller = prim::lockstat::caller("path_get");
    // A sequence around the walk does not show that the name was removed.
    let is_there = || F::SEQUENCE == Sequence::OfEntry || !tree.entry(found.entry).has(UNHASHED);
    let is_taken = FineLocks::legitimize(tree, found.entry, || is_there() && !changed(tree, found));
    is_taken.then(|| {
        tree.mounts.get();
        found.entry
    })
}

/// Takes one step. Returns `None` if the walk gets stuck.
fn step_rcu<F: Fine>(
    tree: &Tree<FineLocks<F>>,
    at: Found,
    component: Component<'_>,
    guard: &ReadGuard<'_>,
) -> Result<Option<Found>> {
    let next = match tree.look(at.entry, component)? {
        Some(name) => search_rcu(tree, at, &name, guard),
        None if F::WALKS_UP => {
            let entry = tree.entry(at.entry).parent();
            Some(Found { entry, seq: sample(tree, entry, at.seq) })
        }
        None => None,
    };
    // The child was there while the directory had not changed, or the parent was its parent.
    Ok(next.filter(|_| !changed(tree, at)))
}

/// Returns the entry of this name, as it was at the sequence that comes with it.
fn search_rcu<F: Fine>(tree: &Tree<FineLocks<F>>, at: Found, name: &Name<'_>, _guard: &ReadGuard<'_>) -> Option<Found> {
    tree.chain(at.entry, name.hash).find_map(|entry| {
        if !tree.resembles(entry, at.entry, name) {
            return None;
        }
        let found = Found { entry, seq: sample(tree, entry, at.seq) };
        let is_it =
            tree.resembles(entry, at.entry, name) && !tree.entry(entry).has(UNHASHED) && tree.is_named(entry, name);
        (is_it && !changed(tree, found)).then_some(found)
    })
}
