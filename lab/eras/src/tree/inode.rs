//! An inode: the file behind an entry. One for each entry and of the same number: there are no hard links here.
//!
//! # Layout
//! The fields that walks read (the mode) are apart from the fields that changes write. This is
//! kinder than 2.6, where `i_mode` was within a line of `i_nlink` and `i_count`. The directory's
//! mutex and the semaphore are on separate lines.
//!
//! # How it is locked
//! `mutex` is `i_mutex` (before 2006 a semaphore). Changes and listings of the directory hold it,
//! and removal of the file. Attributes of a directory are written under it, a file's under its
//! directory's. The list of all inodes owns its links.

use super::list::Links;
use super::semaphore::Semaphore;
use locks::lockstat::Class;
use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use prim::shared::Arc;
use sync::rwsem::SlowPath;
use sync::{Lock, LockGuard, RawLock};

/// Begins a new cache line.
#[repr(align(64))]
struct Apart;

/// See the [module documentation](self).
#[repr(C, align(64))]
pub(crate) struct Inode<P: SlowPath, M: RawLock> {
    is_directory: AtomicU32,
    _read_mostly: [u32; 15],
    links: AtomicU32,
    /// Names in a directory, in place of its size.
    names: AtomicU32,
    /// Changes of a directory, in place of its times.
    changes: AtomicU64,
    /// The list of all inodes of the file system.
    pub(crate) all: Links,
    /// Whose part of a divided list it is on.
    pub(crate) home: AtomicU32,
    _written: [u32; 9],
    /// `i_mutex`.
    mutex: Lock<M, ()>,
    _mutex: Apart,
    /// `i_rwsem`.
    pub(crate) semaphore: Semaphore<P>,
}

impl<P: SlowPath, M: RawLock> Inode<P, M> {
    /// Returns an inode that is not in use; `wait_lock` counts for its semaphore.
    pub(crate) fn new(wait_lock: &Arc<Class>) -> Self {
        Self {
            is_directory: AtomicU32::new(0),
            _read_mostly: [0; 15],
            links: AtomicU32::new(0),
            names: AtomicU32::new(0),
            changes: AtomicU64::new(0),
            all: Links::new(),
            home: AtomicU32::new(0),
            _written: [0; 9],
            mutex: Lock::new(()),
            _mutex: Apart,
            semaphore: Semaphore::new(wait_lock),
        }
    }

    /// Takes the mutex.
    pub(crate) fn lock(&self) -> LockGuard<'_, M, ()> {
        prim::lockstat::named(|| "i_mutex");
        self.mutex.lock()
    }

    /// Makes the inode a new file or an empty directory.
    pub(crate) fn reset(&self, is_directory: bool) {
        // Relaxed, all here: the inode is not published yet; publishing its entry orders.
        self.is_directory.store(is_directory.into(), Relaxed);
        self.links.store(if is_directory { 2 } else { 1 }, Relaxed);
        self.names.store(0, Relaxed);
    }

    pub(crate) fn is_directory(&self) -> bool {
        // Relaxed: does not change while an entry has the inode; walkers check that it has.
        self.is_directory.load(Relaxed) != 0
    }

    pub(crate) fn links(&self) -> u32 {
        // Relaxed: a number at some moment.
        self.links.load(Relaxed)
    }

    /// Returns the number of names in the directory.
    pub(crate) fn names(&self) -> u32 {
        // Relaxed: a number at some moment.
        self.names.load(Relaxed)
    }

    /// Notes that a name was added (1), removed (-1), or replaced (0), and that `directories` more
    /// directories are below. The caller holds `mutex`.
    pub(crate) fn names_changed(&self, names: i32, directories: i32) {
        // Relaxed: under the mutex, so loads and stores do.
        let add = |place: &AtomicU32, by: i32| place.store(place.load(Relaxed).wrapping_add_signed(by), Relaxed);
        add(&self.names, names);
        if directories != 0 {
            add(&self.links, directories);
        }
        self.changes.store(self.changes.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// Notes that the inode's last name was removed.
    pub(crate) fn unlinked(&self) {
        self.links.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::mem::offset_of;

    #[test]
    fn what_walks_read_is_apart_from_what_changes_write() {
        type I = Inode<sync::EarlyExit, sync::RawMutex>;
        assert_eq!([offset_of!(I, links), offset_of!(I, mutex), offset_of!(I, semaphore)], [64, 128, 192]);
    }
}
