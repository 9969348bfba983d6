//! The free items of a slab's depot (the store that the per-CPU caches share), and the state of each group of items.
//!
//! # What it is
//! A word of bits for each group of items, and three sets of groups: *partial* (some items are
//! free), *whole* (all items are free) and *bare* (all items are free, and their memory was
//! returned). Items are taken from partial groups first, the lowest first, so that other groups
//! become whole; then from whole groups; then from bare groups, which takes memory.
//!
//! # What it is not
//! The memory: it works with indexes alone, and no `unsafe`.
//!
//! # How it is locked
//! By the depot's lock.
//!
//! # Where it comes from
//! Address-ordered first fit: P. R. Wilson et al., "Dynamic Storage Allocation: A Survey" (IWMM 1995), 3.5.

use super::BATCH;

/// Items whose memory is returned together. 64 dentries are one page of items and three of sides.
pub(super) const GROUP: usize = 2 * BATCH;

/// Whole groups that may always stay.
pub(super) const KEPT: usize = if cfg!(loom) { 0 } else { 32 };

/// The bits of a group whose items are all free.
const ALL: u64 = u64::MAX >> (u64::BITS as usize - GROUP);

/// See the [module documentation](self).
#[derive(Default)]
pub(super) struct FreeItems {
    /// For each group up to the last one of which an item was here, one bit for each free item.
    words: Vec<u64>,
    partial: GroupSet,
    whole: GroupSet,
    bare: GroupSet,
    /// Groups on their way back to the system.
    returning: usize,
}

impl FreeItems {
    /// Makes room for so many groups: a slab from which nothing was freed has no words.
    fn make_room(&mut self, len: usize) {
        self.words.resize(len, 0);
        [&mut self.partial, &mut self.whole, &mut self.bare]
            .into_iter()
            .for_each(|set| set.words.resize(len.div_ceil(64), 0));
    }

    /// Items whose memory was returned.
    pub(super) fn bare_items(&self) -> usize {
        self.bare.len * GROUP
    }

    /// Takes an item.
    pub(super) fn put(&mut self, index: usize) {
        let (group, bit) = (index / GROUP, 1 << (index % GROUP));
        if group >= self.words.len() {
            self.make_room(group + 1);
        }
        let old = self.words[group];
        debug_assert!(old & bit == 0, "an item is freed once");
        self.words[group] = old | bit;
        if old | bit == ALL {
            self.partial.remove(group);
            self.whole.insert(group);
        } else if old == 0 {
            self.partial.insert(group);
        }
    }

    /// Returns an item to hand out: its index, and whether its group was bare before this call.
    pub(super) fn take(&mut self) -> Option<(usize, bool)> {
        let group = self.partial.first().or_else(|| self.whole.first()).or_else(|| self.bare.first())?;
        let old = self.words[group];
        let index = old.trailing_zeros() as usize;
        let left = old & (old - 1);
        self.words[group] = left;
        let mut was_bare = false;
        if old == ALL {
            was_bare = !self.whole.remove(group) && self.bare.remove(group);
            self.partial.insert(group);
        } else if left == 0 {
            self.partial.remove(group);
        }
        Some((group * GROUP + index, was_bare))
    }

    /// Returns the highest *whole* group (all its items are free), if more groups are whole than
    /// may stay when there are `groups` in all. Takes the group's items.
    pub(super) fn take_surplus(&mut self, groups: usize) -> Option<usize> {
        let in_use = groups.saturating_sub(self.whole.len + self.bare.len + self.returning);
        // A reader that stays in its section must not keep all of the memory from its next use.
        if self.whole.len <= KEPT.max(in_use / 16) || self.returning > groups / 2 + KEPT {
            return None;
        }
        let group = self.whole.last()?;
        self.whole.remove(group);
        self.words[group] = 0;
        self.returning += 1;
        Some(group)
    }

    /// Takes back a group from [`FreeItems::take_surplus`], without its memory.
    pub(super) fn put_bare(&mut self, group: usize) {
        self.returning -= 1;
        self.words[group] = ALL;
        self.bare.insert(group);
    }
}

/// A set of groups, as bits.
#[derive(Default)]
struct GroupSet {
    words: Vec<u64>,
    len: usize,
    /// No word before this one has a bit.
    low: usize,
    /// No word from this one on has a bit.
    end: usize,
}

impl GroupSet {
    /// Adds a group that is not in it.
    fn insert(&mut self, group: usize) {
        let at = group / 64;
        self.words[at] |= 1 << (group % 64);
        self.len += 1;
        (self.low, self.end) = (self.low.min(at), self.end.max(at + 1));
    }

    /// Removes a group. Whether it was in it.
    ///
    /// (With a mask stored in either case and `self.len -= usize::from(was_in)`, rustc 1.95 with `opt-level` 3 loses the
    /// subtraction where `FreeItems::take` calls this.)
    fn remove(&mut self, group: usize) -> bool {
        let (at, bit) = (group / 64, 1 << (group % 64));
        let old = self.words[at];
        if old & bit == 0 {
            return false;
        }
        self.words[at] = old & !bit;
        self.len -= 1;
        true
    }

    fn first(&mut self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        while self.words[self.low] == 0 {
            self.low += 1;
        }
        Some(self.low * 64 + self.words[self.low].trailing_zeros() as usize)
    }

    fn last(&mut self) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        while self.words[self.end - 1] == 0 {
            self.end -= 1;
        }
        Some(self.end * 64 - 1 - self.words[self.end - 1].leading_zeros() as usize)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_item_is_taken_once_and_each_set_has_the_groups_that_it_counts() {
        const GROUPS: usize = 127;
        for seed in 1..4_u64 {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let mut random = |below: usize| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state as usize % below
            };
            let mut free = FreeItems::default();
            let mut used: Vec<usize> = (0..GROUPS * GROUP).collect();
            let mut returning = Vec::new();
            for step in 0..200_000 {
                // Sometimes more come than go, and sometimes fewer.
                if random(10) < 3 + 4 * (step / 8000 % 2) && !used.is_empty() {
                    free.put(used.swap_remove(random(used.len())));
                    if random(32) == 0 {
                        returning.extend(core::iter::from_fn(|| free.take_surplus(GROUPS)));
                    }
                } else if let Some((index, _)) = free.take() {
                    used.push(index);
                }
                if random(100) == 0 {
                    returning.drain(..).for_each(|group| free.put_bare(group));
                }
                for set in [&free.partial, &free.whole, &free.bare] {
                    let groups: u32 = set.words.iter().map(|word| word.count_ones()).sum();
                    assert_eq!(groups as usize, set.len, "seed {seed}, step {step}");
                }
            }
            let free_items: u32 = free.words.iter().map(|word| word.count_ones()).sum();
            assert_eq!(used.len() + free_items as usize + returning.len() * GROUP, GROUPS * GROUP);
            used.sort_unstable();
            assert!(used.is_sorted_by(|a, b| a < b), "an item was taken twice");
        }
    }
}
