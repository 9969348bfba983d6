//! Names that one thread alone makes and takes away, in directories that all threads move.

use crate::namespace::rng::Rng;
use vfs::{Base, Context, Errno, OpenFlags, PathAt, PathRef, RenameFlags};

/// Numbers of names of each thread in each directory.
const NAMES: usize = 6;

/// What the file system can do.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Able {
    /// All of it.
    Everything,
    /// Neither exchange names nor count links.
    Basics,
}

/// A thread's own names, and their expected state.
pub(crate) struct Own<'c> {
    context: &'c Context,
    dirs: &'c [PathRef],
    thread: usize,
    able: Able,
    /// For each directory and number the inode that has the name there.
    there: Vec<[Option<u64>; NAMES]>,
}

impl<'c> Own<'c> {
    pub(crate) fn new(context: &'c Context, dirs: &'c [PathRef], thread: usize, able: Able) -> Self {
        Self { context, dirs, thread, able, there: vec![[None; NAMES]; dirs.len()] }
    }

    fn name(&self, number: usize) -> Vec<u8> {
        format!("own-{}-{number}{}", self.thread, "n".repeat([0, 12, 40][number % 3])).into_bytes()
    }

    /// Makes, moves, links, exchanges or takes away a name, and looks at it before and after.
    pub(crate) fn step(&mut self, rng: &mut Rng) {
        let (from, to) = (rng.below(self.dirs.len()), rng.below(self.dirs.len()));
        let (a, b) = (rng.below(NAMES), rng.below(NAMES));
        self.check(from, a);
        self.check(to, b);
        let (old, new) = (self.name(a), self.name(b));
        let (at, into) = (Base::at(&self.dirs[from]), Base::at(&self.dirs[to]));
        let (was, other) = (self.there[from][a], self.there[to][b]);
        let context = self.context;
        match (was, other, rng.below(4)) {
            (None, ..) => {
                let file = context.open(at, &old, OpenFlags::CREAT.union(OpenFlags::EXCL), 0o644).unwrap();
                self.there[from][a] = Some(file.attr().unwrap().ino);
            }
            (Some(ino), None, 0) if self.able == Able::Everything => {
                context.link(PathAt::new(at, &old), PathAt::new(into, &new), false).unwrap();
                self.there[to][b] = Some(ino);
            }
            (Some(ino), _, 1 | 2) => {
                context.rename(PathAt::new(at, &old), PathAt::new(into, &new), RenameFlags::default()).unwrap();
                // Of two names of one file, both stay.
                if other != Some(ino) {
                    (self.there[from][a], self.there[to][b]) = (None, Some(ino));
                }
            }
            (Some(_), Some(_), _) if self.able == Able::Basics => {
                context.unlink(into, &new).unwrap();
                self.there[to][b] = None;
            }
            (Some(_), Some(_), _) => {
                context.rename(PathAt::new(at, &old), PathAt::new(into, &new), RenameFlags::EXCHANGE).unwrap();
                (self.there[from][a], self.there[to][b]) = (other, was);
            }
            (Some(_), None, _) => {
                context.unlink(at, &old).unwrap();
                self.there[from][a] = None;
            }
        }
        self.check(from, a);
        self.check(to, b);
    }

    /// That a name leads to what this thread left there.
    fn check(&self, dir: usize, number: usize) {
        let seen = self.context.attr(Base::at(&self.dirs[dir]), &self.name(number), false).map(|attr| attr.ino);
        let known = self.there[dir][number].ok_or(Errno::ENOENT);
        assert_eq!(seen, known, "name {number} of thread {} in directory {dir}", self.thread);
    }

    /// As [`Own::check`], of all names.
    pub(crate) fn check_all(&self) {
        (0..self.dirs.len()).for_each(|dir| (0..NAMES).for_each(|number| self.check(dir, number)));
    }
}
