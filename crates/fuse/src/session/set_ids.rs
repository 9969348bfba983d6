//! Set-id bits: cleared when a caller without `CAP_FSETID` changes the contents of a file.
//!
//! # What it is
//! The kernel leaves this to the server (`FUSE_HANDLE_KILLPRIV_V2`), because the mode that it has
//! cached may be old. It marks each WRITE, and each SETATTR of the length, whose caller has no
//! `CAP_FSETID`. FALLOCATE has no such flag, so the session assumes that all users but root lack
//! the capability. OPEN has the flag only with `O_TRUNC`, which the kernel does not send to this
//! server. Before a change of a file with such bits, the kernel also sends a SETATTR that changes
//! nothing, and takes the mode in the reply as the new one.
//!
//! A tree in memory clears the bits by its own mode. A host directory must clear the bits that the
//! file has on the host at that moment, in the same call that changes the contents:
//! [`without_fsetid`] takes the capability from the thread, so that the host's kernel clears the
//! bits.
//!
//! # What it is not
//! File capabilities (`security.capability`): the host clears those by itself, a tree in memory keeps them.
//!
//! # Where it comes from
//! `Documentation/filesystems/fuse.rst`, `linux/fuse.h`; `setattr_should_drop_suidgid` in Linux.

use super::{Caller, Session, User, Who};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use vfs::{Attr, Errno, PathRef, S_IFREG, SetAttr};

/// `S_ISUID` and `S_ISGID`.
const SET_IDS: u32 = 0o6000;

/// The bits of a mode that `uid=` and `gid=` must not give to a file of another user.
const SPECIAL: u32 = 0o7000;

/// Calls `f` on a thread that has no `CAP_FSETID`.
pub(crate) fn without_fsetid<R>(f: impl FnOnce() -> R) -> R {
    let _restored = take_fsetid();
    f()
}

/// The capabilities of a thread; dropping this restores them.
struct Restored(CapabilitySets);

/// Takes `CAP_FSETID` from the thread; `None` if the thread does not have the capability.
fn take_fsetid() -> Option<Restored> {
    let before = capabilities(None).ok()?;
    let effective = before.effective - CapabilitySet::FSETID;
    if effective == before.effective {
        return None;
    }
    match set_capabilities(None, CapabilitySets { effective, ..before }) {
        Ok(()) => Some(Restored(before)),
        Err(error) => {
            tracing::warn!(%error, "capset: a thread keeps CAP_FSETID, and set-id bits of the host's files with it");
            None
        }
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        if let Err(error) = set_capabilities(None, self.0) {
            tracing::warn!(%error, "capset: a thread cannot take CAP_FSETID back");
        }
    }
}

/// Returns whether a file with `mode` runs with the rights of its owner or group.
fn has_set_ids(attr: &Attr) -> bool {
    attr.kind() == S_IFREG && attr.mode & SET_IDS != 0
}

impl Session {
    /// Clears the set-id bits of `held` that the tree has cached.
    pub(super) fn clear_set_ids(&self, held: &PathRef) -> Result<(), Errno> {
        if has_set_ids(&held.attr()?) {
            self.callers.everyone().set_attr_held(held, &SetAttr::default())?;
        }
        Ok(())
    }

    /// SETATTR that changes nothing. Either a program called `chown(path, -1, -1)`, or the kernel
    /// clears set-id bits before `caller` changes the contents. The request does not show which.
    ///
    /// # Errors
    /// `EPERM`: there are such bits, the caller is not known to own the file, and nobody has it open for writing, so that this
    /// is `chown(2)`.
    pub(super) fn change_nothing(&self, caller: &Caller, held: &PathRef) -> Result<Attr, Errno> {
        let attr = held.attr_anew()?;
        if has_set_ids(&attr) {
            let owner = self.options.shown.uid.unwrap_or(attr.uid);
            let may_change = caller.who.is_root() || caller.who.is(owner);
            if !may_change && !self.is_writable_somewhere(caller, held) {
                return Err(Errno::EPERM);
            }
            // A member of the group keeps the bit of a file that the group may not execute.
            if !self.callers.is_in_group(caller, attr.gid) {
                let mode = Some(attr.mode & 0o7777 & !SET_IDS);
                return self.callers.everyone().set_attr_held(held, &SetAttr { mode, ..SetAttr::default() });
            }
        }
        self.callers.everyone().set_attr_held(held, &SetAttr::default())
    }

    /// Returns whether the file is open for writing; without opens, whether `caller` may write to
    /// it.
    fn is_writable_somewhere(&self, caller: &Caller, held: &PathRef) -> bool {
        let file = held.identity();
        let is_open = self.files.any(|open| open.file.held().identity() == file && open.file.flags().can_write());
        is_open || self.options.no_open && self.callers.unprivileged(caller).access_held(held, vfs::MAY_WRITE).is_ok()
    }

    /// Returns the mode that `caller` may give to `held`. A user whom `uid=` or `gid=` shows as the
    /// owner of another's file does not get the rights of that owner.
    pub(super) fn allowed_mode(&self, caller: &Caller, held: &PathRef, mode: u32) -> Result<u32, Errno> {
        let attr = held.attr_anew()?;
        Ok(self.mode_for(caller, User { uid: attr.uid, gid: attr.gid }, mode))
    }

    /// Returns the mode that `caller` may give to a new file.
    pub(super) fn new_mode(&self, caller: &Caller, mode: u32) -> u32 {
        match caller.who {
            Who::Known(user) => self.mode_for(caller, user, mode),
            Who::Unknown => mode & !SPECIAL,
        }
    }

    /// Returns `mode` without special bits, if the mount shows a file of `owner` as another's.
    fn mode_for(&self, caller: &Caller, owner: User, mode: u32) -> u32 {
        let shown = &self.options.shown;
        let is_real =
            shown.uid.is_none_or(|shown| shown == owner.uid) && shown.gid.is_none_or(|shown| shown == owner.gid);
        if caller.who.is_root() || is_real { mode } else { mode & !SPECIAL }
    }
}
