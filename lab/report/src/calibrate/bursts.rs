//! Timing on a shared machine: many short bursts on pinned threads, of which only the undisturbed count.
//!
//! # What it is
//! Threads begin a burst together, do operations in chunks of a few microseconds and look at the clock after each. A
//! chunk that took much longer than chunks do means that the thread was off its CPU: the burst is dropped. So is a burst
//! before or after which private work took longer than at its best: another user of the processor may slow a CPU down
//! without taking it away. The median of the others is the result.
//!
//! # What it is not
//! Proof that nothing disturbed: a hypervisor may move the CPUs, and with them the distance between the two. That is why
//! [`calibrate`](super::run) measures the ping-pong before and after each row.

use super::work::Work;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Bursts of one measurement, and how many undisturbed ones it takes.
const BURSTS: usize = 400;
const CALM_BURSTS: usize = 10;

/// Length of a burst, and the time that threads get to meet before one.
const BURST: Duration = Duration::from_micros(200);
const MEETING: Duration = Duration::from_micros(20);

/// A chunk, or a late start, that is longer than this means that the thread was off its CPU.
const OFF_CPU: Duration = Duration::from_micros(20);

/// The intended time of a chunk: little beside [`OFF_CPU`], much beside a look at the clock.
const CHUNK_NS: f64 = 2000.0;

/// Two CPUs, and whether threads stay on them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) cpus: [usize; 2],
    pub(super) is_pinned: bool,
    /// Private work at its best.
    pub(super) work: Work,
}

impl Pair {
    /// `asked`, or the first two CPUs that this process may use. `Err`: how many it may use.
    pub(super) fn find(asked: Option<[usize; 2]>) -> Result<Self, usize> {
        let allowed = allowed_cpus();
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        let (&[first, second, ..], 2..) = (allowed.as_slice(), at_once) else {
            return Err(at_once.min(allowed.len()));
        };
        let cpus = asked.unwrap_or([first, second]);
        let may_both = cpus[0] != cpus[1] && cpus.iter().all(|cpu| allowed.contains(cpu));
        if !may_both {
            return Err(allowed.len());
        }
        let is_pinned = thread::scope(|scope| scope.spawn(|| pin(cpus[0])).join().unwrap_or(false));
        Ok(Self { cpus, is_pinned, work: Work::calibrate() })
    }
}

/// Returns the CPUs that this process may use.
#[must_use]
pub fn allowed_cpus() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => (0..thread::available_parallelism().map_or(1, usize::from)).collect(),
    }
}

/// Keeps the calling thread on a CPU; returns whether the system allowed it.
pub fn pin(cpu: usize) -> bool {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set).is_ok()
}

/// Returns how often a chunk does an operation of about `ns` nanoseconds.
pub(super) fn chunk_of(ns: f64) -> u32 {
    (CHUNK_NS / ns.max(0.25)).clamp(1.0, 8000.0) as u32
}

/// Measures the nanoseconds from one operation to the next, of all threads together. `step(thread,
/// chunk)` does up to `chunk` operations and returns their number. Returns `None` if too few bursts
/// were undisturbed.
pub(super) fn ns_per_operation(
    pair: Pair,
    threads: usize,
    chunk: u32,
    step: impl Fn(usize, u32) -> u32 + Sync,
) -> Option<f64> {
    let meeting = Meeting::new(threads);
    let bursts: Vec<Vec<Burst>> = thread::scope(|scope| {
        let run = |thread| {
            let (meeting, step) = (&meeting, &step);
            scope.spawn(move || {
                pin(pair.cpus[thread]);
                (0..BURSTS)
                    .map(|burst| Burst::run(pair.work, || meeting.start(burst), || step(thread, chunk)))
                    .collect()
            })
        };
        let started: Vec<_> = (0..threads).map(run).collect();
        started.into_iter().map(|thread| thread.join().expect("a burst does not panic")).collect()
    });
    let mut calm: Vec<f64> = (0..BURSTS)
        .filter(|&burst| bursts.iter().all(|of_thread| of_thread[burst].is_calm))
        .map(|burst| bursts.iter().map(|of_thread| of_thread[burst].per_ns).sum::<f64>().recip())
        .collect();
    (calm.len() >= CALM_BURSTS).then(|| median(&mut calm))
}

/// Returns the middle one, or the mean of the two in the middle. Of none: not a number.
#[must_use]
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values {
        [] => f64::NAN,
        _ if values.len() % 2 == 1 => values[middle],
        _ => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// The record of one thread in one burst.
struct Burst {
    /// Operations by nanosecond.
    per_ns: f64,
    is_calm: bool,
}

impl Burst {
    fn run(work: Work, start: impl FnOnce() -> Instant, mut chunk: impl FnMut() -> u32) -> Self {
        let was_slow = work.is_slow();
        let start = start();
        while Instant::now() < start {
            core::hint::spin_loop();
        }
        let first = Instant::now();
        let end = start + BURST;
        let (mut last, mut longest, mut done) = (first, first - start, 0_u64);
        while last < end {
            done += u64::from(chunk());
            let now = Instant::now();
            longest = longest.max(now - last);
            last = now;
        }
        let ns = (last - first).as_nanos() as f64;
        Self { per_ns: done as f64 / ns, is_calm: !was_slow && longest < OFF_CPU && done > 0 && !work.is_slow() }
    }
}

/// Where threads agree when a burst starts. They yield while they wait: on a busy machine the last one may need the CPU.
struct Meeting {
    threads: usize,
    epoch: Instant,
    arrived: AtomicUsize,
    /// Nanoseconds from the epoch; 0 is not agreed yet.
    starts: Vec<AtomicU64>,
}

impl Meeting {
    fn new(threads: usize) -> Self {
        let starts = (0..BURSTS).map(|_| AtomicU64::new(0)).collect();
        Self { threads, epoch: Instant::now(), arrived: AtomicUsize::new(0), starts }
    }

    fn start(&self, burst: usize) -> Instant {
        // Relaxed everywhere: the threads exchange a time and nothing behind it; results are read after the join.
        let start = &self.starts[burst];
        if self.arrived.fetch_add(1, Relaxed) + 1 == (burst + 1) * self.threads {
            let agreed = self.epoch.elapsed() + MEETING;
            start.store(agreed.as_nanos() as u64, Relaxed);
        }
        loop {
            match start.load(Relaxed) {
                0 => thread::yield_now(),
                ns => return self.epoch + Duration::from_nanos(ns),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&mut []).is_nan());
    }

    #[test]
    fn a_chunk_is_short_beside_the_limit_and_never_empty() {
        assert_eq!(chunk_of(1e9), 1);
        assert_eq!(chunk_of(100.0), 20);
        assert_eq!(chunk_of(0.0), 8000);
    }

    #[test]
    fn a_pair_is_two_different_cpus_that_may_be_used() {
        let first = allowed_cpus()[0];
        match Pair::find(None) {
            Ok(pair) => {
                assert_ne!(pair.cpus[0], pair.cpus[1]);
                assert_eq!(Pair::find(Some(pair.cpus)).map(|found| found.cpus), Ok(pair.cpus));
                assert_eq!(Pair::find(Some([first, first])).err(), Some(allowed_cpus().len()));
                assert_eq!(Pair::find(Some([first, usize::MAX])).err(), Some(allowed_cpus().len()));
            }
            Err(count) => assert!(count < 2, "{count} CPUs and no pair"),
        }
    }

    #[test]
    fn threads_of_a_meeting_start_together_and_not_before_the_last_has_come() {
        let meeting = Meeting::new(2);
        let run = || (0..BURSTS).map(|burst| (Instant::now(), meeting.start(burst))).collect::<Vec<_>>();
        let [one, other] = thread::scope(|scope| [scope.spawn(run), scope.spawn(run)].map(|thread| thread.join()));
        for ((one_came, start), (other_came, same)) in one.unwrap().into_iter().zip(other.unwrap()) {
            assert_eq!(start, same);
            assert!(start >= one_came.max(other_came));
        }
    }
}
