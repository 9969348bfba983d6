//! The cache of contents: blocks of objects, within a budget of bytes.
//!
//! # What it is
//! A block is found by its node, the version of the node's object, and its number. A new version of
//! an object makes the blocks of the old version useless: the cache evicts them as it evicts the
//! least used blocks.
//!
//! # How it is locked
//! By the cache itself (`quick_cache`).

use opendal::Buffer;
use quick_cache::Weighter;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{DefaultHashBuilder, OptionsBuilder};

/// The bytes of a block; the last block of an object is shorter.
pub(crate) const BLOCK: u64 = 128 << 10;

/// The cost of a block beside its bytes.
const OVERHEAD: u64 = 128;

/// The place of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BlockKey {
    pub(crate) node: u64,
    pub(crate) version: u64,
    pub(crate) number: u64,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<BlockKey, Buffer> for ByBytes {
    fn weight(&self, _: &BlockKey, block: &Buffer) -> u64 {
        block.len() as u64 + OVERHEAD
    }
}

/// See the [module documentation](self).
pub(crate) struct Blocks(Cache<BlockKey, Buffer, ByBytes>);

impl Blocks {
    /// Returns an empty cache with a budget of `budget_bytes`.
    pub(crate) fn new(budget_bytes: u64) -> Self {
        let estimated = usize::try_from(budget_bytes / BLOCK).unwrap_or(usize::MAX).max(16);
        // By default new blocks have 3 % of the bytes: the next reader of a file would find none. A lock is
        // taken once for each block, so the cache needs no shards, which fill unevenly.
        let options = OptionsBuilder::new()
            .estimated_items_capacity(estimated)
            .weight_capacity(budget_bytes)
            .hot_allocation(0.25)
            .shards(1)
            .build();
        let options = options.unwrap_or_else(|_| unreachable!("both capacities are given"));
        Self(Cache::with_options(options, ByBytes, DefaultHashBuilder::default(), DefaultLifecycle::default()))
    }

    pub(crate) fn get(&self, key: &BlockKey) -> Option<Buffer> {
        self.0.get(key)
    }

    /// Returns whether a block is there. The block does not count as used.
    pub(crate) fn has(&self, key: &BlockKey) -> bool {
        self.0.contains_key(key)
    }

    /// Keeps the bytes of an object from `start` on, where a block begins. `is_end`: the bytes end with
    /// the object.
    pub(crate) fn keep(&self, node: u64, version: u64, start: u64, bytes: &Buffer, is_end: bool) {
        let mut at = 0;
        while at < bytes.len() {
            let end = (at + BLOCK as usize).min(bytes.len());
            let is_whole = end - at == BLOCK as usize || is_end && end == bytes.len();
            if is_whole {
                let key = BlockKey { node, version, number: (start + at as u64) / BLOCK };
                // A copy: a slice would keep the whole answer in memory.
                self.0.insert(key, Buffer::from(bytes.slice(at..end).to_vec()));
            }
            at = end;
        }
    }

    /// Returns the number of bytes in the cache, with the overhead of the blocks.
    pub(crate) fn weight(&self) -> u64 {
        self.0.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_to_the_budget() {
        let blocks = Blocks::new(4 << 20);
        let bytes = Buffer::from(vec![7u8; 3 * BLOCK as usize + 5]);
        for node in 0..100 {
            blocks.keep(node, 1, 0, &bytes, true);
            assert!(blocks.weight() <= 4 << 20, "{}", blocks.weight());
        }
        let last = blocks.get(&BlockKey { node: 99, version: 1, number: 3 });
        assert_eq!(last.map(|block| block.len()), Some(5));
        assert!(blocks.get(&BlockKey { node: 99, version: 2, number: 3 }).is_none());
    }

    #[test]
    fn a_part_of_a_block_is_not_kept_as_the_block() {
        let blocks = Blocks::new(4 << 20);
        blocks.keep(1, 1, 0, &Buffer::from(vec![7u8; 10]), false);
        assert!(blocks.get(&BlockKey { node: 1, version: 1, number: 0 }).is_none());
    }
}
