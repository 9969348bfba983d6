//! Runs operations on an era and on Lightfoot side by side. Lightfoot has none of the eras' code, and its own tests compare
//! it with a model and with the kernel.

use lightfoot_eras::{Era, EraEntry, Error, Handle, Options, Process, find};
use std::collections::BTreeMap;

pub(crate) const PROCESSES: usize = 2;

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
    /// The file's number, whether it is a directory, and its links.
    Attributes(u64, bool, u32),
    Names(Vec<String>),
    Path(String),
    Files(u64),
    /// No such open file: nothing to do.
    Nothing,
}

/// Runs the operations on a new tree of the era; gives the last outcome, or what differed.
///
/// After each operation the outcomes are compared; at the end all is closed and the era checks itself.
pub(crate) fn run(entry: &EraEntry, options: &Options, ops: &[(usize, Op)]) -> Result<Outcome, String> {
    let [era, lightfoot] = [entry, find("lightfoot").expect("an era")].map(|entry| (entry.make)(options));
    let outcome = compare(Side::new(&*era), Side::new(&*lightfoot), ops)?;
    era.verify().map_err(|wrong| format!("{}: after {ops:?}: {wrong}", entry.name))?;
    Ok(outcome)
}

fn compare(mut era: Side<'_>, mut lightfoot: Side<'_>, ops: &[(usize, Op)]) -> Result<Outcome, String> {
    let mut last = Outcome::Nothing;
    // The era's numbers of files by Lightfoot's, which are used once.
    let mut numbers = BTreeMap::new();
    for (index, (process, op)) in ops.iter().enumerate() {
        let (have, mut want) = (era.apply(*process, op), lightfoot.apply(*process, op));
        if let (Outcome::Attributes(number, ..), Outcome::Attributes(other, ..)) = (&have, &mut want) {
            *other = *numbers.entry(*other).or_insert(*number);
        }
        // An application finds the directory of an open file by its path: not that of one which was removed.
        let is_held = matches!(op, Op::HoldParent(_)) && have == Outcome::Done && want != Outcome::Nothing;
        if have != want && !is_held {
            return Err(format!("step {index}, {op:?} by {process}: {have:?} instead of {want:?}, after {ops:?}"));
        }
        last = have;
    }
    let mut numbers = Vec::new();
    era.numbers("/", &mut numbers);
    numbers.sort_unstable();
    if numbers.windows(2).any(|two| two[0] == two[1]) {
        return Err(format!("two files have one number: {numbers:?}, after {ops:?}"));
    }
    for mut side in [era, lightfoot] {
        let slots: Vec<usize> = side.open.keys().copied().collect();
        slots.into_iter().for_each(|slot| drop(side.close(slot)));
    }
    Ok(last)
}

struct Side<'e> {
    processes: Vec<Box<dyn Process + 'e>>,
    open: BTreeMap<usize, (usize, Handle)>,
}

impl<'e> Side<'e> {
    fn new(era: &'e dyn Era) -> Self {
        Self { processes: (0..PROCESSES).map(|_| era.process()).collect(), open: BTreeMap::new() }
    }

    fn apply(&mut self, process: usize, op: &Op) -> Outcome {
        if let Op::Open(_, slot) | Op::Create(_, slot) = op {
            // What is open under that number makes room.
            self.close(*slot);
        }
        let seat = &self.processes[process];
        let done = |result: lightfoot_eras::Result<()>| result.map(|()| Outcome::Done);
        let outcome = match op {
            Op::Stat(path) => seat
                .stat(path.as_bytes())
                .map(|found| Outcome::Attributes(found.inode, found.is_directory, found.links)),
            Op::Open(path, slot) => {
                let handle = seat.open(path.as_bytes());
                handle.map(|handle| self.keep(*slot, process, handle))
            }
            Op::Create(path, slot) => {
                let handle = seat.create(path.as_bytes());
                handle.map(|handle| self.keep(*slot, process, handle))
            }
            Op::Close(slot) => Ok(self.close(*slot)),
            Op::MakeDirectory(path) => done(seat.make_directory(path.as_bytes())),
            Op::Unlink(path) => done(seat.unlink(path.as_bytes())),
            Op::Rename(from, to) => done(seat.rename(from.as_bytes(), to.as_bytes())),
            Op::ChangeDirectory(path) => done(seat.change_directory(path.as_bytes())),
            Op::List(path) => {
                let mut names = Vec::new();
                let listed = seat.list(path.as_bytes(), &mut |name| names.push(text(name)));
                names.sort();
                listed.map(|()| Outcome::Names(names))
            }
            Op::Status(path) => seat.status(path.as_bytes()).map(|status| Outcome::Files(status.files)),
            Op::ReversePath(slot) => self.with_open(*slot, |seat, handle| {
                let mut path = b"what was there before".to_vec();
                seat.reverse_path(handle, &mut path).map(|()| Outcome::Path(text(&path)))
            }),
            Op::HoldParent(slot) => self.with_open(*slot, |seat, handle| done(seat.hold_parent(handle, 1))),
            Op::Read(slot) => self.with_open(*slot, |seat, handle| done(seat.read(handle, 1))),
            Op::Write(slot) => self.with_open(*slot, |seat, handle| done(seat.write(handle, 1))),
        };
        outcome.unwrap_or_else(Outcome::Failed)
    }

    fn keep(&mut self, slot: usize, process: usize, handle: Handle) -> Outcome {
        assert!(self.open.insert(slot, (process, handle)).is_none(), "the slot was closed before");
        Outcome::Done
    }

    fn close(&mut self, slot: usize) -> Outcome {
        let Some((process, handle)) = self.open.remove(&slot) else { return Outcome::Nothing };
        self.processes[process].close(handle);
        Outcome::Done
    }

    /// Adds the numbers of all files at and below `path`.
    fn numbers(&self, path: &str, numbers: &mut Vec<u64>) {
        let process = &*self.processes[0];
        numbers.extend(process.stat(path.as_bytes()).map(|found| found.inode));
        let mut names = Vec::new();
        // Of a file there is no list.
        let _ = process.list(path.as_bytes(), &mut |name| names.push(text(name)));
        let dir = path.trim_end_matches('/');
        names.iter().for_each(|name| self.numbers(&format!("{dir}/{name}"), numbers));
    }

    fn with_open(
        &self,
        slot: usize,
        f: impl FnOnce(&dyn Process, &Handle) -> lightfoot_eras::Result<Outcome>,
    ) -> lightfoot_eras::Result<Outcome> {
        match self.open.get(&slot) {
            Some((process, handle)) => f(&*self.processes[*process], handle),
            None => Ok(Outcome::Nothing),
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the tests use text")
}
