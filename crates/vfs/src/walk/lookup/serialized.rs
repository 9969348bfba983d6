//! The lookup of a name that is locked: no change of it overtakes the answer.
//!
//! # How it is locked
//! As [`name_locks`](crate::cache::name_locks).
//!
//! # Where it comes from
//! As [`lookup`](super).

use super::{LookupResult, NameAt, expire_if_invalidated, fetch_name, find_as, is_positive, lock_name, settle};
use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use crate::base::name::Named;
use crate::cache::superblock::SuperBlock;
use crate::fs::{NextNames, Request};
use crate::slots::dentry::Dentry;
use crate::slots::slot::DentryRef;
use crate::walk::walk_position::Here;

/// [`find_held`](super::find_held) by the thread that has locked the name.
///
/// # Errors
/// As for [`find_held`](super::find_held).
pub(crate) fn find_name_locked(dir: &Here, name: &[u8], request: &Request) -> Result<Option<DentryRef>, Errno> {
    find_as(dir, name, b"", request, true)
}

/// The entry of a name in a remote file system. The name is locked, so no change of it overtakes the answer. No lock is held during
/// the request.
#[cold]
pub(super) fn find_serialized(
    sb: &SuperBlock,
    dir: &Dentry,
    named: Named<'_>,
    request: &Request,
    is_name_locked: bool,
) -> Result<Option<DentryRef>, Errno> {
    let deadline = Deadline::at(request.deadline);
    let _name = if is_name_locked { None } else { sb.reserve([(dir, named.hash); 2], deadline)? };
    let cached = {
        let _held = lock_name(sb, dir, named.hash)?;
        sb.cached(dir, named).and_then(|entry| sb.pin(entry))
    };
    let invalidations = sb.invalidations();
    let expired = cached.as_ref().map(|cached| cached.get(sb.slots()));
    let reply = fetch_name(sb, dir, named.name, expired, (request, &mut NextNames::none()));
    let found = match lock_name(sb, dir, named.hash) {
        Err(errno) => Err(errno),
        Ok((mut held, names)) => {
            let at = NameAt { dir, names: names.as_ref(), named };
            let (answer, _) = settle(sb, held.may_evict(), at, reply);
            let entry = sb.cached(dir, named);
            expire_if_invalidated(sb, invalidations, entry);
            match answer {
                LookupResult::Failed(errno) => Err(errno),
                _ => Ok(entry.filter(|entry| is_positive(entry)).and_then(|entry| sb.pin(entry))),
            }
        }
    };
    cached.into_iter().for_each(|cached| sb.unpin(cached));
    found
}
