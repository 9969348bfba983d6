//! `git diff` with everything cached: an `lstat` of every file of a kernel-like tree.
//!
//! Models Nick Piggin's and Jens Axboe's figures to linux-kernel, October 2009. Serial: each worker
//! is a process that visits the whole tree (the publication has one). Threads, as
//! `core.preloadIndex` makes them: all workers belong to one process, so they share its root and
//! working directory, and each has its own share of the tree. Paths are relative to the tree's top,
//! as git's are. A step is one file.

use super::parameter::load;
use super::{Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Process, Result};

load!(GitDiff(is_threaded: bool) {
    directories: usize = count(200, (1, 100_000), "directories with files; Linux 2.6.32 had about 1,900");
    files: usize = count(15, (1, 10_000), "files in each; as in Linux 2.6.32");
    user_ns: u64 = time(1_800,
        "git's own time for each file; from the serial cell: 5.35 s of user time in 100 times about 30,000 files");
    kernel_ns: u64 = time(500,
        "the kernel's time for each file besides the walk: system call, copying the answer (chosen here)");
});

const SOURCE: &str = "cached git diff of a Linux tree, linux-kernel 2009";

pub(super) const SERIAL: WorkloadEntry = WorkloadEntry {
    name: "git-diff-serial",
    summary: "lstat of every file of a kernel-like tree, each worker a process that sees all of it",
    source: SOURCE,
    parameters: PARAMETERS,
    make: |parameters| Box::new(GitDiff::new(parameters, false)),
};

pub(super) const THREADS: WorkloadEntry = WorkloadEntry {
    name: "git-diff-threads",
    summary: "the same by threads of one process, each with a share of the tree",
    source: SOURCE,
    parameters: PARAMETERS,
    make: |parameters| Box::new(GitDiff::new(parameters, true)),
};

/// Directories on the two levels above those with files, as a kernel tree has them: 20 at the top, 6 in each.
const TOP: usize = 20;
const MIDDLE: usize = 6;

/// The place of the tree.
const TREE: &str = "/home/user/linux";

impl GitDiff {
    /// Makes the tree and returns the paths of its files, in the order of git's index.
    fn tree(self, process: &dyn Process) -> Result<Vec<String>> {
        let mut paths = Vec::with_capacity(self.directories * self.files);
        for index in 0..self.directories {
            let (top, middle) = (index % TOP, index / TOP % MIDDLE);
            let directory = format!("part{top}/group{middle}/module{index}");
            layout::directories(process, &format!("{TREE}/{directory}"))?;
            for file in 0..self.files {
                let path = format!("{directory}/source_{file}.c");
                layout::file(process, &format!("{TREE}/{path}"))?;
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

impl Workload for GitDiff {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let program = era.process();
        let paths = self.tree(&*program)?;
        program.change_directory(TREE.as_bytes())?;
        let program = self.is_threaded.then_some(program);
        Ok(Box::new(Index { load: *self, era, paths, program, workers }))
    }

    fn entries(&self, _workers: usize) -> usize {
        3 + TOP + TOP * MIDDLE + self.directories * (1 + self.files)
    }
}

struct Index<'era> {
    load: GitDiff,
    era: &'era dyn Era,
    paths: Vec<String>,
    /// The one process, if the workers are its threads.
    program: Option<Box<dyn Process + 'era>>,
    workers: usize,
}

impl Index<'_> {
    /// Returns the part of the tree that worker `index` looks at. The part is never empty.
    fn share(&self, index: usize) -> &[String] {
        if self.program.is_none() {
            return &self.paths;
        }
        let at = |worker: usize| worker * self.paths.len() / self.workers.max(1);
        match &self.paths[at(index)..at(index + 1)] {
            // More workers than files.
            [] => &self.paths[..1],
            share => share,
        }
    }

    /// Does a worker's step for one file. The callers differ only in the process.
    fn step(&self, process: &dyn Process, path: &str) -> Result<()> {
        pace::user(self.load.user_ns);
        process.stat(path.as_bytes())?;
        pace::kernel(self.load.kernel_ns);
        Ok(())
    }
}

impl Stage for Index<'_> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let mut files = self.share(index).iter().cycle();
        let mut next = move || files.next().map_or("", String::as_str);
        if let Some(program) = &self.program {
            return Ok(Box::new(move || self.step(&**program, next())));
        }
        let process = self.era.process();
        process.change_directory(TREE.as_bytes())?;
        Ok(Box::new(move || self.step(&*process, next())))
    }
}
