//! Opening and closing: each worker its own file, all in one directory, or each in its own.
//!
//! Stands for the loop of Anton Blanchard's report to linux-kernel, October 2009: `open(O_RDWR)` and `close` on 64
//! POWER5+ cores. The files have nothing in common but the directories above them, so all contention is for those. A
//! step is one pair.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};

load!(OpenClose(is_common: bool) {
    depth: usize = count(3, (1, 32), "components of each path, all but the last in common (chosen here)");
    user_ns: u64 = time(200, "the program's time for each pair (chosen here)");
    kernel_ns: u64 = time(800, "the rest of the kernel's time for each pair: system calls, descriptors (chosen here)");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "open-close",
    summary: "open and close of a private file in a common directory",
    source: "Anton Blanchard's loop on 64 POWER5+ cores, linux-kernel 2009",
    parameters: PARAMETERS,
    make: |parameters| Box::new(OpenClose::new(parameters, true)),
};

pub(super) const SEPARATE: WorkloadEntry = WorkloadEntry {
    name: "open-close-separate",
    summary: "open and close of a private file in a private directory, by its path from the root",
    source: "beside Anton Blanchard's loop: what separate directories change",
    parameters: PARAMETERS,
    make: |parameters| Box::new(OpenClose::new(parameters, false)),
};

impl Workload for OpenClose {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        let common: String = (1..self.depth).map(|level| format!("/common{level}")).collect();
        if !common.is_empty() {
            layout::directories(&*process, &common)?;
        }
        let files = match self.is_common {
            true => layout::files(&*process, &common, workers)?,
            false => (0..workers)
                .map(|worker| {
                    let own = format!("{common}/of{worker}");
                    layout::directories(&*process, &own)?;
                    layout::files(&*process, &own, 1).map(|mut files| files.remove(0))
                })
                .collect::<Result<_>>()?,
        };
        Ok(Box::new(Made { load: *self, era, shared: files }))
    }

    fn entries(&self, workers: usize) -> usize {
        self.depth + workers * if self.is_common { 1 } else { 2 }
    }
}

impl Stage for Made<'_, OpenClose, Vec<String>> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let OpenClose { user_ns, kernel_ns, .. } = self.load;
        let process = self.era.process();
        let path = self.shared[index].as_bytes();
        Ok(Box::new(move || {
            pace::user(user_ns);
            pace::kernel(kernel_ns / 2);
            let handle = process.open(path)?;
            pace::kernel(kernel_ns - kernel_ns / 2);
            process.close(handle);
            Ok(())
        }))
    }
}
