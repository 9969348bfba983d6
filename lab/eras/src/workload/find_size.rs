//! `find -size 0`: every directory listed, every file in it looked at.
//!
//! Stands for the `find $HOME -size 0b` of the 2013 patches' "other tests" (Waiman Long, linux-kernel). Each worker is a
//! process that goes over the whole tree, each from a different place. A step is one file.

use super::{Parameter, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Process, Result};
use random::Random;

const DIRECTORIES: Parameter =
    Parameter::count("directories", 200, (1, 100_000), "directories with files (chosen here)");
const FILES: Parameter = Parameter::count("files", 12, (1, 10_000), "files in each (chosen here)");
const USER_NS: Parameter = Parameter::time("user_ns", 600, "the program's time for each file (chosen here)");
const KERNEL_NS: Parameter =
    Parameter::time("kernel_ns", 400, "the kernel's time for each file besides the walk (chosen here)");

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "find-size",
    summary: "list every directory of a tree and stat every file",
    source: "find $HOME -size 0b, linux-kernel 2013",
    parameters: &[DIRECTORIES, FILES, USER_NS, KERNEL_NS],
    make: |parameters| {
        Box::new(FindSize {
            directories: parameters.count(&DIRECTORIES),
            files: parameters.count(&FILES),
            user_ns: parameters.get(&USER_NS),
            kernel_ns: parameters.get(&KERNEL_NS),
        })
    },
};

/// Directories with files in each directory above them.
const FAN_OUT: usize = 16;

#[derive(Clone, Copy)]
struct FindSize {
    directories: usize,
    files: usize,
    user_ns: u64,
    kernel_ns: u64,
}

impl Workload for FindSize {
    fn stage<'era>(&self, era: &'era dyn Era, _workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        let directories: Vec<String> =
            (0..self.directories).map(|index| format!("/home/user/part{}/dir{index}", index / FAN_OUT)).collect();
        for directory in &directories {
            layout::directories(&*process, directory)?;
            layout::files(&*process, directory, self.files)?;
        }
        Ok(Box::new(Home { load: *self, era, directories }))
    }

    fn entries(&self, _workers: usize) -> usize {
        2 + self.directories.div_ceil(FAN_OUT) + self.directories * (1 + self.files)
    }
}

struct Home<'era> {
    load: FindSize,
    era: &'era dyn Era,
    directories: Vec<String>,
}

impl Stage for Home<'_> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let next = Random::new(seed, index as u64).index(self.directories.len());
        Ok(Box::new(Finder { home: self, process: self.era.process(), next, names: Vec::new(), path: Vec::new() }))
    }
}

struct Finder<'a> {
    home: &'a Home<'a>,
    process: Box<dyn Process + 'a>,
    /// The directory after the one that `names` are of.
    next: usize,
    /// What is left of the directory that was listed.
    names: Vec<Vec<u8>>,
    /// Room for one path.
    path: Vec<u8>,
}

impl Finder<'_> {
    /// Goes into the next directory and lists it.
    fn descend(&mut self) -> Result<()> {
        let directory = self.home.directories[self.next].as_bytes();
        self.next = (self.next + 1) % self.home.directories.len();
        self.process.change_directory(directory)?;
        let names = &mut self.names;
        self.process.list(directory, &mut |name| names.push(name.to_vec()))
    }
}

impl Worker for Finder<'_> {
    fn step(&mut self) -> Result<()> {
        let FindSize { user_ns, kernel_ns, .. } = self.home.load;
        while self.names.is_empty() {
            self.descend()?;
        }
        pace::user(user_ns);
        self.path.clear();
        self.path.extend(self.names.pop().unwrap_or_default());
        self.process.stat(&self.path)?;
        pace::kernel(kernel_ns);
        Ok(())
    }
}
