//! The plainest era, with a record of its requests.

use crate::era::{Attributes, Era, FileSystemStatus, Handle, Process, Result};
use crate::{Options, find};
use locks::lockstat::Class;
use std::sync::{Mutex, MutexGuard};

#[derive(Default)]
struct Record {
    trace: Vec<String>,
    open: usize,
    processes: usize,
}

pub(super) struct Recorded {
    era: Box<dyn Era>,
    record: Mutex<Record>,
}

impl Recorded {
    /// A tree with room for its root and so many entries, files that are unlinked and open among them.
    pub(super) fn with_room(entries: usize) -> Self {
        let options = Options { capacity: 1 + entries, chains: 64, ..Options::default() };
        let era = (find("big-lock").expect("the first era").make)(&options);
        Self { era, record: Mutex::default() }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().expect("no test panics with the lock held")
    }

    /// Operations so far, without the operations of closing.
    pub(super) fn operations(&self) -> u64 {
        self.record().trace.len() as u64
    }

    /// Each of them: the operation, and its path.
    pub(super) fn trace(&self) -> Vec<String> {
        self.record().trace.clone()
    }

    pub(super) fn forget(&self) {
        self.record().trace.clear();
    }

    /// Files that are open now.
    pub(super) fn open(&self) -> usize {
        self.record().open
    }

    /// Processes that were ever made.
    pub(super) fn processes(&self) -> usize {
        self.record().processes
    }
}

impl Era for Recorded {
    fn process(&self) -> Box<dyn Process + '_> {
        self.record().processes += 1;
        Box::new(RecordedProcess { process: self.era.process(), era: self })
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}

struct RecordedProcess<'era> {
    process: Box<dyn Process + 'era>,
    era: &'era Recorded,
}

impl RecordedProcess<'_> {
    /// The process, once the operation is recorded.
    fn noted(&self, what: &str, path: &[u8]) -> &dyn Process {
        self.era.record().trace.push(format!("{what} {}", String::from_utf8_lossy(path)));
        &*self.process
    }

    fn opened(&self, _: &Handle) {
        self.era.record().open += 1;
    }
}

impl Process for RecordedProcess<'_> {
    fn change_directory(&self, path: &[u8]) -> Result<()> {
        self.noted("chdir", path).change_directory(path)
    }

    fn stat(&self, path: &[u8]) -> Result<Attributes> {
        self.noted("stat", path).stat(path)
    }

    fn open(&self, path: &[u8]) -> Result<Handle> {
        self.noted("open", path).open(path).inspect(|handle| self.opened(handle))
    }

    fn create(&self, path: &[u8]) -> Result<Handle> {
        self.noted("create", path).create(path).inspect(|handle| self.opened(handle))
    }

    fn close(&self, handle: Handle) {
        self.era.record().open -= 1;
        self.process.close(handle);
    }

    fn make_directory(&self, path: &[u8]) -> Result<()> {
        self.noted("mkdir", path).make_directory(path)
    }

    fn unlink(&self, path: &[u8]) -> Result<()> {
        self.noted("unlink", path).unlink(path)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Result<()> {
        self.noted("rename", to).rename(from, to)
    }

    fn list(&self, path: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        self.noted("list", path).list(path, visit)
    }

    fn reverse_path(&self, handle: &Handle, path: &mut Vec<u8>) -> Result<()> {
        self.noted("reverse", b"").reverse_path(handle, path)
    }

    fn hold_parent(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        self.noted("hold", b"").hold_parent(handle, work_ns)
    }

    fn status(&self, path: &[u8]) -> Result<FileSystemStatus> {
        self.noted("status", path).status(path)
    }

    fn mount(&self, path: &[u8]) -> Result<()> {
        self.noted("mount", path).mount(path)
    }

    fn unmount(&self, path: &[u8]) -> Result<()> {
        self.noted("unmount", path).unmount(path)
    }

    fn read(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        self.noted("read", b"").read(handle, work_ns)
    }

    fn write(&self, handle: &Handle, work_ns: u64) -> Result<()> {
        self.noted("write", b"").write(handle, work_ns)
    }
}
