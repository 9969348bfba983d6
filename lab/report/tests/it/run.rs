//! Runs of real eras, on this machine and on simulated ones.

use lightfoot_lab_report::{Failure, Job, Outcome, Simulation, Substrate, run};
use sim::Machine;

const MS: u64 = 1_000_000;

fn native(threads: usize) -> Job {
    Job {
        era: eras::catalogue()[0].name.into(),
        // Most of a short run is to make the tables, whose default is some 37,000 entries.
        era_options: [("capacity".into(), 900)].into(),
        workload: "create-unlink-common".into(),
        parameters: [].into(),
        on: Substrate::Native { threads },
        seed: 1,
        warm_ns: MS,
        run_ns: 5 * MS,
        lockstat: false,
    }
}

fn simulated(cpus: usize) -> Job {
    let machine = Machine::preset("piii8").expect("a preset");
    Job { on: Substrate::simulated(machine, cpus), warm_ns: MS / 5, run_ns: MS, ..native(1) }
}

fn done(job: &Job) -> Outcome {
    run(job).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn workers_step_and_the_rates_follow_from_the_steps() {
    for job in [native(2), simulated(2)] {
        let outcome = done(&job);
        assert_eq!(outcome.per_worker.len(), 2);
        let total: u64 = outcome.per_worker.iter().sum();
        assert!(total > 0, "{:?}", outcome.per_worker);
        assert_eq!(outcome.roles.len(), 1);
        assert_eq!((outcome.roles[0].ops, outcome.roles[0].workers), (total, 2));
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b;
        assert!(close(outcome.ops_per_second, total as f64 / outcome.seconds), "{outcome:?}");
        assert!(close(outcome.ops_per_second_per_cpu, outcome.ops_per_second / 2.0), "{outcome:?}");
    }
}

#[test]
fn a_simulation_depends_on_its_seed_and_on_nothing_else() {
    let of_seed = |seed| {
        let parameters = [("files".into(), 50)].into();
        let job = Job { workload: "static-web".into(), parameters, seed, run_ns: 20 * MS, ..simulated(4) };
        Outcome { host_seconds: 0.0, ..done(&job) }
    };
    let (first, again, other) = (of_seed(1), of_seed(1), of_seed(2));
    assert_eq!(first, again);
    assert_ne!(first.per_worker, other.per_worker);
}

#[test]
fn roles_are_counted_apart_and_the_figure_is_of_the_first() {
    let parameters = [("writers".into(), 1), ("user_ns".into(), 5000), ("writer_user_ns".into(), 50_000)].into();
    let outcome = done(&Job { workload: "reverse-path".into(), parameters, ..simulated(3) });
    let roles: Vec<_> = outcome.roles.iter().map(|role| (role.role.as_str(), role.workers)).collect();
    assert_eq!(roles, [("reader", 2), ("writer", 1), ("mover", 0)]);
    assert!(outcome.roles[0].ops > outcome.roles[1].ops && outcome.roles[1].ops > 0, "{:?}", outcome.roles);
    assert_eq!(outcome.roles[0].ops_per_second, outcome.ops_per_second);
    assert_eq!(outcome.per_worker[0], outcome.roles[1].ops, "writers come first");
}

#[test]
fn shares_of_a_simulation_make_up_its_time_and_user_time_is_among_them() {
    let outcome = done(&Job { workload: "aim7-short".into(), ..simulated(4) });
    let sum: f64 = outcome.shares.iter().map(|share| share.percent).sum();
    assert!((99.0..=101.0).contains(&sum), "{sum} %: {:?}", outcome.shares);
    assert!(outcome.share("User") > 25.0, "{:?}", outcome.shares);
    assert!(outcome.share("Nonsense") == 0.0 && !outcome.counters.is_empty());
    assert_eq!(done(&native(1)).shares, []);
}

#[test]
fn locks_are_counted_where_that_is_asked_for() {
    for job in [native(2), simulated(2)] {
        assert_eq!(done(&job).locks, []);
        let locks = done(&Job { lockstat: true, ..job }).locks;
        assert!(locks.iter().any(|lock| lock.acquisitions > 0 && lock.hold_mean_us > 0.0), "{locks:?}");
        assert!(locks.iter().all(|lock| lock.contention_percent <= 100.0), "{locks:?}");
    }
}

#[test]
fn simulated_locks_have_their_names_in_each_era() {
    let names = |era: &str, workload: &str| -> Vec<String> {
        let job = Job { era: era.into(), workload: workload.into(), lockstat: true, ..simulated(4) };
        done(&job).locks.into_iter().map(|lock| lock.name).collect()
    };
    for (era, workload, expected) in [
        ("linux-2.6.32", "create-unlink-common", &["dcache_lock", "vfsmount_lock", "d_lock", "i_mutex"][..]),
        (
            "rcu-walk",
            "create-unlink-common",
            &["rename_lock", "d_lock", "i_mutex", "chains of entries", "lists of each CPU"],
        ),
        ("linux-3.12", "create-unlink-common", &["d_lock", "i_mutex"]),
        ("lightfoot", "create-unlink-common", &["a directory's lock"]),
        ("lightfoot", "dbench", &["a directory's lock", "a data lock", "a handle's lock"]),
        ("lightfoot", "container-start", &["the mounts"]),
    ] {
        let names = names(era, workload);
        let missing: Vec<_> = expected.iter().filter(|name| !names.iter().any(|known| known == *name)).collect();
        assert!(missing.is_empty(), "{era}, {workload}: no {missing:?} among {names:?}");
        let count = |name| names.iter().filter(|known| *known == name).count();
        assert!(names.iter().all(|name| count(name) == 1), "{names:?}");
    }
}

#[test]
fn spinning_is_counted_for_the_functions_that_profiles_name() {
    let parameters = [("think_ns".into(), 500)].into();
    let on = Substrate::simulated(Machine::preset("dl980").expect("a preset"), 20);
    let job = Job { era: "linux-3.10".into(), workload: "aim7-short".into(), parameters, on, ..simulated(1) };
    let outcome = done(&job);
    let (get, put) = (outcome.spun_by("dget_parent"), outcome.spun_by("dput"));
    assert!(get > 20.0 && put > 20.0 && get + put <= 100.001, "{:?}", outcome.callers);
}

#[test]
fn threads_beyond_the_cpus_share_them() {
    let mut machine = Machine::preset("piii8").expect("a preset");
    machine.system.slice_ns = 1e6;
    let simulation = Simulation::new(machine, 2);
    let on = Substrate::Simulated(Box::new(Simulation { threads: 5, ..simulation }));
    let outcome = done(&Job { workload: "aim7-short".into(), on, run_ns: 20 * MS, ..simulated(1) });
    assert_eq!(outcome.per_worker.len(), 5);
    assert!(outcome.per_worker.iter().all(|&steps| steps > 0), "{:?}", outcome.per_worker);
}

#[track_caller]
fn check_fails(job: &Job, parts: &[&str]) {
    let failure = run(job).expect_err("a failure");
    let text = failure.to_string();
    for part in parts {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn what_cannot_be_run_is_said_with_what_can() {
    let first = eras::catalogue()[0].name;
    for job in [native(1), simulated(1)] {
        check_fails(&Job { era: "vax".into(), ..job.clone() }, &["invalid era \"vax\"", first]);
        check_fails(&Job { workload: "rest".into(), ..job.clone() }, &["invalid workload \"rest\"", "static-web"]);
        check_fails(&Job { parameters: [("x".into(), 1)].into(), ..job.clone() }, &["\"x\"", "user_ns"]);
        check_fails(&Job { era_options: [("x".into(), 1)].into(), ..job.clone() }, &["\"x\"", "create_ns"]);
        check_fails(&Job { run_ns: 0, ..job }, &["nanosecond"]);
    }
    check_fails(&native(0), &["thread"]);
    check_fails(&simulated(0), &["1 to 8"]);
    check_fails(&simulated(9), &["piii8", "1 to 8"]);
}

#[test]
fn an_operation_that_fails_ends_the_run_with_its_place_named() {
    for job in [native(1), simulated(1)] {
        // Room for the root and a directory, and none for a file.
        let job = Job { era_options: [("capacity".into(), 2)].into(), ..job };
        check_fails(&job, &["create-unlink-common", &job.era, "worker 0", "NoSpace"]);
    }
}

/// How many steps a worker makes of each workload before an era is said to be able to do it.
const SHORT: u64 = MS / 20;

#[test]
fn every_workload_runs_on_every_era_simulated() {
    for era in eras::catalogue() {
        for workload in eras::workload::catalogue() {
            let small = [("files", 10), ("directories", 5), ("branching", 2), ("user_ns", 500), ("think_ns", 500)];
            let has = |name: &str| workload.parameters.iter().any(|parameter| parameter.name == name);
            let parameters = small.into_iter().filter(|(name, _)| has(name)).map(|(name, value)| (name.into(), value));
            let job = Job {
                era: era.name.into(),
                workload: workload.name.into(),
                parameters: parameters.collect(),
                warm_ns: 0,
                run_ns: SHORT,
                ..simulated(3)
            };
            match run(&job) {
                Ok(_) | Err(Failure::Unsupported { .. }) => {}
                Err(failure) => panic!("{failure}"),
            }
        }
    }
}
