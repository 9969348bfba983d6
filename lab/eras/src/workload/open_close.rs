//! Opening and closing: each worker its own file, all in one directory, or each in its own.
//!
//! Stands for the loop of Anton Blanchard's report to linux-kernel, October 2009: `open(O_RDWR)` and `close` on 64
//! POWER5+ cores. The files have nothing in common but the directories above them, so all contention is for those. A
//! step is one pair.

use super::{Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};

const DEPTH: Parameter =
    Parameter::count("depth", 3, (1, 32), "components of each path, all but the last in common (chosen here)");
const USER_NS: Parameter = Parameter::time("user_ns", 200, "the program's time for each pair (chosen here)");
const KERNEL_NS: Parameter = Parameter::time(
    "kernel_ns",
    800,
    "the rest of the kernel's time for each pair: system calls, descriptors (chosen here)",
);

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "open-close",
    summary: "open and close of a private file in a common directory",
    source: "Anton Blanchard's loop on 64 POWER5+ cores, linux-kernel 2009",
    parameters: &[DEPTH, USER_NS, KERNEL_NS],
    make: |parameters| Box::new(OpenClose::new(parameters, true)),
};

pub(super) const SEPARATE: WorkloadEntry = WorkloadEntry {
    name: "open-close-separate",
    summary: "open and close of a private file in a private directory, by its path from the root",
    source: "beside Anton Blanchard's loop: what separate directories change",
    parameters: &[DEPTH, USER_NS, KERNEL_NS],
    make: |parameters| Box::new(OpenClose::new(parameters, false)),
};

#[derive(Clone, Copy)]
struct OpenClose {
    depth: usize,
    user_ns: u64,
    kernel_ns: u64,
    is_common: bool,
}

impl OpenClose {
    fn new(parameters: &Parameters, is_common: bool) -> Self {
        Self {
            depth: parameters.count(&DEPTH),
            user_ns: parameters.get(&USER_NS),
            kernel_ns: parameters.get(&KERNEL_NS),
            is_common,
        }
    }
}

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
        Ok(Box::new(Common { load: *self, era, files }))
    }

    fn entries(&self, workers: usize) -> usize {
        self.depth + workers * if self.is_common { 1 } else { 2 }
    }
}

struct Common<'era> {
    load: OpenClose,
    era: &'era dyn Era,
    /// One for each worker.
    files: Vec<String>,
}

impl Stage for Common<'_> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let OpenClose { user_ns, kernel_ns, .. } = self.load;
        let process = self.era.process();
        let path = self.files[index].as_bytes();
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
