//! Observers, which keep copies of a tree's data, such as a FUSE session with the kernel behind it.
//!
//! # What it is
//! Each observer of a tree is notified of the invalidations that file systems report
//! ([`Invalidator`](crate::Invalidator)), and, if it requests that, of the changes that operations
//! make. A tree without observers of changes pays nothing for them: they count as watches, and
//! publishing reads the number of watches.
//!
//! # How it is locked
//! A mutex around the list, never held while an observer is called: the observer may drop the last
//! use of a file, and the file system may then invalidate something
//! ([`FileSystem::evict`](crate::FileSystem::evict)), on the same thread. A notification uses a
//! copy of the list, which is replaced when it changes.
//!
//! # Where it comes from
//! `fsnotify` of Linux, for the place of the calls.

use crate::cache::superblock::SuperBlock;
use crate::notify::Watches;
use crate::slots::dentry::Dentry;
use crate::slots::inode::Inode;
use prim::shared::{PlainArc as Arc, Weak};
use sync::Mutex;

/// A keeper of copies of the cache's contents, such as a FUSE session with the kernel behind it.
/// The thread that invalidates notifies it, perhaps inside an RCU section; several threads may do
/// so at once. The observer must not block, and must not call the file system.
pub trait Observer: Send + Sync + 'static {
    /// Reports that the entry `name` of the directory is stale. `inode`: the cache's inode there, whose
    /// attributes and contents may be stale, too.
    fn entry(&self, dir: &Identity, name: &[u8], inode: Option<&Identity>);

    /// Called when the entry `name` of the directory is stale, and the file with this name was
    /// removed, with its only name. By default as [`entry`](Self::entry).
    fn removed(&self, dir: &Identity, name: &[u8], inode: &Identity) {
        self.entry(dir, name, Some(inode));
    }

    /// Reports that the attributes and contents of the inode are stale, and so are the names in it.
    fn inode(&self, inode: &Identity);

    /// Everything is stale.
    fn all(&self);

    /// Reports that an operation on the tree has changed something; for observers by
    /// [`Vfs::observe_changes`](crate::Vfs::observe_changes). Called on the thread of the
    /// operation, which may have directories locked. An observer whose own operations change the
    /// tree must recognize its threads by itself. By default it is as if a file system had reported
    /// the change.
    fn changed(&self, change: &Changed<'_>) {
        match change {
            Changed::Entry { dir, name, inode } => {
                self.entry(dir, name, inode.as_ref());
                self.inode(dir);
            }
            Changed::Inode(inode) => self.inode(inode),
        }
    }
}

/// A change by an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Changed<'a> {
    /// A name was added to a directory, or removed from it; and its length and times.
    Entry {
        /// The directory.
        dir: Identity,
        /// The name.
        name: &'a [u8],
        /// The inode that has the name now, or had it before the change.
        inode: Option<Identity>,
    },
    /// Attributes or contents of an inode.
    Inode(Identity),
}

/// The identity of an inode for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// [`PathRef::identity`](crate::PathRef::identity).
    pub inode: u64,
    /// Inode number: `st_ino`.
    pub ino: u64,
    /// The number of its file system: `st_dev`.
    pub dev: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
}

impl Identity {
    pub(crate) fn of(sb: &SuperBlock, inode: &Inode) -> Self {
        let attr = inode.attr();
        Self { inode: core::ptr::from_ref(inode) as u64, ino: attr.ino, dev: sb.slots().dev, is_dir: attr.is_dir() }
    }

    /// Returns the identity of the inode of a name, if it has one.
    pub(crate) fn behind(sb: &SuperBlock, dentry: &Dentry) -> Option<Self> {
        dentry.inode().map(|inode| Self::of(sb, inode))
    }
}

/// The observers of a tree.
#[derive(Default)]
pub(crate) struct Observers(Mutex<Arc<Vec<Arc<One>>>>);

struct One {
    observer: Box<dyn Observing>,
    /// Whether it is notified of changes too.
    hears_changes: bool,
}

/// An observer of any type, if it is still alive.
trait Observing: Send + Sync {
    /// Calls `what` with it; `false` if it was dropped.
    fn notify(&self, what: &dyn Fn(&dyn Observer)) -> bool;

    fn is_alive(&self) -> bool;
}

impl<O: Observer> Observing for Weak<O> {
    fn notify(&self, what: &dyn Fn(&dyn Observer)) -> bool {
        self.upgrade().is_some_and(|observer| {
            what(&*observer);
            true
        })
    }

    fn is_alive(&self) -> bool {
        self.upgrade().is_some()
    }
}

impl Observers {
    pub(crate) fn add<O: Observer>(&self, watches: &Watches, observer: &Arc<O>, hears_changes: bool) {
        if hears_changes {
            watches.count_observer();
        }
        let one = Arc::new(One { observer: Box::new(Arc::downgrade(observer)), hears_changes });
        self.replace(watches, Some(one));
    }

    /// Notifies all of an invalidation.
    pub(crate) fn notify(&self, watches: &Watches, what: impl Fn(&dyn Observer)) {
        self.each(watches, |one| one.observer.notify(&what));
    }

    /// Notifies the observers of changes.
    #[cold]
    pub(crate) fn changed(&self, watches: &Watches, change: &Changed<'_>) {
        self.each(watches, |one| !one.hears_changes || one.observer.notify(&|observer| observer.changed(change)));
    }

    /// Calls `notify` with each, which returns `false` for one that was dropped.
    fn each(&self, watches: &Watches, notify: impl Fn(&One) -> bool) {
        let all = self.0.lock().clone();
        let dropped = all.iter().filter(|one| !notify(one)).count();
        if dropped != 0 {
            self.replace(watches, None);
        }
    }

    /// Replaces the list by one with `more`, and without dropped observers: a tree without
    /// invalidations would keep their memory.
    #[cold]
    fn replace(&self, watches: &Watches, more: Option<Arc<One>>) {
        let mut list = self.0.lock();
        let (alive, dropped): (Vec<_>, Vec<_>) = list.iter().cloned().partition(|one| one.observer.is_alive());
        dropped.iter().filter(|one| one.hears_changes).for_each(|_| watches.uncount_observer());
        *list = Arc::new(alive.into_iter().chain(more).collect());
    }
}
