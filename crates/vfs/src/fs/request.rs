//! The caller of a file system, and the time of the call.

use crate::base::access::credentials::{Capabilities, Credentials};
use crate::base::cancel::Cancel;
use crate::base::deadline::{Timeout, moment_in};
use crate::base::errno::Errno;
use core::cell::Cell;
use core::num::NonZeroU64;
use prim::shared::PlainArc as Arc;

/// The caller of a request, and its time.
///
/// A file system's own tests make one by [`Request::of`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request<'a> {
    /// User of the caller. The VFS has checked permissions; this is for records, quotas, and file systems that check
    /// once more.
    pub uid: u32,
    /// Group of the caller.
    pub gid: u32,
    groups: Groups<'a>,
    /// Capabilities of the caller. A front end whose kernel has checked permissions already gives capabilities to
    /// callers that have none.
    pub capabilities: Capabilities,
    /// Permission bits that the caller's umask takes from a new file, unless the directory has a default ACL. 0 if the VFS
    /// has applied it: see [`Modes::FileSystem`](crate::Modes::FileSystem).
    pub umask: u32,
    /// [`Request::now`], or [`UNREAD`].
    now: Cell<i64>,
    /// The caller's deadline, in nanoseconds of `prim::clock::monotonic_ns` (`CLOCK_MONOTONIC`). A
    /// file system that can stop at the deadline fails with `ETIMEDOUT`. One that cannot may
    /// continue: the VFS lets the callers of a lookup return without it, and
    /// [`Bounded`](crate::Bounded) the callers of every method.
    pub deadline: Option<i64>,
    /// Whether the caller may use space and quotas that are reserved for root (`CAP_SYS_RESOURCE`).
    pub privileged: bool,
}

/// The clock was not read yet.
const UNREAD: i64 = i64::MIN;

/// Supplementary groups. A request for an open file borrows them, since its credentials do not change: a count would be a
/// line that all readers write.
#[derive(Clone, Debug)]
enum Groups<'a> {
    Borrowed(&'a [u32]),
    Shared(Option<Arc<[u32]>>),
}

impl<'a> Request<'a> {
    /// Returns a request of `cred`, now and without a deadline.
    #[must_use]
    #[inline(always)]
    pub fn of(cred: &'a Credentials) -> Self {
        Self::new(cred, Groups::Borrowed(cred.groups()), None, 0)
    }

    /// Returns a request that begins now, with a deadline `timeout` later, and with a `umask` that
    /// the file system must apply.
    #[inline(always)]
    pub(crate) fn lent(cred: &'a Credentials, timeout: Timeout, umask: u32) -> Self {
        Self::new(cred, Groups::Borrowed(cred.groups()), timeout.map(deadline_in), umask)
    }

    // (Written once, in place: it has 64 bytes.)
    #[inline(always)]
    fn new(cred: &Credentials, groups: Groups<'a>, deadline: Option<i64>, umask: u32) -> Self {
        Self {
            uid: cred.uid,
            gid: cred.gid,
            groups,
            capabilities: cred.capabilities,
            umask,
            now: Cell::new(UNREAD),
            deadline,
            privileged: cred.capabilities.contains(Capabilities::SYS_RESOURCE),
        }
    }

    /// Returns the time of the request, nanoseconds since the epoch: the clock is read at the first
    /// call.
    #[must_use]
    #[inline(always)]
    pub fn now(&self) -> i64 {
        if self.now.get() == UNREAD {
            self.now.set(prim::clock::now_ns());
        }
        self.now.get()
    }

    /// Returns the caller's supplementary groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        match &self.groups {
            Groups::Borrowed(groups) => groups,
            Groups::Shared(groups) => groups.as_deref().unwrap_or_default(),
        }
    }

    /// Returns the handle that cancels the calling thread's call ([`Cancel::scope`]), if there is
    /// one. To pass the handle on, get it here and begin its scope in the other thread.
    #[must_use]
    #[inline(never)]
    pub fn cancel(&self) -> Option<Cancel> {
        Cancel::current()
    }

    /// Returns whether the caller waits no longer: a file system that can stop then fails with
    /// this.
    ///
    /// # Errors
    /// `EINTR`: the call was cancelled; `ETIMEDOUT`: its deadline has passed.
    pub fn check(&self) -> Result<(), Errno> {
        if self.cancel().is_some_and(|cancel| cancel.is_cancelled()) {
            return Err(Errno::EINTR);
        }
        let is_over = self.deadline.is_some_and(|deadline| deadline <= prim::clock::monotonic_ns());
        if is_over { Err(Errno::ETIMEDOUT) } else { Ok(()) }
    }

    /// Returns a copy of the request, for another thread.
    pub(crate) fn to_owned(&self) -> Request<'static> {
        let groups = match &self.groups {
            Groups::Borrowed(groups) => Some(Arc::from(*groups)).filter(|groups: &Arc<[u32]>| !groups.is_empty()),
            Groups::Shared(groups) => groups.clone(),
        };
        Request { groups: Groups::Shared(groups), ..self.clone() }
    }
}

impl Request<'static> {
    /// [`Request::lent`] that outlives `cred`, which a context may replace.
    #[inline(always)]
    pub(crate) fn with(cred: &Credentials, timeout: Timeout, umask: u32) -> Self {
        Self::new(cred, Groups::Shared(cred.groups.clone()), timeout.map(deadline_in), umask)
    }
}

/// Returns the time `ns` nanoseconds after the call.
#[cold]
fn deadline_in(ns: NonZeroU64) -> i64 {
    moment_in(ns.get())
}
