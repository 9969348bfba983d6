//! Changes of attributes, and of the right to search a directory that follows from them.
//!
//! # What it is
//! The right to search a directory follows from its mode, owner and group. Where a recorded path
//! passed the directory ([`whole_path`](crate::slots::whole_path)), their change is counted. So
//! only a caller that has the tree's [`WholePaths`] can make such a change.
//!
//! # How it is locked
//! Attributes change in write sections of the inode's sequence lock. Inside the section the changer
//! reads the directory's mark by a read-modify-write; a recorder sets the mark by a
//! read-modify-write, or finds it set, and then reads the attributes once no section is open.

use super::Inode;
use crate::base::attr::Attr;
use crate::slots::slot::dentry_beside;
use crate::slots::whole_path::{Change, Kind, WholePaths};

/// Returns the bits and numbers from which the right to search a directory without an ACL follows.
fn search_rights(attr: &Attr) -> (u32, u32, u32) {
    (attr.mode & 0o111, attr.uid, attr.gid)
}

impl Inode {
    /// Changes attributes under the inode's sequence lock. `f` must not block. Attributes that the file system reports are stale
    /// after that ([`Attributes::FileSystem`](crate::Attributes::FileSystem)).
    ///
    /// Do not change mode, owner and group of a directory: walks may not notice the change. If a
    /// path through the directory is in the table of whole paths, the three keep their old values;
    /// the attributes become stale, and are requested before they are shown. A file system whose
    /// rights change by themselves reports that by its [`Invalidator`](crate::Invalidator).
    pub fn update<R>(&self, f: impl FnOnce(&mut Attr) -> R) -> R {
        let _held = self.seq.write_lock();
        let before = self.load();
        let mut attr = before;
        let result = f(&mut attr);
        let rights = |attr: &Attr| (attr.mode, attr.uid, attr.gid);
        if before.is_dir() && rights(&attr) != rights(&before) && dentry_beside(self).is_passed() {
            (attr.mode, attr.uid, attr.gid) = rights(&before);
            self.set_mark();
        }
        self.store(&attr);
        self.note_change();
        result
    }

    /// Updates as [`Inode::update`]; `f` may also change mode and owner. If the inode is a directory, the caller then updates
    /// the object word of its dentry (the word with the inode's address and flags).
    pub(crate) fn update_rights<R>(&self, paths: &WholePaths, f: impl FnOnce(&mut Attr) -> R) -> R {
        let _held = self.seq.write_lock();
        let mut attr = self.load();
        let result = f(&mut attr);
        let _change = self.change_of_rights(paths, &attr);
        self.store(&attr);
        self.note_change();
        result
    }

    /// Counts a change to the attributes `next` if it concerns a recorded path. The caller has the sequence lock.
    pub(super) fn change_of_rights<'p>(&self, paths: &'p WholePaths, next: &Attr) -> Option<Change<'p>> {
        let now = self.load();
        let is_open = |attr: &Attr| attr.mode & 0o111 == 0o111 && !self.has_acl();
        let stays = search_rights(&now) == search_rights(next) || (is_open(&now) && is_open(next));
        if stays || !now.is_dir() || paths.table().is_none() || !dentry_beside(self).is_passed() {
            return None;
        }
        Some(paths.change(Kind::Hard))
    }
}
