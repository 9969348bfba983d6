//! A plain tree that computes what every era must return: no cache, no locks, all by recursion over names.

use lightfoot_eras::Error;
use std::collections::BTreeMap;

pub(crate) const ROOT: usize = 0;

/// One operation. Processes and open files are known by small numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Stat(String),
    Open(String, usize),
    Create(String, usize),
    Close(usize),
    MakeDirectory(String),
    Unlink(String),
    Rename(String, String),
    List(String),
    ChangeDirectory(String),
    ReversePath(usize),
    HoldParent(usize),
    Status(String),
    Read(usize),
    Write(usize),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Failed(Error),
    /// The file's number for its maker, whether it is a directory, and its links.
    Attributes(u64, bool, u32),
    Names(Vec<String>),
    Path(String),
    Files(u64),
    /// No such open file: nothing to do.
    Nothing,
}

struct Node {
    parent: usize,
    name: String,
    children: Option<BTreeMap<String, usize>>,
    is_named: bool,
}

pub(crate) struct Model {
    nodes: Vec<Node>,
    directories: Vec<usize>,
    open: BTreeMap<usize, usize>,
}

type Answer<T> = Result<T, Error>;

impl Model {
    /// A root, and so many processes in it.
    pub(crate) fn new(processes: usize) -> Self {
        let root = Node { parent: ROOT, name: String::new(), children: Some(BTreeMap::new()), is_named: true };
        Self { nodes: vec![root], directories: vec![ROOT; processes], open: BTreeMap::new() }
    }

    pub(crate) fn apply(&mut self, process: usize, op: &Op) -> Outcome {
        self.answer(process, op).unwrap_or_else(Outcome::Failed)
    }

    fn answer(&mut self, process: usize, op: &Op) -> Answer<Outcome> {
        match op {
            Op::Stat(path) => self.walk(process, path).map(|at| self.attributes(at)),
            Op::Open(path, slot) => {
                let at = self.walk(process, path)?;
                self.open.insert(*slot, at);
                Ok(Outcome::Done)
            }
            Op::Create(path, slot) => {
                let made = self.make(process, path, false)?;
                self.open.insert(*slot, made);
                Ok(Outcome::Done)
            }
            Op::Close(slot) => Ok(self.open.remove(slot).map_or(Outcome::Nothing, |_| Outcome::Done)),
            Op::MakeDirectory(path) => self.make(process, path, true).map(|_| Outcome::Done),
            Op::Unlink(path) => self.unlink(process, path).map(|()| Outcome::Done),
            Op::Rename(from, to) => self.rename(process, from, to).map(|()| Outcome::Done),
            Op::List(path) => {
                let at = self.walk(process, path)?;
                let names = self.nodes[at].children.as_ref().ok_or(Error::NotDirectory)?;
                Ok(Outcome::Names(names.keys().cloned().collect()))
            }
            Op::ChangeDirectory(path) => {
                let at = self.walk(process, path)?;
                self.check_directory(at)?;
                self.directories[process] = at;
                Ok(Outcome::Done)
            }
            Op::Status(path) => {
                self.walk(process, path)?;
                Ok(Outcome::Files(self.nodes.iter().filter(|node| node.is_named).count() as u64))
            }
            Op::ReversePath(slot) => Ok(self.with_open(*slot, |at| Outcome::Path(self.path(at)))),
            Op::HoldParent(slot) => Ok(self.with_open(*slot, |_| Outcome::Done)),
            Op::Read(slot) | Op::Write(slot) => Ok(self.with_open(*slot, |at| {
                let is_file = self.nodes[at].children.is_none();
                if is_file { Outcome::Done } else { Outcome::Failed(Error::IsDirectory) }
            })),
        }
    }

    /// The slots of files that are open.
    pub(crate) fn open_slots(&self) -> Vec<usize> {
        self.open.keys().copied().collect()
    }

    /// Whether the directory of an open file can still be reached by its path.
    pub(crate) fn parent_is_named(&self, slot: usize) -> bool {
        self.open.get(&slot).is_none_or(|&at| self.is_reachable(self.nodes[at].parent))
    }

    /// Whether a file that stat reported can still be seen, so that its number is its own.
    pub(crate) fn is_live(&self, file: u64) -> bool {
        let at = file as usize;
        self.nodes[at].is_named || self.open.values().chain(&self.directories).any(|&held| held == at)
    }

    fn is_reachable(&self, at: usize) -> bool {
        self.nodes[at].is_named && (at == ROOT || self.is_reachable(self.nodes[at].parent))
    }

    fn with_open(&self, slot: usize, f: impl FnOnce(usize) -> Outcome) -> Outcome {
        self.open.get(&slot).map_or(Outcome::Nothing, |&at| f(at))
    }

    fn attributes(&self, at: usize) -> Outcome {
        let Node { children, is_named, .. } = &self.nodes[at];
        let links = match children {
            _ if !is_named => 0,
            None => 1,
            Some(names) => 2 + names.values().filter(|&&child| self.nodes[child].children.is_some()).count() as u32,
        };
        Outcome::Attributes(at as u64, children.is_some(), links)
    }

    fn path(&self, at: usize) -> String {
        let place = |mut at: usize| {
            let mut path = String::new();
            while at != ROOT {
                path = format!("/{}{path}", self.nodes[at].name);
                at = self.nodes[at].parent;
            }
            path
        };
        match place(at) {
            path if path.is_empty() => "/".into(),
            path if self.nodes[at].is_named => path,
            path => path + " (deleted)",
        }
    }

    fn check_directory(&self, at: usize) -> Answer<()> {
        if self.nodes[at].children.is_some() { Ok(()) } else { Err(Error::NotDirectory) }
    }

    fn check_path(path: &str) -> Answer<()> {
        match path.len() {
            0 => Err(Error::Invalid),
            1..=4095 => Ok(()),
            _ => Err(Error::NameTooLong),
        }
    }

    fn walk(&self, process: usize, path: &str) -> Answer<usize> {
        Self::check_path(path)?;
        let start = if path.starts_with('/') { ROOT } else { self.directories[process] };
        let at = self.walk_from(start, path)?;
        if path.ends_with('/') {
            self.check_directory(at)?;
        }
        Ok(at)
    }

    fn walk_from(&self, mut at: usize, path: &str) -> Answer<usize> {
        for name in path.split('/').filter(|name| !name.is_empty()) {
            let names = self.nodes[at].children.as_ref().ok_or(Error::NotDirectory)?;
            at = match name {
                "." => at,
                ".." => self.nodes[at].parent,
                name if name.len() > 255 => return Err(Error::NameTooLong),
                name => *names.get(name).ok_or(Error::NoEntry)?,
            };
        }
        Ok(at)
    }

    /// The directory that the last component is in, that component, and whether a slash follows it.
    fn walk_to_parent<'p>(&self, process: usize, path: &'p str) -> Answer<(usize, &'p str, bool)> {
        Self::check_path(path)?;
        let trimmed = path.trim_end_matches('/');
        let (above, name) = trimmed.rsplit_once('/').map_or(("", trimmed), |(above, name)| (above, name));
        let start = if path.starts_with('/') { ROOT } else { self.directories[process] };
        let dir = self.walk_from(start, above)?;
        self.check_directory(dir)?;
        Ok((dir, name, trimmed.len() < path.len()))
    }

    fn is_special(name: &str) -> bool {
        matches!(name, "" | "." | "..")
    }

    /// A name in a directory that is there itself.
    fn lookup(&self, dir: usize, name: &str) -> Answer<Option<usize>> {
        if !self.nodes[dir].is_named {
            return Err(Error::NoEntry);
        }
        if name.len() > 255 {
            return Err(Error::NameTooLong);
        }
        Ok(self.nodes[dir].children.as_ref().and_then(|names| names.get(name).copied()))
    }

    fn make(&mut self, process: usize, path: &str, is_directory: bool) -> Answer<usize> {
        let (parent, name, is_slashed) = self.walk_to_parent(process, path)?;
        if Self::is_special(name) {
            return Err(Error::Exists);
        }
        if is_slashed && !is_directory {
            return Err(Error::IsDirectory);
        }
        if self.lookup(parent, name)?.is_some() {
            return Err(Error::Exists);
        }
        let children = is_directory.then(BTreeMap::new);
        let made = self.nodes.len();
        self.nodes.push(Node { parent, name: name.into(), children, is_named: true });
        self.names_of(parent).insert(name.into(), made);
        Ok(made)
    }

    fn unlink(&mut self, process: usize, path: &str) -> Answer<()> {
        let (dir, name, is_slashed) = self.walk_to_parent(process, path)?;
        if Self::is_special(name) {
            return Err(Error::IsDirectory);
        }
        let victim = self.lookup(dir, name)?.ok_or(Error::NoEntry)?;
        match (self.nodes[victim].children.is_some(), is_slashed) {
            (true, _) => Err(Error::IsDirectory),
            (false, true) => Err(Error::NotDirectory),
            (false, false) => {
                self.names_of(dir).remove(name);
                self.nodes[victim].is_named = false;
                Ok(())
            }
        }
    }

    fn rename(&mut self, process: usize, from: &str, to: &str) -> Answer<()> {
        let (from_dir, from_name, from_slash) = self.walk_to_parent(process, from)?;
        let (to_dir, to_name, to_slash) = self.walk_to_parent(process, to)?;
        if Self::is_special(from_name) || Self::is_special(to_name) {
            return Err(Error::Invalid);
        }
        let moved = self.lookup(from_dir, from_name)?.ok_or(Error::NoEntry)?;
        let there = self.lookup(to_dir, to_name)?;
        let is_directory = |at: usize| self.nodes[at].children.is_some();
        if !is_directory(moved) && (from_slash || to_slash) {
            return Err(Error::NotDirectory);
        }
        if self.is_at_or_below(to_dir, moved) {
            return Err(Error::Invalid);
        }
        if from_dir != to_dir && there.is_some_and(|there| self.is_at_or_below(from_dir, there)) {
            return Err(Error::NotEmpty);
        }
        if let Some(there) = there {
            match (is_directory(moved), is_directory(there)) {
                _ if there == moved => return Ok(()),
                (true, false) => return Err(Error::NotDirectory),
                (false, true) => return Err(Error::IsDirectory),
                (true, true) if !self.names_of(there).is_empty() => return Err(Error::NotEmpty),
                _ => self.nodes[there].is_named = false,
            }
        }
        self.names_of(from_dir).remove(from_name);
        self.names_of(to_dir).insert(to_name.into(), moved);
        self.nodes[moved].parent = to_dir;
        self.nodes[moved].name = to_name.into();
        Ok(())
    }

    fn is_at_or_below(&self, mut at: usize, above: usize) -> bool {
        while at != above && at != ROOT {
            at = self.nodes[at].parent;
        }
        at == above
    }

    fn names_of(&mut self, dir: usize) -> &mut BTreeMap<String, usize> {
        self.nodes[dir].children.as_mut().expect("a directory")
    }
}
