//! A tree under one standard lock: the plainest era there is, which also records the requests.

use crate::era::{Attributes, Era, Error, FileSystemStatus, Handle, HandleOf, Process, Result};
use locks::lockstat::Class;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

const ROOT: u32 = 0;

struct Node {
    parent: u32,
    name: Vec<u8>,
    /// None for a file.
    children: Option<BTreeMap<Vec<u8>, u32>>,
    open: u32,
    is_linked: bool,
}

impl Node {
    fn new(parent: u32, name: &[u8], is_directory: bool) -> Self {
        Self { parent, name: name.to_vec(), children: is_directory.then(BTreeMap::new), open: 0, is_linked: true }
    }
}

#[derive(Default)]
struct OneTreeState {
    nodes: BTreeMap<u32, Node>,
    next: u32,
    most_entries: usize,
    processes: usize,
    trace: Vec<String>,
    mounted: Vec<u32>,
}

impl OneTreeState {
    fn walk(&self, from: u32, path: &[u8]) -> Result<u32> {
        if path.is_empty() {
            return Err(Error::Invalid);
        }
        let start = if path[0] == b'/' { ROOT } else { from };
        path.split(|&byte| byte == b'/').filter(|name| !name.is_empty()).try_fold(start, |at, name| {
            let children = self.nodes[&at].children.as_ref().ok_or(Error::NotDirectory)?;
            children.get(name).copied().ok_or(Error::NoEntry)
        })
    }

    fn walk_parent<'a>(&self, from: u32, path: &'a [u8]) -> Result<(u32, &'a [u8])> {
        match path.iter().rposition(|&byte| byte == b'/') {
            None => Ok((from, path)),
            Some(0) => Ok((ROOT, &path[1..])),
            Some(slash) => Ok((self.walk(from, &path[..slash])?, &path[slash + 1..])),
        }
    }

    fn make(&mut self, from: u32, path: &[u8], is_directory: bool) -> Result<u32> {
        let (parent, name) = self.walk_parent(from, path)?;
        let number = self.next;
        let children = self.nodes.get_mut(&parent).expect("a node").children.as_mut().ok_or(Error::NotDirectory)?;
        if children.contains_key(name) {
            return Err(Error::Exists);
        }
        children.insert(name.to_vec(), number);
        self.next += 1;
        self.nodes.insert(number, Node::new(parent, name, is_directory));
        // The root is none of the workload's entries.
        self.most_entries = self.most_entries.max(self.nodes.len() - 1);
        Ok(number)
    }

    fn unlink(&mut self, from: u32, path: &[u8]) -> Result<()> {
        let (parent, name) = self.walk_parent(from, path)?;
        let number = self.walk(parent, name)?;
        if self.nodes[&number].children.is_some() {
            return Err(Error::IsDirectory);
        }
        self.nodes.get_mut(&parent).and_then(|node| node.children.as_mut()).expect("a directory").remove(name);
        self.nodes.get_mut(&number).expect("a node").is_linked = false;
        self.forget_unused(number);
        Ok(())
    }

    fn rename(&mut self, at: u32, from: &[u8], to: &[u8]) -> Result<()> {
        let number = self.walk(at, from)?;
        if self.walk(at, to) == Ok(number) {
            return Ok(());
        }
        match self.unlink(at, to) {
            Ok(()) | Err(Error::NoEntry) => {}
            Err(error) => return Err(error),
        }
        let (old, old_name) = self.walk_parent(at, from)?;
        let (new, new_name) = self.walk_parent(at, to)?;
        for (directory, name, is_new) in [(old, old_name, false), (new, new_name, true)] {
            let children = self.nodes.get_mut(&directory).and_then(|node| node.children.as_mut()).expect("a directory");
            if is_new {
                children.insert(name.to_vec(), number)
            } else {
                children.remove(name)
            };
        }
        let node = self.nodes.get_mut(&number).expect("a node");
        (node.parent, node.name) = (new, new_name.to_vec());
        Ok(())
    }

    fn forget_unused(&mut self, number: u32) {
        let node = &self.nodes[&number];
        if node.open == 0 && !node.is_linked {
            self.nodes.remove(&number);
        }
    }
}

pub(super) struct OneTree {
    state: Mutex<OneTreeState>,
}

impl Default for OneTree {
    fn default() -> Self {
        let nodes = BTreeMap::from([(ROOT, Node::new(ROOT, b"", true))]);
        Self { state: Mutex::new(OneTreeState { nodes, next: 1, ..OneTreeState::default() }) }
    }
}

impl OneTree {
    fn state(&self) -> MutexGuard<'_, OneTreeState> {
        self.state.lock().expect("no test panics with the lock held")
    }

    /// Operations so far, without those of closing.
    pub(super) fn operations(&self) -> u64 {
        self.state().trace.len() as u64
    }

    /// Each of them: what, and on which path.
    pub(super) fn trace(&self) -> Vec<String> {
        self.state().trace.clone()
    }

    pub(super) fn forget(&self) {
        self.state().trace.clear();
    }

    /// Files that are open now.
    pub(super) fn open(&self) -> u32 {
        self.state().nodes.values().map(|node| node.open).sum()
    }

    pub(super) fn most_entries(&self) -> usize {
        self.state().most_entries
    }

    /// Processes that were ever made.
    pub(super) fn processes(&self) -> usize {
        self.state().processes
    }
}

impl Era for OneTree {
    fn process(&self) -> Box<dyn Process + '_> {
        self.state().processes += 1;
        Box::new(Program { era: self, at: Mutex::new(ROOT) })
    }

    fn visit_locks(&self, _visit: &mut dyn FnMut(&Class)) {}
}

struct Program<'era> {
    era: &'era OneTree,
    at: Mutex<u32>,
}

impl Program<'_> {
    /// The state, with the operation recorded, and the working directory.
    fn begin(&self, what: &str, path: &[u8]) -> (MutexGuard<'_, OneTreeState>, u32) {
        let at = *self.at.lock().expect("no test panics with the lock held");
        let mut state = self.era.state();
        state.trace.push(format!("{what} {}", String::from_utf8_lossy(path)));
        (state, at)
    }

    /// The node of a handle, which must be open.
    fn check_open(state: &OneTreeState, handle: &Handle) -> u32 {
        let HandleOf::Entry(number) = handle.0 else { panic!("a handle of another era") };
        assert!(state.nodes[&number].open > 0, "a handle that is not open");
        number
    }
}

impl Process for Program<'_> {
    fn change_directory(&self, path: &[u8]) -> Result<()> {
        let (state, at) = self.begin("chdir", path);
        let number = state.walk(at, path)?;
        drop(state);
        *self.at.lock().expect("no test panics with the lock held") = number;
        Ok(())
    }

    fn stat(&self, path: &[u8]) -> Result<Attributes> {
        let (state, at) = self.begin("stat", path);
        let number = state.walk(at, path)?;
        let is_directory = state.nodes[&number].children.is_some();
        Ok(Attributes { inode: number.into(), is_directory, links: 1 })
    }

    fn open(&self, path: &[u8]) -> Result<Handle> {
        let (mut state, at) = self.begin("open", path);
        let number = state.walk(at, path)?;
        state.nodes.get_mut(&number).expect("a node").open += 1;
        Ok(Handle(HandleOf::Entry(number)))
    }

    fn create(&self, path: &[u8]) -> Result<Handle> {
        let (mut state, at) = self.begin("create", path);
        let number = state.make(at, path, false)?;
        state.nodes.get_mut(&number).expect("a node").open += 1;
        Ok(Handle(HandleOf::Entry(number)))
    }

    fn close(&self, handle: Handle) {
        let mut state = self.era.state();
        let number = Self::check_open(&state, &handle);
        state.nodes.get_mut(&number).expect("a node").open -= 1;
        state.forget_unused(number);
    }

    fn make_directory(&self, path: &[u8]) -> Result<()> {
        let (mut state, at) = self.begin("mkdir", path);
        state.make(at, path, true).map(drop)
    }

    fn unlink(&self, path: &[u8]) -> Result<()> {
        let (mut state, at) = self.begin("unlink", path);
        state.unlink(at, path)
    }

    fn rename(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let (mut state, at) = self.begin("rename", to);
        state.rename(at, from, to)
    }

    fn list(&self, path: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<()> {
        let (state, at) = self.begin("list", path);
        let number = state.walk(at, path)?;
        state.nodes[&number].children.as_ref().ok_or(Error::NotDirectory)?.keys().for_each(|name| visit(name));
        Ok(())
    }

    fn reverse_path(&self, handle: &Handle, path: &mut Vec<u8>) -> Result<()> {
        let (state, _) = self.begin("reverse", b"");
        let mut number = Self::check_open(&state, handle);
        path.clear();
        while number != ROOT {
            let node = &state.nodes[&number];
            path.splice(0..0, [b"/", node.name.as_slice()].concat());
            number = node.parent;
        }
        Ok(())
    }

    fn hold_parent(&self, handle: &Handle, _work_ns: u64) -> Result<()> {
        let (state, _) = self.begin("hold", b"");
        Self::check_open(&state, handle);
        Ok(())
    }

    fn status(&self, path: &[u8]) -> Result<FileSystemStatus> {
        let (state, at) = self.begin("status", path);
        state.walk(at, path)?;
        Ok(FileSystemStatus { files: state.nodes.len() as u64, is_read_only: false })
    }

    fn mount(&self, path: &[u8]) -> Result<()> {
        let (mut state, at) = self.begin("mount", path);
        let number = state.walk(at, path)?;
        state.mounted.push(number);
        Ok(())
    }

    fn unmount(&self, path: &[u8]) -> Result<()> {
        let (mut state, at) = self.begin("unmount", path);
        let number = state.walk(at, path)?;
        let last = state.mounted.iter().rposition(|&mounted| mounted == number).ok_or(Error::Invalid)?;
        state.mounted.remove(last);
        Ok(())
    }

    fn read(&self, handle: &Handle, _work_ns: u64) -> Result<()> {
        let (state, _) = self.begin("read", b"");
        Self::check_open(&state, handle);
        Ok(())
    }

    fn write(&self, handle: &Handle, _work_ns: u64) -> Result<()> {
        let (state, _) = self.begin("write", b"");
        Self::check_open(&state, handle);
        Ok(())
    }
}
