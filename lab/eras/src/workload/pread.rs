//! A storm of `pread` on one file, with a rare write: many readers and few writers on one sleeping reader/writer lock.
//!
//! Models the run that accompanies the 2018 patch to the reader/writer semaphore (Waiman Long,
//! linux-kernel, July 2018): `pread64` by many CPUs on one XFS file. The system's share of CPU time
//! is published, not the program's times. A search for a regime in which the early exit makes a
//! difference found these times, so they show the direction and prove no size. A step is one call.

use super::open_file::OpenFile;
use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};
use random::Random;

load!(Pread {
    user_ns: u64 = time(20_000, "mean of the program's time between calls; chosen in that search");
    read_ns: u64 = time(500, "how long a read holds the file shared; chosen in that search");
    write_ns: u64 = time(500, "how long a write holds the file alone; chosen in that search");
    write_every: u64 = count(500, (0, 1_000_000_000),
        "calls for each write among them, on average, 0 for none; chosen in that search");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "pread-storm",
    summary: "reads of one file that hold it shared, with a rare write",
    source: "pread64 on one XFS file, 4 sockets, linux-kernel 2018",
    parameters: PARAMETERS,
    make: |parameters| Box::new(Pread::new(parameters)),
};

const FILE: &str = "/data";

impl Workload for Pread {
    fn stage<'era>(&self, era: &'era dyn Era, _workers: usize) -> Result<Box<dyn Stage + 'era>> {
        layout::file(&*era.process(), FILE)?;
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, _workers: usize) -> usize {
        1
    }
}

impl Stage for Made<'_, Pread> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let Pread { user_ns, read_ns, write_ns, write_every } = self.load;
        let random = Random::new(seed, index as u64);
        let file = OpenFile::new(self.era, FILE)?;
        Ok(Box::new(move || {
            pace::user(random.exponential(user_ns));
            let is_write = write_every > 0 && random.below(write_every) == 0;
            file.with(|process, handle| match is_write {
                true => process.write(handle, write_ns),
                false => process.read(handle, read_ns),
            })
        }))
    }
}
