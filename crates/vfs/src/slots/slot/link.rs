//! Links between dentries.
//!
//! The invariants are in [slots](super).
//!
//! # How it is locked
//! Each use names its cover of the link: a sequence, or a lock.
//!
//! # Where it comes from
//! As [`slot`](super).

use crate::slots::dentry::Dentry;
use prim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// A pointer to a dentry of the same tree, or none.
#[derive(Default)]
#[repr(transparent)]
pub(crate) struct Link(AtomicPtr<Dentry>);

impl Link {
    pub(crate) fn none() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> Option<&Dentry> {
        // ORDERING: Acquire, pairs with the Release in `Link::set_option`: the thread that made the link had the
        // target from its slab, so the dentry that the slab first wrote there is seen. What its name is now, the
        // caller's samples of its `seq` order, or the lock that covers the link.
        let target = self.0.load(Acquire);
        // SAFETY: invariant 1.
        unsafe { target.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn is(&self, dentry: &Dentry) -> bool {
        core::ptr::eq(self.0.load(Relaxed), dentry)
    }

    /// Sets the link to `target` if there is none; returns whether it did.
    pub(crate) fn claim(&self, target: &Dentry) -> bool {
        let target = core::ptr::from_ref(target).cast_mut();
        // ORDERING: AcqRel: Release as in `Link::set_option`; Acquire pairs with that Release, by which the link was emptied: what
        // was done before is seen.
        self.0.compare_exchange(core::ptr::null_mut(), target, AcqRel, Relaxed).is_ok()
    }

    #[inline(always)]
    pub(crate) fn set(&self, target: &Dentry) {
        self.set_option(Some(target));
    }

    #[inline(always)]
    pub(crate) fn set_option(&self, target: Option<&Dentry>) {
        let target = target.map_or(core::ptr::null_mut(), |target| core::ptr::from_ref(target).cast_mut());
        // ORDERING: Release, pairs with the Acquire in `Link::get`: a thread that follows the link finds a dentry.
        self.0.store(target, Release);
    }
}
