//! Cache lines: their state, and their addresses.
//!
//! # What it is
//! For each line: which CPU owns it (modified or exclusive), which CPUs and nodes have a copy, how long it is busy, and
//! which CPUs queue for it. Lines of the [region](crate::memory) are found by a subtraction and a shift; any other address (a
//! static, the heap of a program without [`Arena`](crate::Arena)) through a hash map that numbers lines in order of
//! first touch. The map is never iterated.

use super::costs::Places;
use crate::hash::FastMap;
use crate::memory::{BASE, BYTES, Table, Zeroed};
use core::cell::{Cell, RefCell};

/// Lines outside of the region that there is room for.
const OUTSIDE: usize = 1 << 20;

/// One cache line. CPUs are numbered from 1 here, so that 0 is none.
#[derive(Default)]
#[repr(C, align(64))]
pub(crate) struct Line {
    /// The home starts no other transaction before.
    pub(crate) busy: Cell<u64>,
    /// When the last transfer delivers.
    pub(crate) ready: Cell<u64>,
    /// Nodes with a copy.
    pub(crate) nodes: Cell<u64>,
    /// Counts writes.
    pub(crate) version: Cell<u32>,
    /// The first wait node of a parked spinner; see `wait.rs`.
    pub(crate) waiters: Cell<u32>,
    /// Picoseconds that the owner keeps the line once others queue for it; 0: not decided.
    pub(crate) keep: Cell<u32>,
    pub(crate) owner: Cell<u16>,
    /// The node whose memory it is: of the first to touch it.
    pub(crate) home: Cell<u16>,
    /// Requests that queue, oldest first.
    pub(crate) head: Cell<u16>,
    pub(crate) tail: Cell<u16>,
    /// Requests in a row that overtook.
    pub(crate) streak: Cell<u16>,
    /// Whether an arbitration is due.
    pub(crate) is_due: Cell<bool>,
    /// Whether the owner's unretired stores have put off those that queue.
    pub(crate) is_put_off: Cell<bool>,
}

// SAFETY: numbers and bools in cells.
unsafe impl Zeroed for Line {}

/// All lines of a machine.
pub(crate) struct Lines {
    lines: Table<Line>,
    /// For each line and 64 CPUs: which have a copy; whose copy was used since the cache last looked.
    copies: Table<Cell<u64>>,
    pub(crate) words: usize,
    pub(crate) shift: u32,
    outside: RefCell<FastMap<usize, u32>>,
}

impl Lines {
    pub(crate) fn new(line_bytes: usize, places: &Places) -> Self {
        assert!(line_bytes.is_power_of_two() && (16..=4096).contains(&line_bytes), "lines of {line_bytes} bytes");
        let shift = line_bytes.trailing_zeros();
        let count = (BYTES >> shift) + OUTSIDE;
        let words = places.words;
        Self {
            lines: Table::new(count),
            copies: Table::new(count * words * 2),
            words,
            shift,
            outside: RefCell::default(),
        }
    }

    /// Returns the number of the line of `address`.
    #[inline(always)]
    pub(crate) fn number(&self, address: usize) -> usize {
        let offset = address.wrapping_sub(BASE);
        if offset < BYTES { offset >> self.shift } else { self.number_outside(address) }
    }

    #[inline(never)]
    fn number_outside(&self, address: usize) -> usize {
        let _host = crate::arena::outside();
        let mut known = self.outside.borrow_mut();
        let next = known.len();
        let number = *known.entry(address >> self.shift).or_insert(next as u32) as usize;
        assert!(number < OUTSIDE, "more than {OUTSIDE} lines outside of the arena; declare sim::Arena");
        (BYTES >> self.shift) + number
    }

    /// Returns the place of a line, for messages.
    pub(crate) fn describe(&self, number: usize) -> String {
        if number < BYTES >> self.shift {
            format!("the line at {:#x}", BASE + (number << self.shift))
        } else {
            format!("line {} outside of the arena", number - (BYTES >> self.shift))
        }
    }

    #[inline(always)]
    pub(crate) fn line(&self, number: usize) -> &Line {
        &self.lines[number]
    }

    #[inline(always)]
    fn word(&self, line: usize, cpu: usize) -> (&Cell<u64>, &Cell<u64>) {
        let word = (line * self.words + cpu / 64) * 2;
        let pair = &self.copies[word..word + 2];
        (&pair[0], &pair[1])
    }

    #[inline(always)]
    pub(crate) fn has_copy(&self, line: usize, cpu: usize) -> bool {
        self.word(line, cpu).0.get() & 1 << (cpu % 64) != 0
    }

    /// As [`has_copy`](Self::has_copy), for a use of the copy.
    #[inline(always)]
    pub(crate) fn use_copy(&self, line: usize, cpu: usize) -> bool {
        let (copies, used) = self.word(line, cpu);
        let bit = 1 << (cpu % 64);
        if copies.get() & bit == 0 {
            return false;
        }
        if used.get() & bit == 0 {
            used.set(used.get() | bit);
        }
        true
    }

    /// Returns whether the CPU has a copy that it used since the last such question.
    pub(crate) fn was_used(&self, line: usize, cpu: usize) -> bool {
        let (copies, used) = self.word(line, cpu);
        let bit = 1 << (cpu % 64);
        let was = copies.get() & used.get() & bit != 0;
        used.set(used.get() & !bit);
        was
    }

    pub(crate) fn add_copy(&self, line: usize, cpu: usize) {
        let (copies, used) = self.word(line, cpu);
        copies.set(copies.get() | 1 << (cpu % 64));
        used.set(used.get() | 1 << (cpu % 64));
    }

    pub(crate) fn remove_copy(&self, line: usize, cpu: usize) {
        let copies = self.word(line, cpu).0;
        copies.set(copies.get() & !(1 << (cpu % 64)));
    }

    /// Which of the 64 CPUs from `word * 64` on have copies.
    pub(crate) fn copies(&self, line: usize, word: usize) -> u64 {
        self.word(line, word * 64).0.get()
    }

    /// Takes the copies of all CPUs.
    pub(crate) fn remove_copies(&self, line: usize) {
        for cpu in (0..self.words).map(|word| word * 64) {
            self.word(line, cpu).0.set(0);
        }
    }

    /// Returns whether any CPU of a node has a copy.
    pub(crate) fn node_has_copy(&self, line: usize, node: usize, places: &Places) -> bool {
        (0..self.words).any(|word| self.copies(line, word) & places.cpus_of[node * self.words + word] != 0)
    }
}
