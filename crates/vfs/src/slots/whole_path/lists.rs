//! Lists: the directories that recorded paths pass, with a keyed sum of their sequences.
//!
//! # What it is
//! One list for a start and a directory: the directories below the start down to the directory, in
//! the order of the path. A plain descent is the only way that a recorded path takes, so the two
//! determine the list. A list has the stamp and the sequences of the moment when it was made. It is
//! an entry of a table with [`WAYS`] places for each key, so it can be replaced by the list of
//! another key, or by a younger list of the same key.
//!
//! For a path that crosses mount points or has symbolic links, the list's key is the signature of a
//! text: of the directory part of the path or, if the path ends at a link, of the whole path. Such
//! a list has the links too, and their number. It notes which of its directories are mount points
//! that the path crosses; these lead to the mount of the path's end.
//!
//! # Layout
//! | words of a block | |
//! |---|---|
//! | 0 | the version, and in bit 0 whether the block is being written |
//! | 1, 2 | the addresses of start and directory, or the signature of a text; a first word of 0: the block is vacant |
//! | 3 | the stamp; above it the number of directories and links in 8 bits, the number of links in 8, and a bit for each that is crossed |
//! | 4 | the sum |
//! | 5.. | the addresses of the directories and links |
//!
//! # How it is locked
//! A block is a sequence lock whose count is word 0; a thread that finds it being written continues
//! without it.

use crate::slots::dentry::Dentry;
use prim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use sync::signature_table::Signature;
use sync::zeroed::{Block, Zeroed};

/// The most directories of a list. The entries of deeper paths end with every change.
pub(crate) const DEEPEST: usize = 11;

/// The places of a key.
const WAYS: usize = if cfg!(loom) { 1 } else { 4 };

/// Where the addresses begin in a block.
const FIRST: usize = 5;

/// The word that is odd while the block is being written.
const BUSY: u64 = 1;

/// See the [module documentation](self).
pub(crate) struct Lists {
    blocks: Zeroed<Block>,
    /// A factor for the sequence of each directory: secret, and odd.
    keys: [u64; DEEPEST],
}

/// The key of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pair([u64; 2]);

impl Pair {
    /// Returns a start and a directory that a plain descent of one mount leads to.
    pub(crate) fn of(start: &Dentry, dir: &Dentry) -> Self {
        let address = |dentry| core::ptr::from_ref::<Dentry>(dentry).addr() as u64;
        Self([address(start), address(dir)])
    }

    /// Returns the text of a directory that crosses mount points. (It equals a key of addresses by
    /// a chance of less than 2^-100.)
    pub(crate) fn of_text(signature: Signature) -> Self {
        Self(signature.words())
    }

    pub(super) fn words(self) -> [u64; 2] {
        self.0
    }

    #[cfg(all(test, not(loom)))]
    pub(super) fn of_words(words: [u64; 2]) -> Self {
        Self(words)
    }
}

/// A list, copied out of its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct List {
    /// When it was made.
    pub(crate) stamp: u32,
    pub(crate) sum: u64,
    len: usize,
    /// A bit for each directory that is a mount point which the path crosses.
    crossed: u16,
    /// Links that the path has. (One that it passes twice counts twice.)
    links: u8,
    dirs: [usize; DEEPEST],
}

impl List {
    pub(crate) fn new(stamp: u32) -> Self {
        Self { stamp, sum: 0, len: 0, crossed: 0, links: 0, dirs: [0; DEEPEST] }
    }

    /// Returns whether the path crosses a mount point.
    pub(crate) fn is_crossing(&self) -> bool {
        self.crossed != 0
    }

    /// Returns whether the path crosses a mount point or has a link.
    pub(crate) fn is_routed(&self) -> bool {
        self.is_crossing() || self.links != 0
    }

    /// Symbolic links that the path has.
    pub(crate) fn links(&self) -> u32 {
        self.links.into()
    }

    /// Returns whether both are lists of the same directories with the same sequences and mount
    /// points.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Self { stamp: 0, ..*self } == Self { stamp: 0, ..*other }
    }

    /// Notes that the path crosses the directory that was added last.
    pub(crate) fn cross(&mut self) {
        self.crossed |= 1 << self.len.saturating_sub(1);
    }

    /// Notes that the path follows a link.
    pub(crate) fn follow(&mut self) {
        self.links = self.links.saturating_add(1);
    }

    /// Returns the addresses of the mount points that the path crosses, in its order.
    pub(crate) fn mountpoints(&self) -> impl Iterator<Item = usize> {
        self.dirs().iter().enumerate().filter(|(at, _)| self.crossed >> at & 1 != 0).map(|(_, dir)| *dir)
    }

    /// Returns the addresses of the directories.
    pub(crate) fn dirs(&self) -> &[usize] {
        &self.dirs[..self.len]
    }

    /// Adds a directory with this address and sequence. Returns whether the list has room for it.
    pub(crate) fn push(&mut self, lists: &Lists, address: usize, seq: u32) -> bool {
        let has_room = self.len < DEEPEST;
        if has_room {
            self.dirs[self.len] = address;
            self.sum = self.sum.wrapping_add(lists.term(self.len, seq));
            self.len += 1;
        }
        has_room
    }

    /// As `push`, unless the list has it: the path comes there again.
    pub(crate) fn push_once(&mut self, lists: &Lists, address: usize, seq: u32) -> bool {
        self.dirs().contains(&address) || self.push(lists, address, seq)
    }
}

impl Lists {
    pub(super) fn new(bytes: usize) -> Option<Self> {
        let keys = core::array::from_fn(|_| prim::seed::random_u64() | 1);
        Some(Self { blocks: Zeroed::new(bytes / size_of::<Block>())?, keys })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(self.blocks.get())
    }

    /// Returns the term of the directory with this number in a sum.
    pub(crate) fn term(&self, number: usize, seq: u32) -> u64 {
        u64::from(seq).wrapping_mul(self.keys[number])
    }

    pub(crate) fn find(&self, pair: Pair) -> Option<List> {
        let Block(words) = self.ways(pair).iter().find(|block| is_of(block, pair))?;
        // ORDERING: Acquire, pairs with the Release store in `put`: the words below are not older than this one.
        let version = words[0].load(Acquire);
        // Relaxed: ordered by the load above and the fence below.
        let word = |at: usize| words[at].load(Relaxed);
        if pair.0 != [word(1), word(2)] {
            return None;
        }
        let (made, sum) = (word(3), word(4));
        let (stamp, len) = (made as u32, usize::from((made >> 32) as u8).min(DEEPEST));
        let (links, crossed) = ((made >> 40) as u8, (made >> 48) as u16);
        let dirs = core::array::from_fn(|at| if at < len { word(FIRST + at) as usize } else { 0 });
        // ORDERING: the Acquire fence pairs with the Release fence in `put`: if one of the words above is of a later write,
        // the load below sees that.
        fence(Acquire);
        (version & BUSY == 0 && words[0].load(Relaxed) == version).then_some(List {
            stamp,
            sum,
            len,
            crossed,
            links,
            dirs,
        })
    }

    /// Puts the list of a pair. Does nothing if another thread writes the block.
    pub(crate) fn put(&self, pair: Pair, list: &List) {
        let ways = self.ways(pair);
        // Relaxed: a choice; an exchange makes sure that one thread writes.
        let is_vacant = |block: &&Block| block.0[1].load(Relaxed) == 0;
        let own = ways.iter().find(|block| is_of(block, pair)).or_else(|| ways.iter().find(is_vacant));
        let Some(Block(words)) = own.or_else(|| ways.get(pair.0[1] as usize / 64 % ways.len().max(1))) else { return };
        let Some(version) = begin(words) else { return };
        // Relaxed: inside the write.
        words[1].store(pair.0[0], Relaxed);
        words[2].store(pair.0[1], Relaxed);
        let counts = u64::from(list.crossed) << 16 | u64::from(list.links) << 8 | list.len as u64;
        words[3].store(counts << 32 | u64::from(list.stamp), Relaxed);
        words[4].store(list.sum, Relaxed);
        for (word, dir) in words[FIRST..].iter().zip(list.dirs()) {
            word.store(*dir as u64, Relaxed);
        }
        // ORDERING: Release, pairs with the Acquire loads in `find` and `begin`.
        words[0].store(version.wrapping_add(2), Release);
    }

    pub(super) fn clear(&self) {
        for Block(words) in self.blocks.get() {
            loop {
                // Relaxed: a choice; a block that is being written gets a current list.
                if words[1].load(Relaxed) == 0 {
                    break;
                }
                if let Some(version) = begin(words) {
                    words[1].store(0, Relaxed);
                    // ORDERING: Release, as in `put` (not visible to loom: a list that is found a little longer is right).
                    words[0].store(version.wrapping_add(2), Release);
                    break;
                }
                prim::hint::spin_loop();
            }
        }
    }

    fn ways(&self, pair: Pair) -> &[Block] {
        let blocks = self.blocks.get();
        // A model must do the same in each execution.
        if cfg!(loom) {
            return &blocks[..1];
        }
        let mixed = pair.0[0].rotate_left(32) ^ pair.0[1];
        let spread = mixed.wrapping_mul(self.keys[0]);
        let first = ((u128::from(spread) * blocks.len() as u128) >> 64) as usize / WAYS * WAYS;
        &blocks[first..(first + WAYS).min(blocks.len())]
    }
}

/// Returns whether a block seems to be the block of a pair.
fn is_of(block: &Block, pair: Pair) -> bool {
    // Relaxed: a hint; `find` checks it.
    pair.0 == [block.0[1].load(Relaxed), block.0[2].load(Relaxed)]
}

/// Begins a write of a block and returns its version, unless another thread writes it.
fn begin(words: &[AtomicU64; 16]) -> Option<u64> {
    // Relaxed: checked by the exchange.
    let version = words[0].load(Relaxed);
    // ORDERING: Acquire, pairs with the Release store in `put`: this writer's stores come after the last one's.
    let begun = version & BUSY == 0 && words[0].compare_exchange(version, version | BUSY, Acquire, Relaxed).is_ok();
    // ORDERING: the Release fence pairs with the Acquire fence in `find`.
    fence(Release);
    begun.then_some(version)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_found_by_its_pair_and_is_replaced_by_another_one() {
        // One block: all pairs share it.
        let lists = Lists::new(0).unwrap();
        let pairs = [Pair([64, 128]), Pair([64, 192])];
        assert_eq!(lists.find(pairs[0]), None);
        let mut list = List::new(7);
        assert!((0..DEEPEST).all(|n| list.push(&lists, 64 * (n + 1), 2)));
        assert!(!list.push(&lists, 64, 2), "it has no room for more");
        list.cross();
        (0..40).for_each(|_| list.follow());
        lists.put(pairs[0], &list);
        assert_eq!((lists.find(pairs[0]), lists.find(pairs[1])), (Some(list), None));
        assert!(list.is_crossing() && list.mountpoints().eq([64 * DEEPEST]) && list.links() == 40);
        lists.put(pairs[1], &List::new(8));
        assert_eq!((lists.find(pairs[0]), lists.find(pairs[1])), (None, Some(List::new(8))));
        lists.clear();
        assert_eq!(lists.find(pairs[1]), None);
    }

    #[test]
    fn the_sum_depends_on_which_directory_changed() {
        let lists = Lists::new(0).unwrap();
        let sum = |seqs: [u32; 3]| {
            let mut list = List::new(0);
            assert!(seqs.iter().all(|&seq| list.push(&lists, 64, seq)));
            list.sum
        };
        // The plain sums are equal.
        assert_ne!(sum([10, 20, 30]), sum([0, 30, 30]));
        assert_ne!(sum([10, 20, 30]), sum([20, 10, 30]));
    }
}
