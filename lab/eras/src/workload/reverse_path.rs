//! Reverse paths beside a database: readers ask for the path of an open file, writers write.
//!
//! Stands for the SLOB runs of the `rename_lock` patches (Waiman Long, linux-kernel 2013): database processes on one
//! machine, some of which keep asking for paths (`d_path`, as `/proc/PID/maps` and `getcwd` do). All have a data file at
//! depth 4 open, so they share its entries. A reader's step is user time, other kernel time and one reverse path; a
//! writer's, user time, a write and a `stat` of a private log, and a reverse path. The first `writers` workers write;
//! all others read. The times are exponentially distributed around their means.

use super::open_file::OpenFile;
use super::{Parameter, Stage, Worker, Workload, WorkloadEntry, layout, pace};
use crate::era::{Era, Result};
use random::Random;

const WRITERS: Parameter = Parameter::count(
    "writers",
    0,
    (0, 100_000),
    "workers that write; the rest read. As published: 0 or 64, with 8 to 128 readers",
);
const USER_NS: Parameter = Parameter::time(
    "user_ns",
    190_000,
    "a reader's own time for each path; set on the share of spin time at 32 and 80 readers",
);
const KERNEL_NS: Parameter =
    Parameter::time("kernel_ns", 8_500, "the rest of the kernel's time for each path; set on the same two cells");
const DEPTH: Parameter = Parameter::count("depth", 4, (1, 32), "components of the open file's path; assumed");
const WRITER_USER_NS: Parameter =
    Parameter::time("writer_user_ns", 190_000, "a writer's own time for each record (chosen here, as a reader's)");
const WRITE_NS: Parameter =
    Parameter::time("write_ns", 5_000, "the kernel's time to write a record, the file held alone (chosen here)");
const WRITER_PATHS_PERMILLE: Parameter = Parameter::count(
    "writer_paths_permille",
    1_000,
    (0, 1_000),
    "records for which a writer requests a path too, permille (chosen here)",
);

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "reverse-path",
    summary: "readers ask for the path of an open file at depth 4; database-like writers beside them",
    source: "Oracle SLOB on an 80-core DL980, linux-kernel 2013",
    parameters: &[WRITERS, USER_NS, KERNEL_NS, DEPTH, WRITER_USER_NS, WRITE_NS, WRITER_PATHS_PERMILLE],
    make: |parameters| {
        Box::new(ReversePath {
            writers: parameters.count(&WRITERS),
            user_ns: parameters.get(&USER_NS),
            kernel_ns: parameters.get(&KERNEL_NS),
            depth: parameters.count(&DEPTH),
            writer_user_ns: parameters.get(&WRITER_USER_NS),
            write_ns: parameters.get(&WRITE_NS),
            writer_paths_permille: parameters.get(&WRITER_PATHS_PERMILLE),
        })
    },
};

const READER: usize = 0;
const WRITER: usize = 1;

#[derive(Clone, Copy)]
struct ReversePath {
    writers: usize,
    user_ns: u64,
    kernel_ns: u64,
    depth: usize,
    writer_user_ns: u64,
    write_ns: u64,
    writer_paths_permille: u64,
}

impl Workload for ReversePath {
    fn stage<'era>(&self, era: &'era dyn Era, workers: usize) -> Result<Box<dyn Stage + 'era>> {
        let process = era.process();
        let above: String = (1..self.depth).map(|level| format!("/data{level}")).collect();
        if !above.is_empty() {
            layout::directories(&*process, &above)?;
        }
        let data = format!("{above}/slob.dbf");
        layout::file(&*process, &data)?;
        layout::directories(&*process, "/redo")?;
        let logs = layout::files(&*process, "/redo", self.writers.min(workers))?;
        Ok(Box::new(Database { load: *self, era, data, logs }))
    }

    fn entries(&self, workers: usize) -> usize {
        self.depth + 1 + self.writers.min(workers)
    }

    fn roles(&self) -> &'static [&'static str] {
        &["reader", "writer"]
    }
}

struct Database<'era> {
    load: ReversePath,
    era: &'era dyn Era,
    data: String,
    /// One for each writer.
    logs: Vec<String>,
}

impl Database<'_> {
    fn reader(&self, random: Random) -> Result<Box<dyn Worker + '_>> {
        let ReversePath { user_ns, kernel_ns, .. } = self.load;
        let data = OpenFile::new(self.era, &self.data)?;
        let mut path = Vec::new();
        Ok(Box::new(move || {
            pace::user(random.exponential(user_ns));
            pace::kernel(random.around(kernel_ns));
            data.with(|process, handle| process.reverse_path(handle, &mut path))
        }))
    }

    fn writer(&self, log: &str, random: Random) -> Result<Box<dyn Worker + '_>> {
        let ReversePath { writer_user_ns, kernel_ns, write_ns, writer_paths_permille, .. } = self.load;
        let data = OpenFile::new(self.era, &self.data)?;
        let log_path = log.to_owned();
        let log = OpenFile::new(self.era, log)?;
        let mut path = Vec::new();
        Ok(Box::new(move || {
            pace::user(random.exponential(writer_user_ns));
            log.with(|process, handle| process.write(handle, write_ns))?;
            log.process().stat(log_path.as_bytes())?;
            if random.chance(writer_paths_permille) {
                pace::kernel(random.around(kernel_ns));
                data.with(|process, handle| process.reverse_path(handle, &mut path))?;
            }
            Ok(())
        }))
    }
}

impl Stage for Database<'_> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let random = Random::new(seed, index as u64);
        match self.logs.get(index) {
            Some(log) => self.writer(log, random),
            None => self.reader(random),
        }
    }

    fn role(&self, index: usize) -> usize {
        if index < self.logs.len() { WRITER } else { READER }
    }
}
