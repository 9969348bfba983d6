//! A run on a simulated machine: workers that step until the virtual time ends.
//!
//! # How it is locked
//! Simulated threads are coroutines of one host thread, and none is switched away from while it
//! uses the data here; so cells are enough. Their results for the host are plain values in memory
//! that the host allocated: the memory of simulated threads ends with the simulation.

use crate::failure::Failure;
use crate::job::{Job, Simulation};
use crate::lock_row::LockRow;
use crate::outcome::{Outcome, Share, StallRow};
use crate::stage::Trouble;
use crate::stage::simulated::{MakeEra, MakeWorkload, Plan, Staged};
use locks::lockstat::Counts;
use prim::profile::Tag;
use sim::stall::{StallSum, by_cache_line, by_place};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

/// More threads than the simulator takes.
const THREADS_AT_MOST: usize = 4096;

/// More CPUs than the simulator takes.
const CPUS_AT_MOST: usize = 1024;

/// More classes of locks than any era has.
const CLASSES_AT_MOST: usize = 32;

/// More counters than any era has.
const COUNTERS_AT_MOST: usize = 8;

/// Does a job on a simulated machine, with an era or a workload that is `own`, or those that the job names.
pub(crate) fn run(
    job: &Job,
    simulation: &Simulation,
    own: (Option<MakeEra>, Option<MakeWorkload>),
) -> Result<Outcome, Failure> {
    check(job, simulation)?;
    let start = Instant::now();
    let plan = Plan::new(job, own.0, own.1)?;
    let roles = plan.roles();
    let seen = Rc::new(Seen::new(simulation.threads, job.lockstat));
    let (of_set_up, of_bodies) = (Rc::clone(&seen), Rc::clone(&seen));
    let set_up = move || of_set_up.set_up(&plan);
    let report = sim::run(config(job, simulation), set_up, move |stage, index| {
        if let Some(stage) = stage {
            of_bodies.work(stage, index);
        }
    });
    if let Some(trouble) = seen.trouble.get() {
        return Err(trouble.of(job));
    }
    let per_worker = report.operations_per_thread.iter().map(|slots| slots[0]).collect();
    let outcome = Outcome::new(job, report.span_ns / 1e9, per_worker, roles, |worker| seen.roles[worker].get());
    let row = |(name, counts): (&str, Counts)| LockRow::new(name, &counts, report.span_ns as u64, simulation.cpus);
    let mut locks: Vec<LockRow> = seen.locks.iter().filter_map(Cell::get).map(row).collect();
    if job.lockstat {
        let others = report.locks.iter().map(|lock| (short_name(lock.class), counts_of(lock)));
        let others: Vec<LockRow> =
            others.filter(|(name, _)| locks.iter().all(|lock| lock.name != *name)).map(row).collect();
        locks.extend(others);
    }
    let cold = ("cold_threads".to_owned(), seen.cold.get());
    Ok(Outcome {
        shares: shares(&report),
        locks,
        callers: callers(&report),
        stalls: stalls(&report),
        counters: counters(&report).chain(seen.counted()).chain([cold]).collect(),
        host_seconds: start.elapsed().as_secs_f64(),
        ..outcome
    })
}

/// A value with a name, once it is set.
type Named<T> = Cell<Option<(&'static str, T)>>;

/// The results of the simulated threads for the host.
struct Seen {
    /// The first error.
    trouble: Cell<Option<Trouble>>,
    /// The role of each worker.
    roles: Vec<Cell<usize>>,
    /// Whether each worker has ended a step.
    stepped: Vec<Cell<bool>>,
    /// How many had not when the warm-up was over.
    cold: Cell<u64>,
    has_lockstat: bool,
    /// Whether the locks have counted since the warm-up, and whether their counts were read.
    is_warm: Cell<bool>,
    is_over: Cell<bool>,
    locks: [Named<Counts>; CLASSES_AT_MOST],
    /// The era's counts when the warm-up was over, and at the end.
    counters: [[Named<u64>; COUNTERS_AT_MOST]; 2],
}

impl Seen {
    fn new(workers: usize, has_lockstat: bool) -> Self {
        Self {
            trouble: Cell::new(None),
            roles: (0..workers).map(|_| Cell::new(0)).collect(),
            stepped: (0..workers).map(|_| Cell::new(false)).collect(),
            cold: Cell::new(0),
            has_lockstat,
            is_warm: Cell::new(false),
            is_over: Cell::new(false),
            locks: [const { Cell::new(None) }; CLASSES_AT_MOST],
            counters: [const { [const { Cell::new(None) }; COUNTERS_AT_MOST] }; 2],
        }
    }

    /// Makes the tree, unless that fails.
    fn set_up(&self, plan: &Plan) -> Option<Staged> {
        match Staged::new(plan) {
            Ok(stage) => {
                self.roles.iter().enumerate().for_each(|(worker, role)| role.set(stage.role(worker)));
                Some(stage)
            }
            Err(trouble) => {
                self.trouble.set(Some(trouble));
                None
            }
        }
    }

    /// Does the work of one simulated thread.
    fn work(&self, stage: &Staged, index: usize) {
        let goes_on = || {
            self.watch(stage);
            sim::running() && self.trouble.get().is_none()
        };
        let stepped = || {
            self.stepped[index].set(true);
            sim::count_op(0);
        };
        if let Err(trouble) = stage.work(index, || (), goes_on, stepped) {
            // A later one is likely to follow from the first.
            self.trouble.set(self.trouble.get().or(Some(trouble)));
        }
    }

    /// Lets the first worker that is warm start the locks' counts, and the first that is done read them.
    fn watch(&self, stage: &Staged) {
        if sim::is_warm() && !self.is_warm.replace(true) {
            self.count_cold();
            self.count(stage, 0);
            if self.has_lockstat {
                stage.count_locks();
            }
        }
        if !sim::running() && !self.is_over.replace(true) {
            if !self.is_warm.get() {
                self.count_cold();
            }
            self.count(stage, 1);
            if !self.has_lockstat {
                return;
            }
            let mut places = self.locks.iter();
            stage.visit_locks(&mut |name, counts| {
                if let Some(place) = places.next() {
                    place.set(Some((name, counts)));
                }
            });
        }
    }

    /// Counts the workers that have not ended a step.
    fn count_cold(&self) {
        self.cold.set(self.stepped.iter().filter(|stepped| !stepped.get()).count() as u64);
    }

    /// Keeps the era's current counts.
    fn count(&self, stage: &Staged, time: usize) {
        let mut places = self.counters[time].iter();
        stage.visit_counters(&mut |name, count| {
            if let Some(place) = places.next() {
                place.set(Some((name, count)));
            }
        });
    }

    /// Returns the era's counts of the measured time.
    fn counted(&self) -> impl Iterator<Item = (String, u64)> {
        let [before, after] = &self.counters;
        let pairs = before.iter().map(Cell::get).zip(after.iter().map(Cell::get));
        pairs
            .filter_map(|(before, after)| Some((before?, after?)))
            .map(|((name, before), (_, after))| (name.to_owned(), after.saturating_sub(before)))
    }
}

/// Refuses jobs for which the simulator would panic.
fn check(job: &Job, simulation: &Simulation) -> Result<(), Failure> {
    let Simulation { machine, cpus, threads, .. } = simulation;
    let (there, bad) = (machine.cpus().min(CPUS_AT_MOST), |sentence: String| Err(Failure::BadJob(sentence)));
    if job.run_ns == 0 {
        return bad("a run needs a thread and a nanosecond at least".into());
    }
    if *cpus == 0 || *cpus > there {
        return bad(format!("{} has no {cpus} CPUs to simulate, but 1 to {there}", machine.name));
    }
    if *threads == 0 || *threads > THREADS_AT_MOST {
        return bad(format!("{threads} threads cannot be simulated, but 1 to {THREADS_AT_MOST}"));
    }
    Ok(())
}

fn config(job: &Job, simulation: &Simulation) -> sim::Config {
    sim::Config {
        machine: simulation.machine.clone(),
        cpus: simulation.cpus,
        placement: simulation.placement,
        threads: simulation.threads,
        seed: job.seed,
        warm_ns: job.warm_ns,
        run_ns: job.run_ns,
        interrupts: simulation.interrupts,
        slack_ns: simulation.slack_ns,
        schedule: sim::Schedule::Exact,
        finite_caches: simulation.finite_caches,
        stalls: simulation.stalls,
    }
}

/// Every tag, in the order in which shares are given.
const TAGS: [Tag; Tag::COUNT] = [
    Tag::User,
    Tag::Kernel,
    Tag::Other,
    Tag::SpinLock,
    Tag::RwLock,
    Tag::SeqLock,
    Tag::Mutex,
    Tag::RwSem,
    Tag::Ref,
    Tag::Sleep,
];

/// Returns the use of the time of all CPUs, in percent.
fn shares(report: &sim::Report) -> Vec<Share> {
    let whole_ns = report.span_ns * report.cpus as f64;
    let share = |tag: String, ns: f64| Share { tag, percent: 100.0 * ns / whole_ns };
    let tagged = TAGS.iter().map(|&tag| share(format!("{tag:?}"), report.tag_ns[tag as usize]));
    let rest = [("Idle", report.idle_ns), ("Interrupt", report.interrupt_ns), ("Switch", report.switch_ns)];
    tagged.chain(rest.map(|(tag, ns)| share(tag.into(), ns))).collect()
}

/// Returns the last part of a type's path. A name that an era gave its locks stays as it is.
fn short_name(class: &'static str) -> &'static str {
    let path = class.split('<').next().unwrap_or(class);
    match path.rsplit("::").next().unwrap_or(path) {
        // Lightfoot's dentries.
        "LockRef" => "d_lock",
        name => name,
    }
}

/// Returns a lock's statistics as the simulator keeps them, in the columns of the era's own
/// statistics.
fn counts_of(lock: &sim::LockStat) -> Counts {
    Counts {
        acquisitions: lock.acquisitions,
        contended: lock.contended,
        hold_ns: lock.hold_ns as u64,
        hold_max_ns: lock.hold_max_ns as u64,
        wait_ns: lock.wait_ns as u64,
        wait_max_ns: lock.wait_max_ns as u64,
    }
}

/// Returns the longest stalls, by source line and by cache line.
fn stalls(report: &sim::Report) -> Vec<StallRow> {
    const MOST: usize = 20;
    let row = |sum: StallSum, is_place: bool| StallRow {
        places: sum.places,
        cache_lines: is_place.then_some(sum.cache_lines),
        misses: sum.misses,
        ns: sum.ns,
    };
    let places = by_place(&report.stalls).into_iter().take(MOST).map(|sum| row(sum, true));
    places.chain(by_cache_line(&report.stalls).into_iter().take(MOST).map(|sum| row(sum, false))).collect()
}

/// Returns the callers that spun, in percent of all spinning.
fn callers(report: &sim::Report) -> Vec<Share> {
    let whole: f64 = report.callers.iter().map(|(_, ns)| ns).sum();
    let named = report.callers.iter().filter(|(name, ns)| !name.is_empty() && *ns > 0.0);
    named.map(|&(name, ns)| Share { tag: name.into(), percent: 100.0 * ns / whole }).collect()
}

/// Returns the simulator's counts, including the hash that shows whether two runs were the same.
fn counters(report: &sim::Report) -> impl Iterator<Item = (String, u64)> {
    report.counters.iter().chain([("hash", report.hash)]).map(|(name, count)| (name.to_owned(), count))
}
