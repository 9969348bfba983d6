//! Inodes by number, and the numbers: the data of `inode_lock`, split.
//!
//! # What it is
//! Each chain of inodes has a lock; a CPU takes numbers for new inodes in batches (`last_ino`), so that a new file
//! writes to a common word once in [`BATCH`] times. Inodes are freed after a grace period, with their entries.
//!
//! # What it is not
//! A search by number, which nothing here needs: the chains are there for the writes of a new inode
//! and of one that ends.
//!
//! # Source
//! "fs: icache" of Nick Piggin's vfs-scale patches (2009); merged in Linux 2.6.37 and 2.6.38.

use prim::PerCpu;
use prim::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use sync::{Lock, RawLock};

/// Numbers that a CPU takes at a time.
const BATCH: u64 = 1024;

/// Chains; a power of two.
const CHAINS: usize = 1024;

/// The chains of inodes by number.
pub(crate) struct InodeChains<R: RawLock>(Box<[Chain<R>]>);

struct Chain<R: RawLock> {
    first: AtomicU32,
    lock: Lock<R, ()>,
}

impl<R: RawLock> InodeChains<R> {
    pub(crate) fn new() -> Self {
        Self((0..CHAINS).map(|_| Chain { first: AtomicU32::new(0), lock: Lock::new(()) }).collect())
    }

    /// Writes to the chain of an inode that joins or leaves the chain.
    pub(crate) fn change(&self, number: u32) {
        let chain = &self.0[number.wrapping_mul(0x9E37_79B1) as usize >> 8 & (CHAINS - 1)];
        prim::lockstat::named(|| "chains of inodes");
        let _held = chain.lock.lock();
        // Relaxed: under the chain's lock.
        chain.first.store(number, Relaxed);
    }
}

/// Numbers for new inodes.
pub(crate) struct InodeNumbers {
    common: AtomicU64,
    own: PerCpu<Own>,
}

/// The last number that a CPU gave out.
#[repr(align(128))]
struct Own(AtomicU64);

impl InodeNumbers {
    pub(crate) fn new() -> Self {
        Self { common: AtomicU64::new(0), own: PerCpu::new(|| Own(AtomicU64::new(0))) }
    }

    /// Returns the next number.
    pub(crate) fn next(&self) -> u64 {
        let own = &self.own.this().0;
        // Relaxed: the slot is this thread's own, and numbers order nothing.
        let last = own.load(Relaxed);
        let next = if last.is_multiple_of(BATCH) { self.common.fetch_add(BATCH, Relaxed) } else { last } + 1;
        own.store(next, Relaxed);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_given_out_once() {
        let numbers = InodeNumbers::new();
        let mut all: Vec<u64> = std::thread::scope(|s| {
            let threads = [(); 2].map(|()| s.spawn(|| (0..3_000).map(|_| numbers.next()).collect::<Vec<_>>()));
            threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
        });
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6_000);
    }
}
