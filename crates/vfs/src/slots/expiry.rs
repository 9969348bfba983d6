//! Until when an entry is valid.
//!
//! # What it is
//! A time, in the entry's `cookie`, and the flag `CHECKED`, which sends walks to look at it. In a
//! directory whose names only the cache has, a cookie is a place in a listing and stays: an
//! invalidation makes only the attributes stale there.
//!
//! # How it is locked
//! No lock: a thread that reads an old time revalidates once too often, or accepts an entry that
//! was valid a moment ago.
//!
//! # Where it comes from
//! `d_revalidate` of Linux.

use crate::base::valid::Valid;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use crate::slots::object::ObjectFlags;
use crate::slots::whole_path::WholePaths;
use prim::atomic::Ordering::Relaxed;

/// Sets the expiry of an entry, which is in no listing of the cache, so that its `cookie` is free.
pub(crate) fn set_expiry(dentry: &Dentry, valid: Valid) {
    let until = match valid {
        Valid::UntilInvalidated => u64::MAX,
        Valid::For(ns) => u64::try_from(prim::clock::monotonic_ns()).unwrap_or(0).saturating_add(ns),
    };
    // Relaxed: a time. A thread that reads an old one revalidates once too often, or accepts an entry that
    // was valid a moment ago.
    dentry.cookie.store(until, Relaxed);
}

impl Dentry {
    /// Returns whether only the cache has the name: then its cookie is a place in a listing.
    pub(crate) fn is_in_cache_alone(&self) -> bool {
        self.parent().is_some_and(|dir| dir.object().is_complete())
    }

    pub(crate) fn is_expired(&self) -> bool {
        u64::try_from(prim::clock::monotonic_ns()).unwrap_or(0) >= self.cookie.load(Relaxed)
    }

    /// Marks the entry stale: it is revalidated before its next use, and users that hold the entry
    /// request its attributes. Any thread may call this, without a lock.
    pub(crate) fn expire(&self, paths: &WholePaths) {
        if let Some(inode) = self.inode() {
            inode.age();
        }
        // A root has no name to revalidate.
        if !self.is_in(self) {
            if self.is_in_cache_alone() {
                return self.inode().into_iter().for_each(Inode::mark_stale);
            }
            self.cookie.store(0, Relaxed);
        }
        self.update_flags(paths, |object| object.with(ObjectFlags::CHECKED));
    }
}
