//! Lookups of paths in a common tree beside one worker that renames a directory.
//!
//! Models nothing that was published: it shows the effect of changes of directories on a table of
//! whole paths. The tree is as in `MRPM`: `branching` names in each directory of five levels, below
//! `/tree`. A step of a looker is one `stat` of a random path. The first worker waits and renames a
//! directory away and back: a directory that no looker's path passes, though paths through it were
//! looked up (`moved` = 1), or `/tree` itself (`moved` = 2), so a looker may find nothing for a
//! moment. With `moved` = 0 it waits only.

use super::parameter::load;
use super::{Made, Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Error, Process, Result};
use random::Random;

load!(Paths {
    moved: u64 = count(1, (0, 2),
        "what the first worker renames: 0 nothing, 1 a directory that no path passes, 2 the one that all pass");
    pause_ns: u64 = time(100_000, "the renamer's time between two times away and back (chosen here)");
    user_ns: u64 = time(100, "the program's time for each lookup (chosen here)");
    branching: usize = count(4, (1, 8), "names in each directory of the five levels, as in MRPM");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "whole-paths",
    summary: "stat of a random path in a common tree, 6 deep, beside one worker that renames a directory",
    source: "none: chosen to show a table of whole paths",
    parameters: PARAMETERS,
    make: |parameters| Box::new(Paths::new(parameters)),
};

/// Levels of the tree below `/tree`.
const LEVELS: u32 = 5;

/// How often each path is looked up before the workers begin, so that a cache of paths has it.
const WARM: usize = 3;

impl Paths {
    fn files(self) -> usize {
        self.branching.pow(LEVELS)
    }

    fn path(self, mut number: usize) -> String {
        let mut path = "/tree".to_owned();
        for _ in 0..LEVELS {
            path += &format!("/{}", number % self.branching);
            number /= self.branching;
        }
        path
    }
}

impl Workload for Paths {
    fn stage<'era>(&self, era: &'era dyn Era, _workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        let mut paths: Vec<String> = (0..self.files()).map(|number| self.path(number)).collect();
        paths.push("/other/d/f".to_owned());
        for path in &paths {
            layout::directories(&*process, path.rsplit_once('/').map_or("", |(above, _)| above))?;
            layout::file(&*process, path)?;
        }
        for path in paths.iter().flat_map(|path| [path; WARM]) {
            process.stat(path.as_bytes())?;
        }
        paths.pop();
        Ok(Box::new(Made { load: *self, era, shared: paths }))
    }

    fn entries(&self, _workers: usize) -> usize {
        5 + 2 * self.files()
    }

    fn roles(&self) -> &'static [&'static str] {
        &["looker", "renamer"]
    }
}

impl Stage for Made<'_, Paths, Vec<String>> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let Paths { moved, pause_ns, user_ns, .. } = self.load;
        let process = self.era.process();
        if self.role(index) == 1 {
            return Ok(renamer(process, moved, pause_ns));
        }
        let random = Random::new(seed, index as u64);
        Ok(Box::new(move || {
            pace::user(user_ns);
            match process.stat(self.shared[random.index(self.shared.len())].as_bytes()) {
                Err(Error::NoEntry) if moved == 2 => Ok(()),
                found => found.map(drop),
            }
        }))
    }

    fn role(&self, index: usize) -> usize {
        usize::from(index == 0)
    }
}

fn renamer<'era>(process: Box<dyn Process + 'era>, moved: u64, pause_ns: u64) -> Box<dyn Worker + 'era> {
    let (from, to): (&[u8], &[u8]) = if moved == 2 { (b"/tree", b"/away") } else { (b"/other/d", b"/other/away") };
    Box::new(move || {
        pace::user(pause_ns);
        if moved > 0 {
            process.rename(from, to)?;
            process.rename(to, from)?;
        }
        Ok(())
    })
}
