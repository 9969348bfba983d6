//! Creating and unlinking a file: all workers in one directory, or each in its own.
//!
//! Models Nick Piggin's table on a 64-way ia64, linux-kernel, October 2009. Each worker is a
//! process that has changed to its directory and names its file relative to it. A step is one
//! `creat`, `close` and `unlink`.
//!
//! The era decides the file system's work under the directory's lock; its work outside is
//! `kernel_ns` here.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};

load!(CreateUnlink(is_common: bool) {
    kernel_ns: u64 = time(3_480, "the kernel's time for each pair outside all locks; set on the cell of one process");
    user_ns: u64 = time(200, "the program's time for each pair (chosen here)");
});

const SOURCE: &str = "Nick Piggin's creat/unlink on a 64-way ia64, linux-kernel 2009";

pub(super) const COMMON: WorkloadEntry = WorkloadEntry {
    name: "create-unlink-common",
    summary: "create, close and unlink of a private file in one common directory",
    source: SOURCE,
    parameters: PARAMETERS,
    make: |parameters| Box::new(CreateUnlink::new(parameters, true)),
};

pub(super) const SEPARATE: WorkloadEntry = WorkloadEntry {
    name: "create-unlink-separate",
    summary: "create, close and unlink of a file in a private directory",
    source: SOURCE,
    parameters: PARAMETERS,
    make: |parameters| Box::new(CreateUnlink::new(parameters, false)),
};

impl CreateUnlink {
    fn directory(self, index: usize) -> String {
        if self.is_common { "/work".into() } else { format!("/work/of{index}") }
    }
}

impl Workload for CreateUnlink {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        for index in 0..workers {
            layout::directories(&*process, &self.directory(index))?;
        }
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        1 + 2 * workers
    }
}

impl Stage for Made<'_, CreateUnlink> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let CreateUnlink { kernel_ns, user_ns, .. } = self.load;
        let process = self.era.process();
        process.change_directory(self.load.directory(index).as_bytes())?;
        let name = format!("file{index}");
        Ok(Box::new(move || {
            pace::user(user_ns);
            pace::kernel(kernel_ns / 2);
            let handle = process.create(name.as_bytes())?;
            process.close(handle);
            pace::kernel(kernel_ns - kernel_ns / 2);
            process.unlink(name.as_bytes())
        }))
    }
}
