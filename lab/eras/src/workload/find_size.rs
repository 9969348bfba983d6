//! `find -size 0`: every directory listed, every file in it looked at.
//!
//! Models the `find $HOME -size 0b` of the 2013 patches' "other tests" (Waiman Long, linux-kernel).
//! Each worker is a process that visits the whole tree, each from a different place. A step is one
//! file.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Process, Result};
use random::Random;

load!(FindSize {
    directories: usize = count(200, (1, 100_000), "directories with files (chosen here)");
    files: usize = count(12, (1, 10_000), "files in each (chosen here)");
    user_ns: u64 = time(600, "the program's time for each file (chosen here)");
    kernel_ns: u64 = time(400, "the kernel's time for each file besides the walk (chosen here)");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "find-size",
    summary: "list every directory of a tree and stat every file",
    source: "find $HOME -size 0b, linux-kernel 2013",
    parameters: PARAMETERS,
    make: |parameters| Box::new(FindSize::new(parameters)),
};

/// Directories with files in each directory above them.
const FAN_OUT: usize = 16;

impl Workload for FindSize {
    fn stage<'era>(&self, era: &'era dyn Era, _workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        let directories: Vec<String> =
            (0..self.directories).map(|index| format!("/home/user/part{}/dir{index}", index / FAN_OUT)).collect();
        for directory in &directories {
            layout::directories(&*process, directory)?;
            layout::files(&*process, directory, self.files)?;
        }
        Ok(Box::new(Made { load: *self, era, shared: directories }))
    }

    fn entries(&self, _workers: usize) -> usize {
        2 + self.directories.div_ceil(FAN_OUT) + self.directories * (1 + self.files)
    }
}

impl Stage for Made<'_, FindSize, Vec<String>> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let next = Random::new(seed, index as u64).index(self.shared.len());
        Ok(Box::new(Finder { home: self, process: self.era.process(), next, names: Vec::new(), path: Vec::new() }))
    }
}

struct Finder<'a> {
    home: &'a Made<'a, FindSize, Vec<String>>,
    process: Box<dyn Process + 'a>,
    /// The directory after the one that `names` are of.
    next: usize,
    /// The remaining names of the directory that was listed.
    names: Vec<Vec<u8>>,
    /// Room for one path.
    path: Vec<u8>,
}

impl Finder<'_> {
    /// Enters the next directory and lists it.
    fn descend(&mut self) -> Result<()> {
        let directory = self.home.shared[self.next].as_bytes();
        self.next = (self.next + 1) % self.home.shared.len();
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
