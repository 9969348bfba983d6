//! `dbench`: the work of a file server for `NetBench` clients, without the network.
//!
//! Stands for the runs of the vfs-scale and store-free path walking patches (Jens Axboe and Nick Piggin, linux-kernel,
//! October 2009). A step is one operation of the load file. The shares are those that dbench 4 prints for its
//! `client.txt` (a run's counts, in parts of about 2,200): 381 `NTCreateX`, 346 `Qpathinfo`, 598 `ReadX`, and so on; from
//! memory, not confirmed in a source. The real load file is a fixed sequence; here operations are drawn at random by their
//! shares, from 16 names a client, in its own directory three below the common root: `/clients/clientN/~dmtmp`. As with the
//! original, every path begins at the root.
//!
//! `Qfsinfo` is `statvfs(3)`, which in the glibc of 2009 read the list of mounts; that is the era's to model. With
//! `statvfs=0` it is `statfs(2)` on the path instead, as in the figures for the changed dbench.
//!
//! # Limitations
//! `Qfileinfo` and `Sfileinfo` work on an open file and are kernel time only; so are `Flush` and locks. The published unit
//! is MB/s, which is proportional to operations.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Error, Handle, Process, Result};
use random::Random;
use std::collections::VecDeque;

load!(Dbench {
    statvfs: bool = count(1, (0, 1), "1: the C library's statvfs, by the era's way; 0: statfs on the path");
    user_ns: u64 = time(1_500, "mean of the program's time for each operation: reading the load file (chosen here)");
    kernel_ns: u64 = time(800, "the rest of the kernel's time for each operation (chosen here)");
    data_ns: u64 = time(2_500, "time to copy the data of a read or write, the file held (chosen here)");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "dbench",
    summary: "the mix of a file server's clients, each in its own directory under a common root",
    source: "dbench on tmpfs, 2-socket Opteron and 64-thread Nehalem-EX, linux-kernel 2009",
    parameters: PARAMETERS,
    make: |parameters| Box::new(Dbench::new(parameters)),
};

/// Names that a client uses.
const NAMES: usize = 16;

/// Files that a client has open at most.
const OPEN: usize = 8;

#[derive(Clone, Copy)]
enum Operation {
    Create,
    Close,
    Rename,
    Unlink,
    PathInformation,
    OpenFileInformation,
    FileSystemInformation,
    Find,
    Write,
    Read,
}

/// Operations and their shares.
const SHARES: [(Operation, u64); 10] = [
    (Operation::Create, 381),
    (Operation::Close, 280),
    (Operation::Rename, 16),
    (Operation::Unlink, 77),
    (Operation::PathInformation, 346),
    // Qfileinfo 61, Sfileinfo 31, Flush 27, locks 2.
    (Operation::OpenFileInformation, 121),
    (Operation::FileSystemInformation, 63),
    (Operation::Find, 134),
    (Operation::Write, 190),
    (Operation::Read, 598),
];

impl Workload for Dbench {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        for index in 0..workers {
            layout::directories(&*process, &directory(index))?;
            layout::files(&*process, &directory(index), NAMES / 2)?;
        }
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        // A file that was unlinked is there until it is closed.
        1 + workers * (2 + NAMES + OPEN)
    }
}

fn directory(index: usize) -> String {
    format!("/clients/client{index}/~dmtmp")
}

impl Stage for Made<'_, Dbench> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let directory = directory(index);
        let paths = (0..NAMES).map(|name| format!("{directory}/f{name}").into_bytes()).collect();
        Ok(Box::new(Client {
            load: self.load,
            process: self.era.process(),
            random: Random::new(seed, index as u64),
            directory: directory.into_bytes(),
            paths,
            is_there: (0..NAMES).map(|name| name < NAMES / 2).collect(),
            open: VecDeque::with_capacity(OPEN),
        }))
    }
}

struct Client<'era> {
    load: Dbench,
    process: Box<dyn Process + 'era>,
    random: Random,
    directory: Vec<u8>,
    paths: Vec<Vec<u8>>,
    /// For each path, whether there is such a file now.
    is_there: Vec<bool>,
    /// Oldest first.
    open: VecDeque<Handle>,
}

impl Client<'_> {
    fn drawn(&mut self) -> Operation {
        let mut drawn = self.random.below(SHARES.iter().map(|(_, share)| share).sum());
        for (operation, share) in SHARES {
            if drawn < share {
                return operation;
            }
            drawn -= share;
        }
        Operation::Read
    }

    /// Opens a file that is there; makes one that is not, or finds that it is not: a client requests many such.
    fn create(&mut self, name: usize) -> Result<()> {
        if self.open.len() == OPEN {
            self.close();
        }
        let path = &self.paths[name];
        let handle = match self.is_there[name] {
            true => self.process.open(path)?,
            false if self.random.chance(500) => self.process.create(path)?,
            false => return expect_missing(self.process.open(path).map(|handle| self.process.close(handle))),
        };
        self.is_there[name] = true;
        self.open.push_back(handle);
        Ok(())
    }

    fn close(&mut self) {
        if let Some(handle) = self.open.pop_front() {
            self.process.close(handle);
        }
    }

    fn unlink(&mut self, name: usize) -> Result<()> {
        match core::mem::replace(&mut self.is_there[name], false) {
            true => self.process.unlink(&self.paths[name]),
            false => expect_missing(self.process.unlink(&self.paths[name])),
        }
    }

    fn rename(&mut self, from: usize, to: usize) -> Result<()> {
        let answer = self.process.rename(&self.paths[from], &self.paths[to]);
        if !self.is_there[from] {
            return expect_missing(answer);
        }
        answer?;
        // In this order: a name renamed to itself stays.
        self.is_there[from] = false;
        self.is_there[to] = true;
        Ok(())
    }

    fn path_information(&self, name: usize) -> Result<()> {
        let answer = self.process.stat(&self.paths[name]).map(drop);
        if self.is_there[name] { answer } else { expect_missing(answer) }
    }

    fn file_system_information(&self) -> Result<()> {
        match self.load.statvfs {
            true => self.process.status(&self.directory).map(drop),
            false => self.process.stat(&self.directory).map(drop),
        }
    }

    /// Reads or writes the file that was opened last.
    fn transfer(&self, is_write: bool) -> Result<()> {
        let data_ns = self.load.data_ns;
        match self.open.back() {
            Some(file) if is_write => self.process.write(file, data_ns),
            Some(file) => self.process.read(file, data_ns),
            None => Ok(()),
        }
    }
}

/// Fails unless the operation reported that the file does not exist.
fn expect_missing(answer: Result<()>) -> Result<()> {
    match answer {
        Err(Error::NoEntry) => Ok(()),
        Err(error) => Err(error),
        Ok(()) => Err(Error::Exists),
    }
}

impl Worker for Client<'_> {
    fn step(&mut self) -> Result<()> {
        pace::user(self.random.around(self.load.user_ns));
        pace::kernel(self.load.kernel_ns);
        let (name, other) = (self.random.index(NAMES), self.random.index(NAMES));
        match self.drawn() {
            Operation::Create => self.create(name),
            Operation::Close => {
                self.close();
                Ok(())
            }
            Operation::Rename => self.rename(name, other),
            Operation::Unlink => self.unlink(name),
            Operation::PathInformation => self.path_information(name),
            Operation::OpenFileInformation => Ok(()),
            Operation::FileSystemInformation => self.file_system_information(),
            Operation::Find => self.process.list(&self.directory, &mut |_| {}),
            Operation::Write => self.transfer(true),
            Operation::Read => self.transfer(false),
        }
    }
}

impl Drop for Client<'_> {
    fn drop(&mut self) {
        while !self.open.is_empty() {
            self.close();
        }
    }
}
