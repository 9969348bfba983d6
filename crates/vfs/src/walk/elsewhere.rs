//! Lookups with a deadline, on another thread.
//!
//! # What it is
//! A file system need not obey a deadline. So the caller of such a lookup waits for another thread, and returns without it at its
//! deadline. The lookup goes on; its answer is used.
//!
//! # How it is locked
//! Not at all.
//!
//! # Where it comes from
//! Own code.

use crate::base::errno::Errno;
use crate::base::name::Named;
use crate::dcache::flight::LookupResult;
use crate::dcache::fs::Request;
use crate::walk::here::Here;
use crate::walk::lookup;
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use prim::shared::PlainArc as Arc;

/// Lookups of one file system that may go on after the deadlines of all their callers, each on its thread. With so
/// many, further lookups with a deadline fail with `ETIMEDOUT` at once, until one of these ends.
const MOST_HUNG: u32 = 16;

/// A lookup on another thread: it runs, and its caller waits.
const RUNNING: u32 = 0;
/// It runs after its caller's deadline.
const HUNG: u32 = 1;
/// It has ended.
const ENDED: u32 = 2;

/// Requests `name` in `dir` on another thread, so that this one can return at its deadline.
pub(super) fn fetch(
    leader: lookup::LookupLeader<'_>,
    dir: &Here,
    named: Named<'_>,
    next: &[u8],
    request: &Request,
) -> LookupResult {
    let sb = dir.sb();
    if sb.hung_lookups.load(Relaxed) >= MOST_HUNG {
        // Dropped, the leader lets others lead.
        return LookupResult::Failed(Errno::ETIMEDOUT);
    }
    let (waiter, leader) = (leader.waiter(), leader.detach());
    let state = Arc::new(AtomicU32::new(RUNNING));
    let own = state.clone();
    let (dir, name, request_there) = (dir.to_place(), Box::<[u8]>::from(named.name), request.to_owned());
    let (hash, next) = (named.hash, Box::<[u8]>::from(next));
    let work = move || {
        let answer = lookup::fetch_anew(dir.sb(), dir.dentry(), Named::new(&name, hash), &next, &request_there);
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
    let answer = lookup::wait(&waiter, request);
    if matches!(answer, LookupResult::Failed(Errno::ETIMEDOUT | Errno::EINTR)) {
        sb.hung_lookups.fetch_add(1, Relaxed);
        if state.compare_exchange(RUNNING, HUNG, Relaxed, Relaxed).is_err() {
            sb.hung_lookups.fetch_sub(1, Relaxed);
        }
    }
    answer
}
