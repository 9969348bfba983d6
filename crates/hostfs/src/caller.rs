//! The owner of new files.
//!
//! # What it is
//! A thread of a root process takes a caller's effective user and group for one call to the host. The host then gives
//! the new file to the caller, charges the caller's quota, and lets the directory pass on its group. Meanwhile the thread
//! has none of root's capabilities. If the caller is the process's own user and group, nothing is switched.
//!
//! # What it is not
//! The caller's supplementary groups: a caller that may write to a directory only by one of those is refused by the
//! host. [`crate::Ownership::Caller`] describes that case.
//!
//! # How it is locked
//! Not at all: Linux keeps credentials for each thread, and these are the kernel's calls, not those of a C library, which
//! change all threads.
//!
//! # Where it comes from
//! `setresuid(2)`, "C library/kernel differences"; `lo_change_cred` in libfuse's `passthrough_ll`.

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// The user and group of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daemon {
    uid: Uid,
    gid: Gid,
    /// Whether threads switch to the caller's.
    is_switching: bool,
}

/// A thread with a caller's user and group; dropping this switches it back.
pub(crate) struct Switched {
    uid: Uid,
    gid: Gid,
}

impl Daemon {
    pub(crate) fn new(is_switching: bool) -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { uid, gid, is_switching: is_switching && uid.is_root() }
    }

    /// Switches this thread to a caller's user and group; `None` if that is not wanted or fails.
    pub(crate) fn switch(&self, uid: u32, gid: u32) -> Option<Switched> {
        let is_own = (uid, gid) == (self.uid.as_raw(), self.gid.as_raw());
        // All ones mean "as it is" to the host.
        if !self.is_switching || is_own || uid == u32::MAX || gid == u32::MAX {
            return None;
        }
        // The group first: only root may change it.
        set_thread_res_gid(None, Gid::from_raw(gid), None).ok()?;
        let switched = Switched { uid: self.uid, gid: self.gid };
        set_thread_res_uid(None, Uid::from_raw(uid), None).ok()?;
        Some(switched)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // The saved user is root, so neither call can fail. A system call filter that allows only the way there would leave
        // a thread with fewer rights, not more.
        let uid = set_thread_res_uid(None, self.uid, None);
        let gid = set_thread_res_gid(None, self.gid, None);
        if let Err(error) = uid.and(gid) {
            tracing::error!(%error, "setresuid: a thread could not switch back to the user of the process");
        }
    }
}
