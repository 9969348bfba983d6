//! Lookups with a deadline, on another thread.
//!
//! # What it is
//! A file system need not obey a deadline. So the caller of such a lookup waits for a thread of the
//! file system's pool ([`Workers`]), and returns without it at its deadline. The lookup continues,
//! if it was begun, and its answer is used.
//!
//! # Where it comes from
//! Own code.
//!
//! [`Workers`]: crate::base::workers::Workers

use super::{Lookup, LookupLeader};
use crate::base::errno::Errno;
use crate::base::name::Named;
use crate::cache::flight::LookupResult;
use crate::fs::Request;
use crate::walk::walk_position::Here;

/// Requests `name` in `dir` on another thread, so that this one can return at its deadline.
pub(super) fn fetch(
    leader: LookupLeader<'_>,
    dir: &Here,
    named: Named<'_>,
    next: &[u8],
    request: &Request,
) -> LookupResult {
    let (waiter, leader) = (leader.waiter(), leader.detach());
    let (place, name, request_there) = (dir.to_place(), Box::<[u8]>::from(named.name), request.to_owned());
    let (hash, next) = (named.hash, Box::<[u8]>::from(next));
    let work = move || {
        let lookup = Lookup { sb: place.sb(), dir: place.dentry(), named: Named::new(&name, hash) };
        let answer = lookup.fetch_anew(&next, &request_there);
        drop(place);
        leader.finish(answer);
    };
    let Ok(ticket) = dir.sb().lookups.run(Box::new(work)) else { return LookupResult::Failed(Errno::EAGAIN) };
    let answer = super::wait(&waiter, request);
    if matches!(answer, LookupResult::Failed(Errno::ETIMEDOUT | Errno::EINTR)) {
        // Dropped, the leader lets others lead.
        dir.sb().lookups.withdraw(ticket);
    }
    answer
}
