//! A run on this machine: threads that step until a flag stops them.
//!
//! # How it is locked
//! Each worker counts in a slot on its own lines, which the timing thread reads. A flag stops them. The first failure
//! is kept under a mutex, and its condition variable wakes the timing thread early.

use crate::failure::Failure;
use crate::job::Job;
use crate::lock_row::LockRow;
use crate::outcome::Outcome;
use crate::stage::Trouble;
use crate::stage::native::{Plan, Staged};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Barrier, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// One worker's steps, on lines that no other thread writes.
#[derive(Default)]
#[repr(align(128))]
struct Steps(AtomicU64);

/// Stops the workers, and notifies the timing thread of the first failure.
#[derive(Default)]
struct Stop {
    is_asked: AtomicBool,
    trouble: Mutex<Option<Trouble>>,
    failed: Condvar,
}

impl Stop {
    fn ask(&self) {
        // Relaxed: the flag carries nothing.
        self.is_asked.store(true, Relaxed);
    }

    fn is_asked(&self) -> bool {
        // Relaxed: the flag carries nothing.
        self.is_asked.load(Relaxed)
    }

    fn fail(&self, trouble: Trouble) {
        self.ask();
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(trouble);
        self.failed.notify_all();
    }

    /// Waits so long, or until a worker fails.
    fn wait(&self, time: Duration) {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        // Whether the time is over or a worker failed shows at the end.
        drop(self.failed.wait_timeout_while(trouble, time, |trouble| trouble.is_none()));
    }
}

/// Does a job with so many threads of this machine.
pub(crate) fn run(job: &Job, threads: usize) -> Result<Outcome, Failure> {
    if threads == 0 || job.run_ns == 0 {
        return Err(Failure::BadJob("a run needs a thread and a nanosecond at least".into()));
    }
    let start = Instant::now();
    let plan = Plan::new(job, None, None)?;
    let stage = Staged::new(&plan).map_err(|trouble| trouble.of(job))?;
    let steps: Vec<Steps> = (0..threads).map(|_| Steps::default()).collect();
    let counted = || -> Vec<u64> { steps.iter().map(|steps| steps.0.load(Relaxed)).collect() };
    let (stop, ready) = (Stop::default(), Barrier::new(threads + 1));
    let measured = thread::scope(|scope| {
        for (index, steps) in steps.iter().enumerate() {
            let (stage, stop, ready) = (&stage, &stop, &ready);
            scope.spawn(move || {
                let mut count = 0;
                let stepped = || {
                    count += 1;
                    steps.0.store(count, Relaxed);
                };
                let is_made = || {
                    ready.wait();
                };
                let done = stage.work(index, is_made, || !stop.is_asked(), stepped);
                done.unwrap_or_else(|trouble| stop.fail(trouble));
            });
        }
        ready.wait();
        stop.wait(Duration::from_nanos(job.warm_ns));
        if job.lockstat {
            stage.count_locks();
        }
        let counters_before = counters(&stage);
        let (before, began) = (counted(), Instant::now());
        // If threads got no CPU in that time, the time is repeated: a rate of nothing means
        // nothing.
        let (after, span) = loop {
            stop.wait(Duration::from_nanos(job.run_ns));
            let (after, span) = (counted(), began.elapsed());
            if after != before || stop.is_asked() {
                break (after, span);
            }
        };
        let mut counters = counters(&stage);
        counters
            .iter_mut()
            .for_each(|(name, count)| *count = count.saturating_sub(counters_before.get(name).copied().unwrap_or(0)));
        let locks = if job.lockstat { lock_rows(&stage, span, threads) } else { Vec::new() };
        stop.ask();
        (before, after, span, counters, locks)
    });
    if let Some(trouble) = stop.trouble.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(trouble.of(job));
    }
    let (before, after, span, counters, locks) = measured;
    let per_worker = after.iter().zip(&before).map(|(after, before)| after - before).collect();
    let outcome = Outcome::new(job, span.as_secs_f64(), per_worker, plan.roles(), |worker| stage.role(worker));
    Ok(Outcome { counters, locks, host_seconds: start.elapsed().as_secs_f64(), ..outcome })
}

/// Returns the era's counts so far.
fn counters(stage: &Staged) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    stage.visit_counters(&mut |name, count| {
        counters.insert(name.to_owned(), count);
    });
    counters
}

fn lock_rows(stage: &Staged, span: Duration, cpus: usize) -> Vec<LockRow> {
    let mut rows = Vec::new();
    stage.visit_locks(&mut |name, counts| {
        rows.push(LockRow::new(name, &counts, span.as_nanos() as u64, cpus));
    });
    rows
}
