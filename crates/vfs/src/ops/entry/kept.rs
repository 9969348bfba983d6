//! The counts of an operation: on the directory that its walk found, and on entries.
//!
//! # Where it comes from
//! As [`entry`](super).

use crate::base::errno::Errno;
use crate::cache::superblock::SuperBlock;
use crate::mount::place::PathRef;
use crate::slots::dentry::Dentry;
use crate::slots::slot::DentryRef;
use crate::walk::walk_end::WalkEnd;

/// A directory that a walk found, held, with its sequence at that moment.
pub(crate) struct DirAt {
    pub(in crate::ops) place: PathRef,
    seq: u32,
}

impl DirAt {
    /// Holds the directory at which a walk ended.
    ///
    /// # Errors
    /// `EAGAIN`, which the walk never returns.
    pub(in crate::ops) fn keep(found: &WalkEnd<'_>) -> Result<Self, Errno> {
        let place = PathRef::new(found.count_mount()?, found.count_dentry()?);
        Ok(Self { place, seq: found.seq })
    }

    pub(crate) fn dir(&self) -> &Dentry {
        self.place.dentry()
    }

    /// Returns whether the directory is unchanged since the walk found it. If so, it stays in the
    /// tree while its lock is held; only its own name and place may change.
    pub(in crate::ops) fn is_current(&self) -> bool {
        !self.dir().seq.retry(self.seq)
    }
}

/// An entry that was found under its directory's lock, held so that the owner of that lock may search for another one
/// ([`MayEvict`](crate::cache::reclaim::MayEvict)).
pub(crate) struct Pinned<'s>(&'s SuperBlock, Option<DentryRef>);

impl<'s> Pinned<'s> {
    pub(in crate::ops) fn of(sb: &'s SuperBlock, counted: DentryRef) -> Self {
        Self(sb, Some(counted))
    }
}

impl core::ops::Deref for Pinned<'_> {
    type Target = Dentry;

    fn deref(&self) -> &Dentry {
        self.1.as_ref().expect("emptied by drop alone").get(self.0.slots())
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        self.1.take().into_iter().for_each(|pinned| self.0.unpin(pinned));
    }
}
