//! The object word of a dentry, as an atomic.
//!
//! # What it is
//! The word that walks load, and the three ways to change it: a store, under the locks that exclude all others; a
//! read-modify-write; and the *mark* of a directory or link that a recorded path passes ([`ObjectFlags::PASSED`]), which
//! [`whole_path`](crate::slots::whole_path) explains.
//!
//! # How it is locked
//! See [`Dentry::update_object`](crate::slots::dentry::Dentry::update_object). Of the mark: all changes of a marked word are
//! read-modify-writes, until the dentry is free.
//!
//! # Where it comes from
//! As [`object`](crate::slots::object). `tests/loom/whole_path.rs` compiles this file beside a smaller dentry.

use crate::slots::object::{Object, ObjectFlags};
use crate::slots::whole_path::{Kind, WholePaths};
use prim::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// See the [module documentation](self).
#[repr(transparent)]
pub(crate) struct ObjectWord(AtomicU64);

impl ObjectWord {
    pub(crate) fn new(object: Object) -> Self {
        Self(AtomicU64::new(object.bits()))
    }

    #[inline(always)]
    pub(crate) fn load(&self) -> Object {
        // ORDERING: Acquire, pairs with the Release store in `store`: the inode's attributes are seen. Pairs with `mark` too: a
        // thread that loads a mark sees what its maker saw.
        Object::from_bits(self.0.load(Acquire))
    }

    pub(crate) fn store(&self, object: Object) {
        // ORDERING: Release, pairs with the Acquire load in `load`.
        self.0.store(object.bits(), Release);
    }

    pub(crate) fn update(&self, mut change: impl FnMut(Object) -> Object) {
        let change = |bits| Some(change(Object::from_bits(bits)).bits());
        // ORDERING: Release, pairs with the Acquire load in `load`.
        let _ = self.0.fetch_update(Release, Relaxed, change);
    }

    /// Changes the word of a directory or link. If a marked directory is closed by this, or each
    /// walk through the directory or link must look at more, this is a hard change of `paths`.
    pub(crate) fn update_dir(&self, paths: &WholePaths, mut change: impl FnMut(Object) -> Object) {
        let (mut old, mut counted) = (self.load(), None);
        loop {
            let new = change(old);
            if old.has(ObjectFlags::PASSED) && old.is_harder_as(new) {
                counted.get_or_insert_with(|| paths.change(Kind::Hard));
            }
            // ORDERING: Release, pairs with the Acquire load in `load`. A recorder that marks the directory later sees its new
            // flags in this word; one that marked it before has made the exchange fail.
            match self.0.compare_exchange(old.bits(), new.bits(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => old = Object::from_bits(now),
            }
        }
    }

    /// Marks a directory or link that a path is about to pass. Returns the word with the mark.
    pub(crate) fn pass(&self) -> Object {
        let object = self.load();
        // If the mark is set, nothing is stored, and no other CPU loses the line. All changes since
        // the mark are read-modify-writes, so the load above sees everything that the thread that
        // set the mark saw.
        if object.has(ObjectFlags::PASSED) { object } else { self.mark(ObjectFlags::PASSED) }
    }

    /// Returns whether a recorded path passed the directory or link. A recorder that sets the mark
    /// later sees the caller's earlier changes.
    pub(crate) fn is_passed(&self) -> bool {
        self.mark(ObjectFlags::empty()).has(ObjectFlags::PASSED)
    }

    /// Adds `flags`, or none, by a read-modify-write. Returns the word after that.
    fn mark(&self, flags: ObjectFlags) -> Object {
        // ORDERING: AcqRel, with itself and with the Acquire load in `load`: a thread that marks a directory after another read
        // its word by `is_passed` sees what that one did before, as does a thread that loads the mark.
        Object::from_bits(self.0.fetch_or(flags.bits(), AcqRel)).with(flags)
    }
}
