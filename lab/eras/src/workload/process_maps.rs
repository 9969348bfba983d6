//! `cat /proc/*/maps` beside renames: reverse paths of many mapped files, while other processes move names.
//!
//! Stands for one of the "other tests" of the patches of 2013 (Waiman Long, linux-kernel). A reader's step is one line of a
//! map: the reverse path of the next of its mapped files, which all readers have in common, as libraries are. The first
//! `renamers` workers move a private file to and fro instead; all others read.

use super::open_file::OpenFile;
use super::renamer::{self, PAUSE_NS};
use super::{Parameter, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};

const RENAMERS: Parameter = Parameter::count("renamers", 1, (0, 100_000), "workers that rename; the rest read");
const MAPS: Parameter = Parameter::count("maps", 12, (1, 1_000), "mapped files of a process (chosen here)");
const USER_NS: Parameter = Parameter::time("user_ns", 300, "a reader's own time for each line (chosen here)");
const KERNEL_NS: Parameter =
    Parameter::time("kernel_ns", 500, "the rest of the kernel's time for each line: its format (chosen here)");

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "proc-maps",
    summary: "reverse paths of common mapped files, beside renames of private ones",
    source: "cat /proc/*/maps, linux-kernel 2013",
    parameters: &[RENAMERS, MAPS, USER_NS, KERNEL_NS, PAUSE_NS],
    make: |parameters| {
        Box::new(ProcessMaps {
            renamers: parameters.count(&RENAMERS),
            maps: parameters.count(&MAPS),
            user_ns: parameters.get(&USER_NS),
            kernel_ns: parameters.get(&KERNEL_NS),
            pause_ns: parameters.get(&PAUSE_NS),
        })
    },
};

#[derive(Clone, Copy)]
struct ProcessMaps {
    renamers: usize,
    maps: usize,
    user_ns: u64,
    kernel_ns: u64,
    pause_ns: u64,
}

impl Workload for ProcessMaps {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        layout::directories(&*process, "/usr/lib")?;
        let libraries = layout::files(&*process, "/usr/lib", self.maps)?;
        renamer::files(&*process, self.renamers.min(workers))?;
        Ok(Box::new(Maps { load: *self, era, libraries }))
    }

    fn entries(&self, workers: usize) -> usize {
        3 + self.maps + self.renamers.min(workers)
    }

    fn roles(&self) -> &'static [&'static str] {
        &["reader", "renamer"]
    }
}

struct Maps<'era> {
    load: ProcessMaps,
    era: &'era dyn Era,
    libraries: Vec<String>,
}

impl Stage for Maps<'_> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let ProcessMaps { user_ns, kernel_ns, pause_ns, .. } = self.load;
        if self.role(index) == 1 {
            return Ok(renamer::of_private(self.era.process(), index, pause_ns));
        }
        let maps: Vec<OpenFile<'_>> =
            self.libraries.iter().map(|path| OpenFile::new(self.era, path)).collect::<Result<_>>()?;
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
