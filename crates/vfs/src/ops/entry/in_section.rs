//! Operations on a name in the walk's read section, with the lock of the directory or of the name.
//!
//! # How it is locked
//! As [`entry`](super).
//!
//! # Where it comes from
//! As [`entry`](super).

use crate::base::errno::Errno;
use crate::base::rank::Rank;
use crate::cache::reclaim::{LockedDirs, MayEvict};
use crate::mount::context::Context;
use crate::ops::entry::{Entry, Mode};
use crate::ops::last_component::Last;
use crate::slots::shard::Names;
use crate::walk::walk_end::{DirRef, WalkEnd};
use core::cell::Cell;
use sync::MutexGuard;

/// An operation on a name that may take place in a walk's section.
pub(crate) trait Operation {
    /// Does it. Mark it `#[inline(always)]`.
    fn apply(&self, entry: &Entry<'_, '_>, may_evict: &mut MayEvict) -> Result<(), Errno>;
}

impl Context {
    /// Returns the result of `f` in the walk's section, if it can take place there. `again`: the
    /// same as `f`, for rare cases.
    #[inline(always)]
    pub(super) fn try_in_section<'p, R>(
        &self,
        found: &WalkEnd<'_>,
        last: &Last<'p>,
        f: &(impl Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno> + ?Sized),
        again: &dyn Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Option<Result<R, Errno>> {
        let sb = found.sb();
        if !sb.never_waits {
            return None;
        }
        let Some(lock) = found.lock_here() else { return self.try_in_sharded(found, last, again) };
        self.in_section(found, last, (lock, None), sb.hash_again(last.name, last.short), f)
    }

    /// As `try_in_section`, for a directory that another thread has locked, if it is sharded.
    #[cold]
    #[inline(never)]
    fn try_in_sharded<'p, R>(
        &self,
        found: &WalkEnd<'_>,
        last: &Last<'p>,
        f: &dyn Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno>,
    ) -> Option<Result<R, Errno>> {
        let hash = found.sb().hash_again(last.name, last.short);
        let (lock, names) = found.enter_here(hash)?;
        self.in_section(found, last, (lock, Some(names)), hash, f)
    }

    /// Returns the result of `f` in the walk's section, with the lock of the directory or of the
    /// name.
    #[inline(always)]
    fn in_section<'a, 'p, R>(
        &self,
        found: &WalkEnd<'a>,
        last: &Last<'p>,
        (lock, names): (MutexGuard<'a, ()>, Option<Names<'a>>),
        hash: u64,
        f: &(impl Fn(&Entry<'_, 'p>, &mut MayEvict) -> Result<R, Errno> + ?Sized),
    ) -> Option<Result<R, Errno>> {
        let sb = found.sb();
        let mut held = LockedDirs::new(sb.ranks.taken(Rank::Directory, lock));
        let leaves = Cell::new(false);
        let entry = Entry {
            context: self,
            mount: found.mount,
            sb,
            dir: found.dentry,
            last,
            hash,
            names: names.as_ref(),
            links: found.links,
            caller: self.caller_rcu(found.guard),
            keeper: Mode::Section(found.guard, &leaves),
        };
        let done = f(&entry, held.may_evict());
        if leaves.get() {
            found.unlocked();
            return None;
        }
        Some(done)
    }
}

/// Keeps the directory of a path's `last` component, and one lock if no other thread has it: the
/// name's lock or the directory's lock. With `whole` only the directory's lock is enough.
#[inline(always)]
pub(super) fn keep(found: &WalkEnd<'_>, last: &Last<'_>, whole: bool) -> Result<DirRef, Errno> {
    found.lock_or_pin(|| (!whole).then(|| found.sb().hash_again(last.name, last.short)))
}
