//! `cat /proc/*/maps` beside renames: reverse paths of many mapped files, while other processes move names.
//!
//! Stands for one of the "other tests" of the patches of 2013 (Waiman Long, linux-kernel). A reader's step is one line of a
//! map: the reverse path of the next of its mapped files, which all readers have in common, as libraries are. The first
//! `renamers` workers move a private file to and fro instead; all others read.

use super::open_file::OpenFile;
use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace, renamer};
use crate::era::{Era, Result};

load!(ProcessMaps {
    renamers: usize = count(1, (0, 100_000), "workers that rename; the rest read");
    maps: usize = count(12, (1, 1_000), "mapped files of a process (chosen here)");
    user_ns: u64 = time(300, "a reader's own time for each line (chosen here)");
    kernel_ns: u64 = time(500, "the rest of the kernel's time for each line: its format (chosen here)");
    pause_ns: u64 = time(5_000, renamer::PAUSE);
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "proc-maps",
    summary: "reverse paths of common mapped files, beside renames of private ones",
    source: "cat /proc/*/maps, linux-kernel 2013",
    parameters: PARAMETERS,
    make: |parameters| Box::new(ProcessMaps::new(parameters)),
};

impl Workload for ProcessMaps {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        layout::directories(&*process, "/usr/lib")?;
        let libraries = layout::files(&*process, "/usr/lib", self.maps)?;
        renamer::files(&*process, self.renamers.min(workers))?;
        Ok(Box::new(Made { load: *self, era, shared: libraries }))
    }

    fn entries(&self, workers: usize) -> usize {
        3 + self.maps + self.renamers.min(workers)
    }

    fn roles(&self) -> &'static [&'static str] {
        &["reader", "renamer"]
    }
}

impl Stage for Made<'_, ProcessMaps, Vec<String>> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let ProcessMaps { user_ns, kernel_ns, pause_ns, .. } = self.load;
        if self.role(index) == 1 {
            return Ok(renamer::of_private(self.era.process(), index, pause_ns));
        }
        let maps: Vec<OpenFile<'_>> =
            self.shared.iter().map(|path| OpenFile::new(self.era, path)).collect::<Result<_>>()?;
        let (mut next, mut path) = (index, Vec::new());
        Ok(Box::new(move || {
            pace::user(user_ns);
            pace::kernel(kernel_ns);
            next += 1;
            maps[next % maps.len()].with(|process, handle| process.reverse_path(handle, &mut path))
        }))
    }

    fn role(&self, index: usize) -> usize {
        usize::from(index < self.load.renamers)
    }
}
