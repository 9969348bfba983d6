//! Whether an inode's copy of the attributes is current.
//!
//! # What it is
//! A mark, and a count of events that make the order of a request and a change unknown. A request
//! takes a sample of attributes and count ([`Inode::before_request`]), and its answer is the newest
//! if both are unchanged ([`Inode::learn_answer`]). The mark stays until the answer, so that no
//! reader shows the copy meanwhile.
//!
//! # How it is locked
//! Mark and count are bits of the mode. They change in write sections of the inode's sequence lock,
//! with the attributes; so a reader gets mark, count and attributes of one moment.
//!
//! # Limitations
//! Exactly 1024 marks and answers during one request, which leave the same attributes, are not
//! noticed.
//!
//! # Where it comes from
//! `attr_version` of Linux's `fs/fuse/inode.c`.

use super::{Inode, REPORTED, STALE, VERSION, VERSION_BIT};
use crate::base::attr::Attr;
use crate::base::packed_attr::PackedAttr;
use crate::base::valid::Valid;
use crate::slots::whole_path::WholePaths;
use prim::atomic::Ordering::Relaxed;

/// A sample of an inode before a request to its file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AttrSample {
    pub(crate) attr: Attr,
    version: u32,
    is_stale: bool,
}

impl AttrSample {
    /// Returns whether these are the attributes of an answer, and not stale. The VFS notes accesses
    /// that the file system may not.
    pub(crate) fn is_of(&self, answer: &Attr) -> bool {
        !self.is_stale && is_same(&self.attr, &Attr { atime: self.attr.atime, ..*answer })
    }
}

/// Returns the mode word after one more mark or answer.
fn next_version(mode: u32) -> u32 {
    mode & !VERSION | mode.wrapping_add(1 << VERSION_BIT) & VERSION
}

/// Returns whether an inode would keep both as the same.
fn is_same(one: &Attr, other: &Attr) -> bool {
    PackedAttr::from(one) == PackedAttr::from(other)
}

impl Inode {
    /// Marks the attributes stale: the VFS calls [`FileSystem::attributes`](crate::FileSystem::attributes)
    /// before it shows them.
    ///
    /// This does not revoke a right: walks search a directory by the mode and owner in the cache
    /// until some caller requests the attributes, and a walk through the directory does not request
    /// them. A file system whose rights may change elsewhere reports the change by its
    /// [`Invalidator`](crate::Invalidator), which also expires the entries.
    pub fn mark_stale(&self) {
        let _held = self.seq.write_lock();
        self.set_mark();
    }

    #[inline]
    pub(crate) fn is_stale(&self) -> bool {
        self.mode.load(Relaxed) & STALE != 0
    }

    /// Returns the attributes, all of one moment in which they were not stale.
    #[inline]
    pub(crate) fn fresh_attr(&self) -> Option<Attr> {
        let (attr, is_stale) = self.seq.read(|| (self.load(), self.is_stale()));
        (!is_stale).then_some(attr)
    }

    /// Returns whether its file system reports its attributes.
    pub(crate) fn is_reported(&self) -> bool {
        self.mode.load(Relaxed) & REPORTED != 0
    }

    /// Notes an access. The attributes do not become stale by it.
    pub(crate) fn note_access(&self, now: i64) {
        let _held = self.seq.write_lock();
        // Relaxed: inside the sequence lock's write section.
        self.atime.store(now, Relaxed);
    }

    /// Marks attributes that the file system reports as stale, in the write section in which they
    /// change. After the section it would be too late: a request between the change in the file
    /// system and the change of the copy contains the change, and the copy would count it twice.
    pub(super) fn note_change(&self) {
        if self.is_reported() {
            self.set_mark();
        }
    }

    /// Marks the attributes stale. The caller has the sequence lock.
    pub(super) fn set_mark(&self) {
        // Relaxed: inside the sequence lock's write section.
        self.mode.store(next_version(self.mode.load(Relaxed)) | STALE, Relaxed);
    }

    /// Marks the attributes of a directory, of which other threads keep a part ([`sharded`](crate::cache::sharded)), or
    /// ends the mark.
    pub(crate) fn set_sharded(&self, is_sharded: bool) {
        let _held = self.seq.write_lock();
        // Relaxed: inside the sequence lock's write section.
        let mode = self.mode.load(Relaxed) & !STALE;
        self.mode.store(if is_sharded { mode | STALE } else { mode }, Relaxed);
    }

    /// Samples the inode before a request to its file system.
    pub(crate) fn before_request(&self) -> AttrSample {
        // Relaxed: ordered by the samples of `seq`.
        let (attr, mode) = self.seq.read(|| (self.load(), self.mode.load(Relaxed)));
        AttrSample { attr, version: mode & VERSION, is_stale: mode & STALE != 0 }
    }

    /// Returns whether nothing that the VFS received or did since `before` is newer than an answer.
    /// The caller has the sequence lock.
    fn is_as(&self, before: &AttrSample) -> bool {
        self.mode.load(Relaxed) & VERSION == before.version && self.load() == before.attr
    }

    /// Notes the answer to a request for the attributes. If the attributes changed meanwhile, or
    /// another answer came, this answer may be older: the attributes stay, and are marked stale if
    /// they differ from the answer. Mode and owner are replaced separately.
    ///
    /// Returns whether the inode has the mode and the owner of the answer.
    pub(crate) fn learn_answer(&self, paths: &WholePaths, answer: &Attr, before: &AttrSample) -> bool {
        let _held = self.seq.write_lock();
        let now = self.load();
        // Relaxed, here and below: inside the sequence lock's write section.
        let (is_newest, mode) = (self.is_as(before), self.mode.load(Relaxed));
        if is_newest {
            let _change = self.change_of_rights(paths, answer);
            self.mode.store(next_version(mode) & !STALE, Relaxed);
            self.store(answer);
            return true;
        }
        let has_rights = self.learn_rights(paths, answer, before);
        if !is_same(&now, answer) {
            self.set_mark();
        }
        has_rights
    }

    /// Takes mode and owner from an answer whose other attributes may be old, if these two have not
    /// changed since the request. Returns whether the inode has them. The caller has the sequence
    /// lock.
    fn learn_rights(&self, paths: &WholePaths, answer: &Attr, before: &AttrSample) -> bool {
        let rights = |attr: &Attr| (attr.mode, attr.uid, attr.gid);
        let mut next = self.load();
        if rights(&next) == rights(&before.attr) {
            // Only size or times changed meanwhile.
            (next.mode, next.uid, next.gid) = rights(answer);
            let _change = self.change_of_rights(paths, &next);
            self.store(&next);
        }
        rights(&next) == rights(answer)
    }

    /// Notes the attributes that the file system returned with a change, which has made `marks`
    /// marks since `before`. If there are others, the order is unknown, and the attributes stay
    /// stale. Returns whether the inode has the attributes now.
    pub(crate) fn learn_after(&self, paths: &WholePaths, attr: &Attr, before: &AttrSample, marks: u32) -> bool {
        let _held = self.seq.write_lock();
        // Relaxed: inside the sequence lock's write section.
        let mode = self.mode.load(Relaxed);
        if mode & VERSION != (0..marks).fold(before.version, |version, _| next_version(version)) {
            return false;
        }
        let _change = self.change_of_rights(paths, attr);
        self.mode.store(next_version(mode) & !STALE, Relaxed);
        self.store(attr);
        true
    }

    /// Notes the attributes from a reply to a lookup. `before`: the sample before that lookup;
    /// `None`: a lookup of a further name of the file, with no sample. If the attributes changed
    /// meanwhile, the reply may be older than the change: only mode and owner are taken, if they
    /// did not change, and the attributes are marked stale. A reply without `before` may be older
    /// than any change: if it differs, nothing of it is taken.
    ///
    /// The attributes are `valid` as the reply reports. A reply that may be older only shortens the time.
    pub(crate) fn learn_reply(&self, paths: &WholePaths, reply: &Attr, before: Option<&AttrSample>, valid: Valid) {
        let _held = self.seq.write_lock();
        let is_newest = before.map_or_else(|| is_same(&self.load(), reply), |before| self.is_as(before));
        if is_newest {
            let _change = self.change_of_rights(paths, reply);
            // Relaxed: inside the sequence lock's write section.
            self.mode.store(next_version(self.mode.load(Relaxed)), Relaxed);
            self.store(reply);
            self.set_valid(valid);
        } else {
            if valid != Valid::UntilInvalidated {
                self.set_valid(valid);
            }
            if let Some(before) = before {
                self.learn_rights(paths, reply, before);
            }
            self.set_mark();
        }
    }
}
