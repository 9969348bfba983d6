//! Misses: one request to the file system for all threads that need the same name.
//!
//! # What it is
//! One thread requests a name that is not cached, or expired, from the file system (a *flight*). Other
//! threads that need the same name wait for its answer; requests for different names of one directory run
//! side by side. A thread that began after the directory changed, or was invalidated, does not wait for an
//! answer from before: it begins another flight. No lock of the cache is held during the request. The answer
//! is put into the cache under the directory's lock, unless the directory changed since the request: then the
//! request is repeated.
//!
//! Operations that change a directory send the request under its lock, since no other thread may create the
//! name meanwhile.
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
//! The locks of flights ([`sync::SingleFlight`]) are never held across a request. The directory's lock is
//! taken twice, before and after.
//!
//! # Where it comes from
//! Linux's `d_alloc_parallel`, `d_revalidate`, `d_invalidate`; Go's `singleflight` for the hand-over.

use crate::base::errno::Errno;
use crate::base::name::Named;
use crate::dcache::acls::acls_of;
use crate::dcache::dentry::Dentry;
use crate::dcache::flight::{LookupKey, LookupResult};
use crate::dcache::fs::{NewInode, Request, Valid};
use crate::dcache::inode::{Before, Inode};
use crate::dcache::reclaim::{LockedDirs, MayEvict, SlotKind};
use crate::dcache::slot::{CountedDentry, dentry_beside};
use crate::dcache::split::NameLock;
use crate::dcache::superblock::SuperBlock;
use crate::mount::place::OwnedPlace;
use prim::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};
use prim::shared::PlainArc as Arc;
use sync::single_flight::{Entry, Waited};

/// Answers that are discarded because the directory changed meanwhile, before the request is sent under the
/// directory's lock.
const MOST_TRIES: u32 = 8;

/// Lookups of one file system that may go on after the deadlines of all their callers, each on its thread. With so
/// many, further lookups with a deadline fail with `ETIMEDOUT` at once, until one of these ends.
const MOST_HUNG: u32 = 16;

/// A lookup on another thread: it runs, and its caller waits.
const RUNNING: u32 = 0;
/// It runs after its caller's deadline.
const HUNG: u32 = 1;
/// It has ended.
const ENDED: u32 = 2;

/// The state of a name in the cache.
enum Look {
    Positive(CountedDentry),
    Absent,
    /// Unknown: the expired entry, if any, and the directory's counter of changes.
    Unknown(Option<CountedDentry>, u64),
}

/// The entry `name` of `dir`, which belongs to this superblock and is held; takes a count on the entry. Calls
/// the file system if needed.
///
/// # Errors
/// `ENOENT` if the directory was removed; `ETIMEDOUT`; errors of the file system, except for `ENOENT` of the
/// name, which is `None`.
pub(crate) fn find_held(
    sb: &SuperBlock,
    dir: &OwnedPlace,
    name: &[u8],
    request: &Request,
) -> Result<Option<CountedDentry>, Errno> {
    let named = sb.named(name);
    let mut is_fresh = false;
    let mut tries = 0;
    loop {
        let version = match look(sb, dir.dentry(), named, is_fresh)? {
            Look::Positive(entry) => return Ok(Some(entry)),
            Look::Absent => return Ok(None),
            Look::Unknown(stale, version) => {
                stale.into_iter().for_each(|stale| sb.unpin(stale));
                version
            }
        };
        match single_flight(sb, dir, named, version, request) {
            // The fresh answer is used even if it is valid for no time at all.
            LookupResult::There => is_fresh = true,
            // Changes and invalidations may overtake each answer. Under the lock one answer is used all the
            // same.
            LookupResult::Again if tries == MOST_TRIES => {
                let mut held = lock_name(sb, dir.dentry(), named.hash)?;
                let found = find_locked(sb, held.may_evict(), || request.clone(), dir.dentry(), named)?;
                return Ok(found.and_then(|entry| sb.pin(entry)));
            }
            LookupResult::Again => (is_fresh, tries) = (false, tries + 1),
            LookupResult::Absent => return Ok(None),
            LookupResult::Failed(errno) => return Err(errno),
        }
    }
}

fn lock_name<'d>(sb: &'d SuperBlock, dir: &'d Dentry, hash: u64) -> Result<LockedDirs<NameLock<'d>>, Errno> {
    let held = sb.lock_name(dir, hash, false);
    if dir.object().is_hashed() { Ok(LockedDirs::new(held)) } else { Err(Errno::ENOENT) }
}

fn look(sb: &SuperBlock, dir: &Dentry, named: Named<'_>, is_fresh: bool) -> Result<Look, Errno> {
    let _held = lock_name(sb, dir, named.hash)?;
    let version = sb.versions.of(dir);
    Ok(match sb.cached(dir, named) {
        Some(entry) if (is_fresh || is_good(entry)) && !is_positive(entry) => Look::Absent,
        Some(entry) => match sb.pin(entry) {
            Some(pinned) if is_fresh || is_good(entry) => Look::Positive(pinned),
            pinned => Look::Unknown(pinned, version),
        },
        None if dir.object().is_complete() => Look::Absent,
        None if dir.inode().is_some_and(|inode| sb.keeps_listing_of(inode))
            && sb.listings.lacks(dir, version, named.name) =>
        {
            Look::Absent
        }
        None => Look::Unknown(None, version),
    })
}

#[cold]
fn single_flight(sb: &SuperBlock, dir: &OwnedPlace, named: Named<'_>, version: u64, request: &Request) -> LookupResult {
    let at = core::ptr::from_ref(dir.dentry()) as usize;
    let is = |key: &LookupKey| key.dir == at && key.version == version && *key.name == *named.name;
    let key = || LookupKey { dir: at, version, name: named.name.into() };
    let entered = sb.flights.enter_with((at as u64 >> 6, named.hash), is, key);
    let waiter = match entered {
        Entry::Wait(waiter) => waiter,
        Entry::Lead(leader) if request.deadline.is_none() => {
            let answer = fetch(sb, dir.dentry(), named, request);
            leader.finish(answer);
            return answer;
        }
        // Dropped, the leader lets others lead.
        Entry::Lead(_) if sb.hung_lookups.load(Relaxed) >= MOST_HUNG => return LookupResult::Failed(Errno::ETIMEDOUT),
        Entry::Lead(leader) => {
            // On another thread, so that this one can return at its deadline.
            let waiter = leader.waiter();
            let state = Arc::new(AtomicU32::new(RUNNING));
            let own = state.clone();
            let (dir, name, request_there) = (dir.clone(), Box::<[u8]>::from(named.name), request.clone());
            let hash = named.hash;
            let work = move || {
                let answer = fetch(dir.sb(), dir.dentry(), Named::new(&name, hash), &request_there);
                // Relaxed: both ends change only this word and a count.
                if own.swap(ENDED, Relaxed) == HUNG {
                    dir.sb().hung_lookups.fetch_sub(1, Relaxed);
                }
                drop(dir);
                leader.finish(answer);
            };
            if prim::thread::spawn("lightfoot-fetch", work).is_none() {
                return LookupResult::Failed(Errno::EAGAIN);
            }
            let waited = waiter.wait(request.deadline);
            if matches!(waited, Waited::TimedOut) {
                sb.hung_lookups.fetch_add(1, Relaxed);
                if state.compare_exchange(RUNNING, HUNG, Relaxed, Relaxed).is_err() {
                    sb.hung_lookups.fetch_sub(1, Relaxed);
                }
            }
            return result_of(waited);
        }
    };
    result_of(waiter.wait(request.deadline))
}

fn result_of(waited: Waited<LookupResult>) -> LookupResult {
    match waited {
        Waited::Done(answer) => answer,
        Waited::Abandoned => LookupResult::Again,
        Waited::TimedOut => LookupResult::Failed(Errno::ETIMEDOUT),
    }
}

/// Requests `name` in `dir`, which is held, from the file system, and puts the answer into the cache.
fn fetch(sb: &SuperBlock, dir: &Dentry, named: Named<'_>, request: &Request) -> LookupResult {
    // An earlier flight may have brought the answer.
    let (stale, version) = match look(sb, dir, named, false) {
        Err(errno) => return LookupResult::Failed(errno),
        Ok(Look::Absent) => return LookupResult::Absent,
        Ok(Look::Positive(entry)) => {
            sb.unpin(entry);
            return LookupResult::There;
        }
        Ok(Look::Unknown(stale, version)) => (stale, version),
    };
    let invalidations = sb.invalidations();
    let reply = fetch_name(sb, dir, named.name, stale.as_ref().map(|stale| stale.get(sb)), request);
    let answer = match lock_name(sb, dir, named.hash) {
        Err(errno) => LookupResult::Failed(errno),
        Ok(_held) if sb.versions.of(dir) != version => LookupResult::Again,
        Ok(mut held) => {
            let answer = settle(sb, held.may_evict(), dir, named, reply);
            expire_if_invalidated(sb, invalidations, sb.cached(dir, named));
            answer
        }
    };
    stale.into_iter().for_each(|stale| sb.unpin(stale));
    answer
}

/// The file system's answer about a name.
struct Answer {
    found: Result<NewInode, Errno>,
    /// What an expired entry had before the request.
    before: Option<Before>,
}

/// The file system's answer about a name: by `revalidate` if it has an expired entry, else by `lookup`.
fn fetch_name(sb: &SuperBlock, dir: &Dentry, name: &[u8], stale: Option<&Dentry>, request: &Request) -> Answer {
    let old = stale.and_then(Dentry::inode);
    let before = old.map(Inode::before_request);
    let Some(inode) = dir.inode() else { return Answer { found: Err(Errno::ENOENT), before } };
    let found = match old.map(|old| sb.fs().revalidate(request, inode, name, old)) {
        None | Some(Err(Errno::ENOENT | Errno::ESTALE)) => sb.fs().lookup(request, inode, name),
        Some(found) => found,
    };
    Answer { found, before }
}

/// Puts the file system's answer about a name into the cache of the locked directory.
fn settle(sb: &SuperBlock, may_evict: &mut MayEvict, dir: &Dentry, named: Named<'_>, answer: Answer) -> LookupResult {
    let Answer { found, before } = answer;
    let new = match found {
        Ok(new) => Some(new),
        Err(Errno::ENOENT) => None,
        Err(errno) => return LookupResult::Failed(errno),
    };
    if let Some(old) = sb.cached(dir, named) {
        let stays = match (&new, old.inode()) {
            (Some(new), Some(inode)) => inode.node() == new.node && inode.attr().kind() == new.attr.kind(),
            _ => false,
        };
        if let Some(new) = new.as_ref().filter(|_| stays) {
            sb.refresh(old, new, before.as_ref());
            return LookupResult::There;
        }
        if !sb.prune(dir, old, named.hash) {
            return LookupResult::There;
        }
    }
    match new {
        Some(new) => match insert(sb, may_evict, dir, named, &new) {
            Ok(()) => LookupResult::There,
            Err(errno) => LookupResult::Failed(errno),
        },
        None => {
            sb.add_negative(may_evict, dir, named, sb.valid_in(dir));
            LookupResult::Absent
        }
    }
}

/// Adds a name from the file system's answer: of an inode that is cached by its node, or of a new one.
///
/// # Errors
/// `ENOMEM`: the budget is used up and every entry is held.
fn insert(
    sb: &SuperBlock,
    may_evict: &mut MayEvict,
    dir: &Dentry,
    named: Named<'_>,
    new: &NewInode,
) -> Result<(), Errno> {
    let slot = sb.slot_in(SlotKind::Entry, dir, may_evict)?;
    let Err((slot, inode)) = sb.add_unless_there(slot, dir, named, &new.into()) else { return Ok(()) };
    let first = dentry_beside(&inode);
    if new.attr.is_dir() || inode.attr().kind() != new.attr.kind() {
        // A directory that moved behind the cache: its former name is stale.
        first.expire(&sb.paths);
        sb.inodes.note_double();
        sb.put_inode(inode);
        sb.add(slot, dir, named, &new.into());
        return Ok(());
    }
    inode.learn_reply(&sb.paths, &new.attr, None);
    if new.valid != Valid::UntilInvalidated {
        // The file system may treat a file with several names otherwise than when it had one: the first name's validity is
        // from then.
        first.expire(&sb.paths);
    }
    sb.renew_acls(first, &inode, acls_of(new));
    sb.set_valid(&inode, new.valid);
    sb.add_alias(None, slot, dir, named, inode, new.valid);
    Ok(())
}

/// The positive entry `name` of the locked directory `dir`, from the cache or the file system. It stays for as long as it
/// borrows `may_evict`.
///
/// # Errors
/// Errors of the file system, except for `ENOENT`, which is `None`.
pub(crate) fn find_locked<'r>(
    sb: &'r SuperBlock,
    may_evict: &'r mut MayEvict,
    request: impl FnOnce() -> Request,
    dir: &'r Dentry,
    named: Named<'_>,
) -> Result<Option<&'r Dentry>, Errno> {
    let cached = sb.cached(dir, named);
    match cached {
        Some(entry) if is_good(entry) => return Ok(is_positive(entry).then_some(entry)),
        None if dir.object().is_complete() => return Ok(None),
        _ => {}
    }
    let invalidations = sb.invalidations();
    let reply = fetch_name(sb, dir, named.name, cached, &request());
    if let LookupResult::Failed(errno) = settle(sb, may_evict, dir, named, reply) {
        return Err(errno);
    }
    let entry = sb.cached(dir, named);
    expire_if_invalidated(sb, invalidations, entry);
    Ok(entry.filter(|entry| is_positive(entry)))
}

/// The cached directory `name` of the locked directory `dir`, if [`find_locked`] would revalidate it: if it
/// is another one by then, it is removed with everything below it.
pub(crate) fn stale_dir<'r>(
    sb: &'r SuperBlock,
    _may_evict: &'r MayEvict,
    dir: &'r Dentry,
    named: Named<'_>,
) -> Option<&'r Dentry> {
    sb.cached(dir, named).filter(|entry| !is_good(entry) && is_positive(entry) && entry.object().is_dir())
}

/// Marks an entry stale if the file system invalidated anything since `invalidations` was read: its answer
/// may be from before.
fn expire_if_invalidated(sb: &SuperBlock, invalidations: u64, entry: Option<&Dentry>) {
    // ORDERING: the fence pairs with that of `Invalidator::invalidate`: either this thread sees the
    // invalidation, or the invalidating thread sees what was just stored, and expires it.
    fence(SeqCst);
    if sb.invalidations() != invalidations {
        entry.into_iter().for_each(|entry| entry.expire(&sb.paths));
    }
}

/// Whether the entry is valid.
fn is_good(entry: &Dentry) -> bool {
    !entry.object().has_expiry() || !entry.is_expired()
}

fn is_positive(entry: &Dentry) -> bool {
    !entry.object().is_negative()
}
