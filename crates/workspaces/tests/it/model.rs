//! Forks against a model in which a fork is a deep copy.

use crate::tree::{copy, fill, memory, seen, walk, write};
use lightfoot_workspaces::{Fork, ForkLimits};
use vfs::{Base, Context, Errno, OpenFlags, PathAt, RenameFlags, SetAttr, Vfs};

/// A fork beside its model.
struct Pair {
    fork: Fork,
    tree: Context,
    model: Context,
    /// The model at the beginning, and the use of the fork.
    origin: (Context, (u64, u64)),
}

impl Pair {
    fn new(fork: Fork, model: Context) -> Self {
        let tree = Vfs::new(fork.file_system()).context();
        let origin = (copied(&model), fork.usage());
        Self { fork, tree, model, origin }
    }

    /// Returns the fork to its beginning.
    fn roll_back(&mut self) {
        self.fork.roll_back(None).expect("a rollback");
        self.model = copied(&self.origin.0);
        assert_eq!(self.fork.usage(), self.origin.1);
    }

    /// Returns a fork of the fork, and a copy of the model.
    fn fork(&self) -> Self {
        Self::new(self.fork.fork(ForkLimits::default()).expect("a fork"), copied(&self.model))
    }

    /// Shows the fork with an empty cache.
    fn remount(&mut self) {
        self.tree = Vfs::new(self.fork.file_system()).context();
    }

    /// Does the same to both.
    fn act(&self, random: &mut fastrand::Rng, step: usize) {
        let Some(act) = Act::random(&self.model, random, step) else { return };
        let (expected, found) = (act.run(&self.model), act.run(&self.tree));
        assert_eq!(expected, found, "step {step}: {act:?}");
    }

    fn check(&self, step: usize) {
        let (expected, found) = (seen(&self.model), seen(&self.tree));
        for (path, seen) in &expected {
            assert!(
                found.get(path) == Some(seen),
                "step {step}: {path} differs: {:?} {:?}",
                brief(seen),
                found.get(path).map(brief)
            );
        }
        assert_eq!(expected.len(), found.len(), "step {step}: paths that only the fork has");
    }
}

fn brief(seen: &crate::tree::Seen) -> (u32, u32, u64, usize) {
    (seen.0, seen.1, seen.2, seen.3.len())
}

fn is_dir(context: &Context, path: &str) -> bool {
    context.attr(Base::CWD, path.as_bytes(), false).is_ok_and(|attr| attr.is_dir())
}

fn copied(model: &Context) -> Context {
    let copied = memory();
    copy(model, &copied);
    copied
}

/// One change.
#[derive(Debug)]
pub(crate) struct Act {
    kind: usize,
    one: String,
    other: String,
    fresh: String,
    len: usize,
    offset: u64,
    byte: u8,
    flags: RenameFlags,
}

impl Act {
    /// Returns a change of a tree; none, if it is empty.
    pub(crate) fn random(tree: &Context, random: &mut fastrand::Rng, step: usize) -> Option<Self> {
        let mut paths: Vec<String> = walk(tree).into_iter().map(|(path, _)| path).collect();
        paths.sort();
        let dirs: Vec<String> =
            paths.iter().filter(|path| is_dir(tree, path)).cloned().chain([String::new()]).collect();
        let any = |random: &mut fastrand::Rng| random.choice(&paths).cloned();
        let (one, other) = (any(random)?, any(random)?);
        let name = ["f", "g", "h", "l", "b", "d", "n"][random.usize(..7)];
        let fresh = format!("{}/{name}", dirs[random.usize(..dirs.len())]);
        let flags = [RenameFlags::default(), RenameFlags::EXCHANGE, RenameFlags::NOREPLACE][random.usize(..3)];
        let (kind, len, offset) = (random.usize(..12), random.usize(..9000), random.u64(..12000));
        Some(Self { kind, one, other, fresh, len, offset, byte: step as u8, flags })
    }

    /// Makes random changes of a tree, which may fail.
    pub(crate) fn some(tree: &Context, random: &mut fastrand::Rng, steps: core::ops::Range<usize>) {
        for step in steps {
            if let Some(act) = Self::random(tree, random, step) {
                let _ = act.run(tree);
            }
        }
    }

    /// Returns whether the change may move a directory.
    pub(crate) fn is_move(&self) -> bool {
        matches!(self.kind, 7 | 8)
    }

    /// Makes the change.
    pub(crate) fn run(&self, context: &Context) -> Result<(), Errno> {
        let (one, other, fresh) = (&*self.one, &*self.other, &*self.fresh);
        act(context, self.kind, (one, other, fresh), (self.len, self.offset, self.byte), self.flags)
    }
}

/// Makes one change.
fn act(
    context: &Context,
    kind: usize,
    (one, other, fresh): (&str, &str, &str),
    (len, offset, byte): (usize, u64, u8),
    flags: RenameFlags,
) -> Result<(), Errno> {
    let bytes = vec![byte; len];
    match kind {
        0 | 1 => write(context, one, offset, &bytes),
        2 => write(context, fresh, offset, &bytes),
        3 => context.mkdir(Base::CWD, fresh.as_bytes(), 0o755),
        4 => context.unlink(Base::CWD, one.as_bytes()),
        5 => context.rmdir(Base::CWD, one.as_bytes()),
        6 => context.link(PathAt::cwd(one.as_bytes()), PathAt::cwd(fresh.as_bytes()), false),
        7 => context.rename(PathAt::cwd(one.as_bytes()), PathAt::cwd(other.as_bytes()), flags),
        8 => context.rename(PathAt::cwd(one.as_bytes()), PathAt::cwd(fresh.as_bytes()), flags),
        9 => context.symlink(other.as_bytes(), Base::CWD, fresh.as_bytes()),
        10 => {
            let set = SetAttr { mode: Some(0o600 + u32::from(byte) % 64), ..SetAttr::default() };
            context.set_attr(Base::CWD, one.as_bytes(), false, &set)
        }
        _ => context.open(Base::CWD, one.as_bytes(), OpenFlags::WRONLY, 0)?.set_len(offset),
    }
}

/// Runs random changes in forks of a base, which `fill` has filled.
fn run(base: Context, is_fixed: bool, seed: u64, steps: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let trunk = Fork::over(base, is_fixed).expect("a trunk");
    let before = seen(&Vfs::new(trunk.file_system()).context());
    let model = memory();
    fill(&model);
    let mut pairs = vec![Pair::new(trunk.fork(ForkLimits::default()).expect("a fork"), model)];
    for step in 0..steps {
        let at = random.usize(..pairs.len());
        match random.usize(..40) {
            0 if pairs.len() < 6 => pairs.push(pairs[at].fork()),
            1 if pairs.len() > 1 => drop(pairs.swap_remove(at)),
            2 => pairs[at].remount(),
            3 => pairs[at].roll_back(),
            4 => {
                let from = random.usize(..pairs.len());
                pairs[at].fork.roll_back(Some(&pairs[from].fork)).expect("a rollback");
                pairs[at].model = copied(&pairs[from].model);
            }
            _ => pairs[at].act(&mut random, step),
        }
        if step % 50 == 0 {
            pairs.iter().for_each(|pair| pair.check(step));
        }
    }
    pairs.iter().for_each(|pair| pair.check(steps));
    assert!(before == seen(&Vfs::new(trunk.file_system()).context()), "the trunk has changed");
}

#[test]
fn forks_of_a_tree_in_memory_are_as_copies() {
    for seed in 0..8 {
        let base = memory();
        fill(&base);
        run(base, seed % 2 == 0, seed, 1500);
    }
}

#[test]
fn forks_of_a_host_directory_are_as_copies() {
    for seed in 100..104 {
        let dir = tempfile::tempdir().expect("a directory");
        let host = || hostfs::HostFs::new(dir.path(), &hostfs::HostOptions::default()).expect("a host directory");
        fill(&Vfs::new(host()).context());
        run(Vfs::new(host()).context(), seed % 2 == 0, seed, 1000);
    }
}
