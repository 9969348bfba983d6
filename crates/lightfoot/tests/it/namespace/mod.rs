//! The namespace of a file system, driven by random operations on two implementations in lockstep.
//!
//! What it is: one vocabulary of single-thread operations ([`ops`]), a generator of random but reproducible lists of
//! them ([`generate`]), two implementations of [`Namespace`] - the running kernel on a tmpfs ([`kernel`]) and Lightfoot
//! ([`lightfoot`]) - and a driver ([`driver`]) that applies a list to both, compares after every operation, and shrinks a failing
//! list to a small one that can be replayed.
//!
//! What it is not: a test of concurrency. There are two processes, each with its own root, working directory, umask and, now and
//! then, its own mounts; they take turns.

pub(crate) mod driver;
pub(crate) mod errno;
pub(crate) mod exceptions;
pub(crate) mod generate;
pub(crate) mod kernel;
pub(crate) mod lightfoot;
pub(crate) mod ops;
pub(crate) mod outcome;
pub(crate) mod rng;
pub(crate) mod shorthand;
pub(crate) mod table;

use ops::{Op, SLOTS};
use outcome::Outcome;

/// A file system tree and a process in it: credentials, root, working directory, umask and a few open files; and a second process,
/// which shares the open files and the credentials.
///
/// A fresh one is an empty tree whose root directory has mode 0755 and belongs to [`World::owner`]; the process is that
/// owner, its working directory is the root, its umask is 022.
pub(crate) trait Namespace {
    /// Carries out one operation. Attributes and times come back raw; [`outcome::Normaliser`] makes them comparable.
    fn apply(&mut self, op: &Op) -> Outcome;

    /// Carries out operations that may fail, and closes all files.
    fn fill(&mut self, ops: &[Op]) {
        let close = (0..SLOTS).map(|slot| Op::Close { slot });
        ops.iter().cloned().chain(close).for_each(|op| drop(self.apply(&op)));
    }
}

/// What the run may assume about the machine it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// User and group that own the root directory and start the process.
    pub(crate) owner: (u32, u32),
    /// Whether the process is confined by nothing but the shape of its paths: it cannot `chroot`, so no path may
    /// climb above the root, no symlink body may be absolute, and credentials stay as they are.
    pub(crate) confined: bool,
    /// `fs.protected_hardlinks`: only owners link what they could not write to.
    pub(crate) protected_hardlinks: bool,
    /// `fs.protected_symlinks`: in sticky world-writable directories only one's own symlinks are followed.
    pub(crate) protected_symlinks: bool,
    /// `fs.protected_regular`: `O_CREAT` on somebody else's file in a sticky directory (0 off, 1 world-, 2 also
    /// group-writable).
    pub(crate) protected_regular: u8,
    /// `fs.protected_fifos`: the same for FIFOs.
    pub(crate) protected_fifos: u8,
}

impl World {
    /// Root, and no protection switched on: the defaults of a kernel that no distribution has configured.
    pub(crate) const PLAIN: World = World {
        owner: (0, 0),
        confined: false,
        protected_hardlinks: false,
        protected_symlinks: false,
        protected_regular: 0,
        protected_fifos: 0,
    };
}
