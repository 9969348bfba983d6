//! `FxMark`'s metadata workloads, under `FxMark`'s names.
//!
//! Source: Min, Kashyap, Maass, Kang, Kim: "Understanding Manycore Scalability of File Systems",
//! USENIX ATC 2016, and the benchmark's published source. The names are made of M for metadata,
//! then R for reading or W for writing, then the operation (`RP` path resolution, `RD` reading a
//! directory, `WC` creation, `WU` unlinking, `WR` renaming), then how much is shared: L (private),
//! M (a common directory or tree), H (one path).
//!
//! # Limitations
//! `FxMark` writes until the disk is full or the time is up. Here a worker has `files` files: where
//! they run out, it puts the tree back within its step, so the measurement then has a share of the
//! opposite operation. A listing is one step; `FxMark` counts calls of `readdir`. `MRPM`'s tree has
//! `branching` to the power of five files; `FxMark`'s 8 makes 32,768 of them.

use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Process, Result};
use random::Random;

const USER_NS: Parameter =
    Parameter::time("user_ns", 200, "the program's time for each operation: writing out the path (chosen here)");
const KERNEL_NS: Parameter =
    Parameter::time("kernel_ns", 300, "the rest of the kernel's time for each operation (chosen here)");
const BRANCHING: Parameter =
    Parameter::count("branching", 4, (1, 8), "names in each directory of the five levels; FxMark has 8");
const FILES: Parameter = Parameter::count("files", 512, (1, 1_000_000), "files of each worker (chosen here)");
const LISTED: Parameter =
    Parameter::count("files", 64, (0, 1_000_000), "files of each worker that are listed (chosen here)");

const SOURCE: &str = "FxMark, USENIX ATC 2016";
const LOOKUP: &[Parameter] = &[USER_NS, KERNEL_NS];
const TREE: &[Parameter] = &[USER_NS, KERNEL_NS, BRANCHING];
const LIST: &[Parameter] = &[USER_NS, KERNEL_NS, LISTED];
const CHANGE: &[Parameter] = &[USER_NS, KERNEL_NS, FILES];

/// Returns an entry of the catalogue.
const fn entry(
    name: &'static str,
    summary: &'static str,
    parameters: &'static [Parameter],
    make: fn(&Parameters) -> Box<dyn Workload>,
) -> WorkloadEntry {
    WorkloadEntry { name, summary, source: SOURCE, parameters, make }
}

pub(super) const MRPL: WorkloadEntry =
    entry("MRPL", "stat of a private path, 5 deep", LOOKUP, |p| Load::make(p, Kind::OwnPath));
pub(super) const MRPM: WorkloadEntry =
    entry("MRPM", "stat of a random path in a common tree, 5 deep", TREE, |p| Load::make(p, Kind::RandomPath));
pub(super) const MRPH: WorkloadEntry =
    entry("MRPH", "stat of one path, 5 deep, by all", TREE, |p| Load::make(p, Kind::OnePath));
pub(super) const MRDL: WorkloadEntry =
    entry("MRDL", "list a private directory", LIST, |p| Load::make(p, Kind::List(Where::Own)));
pub(super) const MRDM: WorkloadEntry =
    entry("MRDM", "list a common directory", LIST, |p| Load::make(p, Kind::List(Where::Common)));
pub(super) const MWCL: WorkloadEntry =
    entry("MWCL", "create files in a private directory", CHANGE, |p| Load::make(p, Kind::Create(Where::Own)));
pub(super) const MWCM: WorkloadEntry =
    entry("MWCM", "create files in a common directory", CHANGE, |p| Load::make(p, Kind::Create(Where::Common)));
pub(super) const MWUL: WorkloadEntry =
    entry("MWUL", "unlink files in a private directory", CHANGE, |p| Load::make(p, Kind::Unlink(Where::Own)));
pub(super) const MWUM: WorkloadEntry =
    entry("MWUM", "unlink files in a common directory", CHANGE, |p| Load::make(p, Kind::Unlink(Where::Common)));
pub(super) const MWRL: WorkloadEntry =
    entry("MWRL", "rename a file within a private directory", LOOKUP, |p| Load::make(p, Kind::RenameOwn));
pub(super) const MWRM: WorkloadEntry =
    entry("MWRM", "move files from a private directory to a common one", CHANGE, |p| {
        Load::make(p, Kind::RenameToCommon)
    });

/// Components of the paths that are resolved.
const DEPTH: usize = 5;

/// Whose directory it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Own,
    Common,
}

#[derive(Clone, Copy)]
enum Kind {
    OwnPath,
    RandomPath,
    OnePath,
    List(Where),
    Create(Where),
    Unlink(Where),
    RenameOwn,
    RenameToCommon,
}

#[derive(Clone, Copy)]
struct Load {
    kind: Kind,
    user_ns: u64,
    kernel_ns: u64,
    branching: usize,
    files: usize,
}

/// The common directory.
const COMMON: &str = "/common";

fn own(index: usize) -> String {
    format!("/own{index}")
}

fn own_path(index: usize) -> String {
    format!("/{index}/0/0/0/0")
}

impl Load {
    fn make(parameters: &Parameters, kind: Kind) -> Box<dyn Workload> {
        Box::new(Self {
            kind,
            user_ns: parameters.get("user_ns"),
            kernel_ns: parameters.get("kernel_ns"),
            branching: parameters.get("branching"),
            files: parameters.get("files"),
        })
    }

    /// Returns the path of one of the common tree's files.
    fn tree_path(&self, mut number: usize) -> String {
        let mut path = "/tree".to_owned();
        for _ in 0..DEPTH {
            path += &format!("/{}", number % self.branching);
            number /= self.branching;
        }
        path
    }

    fn tree_files(&self) -> usize {
        self.branching.pow(5)
    }

    /// Returns the paths of a worker's files.
    fn paths(&self, place: Where, index: usize) -> Vec<Vec<u8>> {
        let directory = if place == Where::Own { own(index) } else { COMMON.into() };
        (0..self.files).map(|file| format!("{directory}/f{index}-{file}").into_bytes()).collect()
    }

    fn make_tree(&self, process: &dyn Process) -> Result<()> {
        for number in 0..self.tree_files() {
            let path = self.tree_path(number);
            layout::directories(process, &path[..path.len() - 2])?;
            layout::file(process, &path)?;
        }
        Ok(())
    }

    fn make_own(&self, process: &dyn Process, index: usize) -> Result<()> {
        match self.kind {
            Kind::RandomPath | Kind::OnePath => Ok(()),
            Kind::OwnPath => {
                let path = own_path(index);
                layout::directories(process, &path[..path.len() - 2])?;
                layout::file(process, &path)
            }
            Kind::RenameOwn => {
                layout::directories(process, &own(index))?;
                layout::file(process, &format!("{}/n0", own(index)))
            }
            Kind::Create(_) => layout::directories(process, &own(index)),
            Kind::List(place) | Kind::Unlink(place) => {
                layout::directories(process, &own(index))?;
                create_all(process, &self.paths(place, index))
            }
            Kind::RenameToCommon => {
                layout::directories(process, &own(index))?;
                create_all(process, &self.paths(Where::Own, index))
            }
        }
    }
}

impl Workload for Load {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        layout::directories(&*process, COMMON)?;
        if matches!(self.kind, Kind::RandomPath | Kind::OnePath) {
            self.make_tree(&*process)?;
        }
        for index in 0..workers {
            self.make_own(&*process, index)?;
        }
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        match self.kind {
            Kind::RandomPath | Kind::OnePath => 2 + 2 * self.tree_files(),
            Kind::OwnPath => 1 + workers * DEPTH,
            Kind::RenameOwn => 1 + 2 * workers,
            _ => 1 + workers * (1 + self.files),
        }
    }
}

impl Stage for Made<'_, Load> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let load = self.load;
        let process = self.era.process();
        let random = Random::new(seed, index as u64);
        Ok(match load.kind {
            Kind::OwnPath => looker(load, process, vec![own_path(index)], move |_| 0),
            Kind::OnePath => looker(load, process, vec![load.tree_path(0)], move |_| 0),
            Kind::RandomPath => {
                let paths = (0..load.tree_files()).map(|number| load.tree_path(number)).collect();
                looker(load, process, paths, move |len| random.index(len))
            }
            Kind::List(place) => lister(load, process, if place == Where::Own { own(index) } else { COMMON.into() }),
            Kind::Create(place) => changer(load, process, load.paths(place, index), create, unlink_all),
            Kind::Unlink(place) => {
                changer(load, process, load.paths(place, index), |process, path| process.unlink(path), create_all)
            }
            Kind::RenameOwn => renamer(load, process, own(index)),
            Kind::RenameToCommon => {
                mover(load, process, load.paths(Where::Own, index), load.paths(Where::Common, index))
            }
        })
    }
}

impl Load {
    /// Spends the time that the program and the rest of the kernel take for an operation.
    fn pace(self) {
        pace::user(self.user_ns);
        pace::kernel(self.kernel_ns);
    }
}

/// Looks at the path that `choose` chooses.
fn looker<'a>(
    load: Load,
    process: Box<dyn Process + 'a>,
    paths: Vec<String>,
    mut choose: impl FnMut(usize) -> usize + 'a,
) -> Box<dyn Worker + 'a> {
    Box::new(move || {
        load.pace();
        process.stat(paths[choose(paths.len())].as_bytes()).map(drop)
    })
}

fn lister<'a>(load: Load, process: Box<dyn Process + 'a>, directory: String) -> Box<dyn Worker + 'a> {
    Box::new(move || {
        load.pace();
        process.list(directory.as_bytes(), &mut |_| {})
    })
}

/// Does `change` to one path after the other; when there is none left, undoes it on all.
fn changer<'a>(
    load: Load,
    process: Box<dyn Process + 'a>,
    paths: Vec<Vec<u8>>,
    change: impl Fn(&dyn Process, &[u8]) -> Result<()> + 'a,
    undo: impl Fn(&dyn Process, &[Vec<u8>]) -> Result<()> + 'a,
) -> Box<dyn Worker + 'a> {
    let mut next = 0;
    Box::new(move || {
        if next == paths.len() {
            undo(&*process, &paths)?;
            next = 0;
        }
        load.pace();
        next += 1;
        change(&*process, &paths[next - 1])
    })
}

/// Gives one file a new name each time.
fn renamer<'a>(load: Load, process: Box<dyn Process + 'a>, directory: String) -> Box<dyn Worker + 'a> {
    let mut number = 0_u64;
    Box::new(move || {
        load.pace();
        let from = format!("{directory}/n{number}");
        number += 1;
        process.rename(from.as_bytes(), format!("{directory}/n{number}").as_bytes())
    })
}

/// Moves the files of one directory to another, one a step; then back, all in one.
fn mover<'a>(load: Load, process: Box<dyn Process + 'a>, from: Vec<Vec<u8>>, to: Vec<Vec<u8>>) -> Box<dyn Worker + 'a> {
    let mut next = 0;
    Box::new(move || {
        if next == from.len() {
            from.iter().zip(&to).try_for_each(|(from, to)| process.rename(to, from))?;
            next = 0;
        }
        load.pace();
        next += 1;
        process.rename(&from[next - 1], &to[next - 1])
    })
}

fn create(process: &dyn Process, path: &[u8]) -> Result<()> {
    process.create(path).map(|handle| process.close(handle))
}

fn create_all(process: &dyn Process, paths: &[Vec<u8>]) -> Result<()> {
    paths.iter().try_for_each(|path| create(process, path))
}

fn unlink_all(process: &dyn Process, paths: &[Vec<u8>]) -> Result<()> {
    paths.iter().try_for_each(|path| process.unlink(path))
}
