//! Applies the same operations to two implementations and makes a small, replayable failure of the first difference.

use super::generate::{closed_by, generate_in};
use super::lightfoot::Lightfoot;
use super::ops::*;
use super::outcome::{Normaliser, Outcome};
use super::{Namespace, World};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// The whole tree is compared every so many operations, and at the end.
const SWEEP_EVERY: usize = 500;

/// So many directories at most: what is mounted on what it shows can multiply.
const SWEEP_DIRS: usize = 300;

/// One of the two implementations.
#[derive(Clone, Copy)]
pub(crate) struct Side<'a> {
    pub(crate) name: &'static str,
    /// Makes a fresh instance; two of them are alive only if they are of different sides.
    pub(crate) fresh: &'a dyn Fn() -> Box<dyn Namespace>,
}

/// What to run, and how to run it again.
#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    /// The module of the test.
    pub(crate) module: &'a str,
    /// The test's name.
    pub(crate) name: &'a str,
    /// Filled in by [`run_seeds`].
    pub(crate) seed: u64,
    pub(crate) world: World,
    /// Whether it is compared that modification and change times move between two looks. The driver then lets the coarse clock,
    /// from which Lightfoot takes times, tick after each look at attributes, so that the next look sees changes after it.
    pub(crate) patient: bool,
    /// The operations that have made the tree of both sides.
    pub(crate) filling: &'a [Vec<Op>],
}

/// How a run went.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) applied: usize,
    pub(crate) succeeded: usize,
    /// How often each operation ended how; filled if `LIGHTFOOT_STATS` is set.
    pub(crate) outcomes: BTreeMap<String, usize>,
}

impl Report {
    pub(crate) fn add(&mut self, other: Report) {
        self.applied += other.applied;
        self.succeeded += other.succeeded;
        for (key, count) in other.outcomes {
            *self.outcomes.entry(key).or_default() += count;
        }
    }

    fn count(&mut self, op: &Op, outcome: &Outcome, detailed: bool) {
        self.applied += 1;
        self.succeeded += usize::from(!matches!(outcome, Outcome::Err(_)));
        if detailed {
            let op = format!("{op:?}");
            let op = op.split([' ', '(']).next().unwrap_or_default();
            let end = if let Outcome::Err(errno) = outcome { format!("{errno:?}") } else { "ok".into() };
            *self.outcomes.entry(format!("{op} {end}")).or_default() += 1;
        }
    }
}

/// The first operation that the two answered differently.
struct Difference {
    /// Its place in the list; the whole list for one found by the last sweep.
    index: usize,
    op: Op,
    answers: Answers,
}

/// What the two sides answered where they differ.
type Answers = Box<[Outcome; 2]>;

/// Runs generated operations for each seed and prints how it went. `LIGHTFOOT_SEED` runs one seed, `LIGHTFOOT_OPS`
/// sets how many operations each has, `LIGHTFOOT_STATS` prints how often each operation ended how.
pub(crate) fn run_seeds(case: Case, seeds: Range<u64>, ops: u64, a: Side, b: Side) {
    let seeds = number("LIGHTFOOT_SEED").map_or(seeds, |seed| seed..seed + 1);
    let ops = number("LIGHTFOOT_OPS").unwrap_or(ops) as usize;
    let mut total = Report::default();
    for seed in seeds {
        let mut known = Lightfoot::new(case.world);
        case.filling.iter().for_each(|ops| known.fill(ops));
        total.add(run(Case { seed, ..case }, &generate_in(known, seed, ops, case.world), a, b));
    }
    println!("{} operations, {}% succeeded", total.applied, 100 * total.succeeded / total.applied.max(1));
    for (outcome, count) in total.outcomes {
        println!("{count:>8} {outcome}");
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: not a number")))
}

/// Applies the operations to both sides.
///
/// # Panics
///
/// If they differ: with the seed, the command that replays it, a minimised list of operations and both answers.
pub(crate) fn run(case: Case, ops: &[Op], a: Side, b: Side) -> Report {
    let mut report = Report::default();
    let Some(difference) = first_difference(case, ops, a, b, &mut report) else { return report };
    let count = ops.len();
    eprintln!("{:?} is answered {:?}; making it small", difference.op, difference.answers);
    let (ops, difference) = shrink(case, ops, difference, a, b);
    let Difference { op, answers, .. } = difference;
    let mut message = format!("{} and {} differ\n", a.name, b.name);
    let Case { module, name, seed, .. } = case;
    let replay =
        format!("LIGHTFOOT_SEED={seed} LIGHTFOOT_OPS={count} cargo test -p lightfoot --test it {module}::{name}");
    let _ = writeln!(message, "replay: {replay}");
    let _ = writeln!(message, "minimised to {} operations:", ops.len());
    for op in &ops {
        let _ = writeln!(message, "  {op:?}");
    }
    let _ = writeln!(message, "in answer to {op:?}");
    for (side, answer) in [a, b].iter().zip(*answers) {
        let _ = writeln!(message, "  {:>9}: {answer:?}", side.name);
    }
    panic!("{message}");
}

fn first_difference(case: Case, ops: &[Op], a: Side, b: Side, report: &mut Report) -> Option<Difference> {
    let detailed = std::env::var_os("LIGHTFOOT_STATS").is_some();
    let mut pair = Pair::new(case, a, b);
    for (index, op) in ops.iter().enumerate() {
        match pair.apply(op) {
            Ok(outcome) => report.count(op, &outcome, detailed),
            Err(answers) => return Some(Difference { index, op: op.clone(), answers }),
        }
        for slot in closed_by(op) {
            let op = Op::Close { slot };
            if let Err(answers) = pair.apply(&op) {
                return Some(Difference { index, op, answers });
            }
        }
        let sweeps = (index + 1).is_multiple_of(SWEEP_EVERY) || index + 1 == ops.len();
        if let Some((op, answers)) = sweeps.then(|| pair.sweep().err()).flatten() {
            return Some(Difference { index, op, answers });
        }
    }
    None
}

/// Two instances in lockstep.
struct Pair {
    sides: [(Box<dyn Namespace>, Normaliser); 2],
    user: usize,
    patient: bool,
}

impl Pair {
    fn new(case: Case, a: Side, b: Side) -> Self {
        let sides = [a, b].map(|side| ((side.fresh)(), Normaliser::new(case.patient)));
        Pair { sides, user: 0, patient: case.patient }
    }

    fn apply(&mut self, op: &Op) -> Result<Outcome, Answers> {
        if let Op::Become(user) = op {
            self.user = *user;
        }
        let [a, b] = self.sides.each_mut().map(|(side, normaliser)| normaliser.outcome(side.apply(op)));
        if self.patient && matches!(a, Outcome::Attr(_)) {
            let coarse = || rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
            let now = coarse();
            while coarse() == now {
                std::thread::yield_now();
            }
        }
        if a == b { Ok(a) } else { Err(Box::new([a, b])) }
    }

    /// Walks the whole tree as the superuser (if the process ever was), comparing attributes and contents.
    fn sweep(&mut self) -> Result<(), (Op, Answers)> {
        let user = self.user;
        let mut step = |op: Op| self.apply(&op).map_err(|answers| (op, answers));
        if user != 0 {
            // Linux checks whether credentials are the same object, not whether they are equal.
            closed_by(&Op::Become(0)).for_each(|slot| drop(step(Op::Close { slot })));
            step(Op::Become(0))?;
        }
        let mut dirs = vec![RawPath::from("/")];
        let mut budget = SWEEP_DIRS;
        while let Some(dir) = dirs.pop().filter(|_| budget > 0) {
            budget -= 1;
            let Outcome::Listing(listing) = step(Op::ReadDir { path: dir.clone() })? else { continue };
            for (name, kind) in listing {
                let path = RawPath([&dir[..], b"/", &name].concat());
                step(Op::Lstat { path: path.clone() })?;
                match kind {
                    S_IFDIR if path.len() < 3000 => dirs.push(path),
                    S_IFREG => {
                        let slot = SWEEP_SLOT;
                        step(Op::Open { slot, path, flags: flags::O_RDONLY, mode: 0 })?;
                        step(Op::Read { slot, len: 1 << 20 })?;
                        step(Op::Close { slot })?;
                    }
                    S_IFLNK => drop(step(Op::Readlink { path })?),
                    _ => {}
                }
            }
        }
        if user != 0 {
            step(Op::Become(user))?;
        }
        Ok(())
    }
}

impl Difference {
    /// Whether this is the same kind of difference: the same operation, answered with the same errors.
    fn is_like(&self, other: &Self) -> bool {
        let errno = |answer: &Outcome| if let Outcome::Err(errno) = answer { Some(*errno) } else { None };
        std::mem::discriminant(&self.op) == std::mem::discriminant(&other.op)
            && self.answers.each_ref().map(errno) == other.answers.each_ref().map(errno)
    }
}

/// Drops operations as long as the difference remains: halves first, then ever smaller pieces.
fn shrink(case: Case, ops: &[Op], difference: Difference, a: Side, b: Side) -> (Vec<Op>, Difference) {
    let mut ops = ops[..=difference.index.min(ops.len() - 1)].to_vec();
    let mut difference = difference;
    let mut piece = ops.len().div_ceil(2);
    loop {
        let before = ops.len();
        let mut at = 0;
        while at < ops.len() {
            let fewer = [&ops[..at], &ops[(at + piece).min(ops.len())..]].concat();
            match first_difference(case, &fewer, a, b, &mut Report::default()) {
                Some(smaller) if smaller.is_like(&difference) => {
                    ops = fewer[..=smaller.index].to_vec();
                    difference = smaller;
                }
                _ => at += piece,
            }
        }
        match piece {
            1 if ops.len() == before => return (ops, difference),
            _ => piece = piece.div_ceil(2).max(1),
        }
    }
}
