//! Finite private caches: which lines each CPU still has room for.
//!
//! # What it is
//! Per CPU a set-associative array of line numbers, looked at only when a line comes in; so a hit costs no more than
//! with infinite caches. The victim is chosen by second chance (not used since the hand last passed), an
//! approximation of least-recently-used. An entry whose copy was taken away is stale and reused first.
//!
//! # What it is not
//! A hierarchy: one level, the largest that a CPU has alone. The cache that CPUs of a node share is infinite.

use crate::machine::Machine;
use crate::memory::Table;
use core::cell::Cell;

use super::line::Lines;

/// The private caches of all CPUs.
pub(crate) struct Caches {
    /// Line numbers + 1.
    tags: Table<Cell<u32>>,
    /// The place where the next search for a victim starts, for each set.
    hands: Table<Cell<u32>>,
    sets: usize,
    ways: usize,
    lines_per_page: usize,
}

impl Caches {
    pub(crate) fn new(machine: &Machine, cpus: usize) -> Self {
        let lines = machine.cache_kib * 1024 / machine.line_bytes;
        let ways = machine.cache_ways;
        assert!(ways > 0 && lines >= ways, "machine {}: no cache of {lines} lines, {ways} ways", machine.name);
        // The largest number of sets that selects by bits and does not exceed the size.
        let sets = 1usize << (lines / ways).ilog2();
        let ways = lines / sets;
        let lines_per_page = (4096 / machine.line_bytes).max(1);
        Self { tags: Table::new(cpus * sets * ways), hands: Table::new(cpus * sets), sets, ways, lines_per_page }
    }

    /// Pages are anywhere in physical memory, so their place among the sets is mixed; lines of a
    /// page are in a row.
    #[inline]
    fn set_of(&self, line: usize) -> usize {
        let page = line / self.lines_per_page;
        let mixed = ((page as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        (line + mixed * self.lines_per_page) & (self.sets - 1)
    }

    /// Puts `line` into the cache of `cpu`; returns the line that it evicts.
    pub(crate) fn insert(&self, cpu: usize, line: usize, lines: &Lines) -> Option<usize> {
        let set = cpu * self.sets + self.set_of(line);
        let tags = &self.tags[set * self.ways..][..self.ways];
        let tag = line as u32 + 1;
        if tags.iter().any(|way| way.get() == tag) {
            return None;
        }
        if let Some(free) = tags.iter().find(|way| way.get() == 0) {
            free.set(tag);
            return None;
        }
        let hand = &self.hands[set];
        loop {
            let way = hand.get() as usize;
            hand.set(((way + 1) % self.ways) as u32);
            let victim = tags[way].get() as usize - 1;
            // `was_used` clears the mark, so the second round finds one.
            if !lines.was_used(victim, cpu) {
                tags[way].set(tag);
                return lines.has_copy(victim, cpu).then_some(victim);
            }
        }
    }
}
