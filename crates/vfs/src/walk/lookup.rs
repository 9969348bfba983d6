//! Misses: one request to the file system for all threads that need the same name.
//!
//! # What it is
//! One thread requests a name that is not cached, or expired, from the file system (a *flight*). Other
//! threads that need the same name wait for its answer; requests for different names of one directory run
//! side by side. A thread that began after the directory changed, or was invalidated, does not wait for an
//! answer from before: it begins another flight. No lock of the cache is held during the request. The answer
//! is put into the cache under the directory's lock, or that of the name's shard
//! ([`sharded`](crate::cache::sharded)), unless the directory changed since the request: then the
//! request is repeated. (What a lookup adds to the cache is not a change of the directory.) [`insertion`] adds the answer; a lookup with
//! a deadline may be made by another thread ([`offload`]).
//!
//! Operations that change a directory send the request under its lock, since no other thread may create the
//! name meanwhile; in a remote file system ([`OwnNames::remote`](crate::OwnNames::remote)) without a lock, since they have locked
//! the name ([`serialized`]).
//!
//! # States of a requested name
//! ```text
//!            first request                     answer
//!  unknown ---------------> in lookup (flight) -------> positive, negative: all waiting threads look again
//!     ^                          |  |
//!     +---- directory changed ---+  +---- error: all waiting threads get it; deadline: that thread gets ETIMEDOUT,
//!                                         the flight continues
//! ```
//!
//! # How it is locked
//! The locks of flights ([`sync::SingleFlight`]) are never held across a request. The directory's lock, or that of
//! the name's shard, is taken to use the answer. A search that finds no entry takes no lock before the request: an operation
//! that changes the directory counts a change after its call of the file system and under the lock, so an answer that it
//! overtook is discarded. Threads that miss different names of a sharded directory write no common line.
//!
//! # Where it comes from
//! Linux's `d_alloc_parallel`, `d_revalidate`, `d_invalidate`; Go's `singleflight` for the hand-over.

mod insertion;
mod offload;
mod serialized;

pub(super) use insertion::{insert, insert_absent};
pub(crate) use serialized::find_name_locked;

use crate::base::errno::Errno;
use crate::base::name::Named;
use crate::cache::flight::{LookupKey, LookupResult};
use crate::cache::reclaim::{LockedDirs, MayEvict};
use crate::cache::sharded::NameGuard;
use crate::cache::superblock::SuperBlock;
use crate::fs::{NewInode, NextNames, Request};
use crate::slots::dentry::Dentry;
use crate::slots::inode::{AttrSample, Inode};
use crate::slots::shard::Names;
use crate::slots::slot::DentryRef;
use crate::slots::versions::Moment;
use crate::walk::prime;
use crate::walk::walk_position::Here;
use prim::atomic::{Ordering::SeqCst, fence};
use sync::single_flight::{Entry, Leader, Waited, Waiter};

/// Answers that are discarded because the directory changed meanwhile, before the request is sent under the
/// directory's lock.
const MAX_TRIES: u32 = 8;

/// The state of a name in the cache.
enum Look {
    Positive(DentryRef),
    Absent,
    Unknown(Unknown),
}

/// A name that must be requested.
struct Unknown {
    /// The expired entry, if any.
    stale: Option<DentryRef>,
    /// The directory's counter of changes.
    moment: Moment,
}

/// The entry `name` of `dir`; takes a count on the entry. Calls the file system if needed. `next`: the path behind the name.
///
/// # Errors
/// `ENOENT` if the directory was removed; `ETIMEDOUT`; errors of the file system, except for `ENOENT` of the
/// name, which is `None`.
pub(crate) fn find_held(dir: &Here, name: &[u8], next: &[u8], request: &Request) -> Result<Option<DentryRef>, Errno> {
    find_as(dir, name, next, request, false)
}

fn find_as(
    dir: &Here,
    name: &[u8],
    next: &[u8],
    request: &Request,
    is_name_locked: bool,
) -> Result<Option<DentryRef>, Errno> {
    let sb = dir.sb();
    let named = sb.named(name);
    let mut is_fresh = false;
    let mut tries = 0;
    loop {
        let unknown = match look(sb, dir.dentry(), named, is_fresh)? {
            Look::Positive(entry) => return Ok(Some(entry)),
            Look::Absent => return Ok(None),
            Look::Unknown(unknown) => unknown,
        };
        sb.fallbacks.this().count_asked();
        let (answer, entry) = single_flight(sb, dir, named, next, unknown, request);
        if entry.is_some() {
            return Ok(entry);
        }
        match answer {
            // The fresh answer is used even if it is valid for no time at all.
            LookupResult::There => is_fresh = true,
            // Changes and invalidations may overtake each answer. Under the lock one answer is used all the
            // same.
            LookupResult::Again if tries == MAX_TRIES => {
                if sb.name_locks.is_some() {
                    return serialized::find_serialized(sb, dir.dentry(), named, request, is_name_locked);
                }
                let (mut held, names) = lock_name(sb, dir.dentry(), named.hash)?;
                let at = NameAt { dir: dir.dentry(), names: names.as_ref(), named };
                let found = find_name(sb, held.may_evict(), || request.to_owned(), at)?;
                return Ok(found.and_then(|entry| sb.pin(entry)));
            }
            LookupResult::Again => (is_fresh, tries) = (false, tries + 1),
            LookupResult::Absent => return Ok(None),
            LookupResult::Failed(errno) => return Err(errno),
        }
    }
}

/// A name in a directory, which is locked, or `names` of it.
#[derive(Clone, Copy)]
pub(super) struct NameAt<'d, 'n> {
    pub(super) dir: &'d Dentry,
    pub(super) names: Option<&'n Names<'n>>,
    pub(super) named: Named<'n>,
}

pub(super) type LookupGuard<'d> = (LockedDirs<NameGuard<'d>>, Option<Names<'d>>);

pub(super) fn lock_name<'d>(sb: &'d SuperBlock, dir: &'d Dentry, hash: u64) -> Result<LookupGuard<'d>, Errno> {
    let held = sb.lock_to_look_up(dir, hash);
    let names = held.names;
    if dir.object().is_hashed() { Ok((LockedDirs::new(held), names)) } else { Err(Errno::ENOENT) }
}

fn look(sb: &SuperBlock, dir: &Dentry, named: Named<'_>, is_fresh: bool) -> Result<Look, Errno> {
    let keeps_listing = || dir.inode().is_some_and(|inode| sb.keeps_listing_of(inode));
    let object = dir.object();
    if !is_fresh && object.is_hashed() && !object.is_complete() && !keeps_listing() {
        // Before the request: a change since then, or an eviction of the name, shows when the answer is used.
        let moment = sb.versions.moment_of(dir);
        if sb.cached(dir, named).is_none() {
            return Ok(Look::Unknown(Unknown { stale: None, moment }));
        }
    }
    let _held = lock_name(sb, dir, named.hash)?;
    let moment = sb.versions.moment_of(dir);
    Ok(match sb.cached(dir, named) {
        Some(entry) if (is_fresh || is_good(entry)) && !is_positive(entry) => Look::Absent,
        Some(entry) => match sb.pin(entry) {
            Some(pinned) if is_fresh || is_good(entry) => Look::Positive(pinned),
            stale => Look::Unknown(Unknown { stale, moment }),
        },
        None if dir.object().is_complete() => Look::Absent,
        None if keeps_listing() && sb.listings.lacks(dir, moment.version(), named.name) => Look::Absent,
        None => Look::Unknown(Unknown { stale: None, moment }),
    })
}

/// The moment since which the cache has no entry of `name` in `dir`, which is held, and cannot tell whether it exists.
pub(super) fn missing_since(sb: &SuperBlock, dir: &Dentry, named: Named<'_>) -> Option<Moment> {
    let (moment, entry) = match look(sb, dir, named, false) {
        Ok(Look::Unknown(Unknown { stale: None, moment })) => (Some(moment), None),
        Ok(Look::Unknown(Unknown { stale, .. })) => (None, stale),
        Ok(Look::Positive(entry)) => (None, Some(entry)),
        Ok(Look::Absent) | Err(_) => (None, None),
    };
    entry.into_iter().for_each(|entry| sb.unpin(entry));
    moment
}

pub(super) type LookupLeader<'s> = Leader<'s, LookupKey, LookupResult>;

/// The answer to a lookup, and the entry if this thread added it.
type Found = (LookupResult, Option<DentryRef>);

#[cold]
fn single_flight(
    sb: &SuperBlock,
    dir: &Here,
    named: Named<'_>,
    next: &[u8],
    unknown: Unknown,
    request: &Request,
) -> Found {
    let version = unknown.moment.version();
    let at = core::ptr::from_ref(dir.dentry()) as usize;
    let is = |key: &LookupKey| key.dir == at && key.version == version && *key.name == *named.name;
    let key = || LookupKey { dir: at, version, name: named.name.into() };
    // Where threads meet in a directory, lookups of different names are to have no line in common.
    let region = if sb.is_sharded_for_lookups(dir.dentry()) { named.hash } else { at as u64 >> 6 };
    let entered = sb.flights.enter((region, named.hash), is, key);
    let entered = match entered {
        Entry::Lead(leader) if request.deadline.is_none() => {
            let found = fetch(sb, dir.dentry(), named, next, unknown, request);
            leader.finish(found.0);
            return found;
        }
        entered => entered,
    };
    unknown.stale.into_iter().for_each(|stale| sb.unpin(stale));
    let answer = match entered {
        Entry::Lead(leader) => offload::fetch(leader, dir, named, next, request),
        Entry::Wait(waiter) => match wait(&waiter, request) {
            // The other caller's deadline, or its cancellation.
            LookupResult::Failed(Errno::ETIMEDOUT | Errno::EINTR) if request.check().is_ok() => LookupResult::Again,
            answer => answer,
        },
    };
    (answer, None)
}

/// How long a caller that can be cancelled waits for another's lookup before it looks whether it was.
const LOOKS_NS: i64 = 10_000_000;

/// Waits for another thread's lookup, as long as the caller of `request` waits.
pub(super) fn wait(waiter: &Waiter<LookupKey, LookupResult>, request: &Request) -> LookupResult {
    if request.cancel().is_none() {
        return result_of(waiter.wait(request.deadline));
    }
    loop {
        let soon = prim::clock::monotonic_ns() + LOOKS_NS;
        let waited = waiter.wait(Some(request.deadline.map_or(soon, |deadline| deadline.min(soon))));
        match (waited, request.check()) {
            (Waited::TimedOut, Ok(())) => {}
            (Waited::TimedOut, Err(errno)) => return LookupResult::Failed(errno),
            (waited, _) => return result_of(waited),
        }
    }
}

fn result_of(waited: Waited<LookupResult>) -> LookupResult {
    match waited {
        Waited::Done(answer) => answer,
        Waited::Abandoned => LookupResult::Again,
        Waited::TimedOut => LookupResult::Failed(Errno::ETIMEDOUT),
    }
}

/// Looks again, and requests `name` in `dir`, which is held, if it is unknown.
pub(super) fn fetch_anew(
    sb: &SuperBlock,
    dir: &Dentry,
    named: Named<'_>,
    next: &[u8],
    request: &Request,
) -> LookupResult {
    let (answer, entry) = match look(sb, dir, named, false) {
        Err(errno) => (LookupResult::Failed(errno), None),
        Ok(Look::Absent) => (LookupResult::Absent, None),
        Ok(Look::Positive(entry)) => (LookupResult::There, Some(entry)),
        Ok(Look::Unknown(unknown)) => fetch(sb, dir, named, next, unknown, request),
    };
    entry.into_iter().for_each(|entry| sb.unpin(entry));
    answer
}

/// Requests `name` in `dir`, which is held, from the file system, and puts the answer into the cache.
fn fetch(sb: &SuperBlock, dir: &Dentry, named: Named<'_>, next: &[u8], unknown: Unknown, request: &Request) -> Found {
    let Unknown { stale, moment } = unknown;
    let expired = stale.as_ref().map(|stale| stale.get(sb.slots()));
    let found = if is_settled(sb, dir, named, expired) {
        // By an earlier flight.
        (LookupResult::There, None)
    } else {
        request_and_settle(sb, dir, named, NextNames::of(next), (expired, moment), request)
    };
    stale.into_iter().for_each(|stale| sb.unpin(stale));
    found
}

/// Whether the cache has another entry of a name than the `expired` one, or none, that a thread found, or that is valid again.
/// Without a lock that may change.
fn is_settled(sb: &SuperBlock, dir: &Dentry, named: Named<'_>, expired: Option<&Dentry>) -> bool {
    let now = sb.cached(dir, named);
    !is_same(now, expired) || now.is_some_and(is_good)
}

fn request_and_settle(
    sb: &SuperBlock,
    dir: &Dentry,
    named: Named<'_>,
    mut next: NextNames<'_>,
    (expired, moment): (Option<&Dentry>, Moment),
    request: &Request,
) -> Found {
    let invalidations = sb.invalidations();
    let reply = fetch_name(sb, dir, named.name, expired, (request, &mut next));
    let (found, began) = match lock_name(sb, dir, named.hash) {
        Err(errno) => ((LookupResult::Failed(errno), None), None),
        Ok(_held) if sb.versions.of(dir) != moment.version() => ((LookupResult::Again, None), None),
        // Another thread has asked, too, and has used its answer.
        Ok(_held) if !is_same(sb.cached(dir, named), expired) => ((LookupResult::There, None), None),
        Ok((mut held, names)) => {
            let at = NameAt { dir, names: names.as_ref(), named };
            // If the name was not in the cache meanwhile, what is below it did not change.
            let was_absent = sb.versions.moment_of(dir) == moment;
            let (answer, began) = settle(sb, held.may_evict(), at, reply);
            let entry = sb.cached(dir, named);
            expire_if_invalidated(sb, invalidations, entry);
            // This thread uses the fresh answer even if it is valid for no time at all.
            let is_there = matches!(answer, LookupResult::There);
            let entry = entry.filter(|entry| is_there && is_positive(entry)).and_then(|entry| sb.pin(entry));
            ((answer, entry), began.filter(|_| was_absent))
        }
    };
    if let (Some(entry), Some(began)) = (&found.1, began) {
        prime::learn_next(sb, entry, began, invalidations, &next);
    }
    found
}

/// The file system's answer about a name.
struct Answer {
    found: Result<NewInode, Errno>,
    /// What an expired entry had before the request.
    before: Option<AttrSample>,
}

/// The file system's answer about a name: by `revalidate` if it has an expired entry, else by `lookup`.
fn fetch_name(
    sb: &SuperBlock,
    dir: &Dentry,
    name: &[u8],
    stale: Option<&Dentry>,
    (request, next): (&Request, &mut NextNames<'_>),
) -> Answer {
    let old = stale.and_then(Dentry::inode);
    let before = old.map(Inode::before_request);
    let Some(inode) = dir.inode() else { return Answer { found: Err(Errno::ENOENT), before } };
    let found = match old.map(|old| sb.fs().revalidate(request, inode, name, old)) {
        None | Some(Err(Errno::ENOENT | Errno::ESTALE)) => sb.fs().lookup(request, inode, name, next),
        Some(found) => found,
    };
    Answer { found, before }
}

/// Puts the file system's answer about a locked name into the cache. Returns the moment at which a new directory began, too.
fn settle(
    sb: &SuperBlock,
    may_evict: &mut MayEvict,
    at: NameAt<'_, '_>,
    answer: Answer,
) -> (LookupResult, Option<Moment>) {
    let NameAt { dir, names, named } = at;
    let Answer { found, before } = answer;
    let new = match found {
        Ok(new) => Some(new),
        Err(Errno::ENOENT) => None,
        Err(errno) => return (LookupResult::Failed(errno), None),
    };
    if let Some(old) = sb.cached(dir, named) {
        let stays = match (&new, old.inode()) {
            (Some(new), Some(inode)) => inode.node() == new.node && inode.attr().kind() == new.attr.kind(),
            _ => false,
        };
        if let Some(new) = new.as_ref().filter(|_| stays) {
            sb.refresh(old, new, before.as_ref());
            return (LookupResult::There, None);
        }
        // The thread that changes a name removes its entry.
        if (is_positive(old) && sb.is_in_flight(dir, named.hash)) || !sb.prune(names, dir, old, named.hash) {
            return (LookupResult::There, None);
        }
    }
    match new {
        Some(new) => match insert(sb, may_evict, at, &new) {
            Ok(began) => (LookupResult::There, began),
            Err(errno) => (LookupResult::Failed(errno), None),
        },
        None => {
            insert_absent(sb, may_evict, at);
            (LookupResult::Absent, None)
        }
    }
}

/// The positive entry `name` of the locked directory `dir`, from the cache or the file system. It stays for as long as it
/// borrows `may_evict`.
///
/// # Errors
/// Errors of the file system, except for `ENOENT`, which is `None`.
pub(crate) fn find_locked<'r>(
    sb: &'r SuperBlock,
    may_evict: &'r mut MayEvict,
    request: impl FnOnce() -> Request<'static>,
    dir: &'r Dentry,
    named: Named<'_>,
) -> Result<Option<&'r Dentry>, Errno> {
    find_name(sb, may_evict, request, NameAt { dir, names: None, named })
}

/// The same of a locked name.
fn find_name<'r>(
    sb: &'r SuperBlock,
    may_evict: &'r mut MayEvict,
    request: impl FnOnce() -> Request<'static>,
    at: NameAt<'r, '_>,
) -> Result<Option<&'r Dentry>, Errno> {
    let NameAt { dir, named, .. } = at;
    let cached = sb.cached(dir, named);
    match cached {
        Some(entry) if is_good(entry) => return Ok(is_positive(entry).then_some(entry)),
        None if dir.object().is_complete() => return Ok(None),
        _ => {}
    }
    sb.fallbacks.this().count_asked();
    let invalidations = sb.invalidations();
    let reply = fetch_name(sb, dir, named.name, cached, (&request(), &mut NextNames::none()));
    if let (LookupResult::Failed(errno), _) = settle(sb, may_evict, at, reply) {
        return Err(errno);
    }
    let entry = sb.cached(dir, named);
    if !is_same(entry, cached) {
        // This answer is newer than those of lookups that wait for the directory.
        sb.note_change(dir);
    }
    expire_if_invalidated(sb, invalidations, entry);
    Ok(entry.filter(|entry| is_positive(entry)))
}

/// The cached directory `name` of the locked directory `dir`, valid or not. If [`find_locked`] finds it expired, and the file system
/// has another one by then, it is removed with everything below it.
pub(crate) fn cached_dir<'r>(
    sb: &'r SuperBlock,
    _may_evict: &'r MayEvict,
    dir: &'r Dentry,
    named: Named<'_>,
) -> Option<&'r Dentry> {
    sb.cached(dir, named).filter(|entry| is_positive(entry) && entry.object().is_dir())
}

/// Marks an entry stale if the file system invalidated anything since `invalidations` was read: its answer
/// may be from before.
pub(crate) fn expire_if_invalidated(sb: &SuperBlock, invalidations: u64, entry: Option<&Dentry>) {
    if is_invalidated(sb, invalidations) {
        entry.into_iter().for_each(|entry| entry.expire(&sb.paths));
    }
}

/// Whether the file system invalidated anything since `invalidations` was read, from before its answer that was just stored.
pub(crate) fn is_invalidated(sb: &SuperBlock, invalidations: u64) -> bool {
    // ORDERING: the fence pairs with that of `SuperBlock::begin_invalidation`: either this thread sees the
    // invalidation, or the invalidating thread sees what was just stored, and expires it.
    fence(SeqCst);
    sb.invalidations() != invalidations
}

fn is_same(one: Option<&Dentry>, other: Option<&Dentry>) -> bool {
    one.map(core::ptr::from_ref) == other.map(core::ptr::from_ref)
}

/// Whether the entry is valid.
pub(super) fn is_good(entry: &Dentry) -> bool {
    !entry.object().has_expiry() || !entry.is_expired()
}

fn is_positive(entry: &Dentry) -> bool {
    !entry.object().is_negative()
}
