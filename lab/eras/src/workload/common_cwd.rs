//! Lookups of one name in a working directory that all processes have in common.
//!
//! Models a statement about the store-free walk of October 2009: it makes lookups of different
//! names scale, while the last component, and a common working directory before, are still written
//! by all. A step is one `stat` of a path of one component. With the store-free walk the directory
//! is not written; the name is, unless `is_own` gives each worker its own. The first `renamers`
//! workers move a private file to and fro in another directory instead: each walk of an outer
//! sequence notices that, and no walk of a sequence in each entry.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace, renamer};
use crate::era::{Era, Result};

load!(CommonCwd {
    is_own: bool = count(1, (0, 1), "1: each worker looks up its own name; 0: all the same");
    renamers: usize = count(0, (0, 100_000), "workers that rename elsewhere; the rest look up");
    pause_ns: u64 = time(5_000, renamer::PAUSE);
    user_ns: u64 = time(200, "the program's time for each lookup (chosen here)");
    kernel_ns: u64 = time(300, "the rest of the kernel's time for each lookup (chosen here)");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "stat-cwd",
    summary: "stat of a name in a common working directory, by a process for each worker",
    source: "the discussion of the store-free walk, linux-kernel 2009; no figures",
    parameters: PARAMETERS,
    make: |parameters| Box::new(CommonCwd::new(parameters)),
};

impl Workload for CommonCwd {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        layout::directories(&*process, "/work")?;
        layout::files(&*process, "/work", workers)?;
        renamer::files(&*process, self.renamers.min(workers))?;
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        2 + workers + self.renamers.min(workers)
    }

    fn roles(&self) -> &'static [&'static str] {
        &["walker", "renamer"]
    }
}

impl Stage for Made<'_, CommonCwd> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let CommonCwd { is_own, pause_ns, user_ns, kernel_ns, .. } = self.load;
        let process = self.era.process();
        if self.role(index) == 1 {
            return Ok(renamer::of_private(process, index, pause_ns));
        }
        process.change_directory(b"/work")?;
        let name = format!("f{}", if is_own { index } else { 0 });
        Ok(Box::new(move || {
            pace::user(user_ns);
            pace::kernel(kernel_ns);
            process.stat(name.as_bytes()).map(drop)
        }))
    }

    fn role(&self, index: usize) -> usize {
        usize::from(index < self.load.renamers)
    }
}
