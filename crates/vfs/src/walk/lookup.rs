//! Misses: one request to the file system for all threads that need the same name.
//!
//! # What it is
//! 1. One thread requests a name that is not cached, or expired, from the file system (a *flight*).
//!    Other threads that need the same name wait for its answer (Linux's `d_alloc_parallel`; Go's
//!    `singleflight` for the hand-over). Requests for different names of one directory run side by
//!    side.
//! 2. A thread that began after the directory changed, or was invalidated, does not wait for an
//!    older answer. It begins another flight.
//! 3. The thread puts the answer into the cache under the directory's lock, or the lock of the
//!    name's shard ([`sharded`](crate::cache::sharded)). If the directory changed since the
//!    request, the request is repeated. (An entry that a lookup adds to the cache is not a change
//!    of the directory.)
//! 4. An expired entry is requested by `revalidate` (Linux's `d_revalidate`). If the file system
//!    has another object, the entry is removed with everything below it (Linux's `d_invalidate`).
//! 5. An operation that changes a directory sends the request under the directory's lock, so that
//!    no other thread creates the name meanwhile. In a remote file system
//!    ([`OwnNames::remote`](crate::OwnNames::remote)) it has locked the name instead
//!    ([`serialized`]).
//!
//! [`insertion`] adds the answer. Another thread may make a lookup with a deadline ([`offload`]).
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
//! 1. No lock of the cache is held during the request of a flight, not even the flight's own lock
//!    ([`sync::SingleFlight`]).
//! 2. A search that finds no entry takes no lock before the request. An operation that changes the
//!    directory counts a change after its call of the file system and under the lock, so an answer
//!    that it overtook is discarded.
//! 3. The lock of the directory, or of the name's shard, is taken to use the answer. Threads that
//!    miss different names of a sharded directory write no common line.

mod insertion;
mod offload;
mod serialized;

pub(crate) use serialized::find_name_locked;

use crate::base::errno::Errno;
use crate::base::name::{NAME_MAX, Named};
use crate::cache::flight::{LookupKey, LookupResult};
use crate::cache::reclaim::{LockedDirs, MayEvict};
use crate::cache::sharded::NameGuard;
use crate::cache::superblock::SuperBlock;
use crate::fs::{NewInode, NextNames, Request};
use crate::mount::context::Context;
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

/// A lookup that is under way: a name, and its directory, which the caller holds or has locked.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'a, 'n> {
    pub(super) sb: &'a SuperBlock,
    pub(super) dir: &'a Dentry,
    pub(super) named: Named<'n>,
}

/// The lock of the name, and where a sharded directory keeps it.
pub(super) type LookupGuard<'d> = (LockedDirs<NameGuard<'d>>, Option<Names<'d>>);

/// The file system's answer about a name.
struct Answer {
    found: Result<NewInode, Errno>,
    /// The attributes of an expired entry before the request.
    before: Option<AttrSample>,
    /// The number of invalidations before the request.
    invalidations: u64,
}

/// The state of a name in the cache after an answer.
struct Settled<'a> {
    result: LookupResult,
    entry: Option<&'a Dentry>,
    /// The moment at which a new directory began.
    began: Option<Moment>,
}

/// Returns the entry `name` of `dir`, and takes a count on the entry. Calls the file system if
/// needed. `next`: the path behind the name.
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
    let lookup = Lookup { sb, dir: dir.dentry(), named: sb.named(name) };
    let mut is_fresh = false;
    let mut tries = 0;
    loop {
        let unknown = match lookup.look(is_fresh)? {
            Look::Positive(entry) => return Ok(Some(entry)),
            Look::Absent => return Ok(None),
            Look::Unknown(unknown) => unknown,
        };
        sb.fallbacks.this().count_asked();
        let (answer, entry) = lookup.single_flight(dir, next, unknown, request);
        if entry.is_some() {
            return Ok(entry);
        }
        match answer {
            // The fresh answer is used even if it is valid for no time at all.
            LookupResult::There => is_fresh = true,
            // Changes and invalidations may overtake each answer. Under the lock one answer is used all the
            // same.
            LookupResult::Again if tries == MAX_TRIES => return lookup.find_serialized(request, is_name_locked),
            LookupResult::Again => (is_fresh, tries) = (false, tries + 1),
            LookupResult::Absent => return Ok(None),
            LookupResult::Failed(errno) => return Err(errno),
        }
    }
}

/// Returns the moment since which the cache has no entry of `name` in `dir`, which is held, and
/// cannot tell whether the name exists.
pub(super) fn missing_since(sb: &SuperBlock, dir: &Dentry, named: Named<'_>) -> Option<Moment> {
    let (moment, entry) = match (Lookup { sb, dir, named }).look(false) {
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

impl<'a> Lookup<'a, '_> {
    /// Locks the name: `ENOENT` if the directory was removed.
    pub(super) fn lock(self) -> Result<LookupGuard<'a>, Errno> {
        let held = self.sb.lock_to_look_up(self.dir, self.named.hash);
        let names = held.names;
        if self.dir.object().is_hashed() { Ok((LockedDirs::new(held), names)) } else { Err(Errno::ENOENT) }
    }

    pub(super) fn cached(self) -> Option<&'a Dentry> {
        self.sb.cached(self.dir, self.named)
    }

    fn look(self, is_fresh: bool) -> Result<Look, Errno> {
        let Self { sb, dir, named } = self;
        let keeps_listing = || dir.inode().is_some_and(|inode| sb.keeps_listing_of(inode));
        let object = dir.object();
        if !is_fresh && object.is_hashed() && !object.is_complete() && !keeps_listing() {
            // Before the request: a later change, or an eviction of the name, shows when the answer
            // is used.
            let moment = sb.versions.moment_of(dir);
            if self.cached().is_none() {
                return Ok(Look::Unknown(Unknown { stale: None, moment }));
            }
        }
        let _held = self.lock()?;
        let moment = sb.versions.moment_of(dir);
        Ok(match self.cached() {
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

    #[cold]
    fn single_flight(self, here: &Here, next: &[u8], unknown: Unknown, request: &Request) -> Found {
        let Self { sb, dir, named } = self;
        let version = unknown.moment.version();
        let at = core::ptr::from_ref(dir) as usize;
        let is = |key: &LookupKey| key.dir == at && key.version == version && *key.name == *named.name;
        let key = || LookupKey { dir: at, version, name: named.name.into() };
        // Where threads meet in a directory, lookups of different names must have no line in
        // common.
        let region = if sb.is_sharded_for_lookups(dir) { named.hash } else { at as u64 >> 6 };
        let entered = sb.flights().enter((region, named.hash), is, key);
        let entered = match entered {
            Entry::Lead(leader) if request.deadline.is_none() => {
                let found = self.fetch(next, unknown, request);
                leader.finish(found.0);
                return found;
            }
            entered => entered,
        };
        unknown.stale.into_iter().for_each(|stale| sb.unpin(stale));
        let answer = match entered {
            Entry::Lead(leader) => offload::fetch(leader, here, named, next, request),
            Entry::Wait(waiter) => match wait(&waiter, request) {
                // The other caller's deadline, or its cancellation.
                LookupResult::Failed(Errno::ETIMEDOUT | Errno::EINTR) if request.check().is_ok() => LookupResult::Again,
                answer => answer,
            },
        };
        (answer, None)
    }

    /// Looks again, and requests the name if it is unknown.
    pub(super) fn fetch_anew(self, next: &[u8], request: &Request) -> LookupResult {
        let (answer, entry) = match self.look(false) {
            Err(errno) => (LookupResult::Failed(errno), None),
            Ok(Look::Absent) => (LookupResult::Absent, None),
            Ok(Look::Positive(entry)) => (LookupResult::There, Some(entry)),
            Ok(Look::Unknown(unknown)) => self.fetch(next, unknown, request),
        };
        entry.into_iter().for_each(|entry| self.sb.unpin(entry));
        answer
    }

    /// Requests the name from the file system, and puts the answer into the cache.
    fn fetch(self, next: &[u8], unknown: Unknown, request: &Request) -> Found {
        let Unknown { stale, moment } = unknown;
        let expired = stale.as_ref().map(|stale| stale.get(self.sb.slots()));
        let found = if self.is_settled(expired) {
            // By an earlier flight.
            (LookupResult::There, None)
        } else {
            self.request_and_settle(NextNames::of(next), expired, moment, request)
        };
        stale.into_iter().for_each(|stale| self.sb.unpin(stale));
        found
    }

    /// Returns whether the cache has another entry of the name than `expired` (or than none), or
    /// `expired` is valid again. Without a lock that may change.
    fn is_settled(self, expired: Option<&Dentry>) -> bool {
        let now = self.cached();
        !is_same(now, expired) || now.is_some_and(is_good)
    }

    fn request_and_settle(
        self,
        mut next: NextNames<'_>,
        expired: Option<&Dentry>,
        moment: Moment,
        request: &Request,
    ) -> Found {
        let sb = self.sb;
        let answer = self.ask(expired, request, &mut next);
        let invalidations = answer.invalidations;
        let (found, began) = match self.lock() {
            Err(errno) => ((LookupResult::Failed(errno), None), None),
            Ok(_held) if sb.versions.of(self.dir) != moment.version() => ((LookupResult::Again, None), None),
            // Another thread has requested it, too, and has used its answer.
            Ok(_held) if !is_same(self.cached(), expired) => ((LookupResult::There, None), None),
            Ok((mut held, names)) => {
                // If the name was not in the cache meanwhile, nothing below it changed.
                let was_absent = sb.versions.moment_of(self.dir) == moment;
                let Settled { result, entry, began } = self.settle(held.may_evict(), names.as_ref(), answer);
                // This thread uses the fresh answer even if it is valid for no time at all.
                let is_there = matches!(result, LookupResult::There);
                let entry = entry.filter(|entry| is_there && is_positive(entry)).and_then(|entry| sb.pin(entry));
                ((result, entry), began.filter(|_| was_absent))
            }
        };
        if let (Some(entry), Some(began)) = (&found.1, began) {
            prime::learn_next(sb, entry, began, invalidations, &next);
        }
        found
    }

    /// Returns the file system's answer about the name: by `revalidate` if it has an expired entry,
    /// else by `lookup`.
    fn ask(self, expired: Option<&Dentry>, request: &Request, next: &mut NextNames<'_>) -> Answer {
        let (sb, name) = (self.sb, self.named.name);
        let invalidations = sb.invalidations();
        let old = expired.and_then(Dentry::inode);
        let before = old.map(Inode::before_request);
        let found = match (self.dir.inode(), old) {
            (None, _) => Err(Errno::ENOENT),
            (Some(dir), None) => sb.fs().lookup(request, dir, name, next),
            (Some(dir), Some(old)) => match sb.fs().revalidate(request, dir, name, old) {
                Err(Errno::ENOENT | Errno::ESTALE) => sb.fs().lookup(request, dir, name, next),
                found => found,
            },
        };
        Answer { found, before, invalidations }
    }

    /// Puts the file system's answer about the locked name into the cache. The entry is expired if the file system invalidated
    /// anything since the request.
    fn settle(self, may_evict: &mut MayEvict, names: Option<&Names<'_>>, answer: Answer) -> Settled<'a> {
        let invalidations = answer.invalidations;
        let (result, began) = match self.store(may_evict, names, answer) {
            Ok(stored) => stored,
            Err(errno) => (LookupResult::Failed(errno), None),
        };
        let entry = self.cached();
        expire_if_invalidated(self.sb, invalidations, entry);
        Settled { result, entry, began }
    }

    /// [`settle`](Self::settle), without invalidations.
    fn store(
        self,
        may_evict: &mut MayEvict,
        names: Option<&Names<'_>>,
        answer: Answer,
    ) -> Result<(LookupResult, Option<Moment>), Errno> {
        let Self { sb, dir, named } = self;
        let new = match answer.found {
            Err(Errno::ENOENT) => None,
            found => Some(found?),
        };
        if let Some(old) = self.cached() {
            let stays = |new: &&NewInode| {
                old.inode().is_some_and(|inode| inode.node() == new.node && inode.attr().kind() == new.attr.kind())
            };
            if let Some(new) = new.as_ref().filter(stays) {
                sb.refresh(old, new, answer.before.as_ref());
                return Ok((LookupResult::There, None));
            }
            // The thread that changes a name removes its entry.
            if (is_positive(old) && sb.is_in_flight(dir, named.hash)) || !sb.prune(names, dir, old, named.hash) {
                return Ok((LookupResult::There, None));
            }
        }
        match new {
            Some(new) => Ok((LookupResult::There, self.insert(may_evict, names, &new)?)),
            None => {
                self.insert_absent(may_evict, names);
                Ok((LookupResult::Absent, None))
            }
        }
    }

    /// Returns the positive entry of the locked name, from the cache or the file system.
    fn find_in_lock(
        self,
        may_evict: &mut MayEvict,
        names: Option<&Names<'_>>,
        request: impl FnOnce() -> Request<'static>,
    ) -> Result<Option<&'a Dentry>, Errno> {
        let cached = self.cached();
        match cached {
            Some(entry) if is_good(entry) => return Ok(is_positive(entry).then_some(entry)),
            None if self.dir.object().is_complete() => return Ok(None),
            _ => {}
        }
        self.sb.fallbacks.this().count_asked();
        let answer = self.ask(cached, &request(), &mut NextNames::none());
        let settled = self.settle(may_evict, names, answer);
        if let LookupResult::Failed(errno) = settled.result {
            return Err(errno);
        }
        if !is_same(settled.entry, cached) {
            // This answer is newer than the answers of lookups that wait for the directory.
            self.sb.note_change(self.dir);
        }
        Ok(settled.entry.filter(|entry| is_positive(entry)))
    }
}

/// How long a caller that can be cancelled waits for another's lookup before it checks for
/// cancellation.
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

impl Context {
    /// Returns the positive entry of a name in the locked directory `dir`, from the cache or the
    /// file system. The entry stays cached as long as the result borrows `may_evict`.
    ///
    /// # Errors
    /// The errors of [`check_name`]; errors of the file system, except for `ENOENT`, which is
    /// `None`.
    pub(crate) fn find_in<'r>(
        &self,
        sb: &'r SuperBlock,
        may_evict: &'r mut MayEvict,
        dir: &'r Dentry,
        named: Named<'_>,
    ) -> Result<Option<&'r Dentry>, Errno> {
        check_name(dir, named.name)?;
        Lookup { sb, dir, named }.find_in_lock(may_evict, None, || self.request())
    }
}

/// Checks that the directory `dir` was not removed, and that `name` is not too long.
///
/// # Errors
/// `ENOENT`, `ENAMETOOLONG`.
pub(crate) fn check_name(dir: &Dentry, name: &[u8]) -> Result<(), Errno> {
    match dir.object().is_hashed() {
        false => Err(Errno::ENOENT),
        true if name.len() > NAME_MAX => Err(Errno::ENAMETOOLONG),
        true => Ok(()),
    }
}

/// Marks an entry stale if the file system invalidated anything since `invalidations` was read: its
/// answer may be older.
pub(crate) fn expire_if_invalidated(sb: &SuperBlock, invalidations: u64, entry: Option<&Dentry>) {
    if is_invalidated(sb, invalidations) {
        entry.into_iter().for_each(|entry| entry.expire(&sb.paths));
    }
}

/// Returns whether the file system invalidated anything since `invalidations` was read, from before
/// its answer that was just stored.
pub(crate) fn is_invalidated(sb: &SuperBlock, invalidations: u64) -> bool {
    // ORDERING: the fence pairs with that of `SuperBlock::begin_invalidation`: either this thread sees the
    // invalidation, or the invalidating thread sees what was just stored, and expires it.
    fence(SeqCst);
    sb.invalidations() != invalidations
}

fn is_same(one: Option<&Dentry>, other: Option<&Dentry>) -> bool {
    one.map(core::ptr::from_ref) == other.map(core::ptr::from_ref)
}

/// Returns whether the entry is valid.
pub(super) fn is_good(entry: &Dentry) -> bool {
    !entry.object().has_expiry() || !entry.is_expired()
}

pub(super) fn is_positive(entry: &Dentry) -> bool {
    !entry.object().is_negative()
}
