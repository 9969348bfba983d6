//! Every workload on a small tree of the plainest era, with no more room than it requests, and on
//! all eras.

mod recorded;

use super::{Workload, WorkloadEntry, catalogue, find};
use crate::era::{Era, Error, Result};
use recorded::Recorded;

const STEPS: usize = 200;

/// Values that keep trees small; names that a workload does not have are left out.
const SMALL: [(&str, u64); 5] =
    [("files", 10), ("directories", 9), ("branching", 2), ("writers", 1), ("write_every", 7)];

fn small(entry: &WorkloadEntry) -> impl Iterator<Item = (&'static str, u64)> {
    SMALL.into_iter().filter(|(name, _)| entry.parameters.iter().any(|parameter| parameter.name == *name))
}

/// Runs a workload with its workers taking turns, on a tree with room for the entries that it
/// requests at most. Returns the era, and the operations of the workers that reached it.
fn run(entry: &WorkloadEntry, workers: usize, seed: u64) -> (Recorded, u64) {
    let workload = entry.make(small(entry)).expect("small values are within bounds");
    let era = Recorded::with_room(workload.entries(workers));
    let what = |error| panic!("{} with {workers} workers, seed {seed}: {error:?}", entry.name);
    let before = {
        let stage = workload.stage(&era, workers).unwrap_or_else(what);
        let what = |error| panic!("{} with {workers} workers, seed {seed}: {error:?}", entry.name);
        let mut all: Vec<_> = (0..workers).map(|index| stage.worker(index, seed).unwrap_or_else(what)).collect();
        let before = era.operations();
        for step in 0..STEPS {
            for (index, worker) in all.iter_mut().enumerate() {
                if let Err(error) = worker.step() {
                    panic!("{}, worker {index} of {workers}, step {step}, seed {seed}: {error:?}", entry.name);
                }
            }
        }
        let has_name = |index| stage.role(index) < workload.roles().len();
        assert!((0..workers).all(has_name), "{}: a role has a name", entry.name);
        before
    };
    let operations = era.operations() - before;
    (era, operations)
}

#[test]
fn every_workload_runs_with_one_worker_and_with_three_in_its_room_and_closes_what_it_opened() {
    for entry in catalogue() {
        for workers in [1, 3] {
            let (era, operations) = run(entry, workers, 1);
            // The AIM7 mixes compute most of the time.
            let least = STEPS * workers / 10;
            assert!(operations as usize >= least, "{}: only {operations} operations", entry.name);
            assert_eq!(era.open(), 0, "{}: files left open by {workers} workers", entry.name);
        }
    }
}

#[test]
fn the_same_seed_makes_the_same_operations_and_another_seed_others_where_chance_plays() {
    let trace = |name: &str, seed| run(find(name).expect("a workload"), 3, seed).0.trace();
    for name in ["static-web", "dbench", "aim7-fserver", "MRPM"] {
        assert_eq!(trace(name, 1), trace(name, 1), "{name}");
        assert_ne!(trace(name, 1), trace(name, 2), "{name}");
    }
}

#[test]
fn names_are_unique_and_every_parameter_is_within_its_own_bounds() {
    let mut names: Vec<&str> = catalogue().iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), catalogue().len());
    for entry in catalogue() {
        assert!(entry.make([]).is_ok(), "{}", entry.name);
        for parameter in entry.parameters {
            let (least, most) = parameter.bounds;
            assert!((least..=most).contains(&parameter.default), "{} {}", entry.name, parameter.name);
            assert!(entry.make([(parameter.name, least)]).is_ok(), "{} {}", entry.name, parameter.name);
            assert!(entry.make([(parameter.name, most + 1)]).is_err(), "{} {}", entry.name, parameter.name);
        }
    }
}

#[test]
fn what_is_set_reaches_the_workload() {
    let operations = |name: &str, values: &[(&str, u64)]| {
        let era = Recorded::with_room(10_000);
        let workload = find(name).expect("a workload").make(values.iter().copied()).expect("values within bounds");
        let stage = workload.stage(&era, 2).expect("a stage");
        let mut worker = stage.worker(1, 1).expect("a worker");
        let before = era.operations();
        for _ in 0..STEPS {
            worker.step().expect("a step");
        }
        era.operations() - before
    };
    let steps = STEPS as u64;
    assert_eq!(operations("aim7-short", &[("stats", 3)]), 4 * steps);
    assert_eq!(operations("static-web", &[("other_permille", 0), ("files", 9)]), 2 * steps);
    assert_eq!(operations("static-web", &[("other_permille", 2000), ("files", 9)]), 6 * steps);
    assert_eq!(operations("reverse-path", &[("writers", 0)]), steps);
    assert_eq!(operations("reverse-path", &[("writers", 2)]), 3 * steps);
    assert_eq!(operations("reverse-path", &[("writers", 2), ("writer_paths_permille", 0)]), 2 * steps);
    assert_eq!(operations("reverse-path", &[("movers", 2)]), steps);
    assert_eq!(operations("stat-cwd", &[("renamers", 2)]), steps);
}

#[test]
fn threads_of_git_diff_share_a_process_and_serial_workers_have_one_each() {
    // One of them makes the tree.
    for (name, expected) in [("git-diff-threads", 1), ("git-diff-serial", 4)] {
        let era = Recorded::with_room(10_000);
        let workload = find(name).expect("a workload").make([("directories", 9)]).expect("values within bounds");
        let stage = workload.stage(&era, 3).expect("a stage");
        let workers: Vec<_> = (0..3).map(|index| stage.worker(index, 1).expect("a worker")).collect();
        assert_eq!(era.processes(), expected, "{name}");
        drop(workers);
    }
}

#[test]
fn threads_of_git_diff_see_every_file_once_between_them() {
    let era = Recorded::with_room(10_000);
    let workload = find("git-diff-threads").expect("a workload");
    let workload = workload.make([("directories", 7), ("files", 5)]).expect("values within bounds");
    let stage = workload.stage(&era, 3).expect("a stage");
    era.forget();
    for index in 0..3 {
        let mut worker = stage.worker(index, 1).expect("a worker");
        let share = 35 * (index + 1) / 3 - 35 * index / 3;
        for _ in 0..share {
            worker.step().expect("a step");
        }
    }
    let mut seen = era.trace();
    assert_eq!(seen.len(), 35);
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 35);
}

/// An era must be usable from several threads at once; this one shows that the trait lets it.
#[test]
fn workers_can_run_on_threads() {
    let era = Recorded::with_room(10_000);
    let workload = find("create-unlink-common").expect("a workload").make([]).expect("no values");
    let stage = workload.stage(&era, 2).expect("a stage");
    std::thread::scope(|scope| {
        for index in 0..2 {
            let stage = &stage;
            scope.spawn(move || {
                let mut worker = stage.worker(index, 1).expect("a worker");
                (0..STEPS).for_each(|_| worker.step().expect("a step"));
            });
        }
    });
    let mut names = 0;
    era.process().list(b"/work", &mut |_| names += 1).expect("the directory");
    assert_eq!(names, 0);
}

#[test]
fn every_workload_runs_on_every_era() {
    for generation in crate::catalogue() {
        for entry in catalogue() {
            for workers in [1, 3] {
                let workload = entry.make(small(entry)).expect("small values are within bounds");
                let capacity = 2 * workload.entries(workers) + 4096;
                let era = (generation.make)(&crate::Options { capacity, ..crate::Options::default() });
                let what = format!("{} on {} with {workers} workers", entry.name, generation.name);
                match steps(&*workload, &*era, workers) {
                    Ok(()) | Err(Error::Unsupported) => {}
                    Err(error) => panic!("{what}: {error:?}"),
                }
            }
        }
    }
}

/// Workers taking turns.
fn steps(workload: &dyn Workload, era: &dyn Era, workers: usize) -> Result<()> {
    let stage = workload.stage(era, workers)?;
    let mut all = (0..workers).map(|index| stage.worker(index, 1)).collect::<Result<Vec<_>>>()?;
    (0..STEPS).try_for_each(|_| all.iter_mut().try_for_each(|worker| worker.step()))
}
