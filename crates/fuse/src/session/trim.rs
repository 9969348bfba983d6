//! Return of the memory that the program's allocator keeps after the kernel has forgotten many nodes.
//!
//! # What it is
//! A count of forgotten nodes. A node and its file are a few small allocations, and so are 64 KiB
//! of contents. glibc's allocator keeps freed memory for the next allocations, spread over its
//! arenas: for a mount of ram: with 200,000 files, all removed, 20 of 32 MiB. When enough nodes
//! were forgotten ([`LEAST`], and twice as many as the kernel still has), the session calls the
//! allocator to return free pages.
//!
//! # What it is not
//! A timer: a mount without requests does nothing. The memory of fewer nodes stays, about half a
//! mebibyte.
//!
//! # How it is locked
//! No lock. The thread whose forget completes the count does the work, some milliseconds for each
//! 100 MiB.
//!
//! # Where it comes from
//! `malloc_trim(3)`.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Forgotten nodes for which the allocator is called at the earliest.
const LEAST: usize = 4096;

/// Bytes of contents that count as a node.
const BYTES: u64 = 64 << 10;

/// See the [module documentation](self).
#[derive(Debug, Default)]
pub(super) struct Trim {
    forgotten: AtomicUsize,
}

impl Trim {
    /// Counts a forgotten node with so many bytes of contents; the kernel has `known` others.
    pub(super) fn forgot(&self, bytes: u64, known: usize) {
        if self.count(bytes, known) {
            prim::mem::trim();
        }
    }

    /// Counts a node. Whether it completes the count, which begins again then.
    fn count(&self, bytes: u64, known: usize) -> bool {
        // A sparse file may have any length.
        let weight = 1 + (bytes / BYTES).min(LEAST as u64) as usize;
        // Relaxed: a figure, which orders nothing. Of several threads that find it complete, one resets it.
        let forgotten = self.forgotten.fetch_add(weight, Relaxed) + weight;
        forgotten >= LEAST.max(known.saturating_mul(2))
            && self.forgotten.compare_exchange(forgotten, 0, Relaxed, Relaxed).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_allocator_is_called_seldom_and_near_the_end_of_a_large_tree() {
        let check = |nodes: usize, left_at_calls: &[usize]| {
            let trim = Trim::default();
            let calls: Vec<usize> = (0..nodes).rev().filter(|&known| trim.count(0, known)).collect();
            assert_eq!(calls, left_at_calls, "{nodes} nodes");
        };
        check(4095, &[]);
        check(4096, &[0]);
        check(200_000, &[66_666, 22_222, 7407, 2469]);
        // A steady number of nodes, one made for each that is forgotten.
        let trim = Trim::default();
        assert_eq!((0..1_000_000).filter(|_| trim.count(0, 100_000)).count(), 5);
        // Six files of 50 MiB.
        let trim = Trim::default();
        assert_eq!((0..6).filter(|_| trim.count(50 << 20, 0)).count(), 1);
    }
}
