//! Static web serving in 2002: a server looks files up by long paths, and the rest of the system uses the directory
//! cache's global lock too.
//!
//! Stands for the SPECweb99 runs of the `dcache_lock`, fastwalk and `dcache_rcu` comparison (Dipankar Sarma,
//! linux-kernel, 2002). A step is one request: `stat`, then `open` and `close`, of a random file. Between walks the
//! program and the rest of the kernel work, with exponentially distributed times.
//!
//! Other users of the global lock (closing sockets, `d_path`) were a part of the published acquisitions. They are stood
//! for by the reverse path of an open file: of the trait's operations the one that takes the global lock exactly once
//! in each of the three schemes, and that none of them changes.
//!
//! # Limitations
//! No threshold for conforming connections, so throughput follows CPU time and not SPECweb99's own unit.

use super::open_file::OpenFile;
use super::parameter::load;
use super::{Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};
use random::Random;

load!(StaticWeb {
    think_ns: u64 = time(430_000, "mean time between two walks; set by the published utilization of the lock");
    user_permille: u64 = count(300, (0, 1000), "part of it that the program spends, not the kernel");
    other_permille: u64 = count(691, (0, 100_000),
        "other uses of the global lock per thousand walks; from the published acquisitions");
    other_depth: usize = count(2, (1, 16), "components of the path that each of these writes out");
    depth_hundredths: u64 = count(479, (100, 3200), "mean components of a path; from the published acquisitions");
    files: usize = count(4096, (1, 1_000_000), "files that are served");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "static-web",
    summary: "stat, open and close of a random file at a mean depth of 4.79, with long pauses",
    source: "SPECweb99 on 8 Pentium III Xeons, linux-kernel 2002",
    parameters: PARAMETERS,
    make: |parameters| Box::new(StaticWeb::new(parameters)),
};

/// Files in each directory of the last level.
const FILES_IN_A_DIRECTORY: usize = 36;

impl StaticWeb {
    /// Returns the lesser of the two depths that files have.
    fn depth(&self) -> usize {
        usize::try_from(self.depth_hundredths / 100).unwrap_or(1)
    }

    /// Makes a file set whose files have paths of `depth` components, and returns their paths.
    fn file_set(&self, era: &dyn Era, name: &str, depth: usize) -> Result<Vec<String>> {
        let process = era.process();
        let mut above = String::new();
        for level in 0..depth.saturating_sub(2) {
            above += &format!("/{name}{level}");
        }
        let mut paths = Vec::new();
        while paths.len() < self.files {
            let files = FILES_IN_A_DIRECTORY.min(self.files - paths.len());
            // A path of one component has no directory.
            let directory = match depth {
                1 => String::new(),
                _ => format!("{above}/{name}dir{:05}", paths.len() / FILES_IN_A_DIRECTORY),
            };
            if depth > 1 {
                layout::directories(&*process, &directory)?;
            }
            for class in 0..files {
                let path = format!("{directory}/{name}class{}_{}", class / 9, paths.len());
                layout::file(&*process, &path)?;
                paths.push(path);
            }
        }
        Ok(paths)
    }

    /// Spends the time between two walks, with the lock's other uses somewhere within that time.
    fn pause(&self, random: &Random, other: &OpenFile<'_>, path: &mut Vec<u8>) -> Result<()> {
        let think_ns = random.exponential(self.think_ns);
        let before_ns = think_ns * random.below(1001) / 1000;
        self.spend(before_ns);
        let uses = self.other_permille / 1000 + u64::from(random.chance(self.other_permille % 1000));
        for _ in 0..uses {
            other.with(|process, handle| process.reverse_path(handle, path))?;
        }
        self.spend(think_ns - before_ns);
        Ok(())
    }

    fn spend(&self, ns: u64) {
        let user_ns = ns * self.user_permille / 1000;
        pace::user(user_ns);
        pace::kernel(ns - user_ns);
    }
}

impl Workload for StaticWeb {
    fn stage<'era>(&self, era: &'era dyn Era, _workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let depth = self.depth();
        let other = (1..self.other_depth).map(|level| format!("/other{level}")).collect::<String>();
        let process = era.process();
        if !other.is_empty() {
            layout::directories(&*process, &other)?;
        }
        let other = format!("{other}/socket");
        layout::file(&*process, &other)?;
        let sets = [self.file_set(era, "a", depth)?, self.file_set(era, "b", depth + 1)?];
        Ok(Box::new(Served { web: *self, era, sets, other }))
    }

    fn entries(&self, _workers: usize) -> usize {
        let of_a_set = self.files + self.files.div_ceil(FILES_IN_A_DIRECTORY) + self.depth();
        2 * of_a_set + self.other_depth + 1
    }
}

/// Two sets of files, one component apart in depth.
struct Served<'era> {
    web: StaticWeb,
    era: &'era dyn Era,
    sets: [Vec<String>; 2],
    other: String,
}

impl Stage for Served<'_> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let web = self.web;
        let random = Random::new(seed, index as u64);
        let other = OpenFile::new(self.era, &self.other)?;
        let mut written = Vec::new();
        Ok(Box::new(move || {
            let is_deeper = random.below(100) < web.depth_hundredths % 100;
            let set = &self.sets[usize::from(is_deeper)];
            let path = set[random.index(set.len())].as_bytes();
            let process = other.process();
            web.pause(&random, &other, &mut written)?;
            process.stat(path)?;
            web.pause(&random, &other, &mut written)?;
            let handle = process.open(path)?;
            process.close(handle);
            Ok(())
        }))
    }
}
