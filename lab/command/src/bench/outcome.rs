//! The report: rows with the facts needed to read them, as text or as one JSON document.

use crate::bench::cases::{OPERATIONS, SIDES};
use crate::bench::measure::{Measured, Method, Quality};
use crate::bench::tree::{Kind, Omitted, Tree};
use crate::machine::Machine;
use crate::table::table;
use comfy_table::Table;
use lab::calibrate::median;
use lightfoot::CacheStats;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// All that a run gives.
#[derive(Debug, Serialize)]
pub(crate) struct BenchReport {
    pub(crate) machine: Machine,
    pub(crate) tree: TreeFacts,
    /// File system and place of the kernel's copy: "tmpfs at /dev/shm".
    pub(crate) copy_on: Option<String>,
    /// Whether that is in memory, as Lightfoot's is.
    pub(crate) copy_in_memory: bool,
    /// Dentry, inode and hash table, as reserved, per name in the cache; without contents and link bodies.
    pub(crate) bytes_per_name: f64,
    pub(crate) memory: Memory,
    /// How often walks left rcu-walk while it was measured, by reason.
    pub(crate) fallbacks: BTreeMap<&'static str, u64>,
    pub(crate) method: Method,
    pub(crate) quality: Quality,
    pub(crate) rows: Vec<BenchRow>,
}

/// The tree that was copied.
#[derive(Debug, Serialize)]
pub(crate) struct TreeFacts {
    pub(crate) name: String,
    pub(crate) entries: usize,
    pub(crate) directories: usize,
    pub(crate) files: usize,
    pub(crate) symlinks: usize,
    pub(crate) special_files: usize,
    pub(crate) depth: usize,
    pub(crate) omitted: Omitted,
}

/// The memory of Lightfoot's copy, before anything is measured. The root counts as a name.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) names: usize,
    pub(crate) slot_bytes: usize,
    pub(crate) table_bytes: usize,
}

/// One line of the table.
#[derive(Debug, Serialize)]
pub(crate) struct BenchRow {
    pub(crate) case: String,
    pub(crate) depth: usize,
    pub(crate) threads: usize,
    /// Nanoseconds per operation and thread: the median of the rounds.
    pub(crate) median_ns: f64,
    pub(crate) min_ns: f64,
    pub(crate) max_ns: f64,
    pub(crate) rounds: usize,
    /// The kernel's time by this one, for Lightfoot's rows: the median of the ratios round by round.
    pub(crate) times_faster_than_kernel: Option<f64>,
    /// Operations per second of all threads, divided by the rate of one thread: the median of the
    /// ratios round by round.
    pub(crate) throughput_vs_one_thread: Option<f64>,
}

impl From<&Tree> for TreeFacts {
    fn from(tree: &Tree) -> Self {
        let count = |is: fn(&Kind) -> bool| tree.entries.iter().filter(|entry| is(&entry.kind)).count();
        Self {
            name: tree.name.clone(),
            entries: tree.entries.len(),
            directories: count(|kind| matches!(kind, Kind::Directory)),
            files: count(|kind| matches!(kind, Kind::File { .. })),
            symlinks: count(|kind| matches!(kind, Kind::Symlink(_))),
            special_files: count(|kind| matches!(kind, Kind::Special { .. })),
            depth: tree.entries.iter().map(crate::bench::tree::Entry::depth).max().unwrap_or(0),
            omitted: tree.omitted.clone(),
        }
    }
}

impl From<CacheStats> for Memory {
    fn from(stats: CacheStats) -> Self {
        Self { names: stats.live_dentries, slot_bytes: stats.slot_bytes, table_bytes: stats.table_bytes }
    }
}

impl Memory {
    /// Bytes per name; 0 without names.
    pub(crate) fn per_name(&self) -> f64 {
        (self.slot_bytes + self.table_bytes) as f64 / self.names.max(1) as f64
    }
}

/// Returns the rows of the measurements, Lightfoot and kernel beside each other.
pub(crate) fn rows(measured: &[Measured]) -> Vec<BenchRow> {
    let find = |case: &str, depth, threads| {
        let is_it = |other: &&Measured| other.case == case && other.depth == depth && other.threads == threads;
        measured.iter().find(is_it).map(|other| other.rounds_ns.as_slice())
    };
    let row = |of: &Measured| {
        let kernels = of.case.strip_prefix(SIDES[0]).map(|operation| format!("{}{operation}", SIDES[1]));
        let kernel_ns = kernels.and_then(|case| find(&case, of.depth, of.threads));
        let alone_ns = (of.threads > 1).then(|| find(&of.case, of.depth, 1)).flatten();
        BenchRow {
            case: of.case.clone(),
            depth: of.depth,
            threads: of.threads,
            median_ns: median(&mut of.rounds_ns.clone()),
            min_ns: of.rounds_ns.iter().copied().fold(f64::INFINITY, f64::min),
            max_ns: of.rounds_ns.iter().copied().fold(0.0, f64::max),
            rounds: of.rounds_ns.len(),
            times_faster_than_kernel: kernel_ns.map(|kernel_ns| ratio(kernel_ns, &of.rounds_ns)),
            throughput_vs_one_thread: alone_ns.map(|alone_ns| of.threads as f64 * ratio(alone_ns, &of.rounds_ns)),
        }
    };
    let mut rows: Vec<BenchRow> = measured.iter().map(row).collect();
    let place = |list: &[&str], part: &str| list.iter().position(|item| *item == part).unwrap_or(list.len());
    rows.sort_by_key(|row| {
        let (side, operation) = row.case.split_once('.').unwrap_or_default();
        (place(&OPERATIONS, operation), row.depth, row.threads, place(&SIDES, side))
    });
    rows
}

/// Returns the median of the ratios round by round: a slower machine in a round slows down both.
fn ratio(of: &[f64], to: &[f64]) -> f64 {
    median(&mut of.iter().zip(to).map(|(of, to)| of / to).collect::<Vec<f64>>())
}

impl BenchReport {
    /// As text: a head and the table; with `is_verbose` also how often the walk left its fast path.
    pub(crate) fn text(&self, is_verbose: bool) -> String {
        let mut text = String::new();
        let mut line = |label: &str, value: String| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{label:<11}{value}");
        };
        let machine = &self.machine;
        line(
            "machine",
            format!("{}, {} CPUs, {}, THP {}", machine.cpu, machine.cpus, machine.kernel, machine.huge_pages),
        );
        line("tree", self.tree.sentence());
        for sentence in self.tree.omitted.sentences() {
            line("", sentence);
        }
        line("lightfoot", "in memory, through one context that the threads share".into());
        if let Some(place) = &self.copy_on {
            let warning = if self.copy_in_memory { "" } else { " - NOT in memory: creat_unlink includes its work" };
            line("kernel", format!("on {place}{warning}; paths relative to a root descriptor that each thread has"));
        }
        line("memory", self.memory.sentence());
        line("method", self.method_sentence());
        let table = self.table();
        let fallbacks: Vec<String> = self.fallbacks.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        let fallbacks = if is_verbose { format!("rcu-walk left: {}\n", fallbacks.join(", ")) } else { String::new() };
        format!("{text}\n{table}\n{LEGEND}\n{fallbacks}")
    }

    fn method_sentence(&self) -> String {
        let Method { rounds, slice_us, is_hot, warm_up_us, .. } = self.method;
        let Quality { slices, repeated, disturbed } = self.quality;
        let paths = if is_hot {
            "up to 1000 random files a depth, hot".to_owned()
        } else {
            format!("all files in random order, {} ms of warm-up", warm_up_us / 1000)
        };
        format!(
            "{rounds} rounds of interleaved slices of {} ms, thread CPU time, {paths};\n           \
             {repeated} slices repeated because a thread was kept from its CPU, {disturbed} of {slices} kept so",
            slice_us as f64 / 1000.0
        )
    }

    fn table(&self) -> Table {
        let columns = ["case", "depth", "threads", "median ns", "min", "max", "vs kernel", "throughput\nvs 1 thread"];
        let row = |row: &BenchRow| {
            [
                row.case.clone(),
                row.depth.to_string(),
                row.threads.to_string(),
                nanoseconds(row.median_ns),
                nanoseconds(row.min_ns),
                nanoseconds(row.max_ns),
                row.times_faster_than_kernel.map_or_else(String::new, |ratio| format!("{ratio:.1}×")),
                row.throughput_vs_one_thread.map_or_else(String::new, |ratio| format!("{ratio:.2}×")),
            ]
            .into()
        };
        table(&columns, self.rows.iter().map(row))
    }
}

const LEGEND: &str = "\
ns: CPU time per operation and thread. vs kernel: the kernel's time by this one. Ratios are medians over the rounds.
stat: random files. stat_same: one file, the same for all threads. open_close: random files, for reading, each thread
its own. creat_unlink: a new file, made, closed and removed, each thread in its own directory.";

impl BenchRow {
    /// Returns the contender: the part before the dot.
    pub(crate) fn side(&self) -> &str {
        self.case.split('.').next().unwrap_or_default()
    }
}

impl TreeFacts {
    fn sentence(&self) -> String {
        let special = match self.special_files {
            0 => String::new(),
            count => format!(", {count} special files"),
        };
        format!(
            "{}: {} entries ({} directories, {} files, {} symbolic links{special}), depth up to {}",
            self.name, self.entries, self.directories, self.files, self.symlinks, self.depth
        )
    }
}

impl Omitted {
    fn sentences(&self) -> Vec<String> {
        let counts = [
            (self.unreadable, "unreadable, copied empty"),
            (self.mount_points, "mount points, copied as empty directories"),
            (self.special, "special files not copied, because they may not be made"),
            (self.too_deep, "entries not copied, because they lie too deep"),
            (self.as_holes, "files, long or past the space for contents, copied as holes of their length"),
        ];
        let said = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        let cut = self.is_cut.then(|| "CUT at the greatest number of entries: the rest is not there".to_owned());
        said.chain(cut).collect()
    }
}

impl Memory {
    fn sentence(&self) -> String {
        format!(
            "{:.0} bytes per cached name: dentry, inode and hash table as reserved ({} + {} bytes for {} names),\n           \
             without contents and link bodies",
            self.per_name(),
            self.slot_bytes,
            self.table_bytes,
            self.names
        )
    }
}

pub(crate) fn nanoseconds(ns: f64) -> String {
    if ns < 100.0 { format!("{ns:.1}") } else { format!("{ns:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(case: &str, threads: usize, rounds_ns: &[f64]) -> Measured {
        Measured { case: case.into(), depth: 4, threads, rounds_ns: rounds_ns.into() }
    }

    #[test]
    fn rows_stand_beside_the_kernels_and_know_their_ratios() {
        let rows = rows(&[
            measured("kernel.stat", 2, &[1000.0, 1000.0, 4000.0]),
            measured("kernel.stat", 1, &[900.0]),
            measured("lightfoot.stat", 2, &[40.0, 10.0, 20.0]),
            measured("lightfoot.stat", 1, &[40.0, 20.0, 10.0]),
            measured("lightfoot.open_close", 1, &[5.0]),
        ]);
        let brief: Vec<_> = rows.iter().map(|row| (row.case.as_str(), row.threads, row.median_ns)).collect();
        assert_eq!(
            brief,
            [
                ("lightfoot.stat", 1, 20.0),
                ("kernel.stat", 1, 900.0),
                ("lightfoot.stat", 2, 20.0),
                ("kernel.stat", 2, 1000.0),
                ("lightfoot.open_close", 1, 5.0)
            ]
        );
        // Of the rounds 25, 100 and 200; and of twice 1, 2 and 0.5.
        assert_eq!(rows[2].times_faster_than_kernel, Some(100.0));
        assert_eq!(rows[2].throughput_vs_one_thread, Some(2.0));
        assert_eq!((rows[2].min_ns, rows[2].max_ns, rows[2].rounds), (10.0, 40.0, 3));
        assert_eq!((rows[1].times_faster_than_kernel, rows[1].throughput_vs_one_thread), (None, None));
        assert_eq!(rows[4].times_faster_than_kernel, None);
    }
}
