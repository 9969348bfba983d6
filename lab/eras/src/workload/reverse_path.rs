//! Reverse paths beside a database: readers request the path of an open file, writers write.
//!
//! Models the SLOB runs of the `rename_lock` patches (Waiman Long, linux-kernel 2013): database
//! processes on one machine, some of which often request paths (`d_path`, as `/proc/PID/maps` and
//! `getcwd` do). All have a data file at depth 4 open, so they share its entries. A reader's step
//! is user time, other kernel time and one reverse path; a writer's, user time, a write and a
//! `stat` of a private log, and a reverse path. The first `writers` workers write, the next
//! `movers` rename components of the file's path to and fro; all others read. The times are
//! exponentially distributed around their means.

use super::open_file::OpenFile;
use super::parameter::load;
use super::{Parameter, Parameters, Stage, Worker, Workload, WorkloadEntry, layout, pace, renamer};
use crate::era::{Era, Error, Result};
use random::Random;

load!(ReversePath {
    writers: usize = count(0, (0, 100_000),
        "workers that write; the rest read. As published: 0 or 64, with 8 to 128 readers");
    user_ns: u64 = time(190_000,
        "a reader's own time for each path; set on the share of spin time at 32 and 80 readers");
    kernel_ns: u64 = time(8_500, "the rest of the kernel's time for each path; set on the same two cells");
    depth: usize = count(4, (1, 32), "components of the open file's path; assumed");
    writer_user_ns: u64 = time(190_000, "a writer's own time for each record (chosen here, as a reader's)");
    write_ns: u64 = time(5_000, "the kernel's time to write a record, the file held alone (chosen here)");
    writer_paths_permille: u64 = count(1_000, (0, 1_000),
        "records for which a writer requests a path too, permille (chosen here)");
    movers: usize = count(0, (0, 32),
        "workers after the writers, at most `depth`, each of which renames a component of the file's path (none \
         published)");
    mover_user_ns: u64 = time(2_000, "a mover's own time for each rename (chosen here)");
});

pub(super) const ENTRY: WorkloadEntry = WorkloadEntry {
    name: "reverse-path",
    summary: "readers ask for the path of an open file at depth 4; database-like writers beside them",
    source: "Oracle SLOB on an 80-core DL980, linux-kernel 2013",
    parameters: PARAMETERS,
    make: |parameters| Box::new(ReversePath::new(parameters)),
};

const READER: usize = 0;
const WRITER: usize = 1;
const MOVER: usize = 2;

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
        let movers = self.movers.min(self.depth).min(workers - logs.len());
        Ok(Box::new(Database { load: *self, era, data, logs, movers }))
    }

    fn entries(&self, workers: usize) -> usize {
        self.depth + 1 + self.writers.min(workers)
    }

    fn roles(&self) -> &'static [&'static str] {
        &["reader", "writer", "mover"]
    }
}

struct Database<'era> {
    load: ReversePath,
    era: &'era dyn Era,
    data: String,
    /// One for each writer.
    logs: Vec<String>,
    movers: usize,
}

impl Database<'_> {
    fn reader(&self, random: Random) -> Result<Box<dyn Worker + '_>> {
        let ReversePath { user_ns, kernel_ns, .. } = self.load;
        let data = self.open_data()?;
        let mut path = Vec::new();
        Ok(Box::new(move || {
            pace::user(random.exponential(user_ns));
            pace::kernel(random.around(kernel_ns));
            data.with(|process, handle| process.reverse_path(handle, &mut path))
        }))
    }

    fn writer(&self, log: &str, random: Random) -> Result<Box<dyn Worker + '_>> {
        let ReversePath { writer_user_ns, kernel_ns, write_ns, writer_paths_permille, .. } = self.load;
        let data = self.open_data()?;
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

    /// Returns a process with the data file open. Movers may be at work already.
    fn open_data(&self) -> Result<OpenFile<'_>> {
        if self.movers == 0 {
            return OpenFile::new(self.era, &self.data);
        }
        let process = self.era.process();
        let (above, file) = self.data.rsplit_once('/').unwrap_or_default();
        for directory in above.split('/').skip(1) {
            either(directory, |name| process.change_directory(name))?;
        }
        let handle = either(file, |name| process.open(name))?;
        Ok(OpenFile::of(process, handle))
    }

    /// Renames component `index` of the data file's path in its directory, wherever that is at the
    /// moment, and back.
    fn mover(&self, index: usize, random: Random) -> Result<Box<dyn Worker + '_>> {
        let mover_user_ns = self.load.mover_user_ns;
        let process = self.era.process();
        let mut parts = self.data.split('/').skip(1);
        for above in parts.by_ref().take(index) {
            either(above, |name| process.change_directory(name))?;
        }
        let from = parts.next().unwrap_or_default();
        Ok(renamer::to_and_fro(process, from.to_owned(), moved(from), move || random.exponential(mover_user_ns)))
    }
}

/// Returns the name that a mover gives to `name`.
fn moved(name: &str) -> String {
    format!("{name}.moved")
}

/// Calls `find` with `name`, and with the one that a mover gives it, until it is there.
fn either<T>(name: &str, mut find: impl FnMut(&[u8]) -> Result<T>) -> Result<T> {
    let names = [name.to_owned(), moved(name)];
    let mut turns = names.iter().cycle();
    loop {
        match find(turns.next().map_or(b"", String::as_bytes)) {
            Err(Error::NoEntry) => {}
            found => return found,
        }
    }
}

impl Stage for Database<'_> {
    fn worker(&self, index: usize, seed: u64) -> Result<Box<dyn Worker + '_>> {
        let random = Random::new(seed, index as u64);
        match self.logs.get(index) {
            Some(log) => self.writer(log, random),
            None if index < self.logs.len() + self.movers => self.mover(index - self.logs.len(), random),
            None => self.reader(random),
        }
    }

    fn role(&self, index: usize) -> usize {
        match index.checked_sub(self.logs.len()) {
            None => WRITER,
            Some(after) if after < self.movers => MOVER,
            Some(_) => READER,
        }
    }
}
