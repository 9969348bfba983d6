//! How far a commit to the base is.

use prim::atomic::{AtomicU64, Ordering::Relaxed};

/// See the [module documentation](self). No commit runs: all is 0.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    done: AtomicU64,
    of: AtomicU64,
}

impl Progress {
    /// Begins a commit with this number of files and steps; with 0, ends it.
    pub(crate) fn begin(&self, of: usize) {
        // Relaxed, here and below: numbers to be shown.
        self.done.store(0, Relaxed);
        self.of.store(of as u64, Relaxed);
    }

    /// Notes that a file is prepared, or a step taken.
    pub(crate) fn step(&self) {
        self.done.fetch_add(1, Relaxed);
    }

    /// Returns the files and steps that are done, and all.
    pub(crate) fn now(&self) -> (u64, u64) {
        let of = self.of.load(Relaxed);
        (self.done.load(Relaxed).min(of), of)
    }
}
