//! The caller of a file system, and the time of the call.

use crate::base::access::credentials::{Capabilities, Credentials};
use prim::shared::PlainArc as Arc;

/// The caller of a request, and its time.
#[derive(Clone, Debug)]
pub struct Request {
    /// User of the caller. The VFS has checked permissions; this is for records, quotas, and file systems that check
    /// once more.
    pub uid: u32,
    /// Group of the caller.
    pub gid: u32,
    /// Supplementary groups of the caller; `None` if there are none.
    groups: Option<Arc<[u32]>>,
    /// Capabilities of the caller. A front end whose kernel has checked permissions already gives capabilities to
    /// callers that have none.
    pub capabilities: Capabilities,
    /// Permission bits that the caller's umask takes from a new file, unless the directory has a default ACL. 0 if the VFS
    /// has applied it: see [`FsTraits::keeps_modes`](crate::FsTraits::keeps_modes).
    pub umask: u32,
    /// The time of the request, nanoseconds since the epoch.
    pub now: i64,
    /// The caller's deadline, in nanoseconds of `prim::clock::monotonic_ns`. A file system that can stop by
    /// then fails with `ETIMEDOUT`. One that cannot may continue: the VFS lets the callers of a lookup return
    /// without it.
    pub deadline: Option<i64>,
    /// Whether the caller may use space and quotas that are reserved for root (`CAP_SYS_RESOURCE`).
    pub privileged: bool,
}

impl Request {
    /// A request of now.
    pub(crate) fn of(cred: &Credentials) -> Self {
        Self::with(cred, None, 0)
    }

    /// A request of now, with a deadline so many nanoseconds from now, and with a `umask` that the file system must apply.
    // (Written once, in place: it has 64 bytes.)
    #[inline(always)]
    pub(crate) fn with(cred: &Credentials, timeout: Option<u64>, umask: u32) -> Self {
        Self {
            uid: cred.uid,
            gid: cred.gid,
            groups: cred.shared_groups(),
            capabilities: cred.capabilities,
            umask,
            now: prim::clock::now_ns(),
            deadline: timeout.map(deadline_in),
            privileged: cred.capabilities.contains(Capabilities::SYS_RESOURCE),
        }
    }

    /// The caller's supplementary groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        self.groups.as_deref().unwrap_or_default()
    }
}

/// The time so many nanoseconds from now.
#[cold]
fn deadline_in(ns: u64) -> i64 {
    prim::clock::monotonic_ns().saturating_add(i64::try_from(ns).unwrap_or(i64::MAX))
}
