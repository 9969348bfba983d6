//! `statvfs(3)` alone: by the list of mounts or by the mount, as the era does.
//!
//! Models the part of dbench that was most of its profile in October 2009: the C library read the
//! list of mounts, whose lines are reverse paths of the mounted directories. Here `mounts`
//! directories are mounted, two components deep, so that a line has a path. (With the era's option
//! `mounts` set to 0 the list has no other lines.) A step is one call.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};

load!(Statvfs {
    mounts: usize = count(30, (0, 10_000), "mounted directories, as many as lines of the list");
    user_ns: u64 = time(1_500, "the program's time for each call (chosen here)");
    kernel_ns: u64 = time(500, "the rest of the kernel's time for each call (chosen here)");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "statvfs",
    summary: "statvfs of a private directory, with 30 mounts",
    source: "the profile of dbench, linux-kernel 2009",
    parameters: PARAMETERS,
    make: |parameters| Box::new(Statvfs::new(parameters)),
};

impl Workload for Statvfs {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        for mount in 0..self.mounts {
            let path = format!("/mnt/volume{mount}");
            layout::directories(&*process, &path)?;
            process.mount(path.as_bytes())?;
        }
        for worker in 0..workers {
            layout::directories(&*process, &own(worker))?;
        }
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        2 + self.mounts + workers
    }
}

fn own(worker: usize) -> String {
    format!("/clients/of{worker}")
}

impl Stage for Made<'_, Statvfs> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let Statvfs { user_ns, kernel_ns, .. } = self.load;
        let (process, path) = (self.era.process(), own(index));
        Ok(Box::new(move || {
            pace::user(user_ns);
            pace::kernel(kernel_ns);
            process.status(path.as_bytes()).map(drop)
        }))
    }
}
