//! Whose name is on what is made.
//!
//! # What it is
//! A thread of root's that takes a caller's effective user and group for one call to the host, so that the host gives
//! the new file to the caller, takes its quota, and lets the directory hand on its group. The thread has none of root's
//! capabilities meanwhile. Nothing is done if the caller is who the process is already.
//!
//! # What it is not
//! The caller's supplementary groups: whoever may write to a directory by one of those only is refused by the host, and
//! [`crate::Ownership::Caller`] says what is done then.
//!
//! # How it is locked
//! Not at all: Linux keeps credentials for each thread, and the calls are those of the kernel, not of a C library that
//! tells all threads.
//!
//! # Where it comes from
//! `setresuid(2)`, "C library/kernel differences"; `lo_change_cred` in libfuse's `passthrough_ll`.

use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

/// Who the process is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daemon {
    uid: Uid,
    gid: Gid,
    /// Whether it takes callers' names.
    is_switching: bool,
}

/// A thread that has a caller's name. It takes its own again when this is dropped.
pub(crate) struct Switched {
    uid: Uid,
    gid: Gid,
}

impl Daemon {
    pub(crate) fn new(is_switching: bool) -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        Self { uid, gid, is_switching: is_switching && uid.is_root() }
    }

    /// Takes a caller's name; `None` if there is nothing to take, or it is refused.
    pub(crate) fn switch(&self, uid: u32, gid: u32) -> Option<Switched> {
        let is_own = (uid, gid) == (self.uid.as_raw(), self.gid.as_raw());
        // All ones mean "as it is" to the host.
        if !self.is_switching || is_own || uid == u32::MAX || gid == u32::MAX {
            return None;
        }
        // The group first: it takes root to change it.
        set_thread_res_gid(None, Gid::from_raw(gid), None).ok()?;
        let switched = Switched { uid: self.uid, gid: self.gid };
        set_thread_res_uid(None, Uid::from_raw(uid), None).ok()?;
        Some(switched)
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        // The saved user is root, so neither can be refused; a filter of system calls that lets one way pass and not
        // the other would leave a thread that can do less, not more.
        let uid = set_thread_res_uid(None, self.uid, None);
        let gid = set_thread_res_gid(None, self.gid, None);
        if let Err(error) = uid.and(gid) {
            tracing::error!(%error, "a thread could not take its own user again");
        }
    }
}
