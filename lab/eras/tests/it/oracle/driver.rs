//! Runs operations on an era and on the model side by side.

use crate::oracle::model::{Model, Op, Outcome};
use lightfoot_eras::{Era, EraEntry, Handle, Options, Process};
use std::collections::BTreeMap;

pub(crate) const PROCESSES: usize = 2;

/// Runs the operations on a new tree of the era; gives the last outcome, or what differed.
///
/// After each operation the outcomes are compared; at the end all is closed and the era checks itself.
pub(crate) fn run(entry: &EraEntry, options: &Options, ops: &[(usize, Op)]) -> Result<Outcome, String> {
    let era = (entry.make)(options);
    let outcome = Side::new(&*era).run(ops)?;
    era.verify().map_err(|wrong| format!("{}: after {ops:?}: {wrong}", entry.name))?;
    Ok(outcome)
}

struct Side<'e> {
    processes: Vec<Box<dyn Process + 'e>>,
    open: BTreeMap<usize, (usize, Handle)>,
    model: Model,
    /// The era's number of a file of the model.
    numbers: BTreeMap<u64, u64>,
}

impl<'e> Side<'e> {
    fn new(era: &'e dyn Era) -> Self {
        let processes = (0..PROCESSES).map(|_| era.process()).collect();
        Self { processes, open: BTreeMap::new(), model: Model::new(PROCESSES), numbers: BTreeMap::new() }
    }

    fn run(mut self, ops: &[(usize, Op)]) -> Result<Outcome, String> {
        let mut last = Outcome::Nothing;
        for (index, (process, op)) in ops.iter().enumerate() {
            // An application finds the directory of an open file by its path: not that of one which was removed.
            if matches!(op, Op::HoldParent(slot) if !self.model.parent_is_named(*slot)) {
                continue;
            }
            self.make_room(op);
            let want = self.model.apply(*process, op);
            let have = self.apply(*process, op);
            let (is_same, have) = self.same(&want, have);
            if !is_same {
                return Err(format!("step {index}, {op:?} by {process}: {have:?} instead of {want:?}, after {ops:?}"));
            }
            last = have;
        }
        for slot in self.model.open_slots() {
            self.model.apply(0, &Op::Close(slot));
            self.apply(0, &Op::Close(slot));
        }
        Ok(last)
    }

    /// Closes what is open under the number that the operation opens under.
    fn make_room(&mut self, op: &Op) {
        if let Op::Open(_, slot) | Op::Create(_, slot) = op {
            self.model.apply(0, &Op::Close(*slot));
            self.apply(0, &Op::Close(*slot));
        }
    }

    /// Whether the outcomes agree; the era's, with the model's number of the file where that agrees.
    fn same(&mut self, want: &Outcome, have: Outcome) -> (bool, Outcome) {
        let (&Outcome::Attributes(file, ..), &Outcome::Attributes(number, is_directory, links)) = (want, &have) else {
            return (*want == have, have);
        };
        let (model, numbers) = (&self.model, &mut self.numbers);
        numbers.retain(|&file, _| model.is_live(file));
        let is_own = numbers.iter().all(|(&other, &taken)| (other == file) == (taken == number));
        numbers.insert(file, number);
        let have = Outcome::Attributes(file, is_directory, links);
        (is_own && *want == have, have)
    }

    fn apply(&mut self, process: usize, op: &Op) -> Outcome {
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
            Op::Close(slot) => {
                let Some((process, handle)) = self.open.remove(slot) else { return Outcome::Nothing };
                self.processes[process].close(handle);
                Ok(Outcome::Done)
            }
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
