//! Slices and rounds: how time is taken.
//!
//! In a round all contenders run in turn, at all depths, for one time slice each, in one process.
//! The next round has the reverse order, so that a drift of the machine favours no contender. Time
//! is the CPU time of the thread, so other processes do not count. A slice in which a thread lost
//! its CPU is repeated, since other programs used its caches.
//!
//! # Limitations
//! Work for a thread that is done elsewhere is not counted: Lightfoot's reclaimer thread frees
//! unlinked files, and the kernel frees in soft interrupts and its own threads.

use crate::bench::cases::{Case, OperationFailure};
use crate::error::Error;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::panic::resume_unwind;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire},
};
use std::thread;
use std::time::{Duration, Instant};

/// A slice counts if each thread had its CPU for this part of the time.
const SHARE_AT_LEAST: f64 = 0.95;

/// How long to wait, after some tries, for the process that has the CPU.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// Turns of waiting for the other threads before the CPU is offered to them.
const SPINS: u32 = 1000;

/// How to measure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Method {
    pub(crate) threads: Vec<usize>,
    pub(crate) rounds: usize,
    pub(crate) slice_us: u64,
    /// Time that each thread works before a slice; at least one visit to each path, if the paths are hot.
    pub(crate) warm_up_us: u64,
    /// Whether the paths are few enough to be visited all before each slice.
    pub(crate) is_hot: bool,
    /// How often a slice is tried.
    pub(crate) tries: usize,
    pub(crate) cpus: Vec<usize>,
}

/// The quality of a measurement.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Quality {
    /// Slices taken.
    pub(crate) slices: usize,
    /// Slices thrown away because a thread was kept from its CPU.
    pub(crate) repeated: usize,
    /// Slices kept although a thread was kept from its CPU in each try.
    pub(crate) disturbed: usize,
}

/// The times of one case with one number of threads.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) case: String,
    pub(crate) depth: usize,
    pub(crate) threads: usize,
    /// Nanoseconds per operation and thread, one a round.
    pub(crate) rounds_ns: Vec<f64>,
}

/// Measures all cases.
pub(crate) fn measure(
    cases: &[Case<'_>],
    method: &Method,
    quality: &mut Quality,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<Vec<Measured>, Error> {
    let most = method.threads.iter().copied().max().unwrap_or(1);
    // Threads begin far from one another, so that they seldom read the same path at the same time.
    let start = |lap: u64| (0..most).map(|thread| thread * lap as usize / most).collect::<Vec<usize>>();
    let mut places: Vec<Vec<usize>> = cases.iter().map(|case| start(case.lap)).collect();
    let rows = cases.iter().flat_map(|case| method.threads.iter().map(move |&threads| (case, threads)));
    let mut measured: Vec<Measured> = rows
        .map(|(case, threads)| Measured {
            case: case.name.clone(),
            depth: case.depth,
            threads,
            rounds_ns: Vec::with_capacity(method.rounds),
        })
        .collect();
    for round in 0..method.rounds {
        for turn in 0..cases.len() {
            let index = if round % 2 == 0 { turn } else { cases.len() - 1 - turn };
            for (column, &threads) in method.threads.iter().enumerate() {
                interrupt.check()?;
                let ns = undisturbed(&cases[index], &mut places[index][..threads], method, quality)?;
                measured[index * method.threads.len() + column].rounds_ns.push(ns);
                progress.step(1);
            }
        }
    }
    Ok(measured)
}

/// Nanoseconds per operation and thread, of the first slice in which no thread was kept from its CPU, or of the best.
fn undisturbed(case: &Case<'_>, places: &mut [usize], method: &Method, quality: &mut Quality) -> Result<f64, Error> {
    quality.slices += 1;
    let mut best = Slice { ns: 0.0, share: 0.0 };
    for attempt in 1..=method.tries {
        let slice = slice(case, places, method).map_err(|failure| failure.of(case))?;
        if let Some(settle) = &case.settle {
            settle();
        }
        if slice.share > best.share {
            best = slice;
        }
        if best.share >= SHARE_AT_LEAST {
            return Ok(best.ns);
        }
        if attempt == method.tries {
            break;
        }
        quality.repeated += 1;
        if attempt > 2 {
            // The process that has the CPU may be done soon.
            thread::sleep(Duration::from_micros(2 * method.slice_us).min(LONGEST_WAIT));
        }
    }
    quality.disturbed += 1;
    Ok(best.ns)
}

/// The time of one slice: of all threads, the mean; and of CPU time per time on the wall, the lowest.
#[derive(Clone, Copy)]
struct Slice {
    ns: f64,
    share: f64,
}

fn slice(case: &Case<'_>, places: &mut [usize], method: &Method) -> Result<Slice, OperationFailure> {
    let threads = places.len();
    let arrived = AtomicUsize::new(0);
    let slices: Result<Vec<Slice>, OperationFailure> = thread::scope(|scope| {
        let start = |(thread, place)| {
            let arrived = &arrived;
            scope.spawn(move || {
                // Where that is not allowed, the scheduler does well enough.
                lab::calibrate::pin(method.cpus[thread]);
                work(case, thread, place, method, Gate { arrived, threads })
            })
        };
        let workers: Vec<_> = places.iter_mut().enumerate().map(start).collect();
        workers.into_iter().map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    });
    let slices = slices?;
    let ns = slices.iter().map(|slice| slice.ns).sum::<f64>() / threads as f64;
    let share = slices.iter().map(|slice| slice.share).fold(f64::INFINITY, f64::min);
    Ok(Slice { ns, share })
}

/// Runs one thread's part of a slice: warms up, waits at the gate, and repeats the case's batch
/// until the slice is over.
fn work(
    case: &Case<'_>,
    thread: usize,
    place: &mut usize,
    method: &Method,
    gate: Gate<'_>,
) -> Result<Slice, OperationFailure> {
    // A copy: the places of all threads share a cache line.
    let mut next = *place;
    warm_up(case, thread, &mut next, method)?;
    gate.pass();
    let limit = Duration::from_micros(method.slice_us);
    let mut operations = 0;
    let (cpu, wall) = (cpu_ns(), Instant::now());
    let elapsed = loop {
        operations += (case.batch)(thread, &mut next)?;
        let elapsed = wall.elapsed();
        if elapsed >= limit {
            break elapsed;
        }
    };
    let cpu = cpu_ns() - cpu;
    *place = next;
    Ok(Slice { ns: cpu / operations as f64, share: cpu / elapsed.as_nanos() as f64 })
}

fn warm_up(case: &Case<'_>, thread: usize, next: &mut usize, method: &Method) -> Result<(), OperationFailure> {
    let limit = Duration::from_micros(method.warm_up_us);
    let lap = if method.is_hot { case.lap } else { 1 };
    let begin = Instant::now();
    let mut operations = 0;
    while operations < lap || begin.elapsed() < limit {
        operations += (case.batch)(thread, next)?;
    }
    Ok(())
}

/// Where the threads of a slice wait for one another. One that fails on the way there opens it too.
struct Gate<'a> {
    arrived: &'a AtomicUsize,
    threads: usize,
}

impl Gate<'_> {
    fn pass(self) {
        let (arrived, threads) = (self.arrived, self.threads);
        drop(self);
        let mut turns = 0;
        while arrived.load(Acquire) < threads {
            turns += 1;
            if turns % SPINS == 0 {
                thread::yield_now();
            }
            std::hint::spin_loop();
        }
    }
}

impl Drop for Gate<'_> {
    fn drop(&mut self) {
        self.arrived.fetch_add(1, AcqRel);
    }
}

/// CPU time of the calling thread.
fn cpu_ns() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
