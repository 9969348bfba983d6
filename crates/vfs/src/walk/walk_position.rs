//! The place of a ref-walk.
//!
//! # How it is locked
//! It is counted, or held as in [`sharded`](crate::cache::sharded): a directory in which several
//! threads look names up at once is held without a write to a line that they share.

use crate::cache::sharded::ShardedDirRef;
use crate::cache::superblock::SuperBlock;
use crate::mount::Mount;
use crate::mount::place::{PathRef, Place};
use crate::slots::dentry::Dentry;
use crate::walk::rcu_walk::Step;
use sync::PerCpuArc;
use sync::rcu::ReadGuard;

/// See the [module documentation](self).
pub(crate) enum Here {
    Counted(PathRef),
    Sharded(ShardedPlace),
}

/// A place in a sharded directory, without a count.
pub(crate) struct ShardedPlace {
    mount: PerCpuArc<Mount>,
    /// Emptied by drop alone.
    hold: Option<ShardedDirRef>,
}

impl Drop for ShardedPlace {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            self.mount.sb.end_hold(hold);
        }
    }
}

impl Here {
    /// Returns the place where an rcu-walk stopped; `None`: it has changed, or is being unmounted.
    pub(super) fn hold(guard: &ReadGuard<'_>, at: &Step<'_>) -> Option<Self> {
        let mount = at.mount.to_arc()?;
        let sb = &at.mount.get().sb;
        if let Some(hold) = sb.hold_sharded(guard, at.dentry, at.seq) {
            return Some(Self::Sharded(ShardedPlace { mount, hold: Some(hold) }));
        }
        let pinned = sb.pin_rcu(guard, at.dentry, at.seq)?;
        Some(Self::Counted(PathRef::new(mount, pinned)))
    }

    pub(crate) fn mount(&self) -> &PerCpuArc<Mount> {
        match self {
            Self::Counted(place) => place.mount(),
            Self::Sharded(place) => &place.mount,
        }
    }

    pub(crate) fn sb(&self) -> &SuperBlock {
        &self.mount().sb
    }

    pub(crate) fn dentry(&self) -> &Dentry {
        match self {
            Self::Counted(place) => place.dentry(),
            Self::Sharded(place) => place.hold.as_ref().expect("emptied by drop alone").get(&place.mount.sb),
        }
    }

    pub(crate) fn place(&self) -> Place<'_> {
        Place { mount: self.mount().borrow(), dentry: self.dentry() }
    }

    /// Returns this place, counted.
    pub(crate) fn to_place(&self) -> PathRef {
        PathRef::new(self.mount().clone(), self.sb().pin_again(self.dentry()))
    }
}
