//! `lightfoot-lab bench`: copies a tree, measures both copies, reports.

pub(crate) mod cases;
mod copy;
mod measure;
pub(crate) mod outcome;
mod paths;
pub(crate) mod peers;
mod scratch;
mod tree;

use crate::arguments::Bench;
use crate::bench::cases::{Case, OPERATIONS, SIDES, Site};
use crate::bench::copy::{KernelCopy, RamCopy};
use crate::bench::measure::{Method, Quality, measure};
use crate::bench::outcome::{BenchReport, Memory, TreeFacts, rows};
use crate::bench::paths::{Paths, SEED, by_depth};
use crate::bench::scratch::Scratch;
use crate::bench::tree::Tree;
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::machine::{Machine, usable_cpus};
use crate::output::{json, write};
use crate::progress::Progress;
use lightfoot::{Fallback, Vfs};
use random::Random;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

/// Paths that are hot at each depth.
const HOT_PATHS: usize = 1000;

/// Depths of the tree that are measured; with `--quick` the second.
const DEPTHS: [usize; 2] = [4, 2];

/// Bytes of contents that are copied; with `--quick` the second. No case reads any.
const CONTENTS_AT_MOST: [u64; 2] = [256 << 20, 16 << 20];

/// Runs the command and writes its report to `out`.
pub(crate) fn run(bench: &Bench, out: &mut impl Write) -> Result<(), Error> {
    let method = method(bench)?;
    let cases = chosen_cases(bench)?;
    let interrupt = Interrupt::listen()?;
    if bench.peers {
        let report = peers::measured(bench, method, &interrupt)?;
        return write(out, &if bench.json { json(&report) } else { report.text() });
    }
    let mut tree = match &bench.dir {
        Some(dir) => tree::read(dir, &interrupt)?,
        None if bench.cold => tree::cold(bench.cold_files),
        None => tree::hot(),
    };
    let report = measured_on(&mut tree, bench, method, &cases, &interrupt)?;
    write(out, &if bench.json { json(&report) } else { report.text(bench.verbose) })
}

fn method(bench: &Bench) -> Result<Method, Error> {
    let cpus = usable_cpus();
    let mut threads: BTreeSet<usize> = bench.threads.iter().map(|&count| count as usize).collect();
    if threads.is_empty() {
        threads.extend([1, if bench.peers { cpus.len().min(2) } else { cpus.len() }]);
        if !bench.quick && !bench.peers {
            threads.extend((0..).map(|bit| 1 << bit).take_while(|&count| count < cpus.len()));
        }
    }
    if let Some(&asked) = threads.iter().find(|&&count| count > cpus.len()) {
        return Err(Error::too_many_threads(asked, cpus.len()));
    }
    let slice_us = match (bench.cold, bench.quick) {
        (true, _) => 120_000,
        (false, true) => 3_000,
        (false, false) => 10_000,
    };
    Ok(Method {
        threads: threads.into_iter().collect(),
        rounds: bench.rounds.map_or(if bench.quick { 5 } else { 9 }, |rounds| rounds as usize),
        slice_us: bench.slice_us.unwrap_or(slice_us),
        warm_up_us: if bench.cold { bench.slice_us.unwrap_or(100_000) } else { 0 },
        is_hot: !bench.cold,
        tries: if bench.quick { 4 } else { 12 },
        cpus,
    })
}

/// Side and operation of each requested case.
fn chosen_cases(bench: &Bench) -> Result<Vec<(&'static str, &'static str)>, Error> {
    let all = OPERATIONS.into_iter().flat_map(|operation| SIDES.map(|side| (side, operation)));
    if bench.cold {
        return Ok(all
            .filter(|&(side, operation)| operation == "stat" && (side == SIDES[0] || bench.cold_kernel))
            .collect());
    }
    let name = |(side, operation): (&str, &str)| format!("{side}.{operation}");
    let is_asked = |case| bench.cases.is_empty() || bench.cases.iter().any(|part| name(case).contains(part));
    let chosen: Vec<_> = all.clone().filter(|&case| is_asked(case)).collect();
    if chosen.is_empty() {
        let there: Vec<String> = all.map(name).collect();
        return Err(Error::no_such("--cases", &bench.cases.join(","), &format!("part of {}", there.join(", "))));
    }
    Ok(chosen)
}

/// Copies the tree and measures. Everything that was made is removed when this returns.
fn measured_on(
    tree: &mut Tree,
    bench: &Bench,
    method: Method,
    cases: &[(&'static str, &'static str)],
    interrupt: &Interrupt,
) -> Result<BenchReport, Error> {
    if !tree.entries.iter().any(tree::Entry::is_file) {
        return Err(Error::NoFiles(tree.name.clone()));
    }
    let kernel = match cases.iter().any(|(side, _)| *side == SIDES[1]) {
        true => Some(KernelCopy::new(Scratch::make(bench.scratch.as_deref())?)?),
        false => None,
    };
    let ram = RamCopy::new()?;
    copy::copy(tree, &ram, kernel.as_ref(), CONTENTS_AT_MOST[usize::from(bench.quick)], interrupt)?;
    let memory = Memory::from(ram.vfs().cache_stats());
    let sites = sites(tree, bench, &method, &ram, kernel.as_ref())?;
    let before = fallbacks(ram.vfs());
    let mut quality = Quality::default();
    let pairs = sites.iter().flat_map(|site| cases.iter().map(move |&case| (site, case)));
    let contenders: Vec<Case<'_>> = pairs.map(|(site, case)| contender(site, case, &ram)).collect();
    let progress = Progress::of("measuring", contenders.len() * method.threads.len() * method.rounds);
    let measured = measure(&contenders, &method, &mut quality, &progress, interrupt)?;
    drop(progress);
    let fallbacks = fallbacks(ram.vfs()).into_iter().map(|(reason, count)| (reason, count - before[reason])).collect();
    Ok(BenchReport {
        machine: Machine::here(),
        tree: TreeFacts::from(&*tree),
        copy_on: kernel.as_ref().map(|kernel| kernel.scratch().place()),
        copy_in_memory: kernel.as_ref().is_none_or(|kernel| kernel.scratch().is_tmpfs()),
        bytes_per_name: memory.per_name(),
        memory,
        fallbacks,
        method,
        quality,
        rows: rows(&measured),
    })
}

fn contender<'a>(site: &'a Site, (side, operation): (&str, &str), ram: &'a RamCopy) -> Case<'a> {
    if side == SIDES[0] { site.lightfoot(operation, ram) } else { site.kernel(operation) }
}

/// Returns the places to measure at: one for each chosen depth.
fn sites(
    tree: &Tree,
    bench: &Bench,
    method: &Method,
    ram: &RamCopy,
    kernel: Option<&KernelCopy>,
) -> Result<Vec<Site>, Error> {
    let most = method.threads.iter().copied().max().unwrap_or(1);
    let random = Random::new(SEED, 0);
    let mut sites = Vec::new();
    for (depth, mut files) in by_depth(&tree.entries, DEPTHS[usize::from(bench.quick)]) {
        random.shuffle(&mut files);
        let wanted = if method.is_hot { HOT_PATHS } else { files.len() };
        // Modes can keep a user other than root out of the copy.
        let files = files.into_iter().filter(|path| can_open(path, ram, kernel)).take(wanted);
        let files: Vec<&[u8]> = files.collect();
        if files.is_empty() {
            continue;
        }
        let mut parents: Vec<&[u8]> = match depth {
            1 | 2 => vec![b""],
            _ => tree.entries.iter().filter(|e| e.is_dir() && e.depth() == depth - 2).map(|e| &*e.path).collect(),
        };
        random.shuffle(&mut parents);
        sites.push(Site::new(depth, Paths::pack(files), &parents, most, ram, kernel)?);
    }
    if sites.is_empty() { Err(Error::NoFiles(tree.name.clone())) } else { Ok(sites) }
}

fn can_open(path: &[u8], ram: &RamCopy, kernel: Option<&KernelCopy>) -> bool {
    ram.context().open(path).is_ok() && kernel.is_none_or(|kernel| kernel.can_open(path))
}

fn fallbacks(vfs: &Vfs) -> BTreeMap<&'static str, u64> {
    Fallback::ALL.into_iter().map(|reason| (reason.name(), vfs.fallbacks(reason))).collect()
}
