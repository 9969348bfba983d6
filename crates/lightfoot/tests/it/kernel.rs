//! Differential tests against the running kernel: the same random operations on both, errno for errno and attribute for
//! attribute. [`run_seeds`] describes how to replay one seed.

use crate::namespace::Namespace;
use crate::namespace::driver::{Case, Side, run_seeds};
use crate::namespace::generate::generate;
use crate::namespace::kernel::Kernel;
use crate::namespace::lightfoot::Lightfoot;
use crate::namespace::ops::flags::{O_EXCL, O_TMPFILE};
use crate::namespace::ops::{Extra, Op, S_IFDIR, S_IFMT, S_IFREG};
use crate::namespace::outcome::{Attr, Outcome, Time};
use std::ops::Range;
use std::sync::LazyLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

const KERNEL: Side = Side { name: "kernel", fresh: &|| Box::new(Kernel::new()) };
const LIGHTFOOT: Side = Side { name: "lightfoot", fresh: &|| Box::new(Lightfoot::new(Kernel::world())) };
const BY_TABLE: Side =
    Side { name: "lightfoot by the table", fresh: &|| Box::new(Lightfoot::with_table(Kernel::world(), 1 << 16)) };
const SPLIT: Side = Side { name: "lightfoot, split", fresh: &|| Box::new(Lightfoot::split(Kernel::world())) };

/// Returns the kernel with the tree that is forked.
fn filled(is_fixed: bool) -> Box<dyn Namespace> {
    let mut side = Kernel::new();
    FILLING.iter().for_each(|ops| side.fill(ops));
    Box::new(Less { side, is_fixed })
}

fn forked_of_host(is_fixed: bool) -> Box<dyn Namespace> {
    let make = move || Lightfoot::forked_of_host(Kernel::world(), &FILLING, is_fixed);
    Box::new(Less { side: Apart::new(make), is_fixed })
}

fn forked() -> Box<dyn Namespace> {
    Box::new(Less { side: Lightfoot::forked(Kernel::world(), &FILLING), is_fixed: true })
}

/// The operations that make the tree which is forked, by the first user in the root directory.
static FILLING: LazyLock<[Vec<Op>; 2]> = LazyLock::new(|| {
    let mut ops = generate(1, 2000, Kernel::world());
    ops.retain(|op| {
        matches!(
            op,
            Op::Mkdir { .. }
                | Op::Mknod { .. }
                | Op::Symlink { .. }
                | Op::Link { .. }
                | Op::Rename { .. }
                | Op::Open { .. }
                | Op::Write { .. }
                | Op::Pwrite { .. }
                | Op::Chmod { .. }
                | Op::Chown { .. }
                | Op::Truncate { .. }
                | Op::Utimens { .. }
                | Op::Extra(Extra::SetXattr { .. } | Extra::Allocate { .. })
        )
    });
    let newer = ops.split_off(ops.len() / 2);
    [ops, newer]
});

/// A side without the answers in which a fork differs: see [`EXCEPTIONS`](crate::namespace::exceptions::EXCEPTIONS).
struct Less<T> {
    side: T,
    is_fixed: bool,
}

impl<T: Namespace> Less<T> {
    fn leaves_out(&mut self, op: &Op) -> bool {
        let is_file = |attr: &Attr| attr.mode & S_IFMT == S_IFREG;
        let cut = length(op).map(|(stat, len)| (self.side.apply(&stat), len));
        let has_length = cut.is_some_and(|(of, len)| matches!(of, Outcome::Attr(of) if is_file(&of) && of.size == len));
        has_length
            || match innermost(op) {
                Op::Open { flags, .. } | Op::Extra(Extra::OpenHow { flags, .. }) => {
                    flags & (O_TMPFILE | O_EXCL) == O_TMPFILE | O_EXCL
                }
                Op::Extra(Extra::SeekFor { .. }) => self.is_fixed,
                _ => false,
            }
    }
}

impl<T: Namespace> Namespace for Less<T> {
    fn apply(&mut self, op: &Op) -> Outcome {
        if self.leaves_out(op) {
            return Outcome::Done;
        }
        let mut attr = match self.side.apply(op) {
            Outcome::Attr(attr) => attr,
            other => return other,
        };
        if attr.mode & S_IFMT == S_IFDIR {
            attr.size = 0;
        }
        attr.atime = Time::Raw(0);
        attr.blocks = attr.blocks.filter(|_| !self.is_fixed);
        Outcome::Attr(attr)
    }
}

/// Returns the length that an operation sets, and the operation that finds the present one.
fn length(op: &Op) -> Option<(Op, u64)> {
    match op {
        Op::Truncate { path, len } => Some((Op::Stat { path: path.clone() }, u64::try_from(*len).ok()?)),
        Op::At { slot, op } => length(op).map(|(op, len)| (Op::At { slot: *slot, op: Box::new(op) }, len)),
        Op::Other(op) => length(op).map(|(op, len)| (Op::Other(Box::new(op)), len)),
        _ => None,
    }
}

fn innermost(op: &Op) -> &Op {
    if let Op::At { op, .. } | Op::Other(op) = op { innermost(op) } else { op }
}

/// A side on another thread: a host directory needs `/proc`, and the root of the kernel's thread has none.
struct Apart {
    ops: Option<Sender<Op>>,
    outcomes: Receiver<Outcome>,
    thread: Option<JoinHandle<()>>,
}

impl Apart {
    fn new<T: Namespace>(make: impl FnOnce() -> T + Send + 'static) -> Self {
        let (ops, received) = channel::<Op>();
        let (sent, outcomes) = channel();
        let thread = thread::spawn(move || {
            let mut side = make();
            received.iter().for_each(|op| sent.send(side.apply(&op)).expect("the test waits"));
        });
        Self { ops: Some(ops), outcomes, thread: Some(thread) }
    }
}

impl Namespace for Apart {
    fn apply(&mut self, op: &Op) -> Outcome {
        self.ops.iter().for_each(|ops| ops.send(op.clone()).expect("the thread runs"));
        self.outcomes.recv().expect("the thread runs")
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.ops = None;
        // The thread removes its directory.
        self.thread.take().map(JoinHandle::join);
    }
}

fn compare(name: &str, seeds: Range<u64>, ops: u64, side: Side<'_>, patient: bool) {
    let case = Case { module: "kernel", name, seed: 0, world: Kernel::world(), patient, filling: &[] };
    run_seeds(case, seeds, ops, side, KERNEL);
}

fn compare_fork(name: &str, seeds: Range<u64>, fresh: &dyn Fn() -> Box<dyn Namespace>, is_fixed: bool) {
    let case = Case { module: "kernel", name, seed: 0, world: Kernel::world(), patient: false, filling: &*FILLING };
    let filled = || filled(is_fixed);
    run_seeds(case, seeds, 3000, Side { name: "fork", fresh }, Side { name: "kernel", fresh: &filled });
}

fn compare_fork_of_host(name: &str, seeds: Range<u64>, is_fixed: bool) {
    if Kernel::world().confined {
        return println!("SKIPPED: without root, a fork cannot read files that their owner has closed to himself");
    }
    compare_fork(name, seeds, &|| forked_of_host(is_fixed), is_fixed);
}

#[test]
fn lightfoot_answers_as_the_kernel_does() {
    compare("lightfoot_answers_as_the_kernel_does", 0..40, 5000, LIGHTFOOT, false);
}

#[test]
fn lightfoot_by_the_table_of_whole_paths_answers_as_the_kernel_does() {
    compare("lightfoot_by_the_table_of_whole_paths_answers_as_the_kernel_does", 300..310, 3000, BY_TABLE, false);
}

#[test]
fn lightfoot_with_every_directory_split_answers_as_the_kernel_does() {
    compare("lightfoot_with_every_directory_split_answers_as_the_kernel_does", 400..410, 3000, SPLIT, false);
}

#[test]
fn lightfoot_moves_times_as_the_kernel_does() {
    compare("lightfoot_moves_times_as_the_kernel_does", 200..204, 500, LIGHTFOOT, true);
}

#[test]
fn a_fork_of_a_fork_answers_as_the_kernel_does() {
    compare_fork("a_fork_of_a_fork_answers_as_the_kernel_does", 500..510, &forked, true);
}

#[test]
fn a_fork_of_a_host_directory_answers_as_the_kernel_does() {
    compare_fork_of_host("a_fork_of_a_host_directory_answers_as_the_kernel_does", 510..520, false);
}

#[test]
fn a_fork_of_a_host_directory_that_nothing_else_changes_answers_as_the_kernel_does() {
    let name = "a_fork_of_a_host_directory_that_nothing_else_changes_answers_as_the_kernel_does";
    compare_fork_of_host(name, 520..530, true);
}
