//! Time that threads wait for cache lines, by the line and by the place in the source of the access.
//!
//! # What it is
//! Each miss of the measured time adds its length to the pair of its cache line and its place. The
//! sums by place show which code waits; the sums by line show which lines keep CPUs from scaling,
//! and the places of one line identify the line.
//!
//! # What it is not
//! Time that a thread sleeps or spins: the statistics of locks have that. Time that a full store buffer takes.

use crate::hash::FastMap;
use core::panic::Location;
use std::collections::{BTreeMap, BTreeSet};

/// The waits of one place in the source for one cache line, in the measured time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stall {
    /// The number of the cache line, as in [`Conflict`](crate::footprint::Conflict).
    pub cache_line: usize,
    /// The source file of the access.
    pub file: &'static str,
    /// Its line there.
    pub line: u32,
    /// Times that the cache line was not there.
    pub misses: u64,
    /// Nanoseconds that threads waited for it, of all CPUs.
    pub ns: f64,
}

/// The stalls of a place, or of a cache line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StallSum {
    /// The places, the one with most time first: `file:line` each, without directories.
    pub places: Vec<String>,
    /// The number of cache lines.
    pub cache_lines: usize,
    /// As [`Stall::misses`].
    pub misses: u64,
    /// As [`Stall::ns`].
    pub ns: f64,
}

/// Adds stalls up by their place; the longest first.
#[must_use]
pub fn by_place(stalls: &[Stall]) -> Vec<StallSum> {
    sums(stalls, |stall| (0, stall.file, stall.line))
}

/// Adds stalls up by their cache line; the longest first.
#[must_use]
pub fn by_cache_line(stalls: &[Stall]) -> Vec<StallSum> {
    sums(stalls, |stall| (stall.cache_line, "", 0))
}

/// `stalls` has the longest first, so the places of each sum come in that order.
fn sums(stalls: &[Stall], key: impl Fn(&Stall) -> (usize, &'static str, u32)) -> Vec<StallSum> {
    let mut sums: BTreeMap<_, (StallSum, BTreeSet<usize>)> = BTreeMap::new();
    for stall in stalls {
        let (sum, lines) = sums.entry(key(stall)).or_default();
        let place = format!("{}:{}", stall.file.rsplit('/').next().unwrap_or_default(), stall.line);
        if !sum.places.contains(&place) {
            sum.places.push(place);
        }
        lines.insert(stall.cache_line);
        sum.misses += stall.misses;
        sum.ns += stall.ns;
    }
    let mut sums: Vec<StallSum> =
        sums.into_values().map(|(sum, lines)| StallSum { cache_lines: lines.len(), ..sum }).collect();
    sums.sort_by(|one, other| other.ns.total_cmp(&one.ns));
    sums
}

/// The stalls of a simulation so far.
#[derive(Default)]
pub(crate) struct Stalls {
    /// Misses and picoseconds, by cache line and the address of the place, which is constant.
    sums: FastMap<(usize, usize), (u64, u64)>,
    places: FastMap<usize, &'static Location<'static>>,
}

impl Stalls {
    pub(crate) fn add(&mut self, number: usize, from: &'static Location<'static>, ps: u64) {
        let place = core::ptr::from_ref(from).addr();
        self.places.insert(place, from);
        let (misses, sum) = self.sums.entry((number, place)).or_default();
        *misses += 1;
        *sum += ps;
    }

    /// Returns the longest first.
    pub(crate) fn into_list(self) -> Vec<Stall> {
        let mut list: Vec<Stall> = self
            .sums
            .iter()
            .map(|(&(cache_line, place), &(misses, ps))| {
                let from = self.places[&place];
                Stall { cache_line, file: from.file(), line: from.line(), misses, ns: ps as f64 / 1e3 }
            })
            .collect();
        list.sort_by(|one, other| {
            other.ns.total_cmp(&one.ns).then((one.cache_line, one.file, one.line).cmp(&(
                other.cache_line,
                other.file,
                other.line,
            )))
        });
        list
    }
}
