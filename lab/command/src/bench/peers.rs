//! `lightfoot-lab bench --peers`: lookups of hot paths by Lightfoot, by published crates and by the kernel.
//!
//! Every contender holds the same files at the same paths. All of them run in one process, in the
//! slices that [`mod@crate::bench::measure`] interleaves. The kernel's own share of `stat(2)` is
//! its time less the time of an empty system call, which is a contender too.

mod by_table;
mod comparison;
mod contender;
mod flat_map;
mod locked_tree;
mod memory_fs;

use crate::arguments::Bench;
use crate::bench::cases::Site;
use crate::bench::copy::{KernelCopy, RamCopy};
use crate::bench::measure::{Method, Quality, measure};
use crate::bench::outcome::rows;
use crate::bench::scratch::Scratch;
use crate::bench::tree::{Entry, Kind, Tree, hot};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::machine::Machine;
use crate::progress::Progress;
pub(crate) use comparison::PeerReport;
use contender::CONTENDERS;
use contender::Peers;

/// The operation that all contenders do.
const OPERATION: &str = "stat";

/// Files have lengths below this, so that a lookup that finds the wrong file is noticed.
const LENGTHS: u64 = 509;

/// Fills all contenders, checks that they agree, and measures them.
pub(crate) fn measured(bench: &Bench, method: Method, interrupt: &Interrupt) -> Result<PeerReport, Error> {
    let mut tree = with_lengths(hot());
    let kernel = KernelCopy::new(Scratch::make(bench.scratch.as_deref())?)?;
    let ram = RamCopy::new()?;
    super::copy::copy(&mut tree, &ram, Some(&kernel), 0, interrupt)?;
    let peers = Peers::of(&tree, &ram)?;
    peers.check(&tree, &ram, &kernel)?;
    let sites = super::sites(&tree, bench, &method, &ram, Some(&kernel))?;
    let mut cases = Vec::new();
    for site in &sites {
        cases.extend(CONTENDERS.iter().map(|contender| contender.case(site, &ram, &peers)));
    }
    let progress = Progress::of("measuring", cases.len() * method.threads.len() * method.rounds);
    let mut quality = Quality::default();
    let measured = measure(&cases, &method, &mut quality, &progress, interrupt)?;
    drop(progress);
    Ok(PeerReport {
        machine: Machine::here(),
        tree: tree.name,
        kernel_files: kernel.scratch().place(),
        depths: sites.iter().map(Site::depth).collect(),
        method,
        quality,
        rows: rows(&measured),
    })
}

/// Returns the tree with a length for each file.
fn with_lengths(mut tree: Tree) -> Tree {
    for (number, entry) in tree.entries.iter_mut().enumerate() {
        if let Kind::File { len } = &mut entry.kind {
            *len = number as u64 % LENGTHS;
        }
    }
    tree
}

/// Returns the files of `tree` with their lengths.
fn files(tree: &Tree) -> impl Iterator<Item = (&Entry, u64)> {
    tree.entries.iter().filter_map(|entry| match entry.kind {
        Kind::File { len } => Some((entry, len)),
        _ => None,
    })
}
