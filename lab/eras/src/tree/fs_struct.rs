//! The place of a process: its root and its working directory.
//!
//! # How it is locked
//! Until 2010 each walk takes `fs->lock` as a reader and counts root or working directory: two
//! writes to lines that all threads of the process share, and one to the line of a directory that
//! processes share. The store-free walk samples `seq` instead. A change of the working directory
//! takes the lock as the writer, in a write section of `seq`.
//!
//! # Source
//! `struct fs_struct`; its sequence count is Nick Piggin's of 2009 (Linux 2.6.38).

use super::rw_spin::{ReadGuard as FsGuard, RwSpin};
use prim::atomic::{AtomicU32, Ordering::Relaxed};
use sync::SeqCount;
use sync::rcu::ReadGuard;

/// The number of the tree's root entry.
pub(crate) const ROOT: u32 = 0;

/// See the [module documentation](self). It holds a count on the root and one on the working directory.
#[repr(align(64))]
pub(crate) struct FsStruct {
    lock: RwSpin,
    seq: SeqCount,
    root: AtomicU32,
    directory: AtomicU32,
}

impl FsStruct {
    /// Both are the tree's root.
    pub(crate) fn new() -> Self {
        let (root, directory) = (AtomicU32::new(ROOT), AtomicU32::new(ROOT));
        Self { lock: RwSpin::new(), seq: SeqCount::new(), root, directory }
    }

    /// Keeps both as they are.
    pub(crate) fn read(&self) -> FsGuard<'_> {
        self.lock.read()
    }

    /// Where a walk begins. The caller must hold the lock or sample the sequence.
    pub(crate) fn start(&self, is_absolute: bool) -> u32 {
        // Relaxed: see above; the entry itself is kept by the process's count.
        if is_absolute { self.root.load(Relaxed) } else { self.directory.load(Relaxed) }
    }

    /// Where a walk begins, without the lock, and what `also` returns for it at the same moment.
    pub(crate) fn start_rcu<T>(&self, is_absolute: bool, _guard: &ReadGuard<'_>, also: impl Fn(u32) -> T) -> (u32, T) {
        loop {
            let seq = self.seq.begin();
            let start = self.start(is_absolute);
            let and = also(start);
            if !self.seq.retry(seq) {
                return (start, and);
            }
        }
    }

    /// Changes the working directory; gives the one before. The counts are the caller's concern.
    pub(crate) fn change_directory(&self, directory: u32) -> u32 {
        let _held = self.lock.write();
        let _write = self.seq.write();
        let before = self.directory.load(Relaxed);
        self.directory.store(directory, Relaxed);
        before
    }
}
