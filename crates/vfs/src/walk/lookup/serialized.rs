//! The lookup of a name that is locked: no change of it overtakes the answer.
//!
//! # How it is locked
//! As [`name_locks`](crate::cache::name_locks).
//!
//! # Where it comes from
//! As [`lookup`](super).

use super::{Lookup, LookupResult, find_as, is_positive};
use crate::base::deadline::Deadline;
use crate::base::errno::Errno;
use crate::fs::{NextNames, Request};
use crate::slots::slot::DentryRef;
use crate::walk::walk_position::Here;

/// [`find_held`](super::find_held) by the thread that has locked the name.
///
/// # Errors
/// As for [`find_held`](super::find_held).
pub(crate) fn find_name_locked(dir: &Here, name: &[u8], request: &Request) -> Result<Option<DentryRef>, Errno> {
    find_as(dir, name, b"", request, true)
}

impl Lookup<'_, '_> {
    /// Returns the entry, when changes and invalidations overtook each answer: no change overtakes
    /// this one.
    #[cold]
    pub(super) fn find_serialized(self, request: &Request, is_name_locked: bool) -> Result<Option<DentryRef>, Errno> {
        if self.sb.name_locks.is_some() {
            return self.find_in_name_lock(request, is_name_locked);
        }
        let (mut held, names) = self.lock()?;
        let found = self.find_in_lock(held.may_evict(), names.as_ref(), || request.to_owned())?;
        Ok(found.and_then(|entry| self.sb.pin(entry)))
    }

    /// Finds a name of a remote file system: the name is locked, and no lock of the cache is held during the
    /// request.
    fn find_in_name_lock(self, request: &Request, is_name_locked: bool) -> Result<Option<DentryRef>, Errno> {
        let Self { sb, dir, named } = self;
        let deadline = Deadline::at(request.deadline);
        let _name = if is_name_locked { None } else { sb.lock_remote_names([(dir, named.hash); 2], deadline)? };
        let cached = {
            let _held = self.lock()?;
            self.cached().and_then(|entry| sb.pin(entry))
        };
        let expired = cached.as_ref().map(|cached| cached.get(sb.slots()));
        let answer = self.ask(expired, request, &mut NextNames::none());
        let found = self.lock().and_then(|(mut held, names)| {
            let settled = self.settle(held.may_evict(), names.as_ref(), answer);
            match settled.result {
                LookupResult::Failed(errno) => Err(errno),
                _ => Ok(settled.entry.filter(|entry| is_positive(entry)).and_then(|entry| sb.pin(entry))),
            }
        });
        cached.into_iter().for_each(|cached| sb.unpin(cached));
        found
    }
}
