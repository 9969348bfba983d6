//! The AIM7 multiuser benchmark: its workload `short`, and in [`mix`] the six others that were published with it.
//!
//! Models Waiman Long's figures for the lockless reference count, linux-kernel 2013. In `short`,
//! nearly all of the spin time was `dget_parent` and `dput` of one directory with the files of all
//! jobs. So a step is one turn of a job: user time, a hold on the common directory, and a `stat` in
//! a directory of the job's own. The published 10 to 100 users left CPUs idle (`fork`, `wait` and
//! the serial parts between jobs), which `idle_permille` and `idle_ns` model. Users are workers: on
//! a simulated machine there may be more of them than CPUs.

pub(super) mod mix;

use super::open_file::OpenFile;
use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Process, Result};
use random::Random;

load!(Short {
    think_ns: u64 = time(7_000, "mean user time of a turn; set on where 20 CPUs saturate without the patch");
    inside_ns: u64 = time(300, "how long the directory is held (chosen here)");
    stats: u64 = count(1, (0, 100), "looks at a file of the job's own in each turn (chosen here)");
    idle_permille: u64 = count(0, (0, 1000), "turns after which the job sleeps");
    idle_ns: u64 = time(100_000, "mean time that it then sleeps");
});

pub(super) const SHORT: WorkloadEntry = WorkloadEntry {
    name: "aim7-short",
    summary: "user time, and a short hold on one directory that all jobs share",
    source: "AIM7 short on an 80-core DL980, linux-kernel 2013",
    parameters: PARAMETERS,
    make: |parameters| Box::new(Short::new(parameters)),
};

/// Where all jobs' files are.
const COMMON: &str = "/tmp/aim";

/// Returns the file that every job has open there, and the one that it has in its own directory.
fn common_file(index: usize) -> String {
    format!("{COMMON}/f{index}")
}

fn home(index: usize) -> String {
    format!("/jobs/of{index}")
}

/// Makes the common directory with a file for each job, and each job's own with one file.
fn lay_out(process: &dyn Process, workers: usize) -> Result<()> {
    layout::directories(process, COMMON)?;
    layout::files(process, COMMON, workers)?;
    for index in 0..workers {
        layout::directories(process, &home(index))?;
        layout::files(process, &home(index), 1)?;
    }
    Ok(())
}

impl Workload for Short {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        lay_out(&*era.process(), workers)?;
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        3 + 3 * workers
    }
}

impl Stage for Made<'_, Short> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let Short { think_ns, inside_ns, stats, idle_permille, idle_ns } = self.load;
        let random = Random::new(seed, index as u64);
        let file = OpenFile::new(self.era, &common_file(index))?;
        file.process().change_directory(home(index).as_bytes())?;
        Ok(Box::new(move || {
            pace::user(random.around(think_ns));
            file.with(|process, handle| process.hold_parent(handle, inside_ns))?;
            for _ in 0..stats {
                file.process().stat(b"f0")?;
            }
            if random.chance(idle_permille) {
                pace::idle(random.exponential(idle_ns));
            }
            Ok(())
        }))
    }
}
