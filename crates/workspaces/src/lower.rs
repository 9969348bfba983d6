//! The base of a store: a tree that its forks read, and never change.
//!
//! # What it is
//! The base has its own [`Vfs`](vfs::Vfs), so its cache answers the forks, and calls go downwards only. A fork holds the files of the
//! base that its own cache has, and those that left the cache lately: a lookup may return a node while the inode of the same node
//! ends, and no call says which came first.
//!
//! # How it is locked
//! A mutex for a few instructions.

use crate::progress::Progress;
use crate::record::{MADE, Place, Xattrs, now_ns};
use parking_lot::Mutex;
use prim::atomic::{AtomicBool, Ordering::Relaxed};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use vfs::{Base, Context, Errno, OpenFile, OpenFlags, PathRef, Resolve};

/// The most held files whose inode was evicted, or has not begun.
const COLD: usize = 1024;

/// The most files that are known to have no ACL: about 6 MiB.
const NOTED: usize = 1 << 18;

/// After this time a change of a file has another change time, on every file system.
const SETTLED_NS: i64 = 2_000_000_000;

/// See the [module documentation](self).
#[derive(Debug)]
pub(crate) struct Lower {
    /// Has the rights with which the base is read and changed.
    pub(crate) context: Context,
    pub(crate) root: Arc<PathRef>,
    /// Of a commit to the base.
    pub(crate) progress: Progress,
    /// Whether the base has failed to rename a directory.
    pub(crate) keeps_dirs: AtomicBool,
    /// Whether no other program changes the base.
    pub(crate) is_fixed: bool,
    /// The numbers of files that are not their inode numbers, by these.
    numbers: Mutex<HashMap<u64, u64>>,
    /// Whether small inode numbers are among them.
    has_small: AtomicBool,
    /// Files without an ACL, by their numbers, each with its change time then: another ACL changes that.
    without_acl: Mutex<HashMap<u64, i64>>,
}

impl Lower {
    pub(crate) fn new(context: Context, is_fixed: bool) -> Result<Self, Errno> {
        let root = Arc::new(context.hold(Base::CWD, b"/", true)?);
        let (progress, keeps_dirs, numbers, has_small, without_acl) = Default::default();
        Ok(Self { context, root, progress, keeps_dirs, is_fixed, numbers, has_small, without_acl })
    }

    /// Returns the path of a file from the root.
    pub(crate) fn path(&self, held: &PathRef) -> Vec<u8> {
        let path = self.context.path_of(held);
        path.strip_prefix(b"/").unwrap_or(&path).to_vec()
    }

    /// Returns the file of a name.
    ///
    /// # Errors
    /// `ENOENT`; `EXDEV`: another file system is mounted there, whose inode numbers may be the same; the base's.
    pub(crate) fn find(&self, dir: &PathRef, name: &[u8]) -> Result<PathRef, Errno> {
        self.context.hold(Base::at(dir).within(Resolve::NO_XDEV), name, false)
    }

    /// As [`find`](Self::find); `None`: there is no such name.
    pub(crate) fn find_if(&self, dir: &PathRef, name: &[u8]) -> Result<Option<PathRef>, Errno> {
        match self.find(dir, name) {
            Err(Errno::ENOENT) => Ok(None),
            found => found.map(Some),
        }
    }

    /// As [`find_if`](Self::find_if), also after a change that another program has just made.
    pub(crate) fn find_anew(&self, dir: &PathRef, name: &[u8]) -> Result<Option<PathRef>, Errno> {
        if !self.is_fixed {
            dir.expire(name);
        }
        self.find_if(dir, name)
    }

    /// Opens a file to read it, or a directory to list it.
    ///
    /// # Errors
    /// The base's.
    pub(crate) fn open(&self, held: &PathRef) -> Result<OpenFile, Errno> {
        self.context.open_held(held, OpenFlags::RDONLY.union(OpenFlags::NOATIME))
    }

    /// Returns the value of an extended attribute.
    pub(crate) fn xattr(&self, held: &PathRef, name: &[u8]) -> Result<Box<[u8]>, Errno> {
        self.context.get_xattr_held(held, name)
    }

    /// Returns the names of all extended attributes: none, if the base has none.
    pub(crate) fn xattr_names(&self, held: &PathRef) -> Result<Vec<Box<[u8]>>, Errno> {
        match self.context.list_xattrs_held(held) {
            Err(Errno::EOPNOTSUPP) => Ok(Vec::new()),
            names => names,
        }
    }

    /// Returns all extended attributes.
    pub(crate) fn xattrs(&self, held: &PathRef) -> Result<Xattrs, Errno> {
        let value = |name: Box<[u8]>| self.xattr(held, &name).map(|value| (name, value));
        self.xattr_names(held)?.into_iter().map(value).collect()
    }

    /// Returns whether the file of a number had no ACL when its change time was this.
    pub(crate) fn has_no_acl(&self, number: u64, ctime: i64) -> bool {
        self.without_acl.lock().get(&number) == Some(&ctime)
    }

    /// Notes that the file of a number has no ACL.
    pub(crate) fn note_no_acl(&self, number: u64, ctime: i64) {
        // A later change may have the same time.
        let is_settled = self.is_fixed || ctime.saturating_add(SETTLED_NS) < now_ns();
        let mut without_acl = self.without_acl.lock();
        if without_acl.len() >= NOTED {
            without_acl.clear();
        }
        if is_settled {
            without_acl.insert(number, ctime);
        }
    }

    /// Returns the root directory for paths without links and other file systems.
    pub(crate) fn base(&self) -> Base<'_> {
        Base::at(&self.root).within(Resolve::NO_SYMLINKS.union(Resolve::NO_XDEV))
    }

    /// Returns the file at a path from the root.
    ///
    /// # Errors
    /// The base's.
    pub(crate) fn at(&self, path: &[u8]) -> Result<PathRef, Errno> {
        self.context.hold(self.base(), if path.is_empty() { b"." } else { path }, false)
    }

    /// Returns the numbers of files that are not their inode numbers.
    pub(crate) fn numbers(&self) -> Vec<(u64, u64)> {
        self.numbers.lock().iter().map(|(ino, node)| (*ino, *node)).collect()
    }

    /// Returns the number in the forks of the file with this inode number. `next` returns a new number.
    pub(crate) fn number(&self, ino: u64, next: impl FnOnce() -> u64) -> u64 {
        // Relaxed: a file that has this inode number anew was made after the commit that set it.
        if ino < MADE && !self.has_small.load(Relaxed) {
            return ino;
        }
        let mut numbers = self.numbers.lock();
        let given = numbers.get(&ino).copied().or((ino < MADE).then_some(ino));
        given.unwrap_or_else(|| *numbers.entry(ino).or_insert_with(next))
    }

    /// Gives the next files with an inode number another number.
    pub(crate) fn set_number(&self, ino: u64, number: u64) {
        self.numbers.lock().insert(ino, number);
        self.has_small.fetch_or(ino < MADE, Relaxed);
    }
}

/// A file of the base, held, with a name that it has in the fork.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) file: Arc<PathRef>,
    /// The directory, and the name in it. `None`: the root.
    pub(crate) place: Option<Place>,
}

/// The files of the base that a fork holds, by their nodes.
#[derive(Debug, Default)]
pub(crate) struct HeldFiles {
    files: HashMap<u64, (Held, bool)>,
    /// All places of lookups of a file with several names.
    links: HashMap<u64, Vec<Place>>,
    cold: VecDeque<u64>,
}

impl HeldFiles {
    /// Returns the file of a node.
    pub(crate) fn get(&self, node: u64) -> Option<&Held> {
        self.files.get(&node).map(|(held, _)| held)
    }

    /// Returns the places by which lookups found a node.
    pub(crate) fn places(&self, node: u64) -> Vec<Place> {
        let one = || self.get(node).and_then(|held| held.place.clone()).into_iter().collect();
        self.links.get(&node).cloned().unwrap_or_else(one)
    }

    /// Holds the file of a node that a lookup returns.
    pub(crate) fn hold(&mut self, node: u64, held: Held) {
        if let Some(place) = held.place.clone()
            && held.file.attr().is_ok_and(|attr| attr.nlink > 1 && !attr.is_dir())
        {
            let places = self.links.entry(node).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        }
        self.files.insert(node, (held, false));
    }

    /// Holds the file of a node that may have no inode, unless it is held already.
    pub(crate) fn keep(&mut self, node: u64, held: Held) {
        if !self.files.contains_key(&node) {
            self.hold(node, held);
            self.evicted(node);
        }
    }

    /// Replaces the held files for which `new` returns another one.
    pub(crate) fn replace(&mut self, new: impl Fn(&PathRef) -> Option<Arc<PathRef>>) {
        for (held, _) in self.files.values_mut() {
            held.file = new(&held.file).unwrap_or_else(|| held.file.clone());
        }
    }

    /// Notes that the inode of a node was evicted.
    pub(crate) fn evicted(&mut self, node: u64) {
        // The root stays.
        if let Some((_, is_cold)) = self.files.get_mut(&node).filter(|(held, _)| held.place.is_some()) {
            *is_cold = true;
            self.cold.push_back(node);
        }
        while self.cold.len() > COLD {
            let Some(oldest) = self.cold.pop_front() else { break };
            if self.files.get(&oldest).is_some_and(|(_, is_cold)| *is_cold) {
                self.files.remove(&oldest);
                self.links.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vfs::Vfs;

    #[test]
    fn a_number_is_kept_only_if_it_is_not_the_inode_number() {
        let lower = Lower::new(Vfs::new(ramfs::RamFs::new()).context(), false).unwrap();
        let never = || unreachable!("small numbers stay");
        assert_eq!((lower.number(7, never), lower.number(MADE, || MADE + 9)), (7, MADE + 9));
        lower.set_number(7, MADE + 10);
        assert_eq!((lower.number(7, never), lower.number(8, never)), (MADE + 10, 8));
        assert_eq!(lower.number(MADE, never), MADE + 9);
        assert_eq!(lower.numbers().len(), 2);
    }

    #[test]
    fn a_change_of_an_acl_is_seen_by_its_time() {
        let lower = |is_fixed| Lower::new(Vfs::new(ramfs::RamFs::new()).context(), is_fixed).unwrap();
        let now = now_ns();
        let old = now - 10_000_000_000;
        let shown = lower(false);
        shown.note_no_acl(1, now);
        assert!(!shown.has_no_acl(1, now), "the next change may have this time");
        shown.note_no_acl(1, old);
        assert!(shown.has_no_acl(1, old) && !shown.has_no_acl(1, now) && !shown.has_no_acl(2, old));
        let fixed = lower(true);
        fixed.note_no_acl(1, now);
        assert!(fixed.has_no_acl(1, now));
        for number in 0..3 * NOTED as u64 {
            fixed.note_no_acl(number, old);
        }
        assert!(fixed.without_acl.lock().len() <= NOTED);
    }
}
