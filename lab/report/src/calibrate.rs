//! Calibration: how well a simulated machine with this machine's numbers predicts this machine.
//!
//! # What it is
//! Measures the few numbers that matter ([`Numbers`]), builds a machine of one node from them, runs the same lock loops
//! natively and simulated on two CPUs, and sets the times side by side. The one number that cannot be measured by itself,
//! how long a CPU keeps a line that another wants, is fitted to two CPUs adding to one word, for each row anew.
//!
//! # What it is not
//! Evidence for larger machines: two CPUs of one node show nothing about distance classes. Nor does
//! it choose among results by their error: a row is repeated or dropped by the ping-pong before and
//! after it, and dropped rows are listed.
//!
//! # Limitations
//! On a virtual machine the hypervisor moves CPUs, which changes the distance between the two
//! measured CPUs by a factor of 4. Two hardware threads of one core are taken for two cores; choose
//! other CPUs with [`Options::pair`].

mod bursts;
mod loops;
mod numbers;
mod simulate;
mod work;

pub use bursts::{allowed_cpus, median, pin};
pub use loops::{DataLine, Kind};
pub use numbers::{Numbers, Pingpong};

use crate::failure::Failure;
use bursts::{Pair, chunk_of, ns_per_operation};
use serde::{Deserialize, Serialize};
use sim::Machine;
use std::collections::BTreeSet;
use std::hint::black_box;
use work::{Work, spin};

/// How often a row is tried.
const TRIES: u32 = 4;

/// A row counts if the ping-pong before and after it differ by no more than this factor.
const STEADY: f64 = 1.25;

/// The input of a calibration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The two CPUs, by the system's numbers; without them, the first two that this process may use.
    pub pair: Option<[usize; 2]>,
    /// Nanoseconds of private work between sections.
    pub private_ns: Vec<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { pair: None, private_ns: vec![0, 100, 300, 1000] }
    }
}

impl Options {
    /// Returns how often [`run`] reports progress.
    #[must_use]
    pub fn steps(&self) -> usize {
        1 + self.loops().count()
    }

    fn loops(&self) -> impl Iterator<Item = Loop> {
        let kinds = DataLine::ALL.into_iter().flat_map(|data| self.private_ns.iter().map(move |&ns| (data, ns)));
        kinds.flat_map(|(data, private_ns)| Kind::ALL.map(|lock| Loop { lock, data, private_ns }))
    }
}

/// The result of [`run`].
#[derive(Clone, Debug, Serialize)]
pub struct Calibration {
    /// The CPUs that it ran on.
    pub cpus: [usize; 2],
    /// Whether the system let threads be bound to them.
    pub is_pinned: bool,
    /// As measured at the beginning.
    pub numbers: Numbers,
    /// The host as a simulated machine: from the row with the median transfer time.
    pub machine: Machine,
    /// The loops, by place of the data, private work and lock.
    pub rows: Vec<LoopRow>,
    /// Rows without a result.
    pub dropped: Vec<Dropped>,
    /// The errors by place of the data and private work.
    pub errors: Vec<ErrorOf>,
}

/// One loop, native and simulated.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LoopRow {
    /// The lock.
    pub lock: Kind,
    /// The place of the data.
    pub data: DataLine,
    /// Private work between sections.
    pub private_ns: u64,
    /// The ping-pong that the simulated machine was built from, just before.
    pub pingpong: Pingpong,
    /// The fitted [`sim::machine::Queue::keep`].
    pub keep: f64,
    /// Nanoseconds from one section to the next of two threads together, and of one thread alone.
    pub native_ns: [f64; 2],
    /// As `native_ns`, on the simulated machine, which has no store buffer, as the presets have
    /// none.
    pub simulated_ns: [f64; 2],
    /// Two threads on the same machine with a store buffer.
    pub buffered_ns: f64,
    /// Tries that it took.
    pub tries: u32,
}

impl LoopRow {
    /// Simulated by native, less one, of two threads.
    #[must_use]
    pub fn error(&self) -> f64 {
        self.simulated_ns[0] / self.native_ns[0] - 1.0
    }

    /// As [`error`](Self::error), with a store buffer.
    #[must_use]
    pub fn error_buffered(&self) -> f64 {
        self.buffered_ns / self.native_ns[0] - 1.0
    }
}

/// A row without a result.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Dropped {
    /// The lock.
    pub lock: Kind,
    /// The place of the data.
    pub data: DataLine,
    /// Private work between sections.
    pub private_ns: u64,
    /// The result of the tries.
    pub reason: String,
}

/// The errors of the rows of one kind.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ErrorOf {
    /// The place of the data.
    pub data: DataLine,
    /// Private work between sections.
    pub private_ns: u64,
    /// How many rows.
    pub rows: usize,
    /// The median of the errors without their signs; 0.1 is 10 %.
    pub median: f64,
    /// The largest.
    pub worst: f64,
    /// The median with a store buffer.
    pub median_buffered: f64,
}

/// Calibrates; about a minute. Calls `progress` after each of [`Options::steps`].
///
/// # Errors
/// When there are not two CPUs, or the machine is too busy for any result.
pub fn run(options: &Options, progress: &mut dyn FnMut()) -> Result<Calibration, Failure> {
    let pair = Pair::find(options.pair).map_err(|count| match options.pair {
        Some([a, b]) if count >= 2 => Failure::UnusableCpus(a, b),
        _ => Failure::TooFewCpus(count),
    })?;
    let numbers = (0..TRIES).find_map(|_| Numbers::measure(pair)).ok_or(Failure::Busy)?;
    let bench = Bench { pair, numbers };
    progress();
    let (mut rows, mut dropped) = (Vec::new(), Vec::new());
    for loop_ in options.loops() {
        match bench.row(loop_) {
            Ok(row) => rows.push(row),
            Err(reason) => {
                let Loop { lock, data, private_ns } = loop_;
                dropped.push(Dropped { lock, data, private_ns, reason });
            }
        }
        progress();
    }
    let machine = typical(&rows, &bench.numbers).ok_or(Failure::Busy)?;
    let errors = errors(&rows);
    Ok(Calibration {
        cpus: pair.cpus,
        is_pinned: pair.is_pinned,
        numbers: bench.numbers,
        machine,
        rows,
        dropped,
        errors,
    })
}

/// One loop to be measured.
#[derive(Clone, Copy)]
struct Loop {
    lock: Kind,
    data: DataLine,
    private_ns: u64,
}

/// The parts that measure rows.
struct Bench {
    pair: Pair,
    numbers: Numbers,
}

impl Bench {
    fn row(&self, loop_: Loop) -> Result<LoopRow, String> {
        let mut reasons = Vec::new();
        for tries in 1..=TRIES {
            match self.try_row(loop_) {
                Ok(row) => return Ok(LoopRow { tries, ..row }),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(reasons.join("; "))
    }

    fn try_row(&self, loop_: Loop) -> Result<LoopRow, String> {
        let Loop { lock, data, private_ns } = loop_;
        let busy = || String::from("too few undisturbed bursts");
        // Anew: in minutes, the CPU's clock moves by more than a disturbed burst differs.
        let pair = Pair { work: Work::calibrate(), ..self.pair };
        let pingpong = Pingpong::measure(pair).ok_or_else(busy)?;
        let native = |threads| Self::native(pair, loop_, threads).ok_or_else(busy);
        let native_ns = [native(2)?, native(1)?];
        let after = Pingpong::measure(pair).ok_or_else(busy)?;
        let moved = after.turn_ns / pingpong.turn_ns;
        if !(STEADY.recip()..=STEADY).contains(&moved) {
            return Err(format!("ping-pong {:.0} ns before, {:.0} ns after", pingpong.turn_ns, after.turn_ns));
        }
        let machine = simulate::fitted(&self.numbers, pingpong);
        let simulated_ns = [2, 1].map(|threads| simulate::loop_ns(&machine, lock, data, private_ns, threads));
        let buffered_ns = simulate::loop_ns(&simulate::with_buffer(&machine), lock, data, private_ns, 2);
        let keep = machine.queue.keep;
        Ok(LoopRow { lock, data, private_ns, pingpong, keep, native_ns, simulated_ns, buffered_ns, tries: 1 })
    }

    fn native(pair: Pair, loop_: Loop, threads: usize) -> Option<f64> {
        let Loop { lock, data, private_ns } = loop_;
        loops::native::visit(lock, data, Native { pair, private_ns, threads })
    }
}

/// The loop on this machine.
struct Native {
    pair: Pair,
    private_ns: u64,
    threads: usize,
}

impl loops::Visitor for Native {
    type Output = Option<f64>;

    fn visit<S: Fn(u64) -> u64 + Send + Sync + 'static>(
        self,
        make: impl FnOnce() -> S + Send + 'static,
    ) -> Option<f64> {
        let section = make();
        let turns = self.pair.work.turns(self.private_ns);
        // A chunk must stay far below the time that a thread is off its CPU, also where each
        // section waits for two transfers of a line between far CPUs.
        let section_ns = if self.threads == 1 { 20.0 } else { 200.0 };
        let chunk = chunk_of(section_ns + self.private_ns as f64);
        ns_per_operation(self.pair, self.threads, chunk, |_, chunk| {
            let last = (0..chunk).fold(0, |work, _| spin(section(work), turns));
            black_box(last);
            chunk
        })
    }
}

/// Returns the machine of the row with the median transfer time. None of no row.
fn typical(rows: &[LoopRow], numbers: &Numbers) -> Option<Machine> {
    let mut by_transfer: Vec<&LoopRow> = rows.iter().collect();
    by_transfer.sort_by(|a, b| a.pingpong.turn_ns.total_cmp(&b.pingpong.turn_ns));
    let row = by_transfer.get(rows.len() / 2)?;
    let host = simulate::host(numbers, row.pingpong);
    let rest = host.queue.rest;
    Some(host.with_queue(row.keep, rest))
}

fn errors(rows: &[LoopRow]) -> Vec<ErrorOf> {
    let kind = |row: &LoopRow| (row.data, row.private_ns);
    let kinds: BTreeSet<(DataLine, u64)> = rows.iter().map(kind).collect();
    let of = |(data, private_ns)| {
        let of_kind = || rows.iter().filter(|row| kind(row) == (data, private_ns));
        let mut errors: Vec<f64> = of_kind().map(|row| row.error().abs()).collect();
        let mut buffered: Vec<f64> = of_kind().map(|row| row.error_buffered().abs()).collect();
        let (median, median_buffered) = (bursts::median(&mut errors), bursts::median(&mut buffered));
        let worst = errors.last().copied().unwrap_or(f64::NAN);
        ErrorOf { data, private_ns, rows: errors.len(), median, worst, median_buffered }
    };
    kinds.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(private_ns: u64, turn_ns: f64, keep: f64, native_ns: f64, simulated_ns: f64) -> LoopRow {
        let pingpong = Pingpong { turn_ns, contended_add_ns: 9.0 };
        let (native_ns, simulated_ns) = ([native_ns; 2], [simulated_ns; 2]);
        let (lock, data, buffered_ns) = (Kind::Tas, DataLine::Own, 2.0 * simulated_ns[0]);
        LoopRow { lock, data, private_ns, pingpong, keep, native_ns, simulated_ns, buffered_ns, tries: 1 }
    }

    fn numbers() -> Numbers {
        let pingpong = Pingpong { turn_ns: 50.0, contended_add_ns: 9.0 };
        Numbers { load_ns: 1.0, store_ns: 0.2, rmw_ns: 5.5, fence_ns: 5.0, pause_ns: 26.0, pingpong }
    }

    #[test]
    fn the_error_of_a_class_of_private_work_is_the_median_of_its_rows() {
        let rows = [row(0, 50.0, 1.0, 100.0, 150.0), row(0, 50.0, 1.0, 100.0, 80.0), row(100, 50.0, 1.0, 100.0, 99.0)];
        let found = errors(&rows);
        assert_eq!(found.iter().map(|of| (of.private_ns, of.rows)).collect::<Vec<_>>(), [(0, 2), (100, 1)]);
        assert!((found[0].median - 0.35).abs() < 1e-9 && (found[0].worst - 0.5).abs() < 1e-9, "{found:?}");
        assert!((found[1].median - 0.01).abs() < 1e-9 && (found[1].median_buffered - 0.98).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn the_machine_that_is_kept_is_that_of_the_row_in_the_middle() {
        let rows = [row(0, 200.0, 3.0, 1.0, 1.0), row(0, 44.0, 1.0, 1.0, 1.0), row(0, 46.0, 2.0, 1.0, 1.0)];
        let machine = typical(&rows, &numbers()).unwrap();
        assert_eq!((machine.miss.rmw_ns[0], machine.queue.keep), (23.0, 2.0));
        assert!(typical(&[], &numbers()).is_none());
    }

    #[test]
    fn too_few_cpus_is_an_error_that_says_how_many() {
        let message = Failure::TooFewCpus(1).to_string();
        assert_eq!(message, "calibration needs two CPUs, and this process may use 1");
    }
}
