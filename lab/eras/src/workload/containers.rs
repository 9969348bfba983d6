//! Containers that start: each mounts a few directories, looks names up in them, and unmounts them when it ends. And the
//! same mounts beside walkers that have nothing to do with them.
//!
//! No publication has such figures. It is the load of a big machine that starts many containers at
//! once: under it the global mount lock of Linux became a per-CPU one (2009), and then a sequence
//! (2013). Each mount here is a directory bound to itself, in one namespace; its tables of other
//! namespaces are not copied.
//!
//! `container-start`: a step is one container. `mounts`: a step is one `stat` by a walker; the first `mounters` workers
//! mount and unmount instead.

use super::{Made, Parameter, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Process, Result};

const MOUNTS: Parameter = Parameter::count("mounts", 4, (1, 100), "mounts of a container (chosen here)");
const LOOKUPS: Parameter =
    Parameter::count("lookups", 32, (0, 10_000), "names that a container looks up (chosen here)");
const USER_NS: Parameter = Parameter::time("user_ns", 20_000, "a container's own time (chosen here)");
const MOUNTERS: Parameter = Parameter::count("mounters", 1, (0, 100_000), "workers that mount; the rest walk");
const PAUSE_NS: Parameter = Parameter::time("pause_ns", 20_000, "a mounter's time between two changes (chosen here)");
const WALK_NS: Parameter = Parameter::time("walk_ns", 300, "a walker's time between two lookups (chosen here)");

const SOURCE: &str = "none: mounts of a big machine";

pub(super) const START: WorkloadEntry = WorkloadEntry {
    name: "container-start",
    summary: "mount private directories, look names up in them, unmount",
    source: SOURCE,
    parameters: &[MOUNTS, LOOKUPS, USER_NS],
    make: |parameters| {
        let mounts = parameters.get("mounts");
        let kind = Kind::Start { lookups: parameters.get("lookups") };
        Box::new(Containers { mounts, user_ns: parameters.get("user_ns"), kind })
    },
};

pub(super) const BESIDE: WorkloadEntry = WorkloadEntry {
    name: "mounts",
    summary: "stat of a private path, beside workers that mount and unmount",
    source: SOURCE,
    parameters: &[MOUNTERS, PAUSE_NS, WALK_NS],
    make: |parameters| {
        let kind = Kind::Beside { mounters: parameters.get("mounters"), pause_ns: parameters.get("pause_ns") };
        Box::new(Containers { mounts: 1, user_ns: parameters.get("walk_ns"), kind })
    },
};

#[derive(Clone, Copy)]
struct Containers {
    /// Of each worker.
    mounts: usize,
    user_ns: u64,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Start { lookups: usize },
    Beside { mounters: usize, pause_ns: u64 },
}

impl Workload for Containers {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        for directory in (0..workers).flat_map(|worker| self.directories(worker)) {
            layout::directories(&*process, &directory)?;
            layout::file(&*process, &format!("{directory}/file"))?;
        }
        Ok(Box::new(Made { load: *self, era, shared: () }))
    }

    fn entries(&self, workers: usize) -> usize {
        1 + workers * (1 + 2 * self.mounts)
    }

    fn roles(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Start { .. } => &["container"],
            Kind::Beside { .. } => &["walker", "mounter"],
        }
    }
}

impl Containers {
    fn directories(self, worker: usize) -> impl Iterator<Item = String> {
        (0..self.mounts).map(move |mount| format!("/run/container{worker}/volume{mount}"))
    }
}

/// Runs one container, from its start to its end.
fn contain(process: &dyn Process, directories: &[String], lookups: usize, user_ns: u64) -> Result<()> {
    directories.iter().try_for_each(|directory| process.mount(directory.as_bytes()))?;
    for lookup in 0..lookups {
        let path = format!("{}/file", directories[lookup % directories.len()]);
        process.stat(path.as_bytes())?;
    }
    pace::user(user_ns);
    directories.iter().try_for_each(|directory| process.unmount(directory.as_bytes()))
}

impl Stage for Made<'_, Containers> {
    fn worker(&self, index: usize, _seed: u64) -> Result<Box<dyn Worker + '_>> {
        let user_ns = self.load.user_ns;
        let process = self.era.process();
        let directories: Vec<String> = self.load.directories(index).collect();
        Ok(match self.load.kind {
            Kind::Start { lookups } => Box::new(move || contain(&*process, &directories, lookups, user_ns)),
            Kind::Beside { mounters, pause_ns } if index < mounters => Box::new(move || {
                pace::user(pause_ns);
                process.mount(directories[0].as_bytes())?;
                pace::user(pause_ns);
                process.unmount(directories[0].as_bytes())
            }),
            Kind::Beside { .. } => {
                let path = format!("{}/file", directories[0]);
                Box::new(move || {
                    pace::user(user_ns);
                    process.stat(path.as_bytes()).map(drop)
                })
            }
        })
    }

    fn role(&self, index: usize) -> usize {
        match self.load.kind {
            Kind::Beside { mounters, .. } => usize::from(index < mounters),
            Kind::Start { .. } => 0,
        }
    }
}
