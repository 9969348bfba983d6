//! SETATTR: changes of attributes, the length among them.
//!
//! # What it is
//! The length changes through the open file that the request names, with the rights of its opener;
//! all else changes with the caller's rights. For set-id bits see `set_ids`.
//!
//! # Where it comes from
//! `fuse_do_setattr` in Linux's `fs/fuse/dir.c`.

use super::files::Keeps;
use super::{AttrReply, Caller, Session, Who, without_fsetid};
use crate::options::Checks;
use vfs::{Attr, Errno, PathRef, SetAttr, SetTime};

impl Session {
    /// SETATTR: changes attributes; changes the length through `handle` if `handle` is open for
    /// writing. A new length keeps set-id bits if root has opened the file, or without a handle, if
    /// `caller` is root.
    ///
    /// # Errors
    /// `ESTALE`; as for [`vfs::Context::set_attr`].
    pub fn setattr(&self, caller: &Caller, node: u64, set: &SetAttr, handle: Option<u64>) -> Result<AttrReply, Errno> {
        self.setattr_as(Keeps::AsOpened, caller, node, set, handle)
    }

    /// As [`setattr`](Self::setattr), but a new length clears set-id bits: for callers without
    /// `CAP_FSETID`.
    ///
    /// # Errors
    /// As for [`setattr`](Self::setattr).
    pub fn setattr_clearing(
        &self,
        caller: &Caller,
        node: u64,
        set: &SetAttr,
        handle: Option<u64>,
    ) -> Result<AttrReply, Errno> {
        self.setattr_as(Keeps::Nothing, caller, node, set, handle)
    }

    fn setattr_as(
        &self,
        keeps: Keeps,
        caller: &Caller,
        node: u64,
        set: &SetAttr,
        handle: Option<u64>,
    ) -> Result<AttrReply, Errno> {
        let held = self.node(node)?;
        let mut set = *set;
        let clears = keeps == Keeps::Nothing || caller.who == Who::Unknown;
        if set == SetAttr::default() {
            let attr = self.change_nothing(caller, &held)?;
            return Ok(self.shown_of(node, &held, attr));
        }
        if let Some(mode) = set.mode {
            set.mode = Some(self.allowed_mode(caller, &held, mode)?);
        }
        let times = self.times_of_writes(&mut set, handle);
        if let Some(size) = set.size
            && let Some(open) = handle.and_then(|handle| self.files.get(handle))
            && open.file.flags().can_write()
        {
            open.change(self, clears, |file| file.set_len(size))?;
            set.size = None;
        }
        let is_done = set == SetAttr::default();
        let owner = held.attr()?.uid;
        let is_checked = self.options.checks == Checks::Kernel;
        if self.options.writeback && is_checked && caller.who.is_other_than(owner) {
            both_now(&mut set);
        }
        let context = self.callers.changing(caller, owner, &set);
        // The context of a user other than root has no right to keep the bits.
        let attr = if is_done {
            held.attr()?
        } else if clears && caller.who.is_root() && set.size.is_some() {
            self.clear_set_ids(&held)?;
            without_fsetid(|| context.set_attr_held(&held, &set))?
        } else {
            context.set_attr_held(&held, &set)?
        };
        let attr = if times == SetAttr::default() { attr } else { self.note_writes(&held, &times)? };
        Ok(self.shown_of(node, &held, attr))
    }

    /// Sets the times of the kernel's writes. A file that may only grow keeps the times that the
    /// tree's own writes set.
    fn note_writes(&self, held: &PathRef, times: &SetAttr) -> Result<Attr, Errno> {
        match self.callers.everyone().set_attr_held(held, times) {
            Err(Errno::EPERM) => held.attr(),
            done => done,
        }
    }

    /// With writeback the kernel keeps the times of writes and truncations, and sends these times
    /// in the name of any user, owner or not. Removes these times from `set` and
    /// returns them.
    fn times_of_writes(&self, set: &mut SetAttr, handle: Option<u64>) -> SetAttr {
        let is_writes = self.options.writeback && self.options.checks == Checks::Kernel;
        if !is_writes || set.size.is_none() && handle.is_none() {
            return SetAttr::default();
        }
        SetAttr { atime: set.atime.take(), mtime: set.mtime.take(), ..SetAttr::default() }
    }
}

/// With writeback the kernel sends `utimes(path, NULL)` with its own time for `mtime` and the
/// server's for `atime`. Only the owner may set a given time; the kernel has checked that, so from
/// another user this pair means the current time, twice.
fn both_now(set: &mut SetAttr) {
    if let (Some(SetTime::Now), Some(SetTime::At(_))) = (set.atime, set.mtime) {
        set.mtime = Some(SetTime::Now);
    }
}
