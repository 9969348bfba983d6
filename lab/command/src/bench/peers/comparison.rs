//! The output of `bench --peers`: a head, a Markdown table, and an explanation of its rows.

use super::contender::{CONTENDERS, Contender};
use crate::bench::measure::{Method, Quality};
use crate::bench::outcome::{BenchRow, nanoseconds};
use crate::machine::Machine;
use serde::Serialize;

/// All that `bench --peers` measured.
#[derive(Debug, Serialize)]
pub(crate) struct PeerReport {
    pub(crate) machine: Machine,
    /// A description of the files.
    pub(crate) tree: String,
    /// File system and place of the kernel's files: "tmpfs at /dev/shm".
    pub(crate) kernel_files: String,
    /// Components of the paths.
    pub(crate) depths: Vec<usize>,
    pub(crate) method: Method,
    pub(crate) quality: Quality,
    pub(crate) rows: Vec<BenchRow>,
}

const LEGEND: &str = "\
Nanoseconds of CPU time per lookup and thread; median of the rounds. The first six rows are function calls. The last two
are system calls: the null call shows how much of the kernel's time goes into entering and leaving the kernel. The flat
maps and `vfs::MemoryFS` look up the path as one string; Lightfoot, the tree and the kernel look up each component. Only
Lightfoot and the kernel follow links, cross mounts and check permissions.
";

impl PeerReport {
    /// As text, with the table in Markdown.
    pub(crate) fn text(&self) -> String {
        let Machine { cpu, cpus, kernel, huge_pages } = &self.machine;
        let Method { rounds, slice_us, .. } = self.method;
        let Quality { slices, repeated, disturbed } = self.quality;
        format!(
            "machine  {cpu}, {cpus} CPUs, {kernel}, THP {huge_pages}\n\
             files    {}; the kernel's on {}\n\
             method   1,000 random files at each depth, hot; {rounds} rounds of interleaved slices of {} ms;\n         \
             {repeated} slices repeated because a thread lost its CPU, {disturbed} of {slices} kept so\n\n{}\n{LEGEND}",
            self.tree,
            self.kernel_files,
            slice_us as f64 / 1000.0,
            self.table(),
        )
    }

    /// Returns a row for each contender, a column for each number of threads and depth.
    fn table(&self) -> String {
        let columns: Vec<(usize, usize)> = self
            .method
            .threads
            .iter()
            .flat_map(|&threads| self.depths.iter().map(move |&depth| (threads, depth)))
            .collect();
        let head = columns.iter().map(|&(threads, depth)| match (threads, Some(&depth) == self.depths.first()) {
            (1, true) => format!("1 thread: depth {depth}"),
            (_, true) => format!("{threads} threads: depth {depth}"),
            (_, false) => depth.to_string(),
        });
        let mut table = line("one lookup, ns", head);
        table += &format!("|---|{}\n", "--:|".repeat(columns.len()));
        for contender in &CONTENDERS {
            let cells = columns.iter().map(|&(threads, depth)| self.cell(contender, threads, depth));
            table += &line(contender.title, cells);
        }
        table
    }

    fn cell(&self, contender: &Contender, threads: usize, depth: usize) -> String {
        let is_it = |row: &&BenchRow| row.side() == contender.name && row.threads == threads && row.depth == depth;
        self.rows.iter().find(is_it).map_or_else(|| "-".into(), |row| nanoseconds(row.median_ns))
    }
}

fn line(first: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {first} | {} |\n", cells.join(" | "))
}
