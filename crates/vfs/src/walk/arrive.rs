//! Steps of rcu-walk that find no name: from a name to its target, into a directory, and up.
//!
//! # What it is
//! The checks between a found entry and the place it leads to: expiry, mounts, permission. The common step
//! needs none of them: a flag in the object word ([`SPECIAL`](crate::slots::object::ObjectFlags::SPECIAL), or a missing
//! `SEARCH_ALL`) sends the walk here.
//!
//! # How it is ordered
//! As in the other steps, data of a place is used after a check of its sequence. Mounts are found under RCU.

use crate::base::access::credentials::MAY_EXEC;
use crate::base::errno::Errno;
use crate::base::flags::Resolve;
use crate::cache::fallback::Fallback;
use crate::mount::place::Place;
use crate::slots::inode::Inode;
use crate::slots::object::ObjectFlags;
use crate::slots::slot::inode_of;
use crate::walk::follow::{Up, check_up, up_from};
use crate::walk::permission::may_rcu;
use crate::walk::rcu_walk::{RcuWalk, Step, StepEnd, fail};
use crate::walk::resolve::is_within_rcu;

impl<'g> Step<'g> {
    /// Samples the start of a walk. The name of the start, and mounts on it, do not matter, but its
    /// age does.
    #[inline(always)]
    pub(crate) fn first(place: Place<'g>) -> Self {
        let at = Self::sample(place.mount, place.dentry);
        let nameless = ObjectFlags::MOUNTED.union(ObjectFlags::COLD);
        Self { object: at.object.without(nameless).with(ObjectFlags::START), ..at }
    }

    /// Returns this place after a `..` that stays at it. As on Linux (`follow_dotdot`), the walk then
    /// crosses a mount on the place, which it does not at its start.
    fn at_top(self) -> Self {
        let is_mountpoint = self.dentry.object().is_mountpoint();
        let mounted = self.object.with(ObjectFlags::MOUNTED).without(ObjectFlags::SEARCH_ALL);
        let object = if is_mountpoint { mounted } else { self.object };
        Self { object, ..self }
    }
}

impl<'g> RcuWalk<'g> {
    /// From a name to its target: fails for a negative entry, leaves rcu-walk for an expired one, and crosses
    /// mount points.
    pub(super) fn arrive(&self, at: &Step<'g>) -> Result<Step<'g>, StepEnd> {
        let mut at = *at;
        if at.object.has_expiry() {
            self.check_expiry(&at)?;
        }
        if at.object.is_cold() || at.object.is_negative() {
            at.dentry.hit(at.object);
        }
        at.object = at.object.without(ObjectFlags::CHECKED | ObjectFlags::COLD);
        if at.object.is_negative() {
            return Err(fail(&at, Errno::ENOENT));
        }
        while at.object.is_mountpoint() {
            match at.mount.get().child_rcu(self.guard, at.dentry) {
                None => at.object = at.object.without(ObjectFlags::MOUNTED),
                Some(_) if self.resolve.contains(Resolve::NO_XDEV) => return Err(fail(&at, Errno::EXDEV)),
                Some(child) => {
                    at = Step::sample(child, child.get().root());
                    if at.object.has_expiry() {
                        check_age(&at)?;
                        at.object = at.object.without(ObjectFlags::CHECKED);
                    }
                }
            }
        }
        Ok(at)
    }

    /// Checks a name with an expiry; of a place that the walk did not find by a name, the age of its attributes.
    fn check_expiry(&self, at: &Step<'g>) -> Result<(), StepEnd> {
        if at.object.has(ObjectFlags::START) || at.dentry.is_in(at.dentry) {
            return check_age(at);
        }
        let is_stale = !core::ptr::eq(at.dentry, self.fresh) && at.dentry.is_expired();
        if is_stale { Err(StepEnd::Fallback(Fallback::Revalidate)) } else { Ok(()) }
    }

    /// `.` and `..`
    pub(super) fn step_dots(&self, at: &Step<'g>, len: usize) -> Result<Step<'g>, StepEnd> {
        if len == 1 {
            return Ok(*at);
        }
        let mut from = *at;
        loop {
            match up_from(self.guard, &from.place(), &self.root, self.resolve) {
                Ok(Up::Parent) => break,
                Ok(Up::Stays) => return Ok(at.at_top()),
                Ok(Up::Mountpoint(up)) => {
                    from = Step::start(Place { mount: up.parent.borrow(), dentry: up.mountpoint() });
                }
                Err(errno) => return Err(fail(at, errno)),
            }
        }
        let parent = from.dentry.parent().map(|parent| Step::sample(from.mount, parent));
        match parent {
            Some(parent) if !at.changed() && !from.changed() => self.check_up(parent),
            _ => Err(StepEnd::Fallback(Fallback::DirectoryChanged)),
        }
    }

    fn check_up(&self, up: Step<'g>) -> Result<Step<'g>, StepEnd> {
        let place = up.place();
        let is_within = |root: &Place<'_>| is_within_rcu(self.tree, self.guard, place, root);
        match check_up(&place, &self.root, self.resolve, is_within) {
            Some(Ok(())) => Ok(up),
            Some(Err(errno)) => Err(fail(&up, errno)),
            None => Err(StepEnd::Fallback(Fallback::TreeChanged)),
        }
    }

    /// Enters a place that is not a directory open to everyone, if it is a directory and the walk may search
    /// it; returns the place.
    pub(super) fn enter(&self, at: &Step<'g>) -> Result<Step<'g>, StepEnd> {
        let at = self.arrive(at)?;
        if at.object.is_link() {
            return Err(StepEnd::Link);
        }
        if !at.object.is_dir() {
            return Err(fail(&at, Errno::ENOTDIR));
        }
        if at.object.is_open_dir() {
            return Ok(at);
        }
        let Some(inode) = inode_of(at.dentry, at.object) else { return Err(StepEnd::Fallback(Fallback::EntryChanged)) };
        match may_rcu(self.guard, inode, inode.rights(), self.cred, MAY_EXEC) {
            Ok(()) => Ok(at),
            Err(errno) => Err(fail(&at, errno)),
        }
    }
}

/// Leaves rcu-walk if the attributes of a place that was not found by its name are too old.
fn check_age(at: &Step<'_>) -> Result<(), StepEnd> {
    let is_old = inode_of(at.dentry, at.object).is_some_and(Inode::is_old);
    if is_old { Err(StepEnd::Fallback(Fallback::Attributes)) } else { Ok(()) }
}
