//! The pool with children that are shell scripts: what it makes of answers, deaths and silence.

use lightfoot_lab_report::{Failure, Job, Outcome, Pool, Substrate, run_cell};
use std::ffi::OsString;
use std::ops::ControlFlow;

fn job(seed: u64) -> Job {
    Job {
        era: "none".into(),
        era_options: [].into(),
        workload: "nothing".into(),
        parameters: [].into(),
        on: Substrate::simulated(sim::Machine::preset("piii8").expect("a preset"), 8),
        seed,
        warm_ns: 0,
        run_ns: 1,
        lockstat: false,
    }
}

/// Runs jobs with these seeds in children that do `script`, and returns in which order they were done.
fn run(script: &str, processes: usize, seeds: &[u64]) -> (Vec<Result<Outcome, Failure>>, Vec<usize>) {
    let pool = Pool::of(["sh", "-c", script].map(OsString::from), processes);
    let jobs: Vec<Job> = seeds.iter().map(|&seed| job(seed)).collect();
    let mut done = Vec::new();
    let results = pool.run(&jobs, |number, _| {
        done.push(number);
        ControlFlow::Continue(())
    });
    (results, done)
}

/// Answers with a failure that has the job's seed in it.
const ECHO: &str = r#"seed=$(sed 's/.*"seed":\([0-9]*\).*/\1/'); echo "{\"Err\":{\"bad_job\":\"$seed\"}}""#;

#[test]
fn results_are_in_the_order_of_the_jobs_and_each_is_announced_once() {
    let seeds = [5, 3, 9, 1, 7];
    for processes in [1, 3, 8] {
        let (results, mut done) = run(ECHO, processes, &seeds);
        let expected: Vec<_> = seeds.iter().map(|seed| Err(Failure::BadJob(seed.to_string()))).collect();
        assert_eq!(results, expected, "{processes} processes");
        done.sort_unstable();
        assert_eq!(done, [0, 1, 2, 3, 4], "{processes} processes");
    }
}

#[test]
fn jobs_on_this_machine_come_last_when_nothing_else_runs() {
    let pool = Pool::of(["sh", "-c", ECHO].map(OsString::from), 1);
    let jobs = [job(0), Job { on: Substrate::Native { threads: 1 }, ..job(1) }, job(2)];
    let mut done = Vec::new();
    pool.run(&jobs, |number, _| {
        done.push(number);
        ControlFlow::Continue(())
    });
    assert_eq!(done, [0, 2, 1]);
}

#[test]
fn a_child_that_dies_is_reported_with_its_status_and_what_it_wrote() {
    let check = |script: &str, expected: [&str; 2]| {
        let (results, _) = run(script, 2, &[1]);
        let [Err(Failure::Died { era, workload, status, message })] = &results[..] else { panic!("{results:?}") };
        assert_eq!((era.as_str(), workload.as_str()), ("none", "nothing"));
        assert!(status.contains(expected[0]) && message.contains(expected[1]), "{script}: {status}, {message}");
    };
    check("cat >&2; echo boom >&2; exit 3", ["exit status: 3", "boom"]);
    check("kill -9 $$", ["signal: 9", "no error"]);
    check("exec <&-; exit 0", ["exit status: 0", "no error"]);
    check("echo gibberish", ["exit status: 0", "no error"]);
}

#[test]
fn one_death_leaves_the_others_alone() {
    let script = r#"case $(cat) in *'"seed":2,'*) exit 1;; esac; echo '{"Err":{"bad_job":""}}'"#;
    let (results, _) = run(script, 2, &[1, 2, 3]);
    assert!(matches!(results[1], Err(Failure::Died { .. })), "{results:?}");
    for place in [0, 2] {
        assert_eq!(results[place], Err(Failure::BadJob(String::new())));
    }
}

#[test]
fn a_program_that_is_not_there_is_a_failure_of_each_job() {
    let pool = Pool::of([OsString::from("/nonexistent/program")], 2);
    let results = pool.run(&[job(1), job(2)], |_, _| ControlFlow::Continue(()));
    assert!(results.iter().all(|result| matches!(result, Err(Failure::Died { .. }))), "{results:?}");
}

#[test]
fn broken_off_no_further_job_is_begun() {
    let pool = Pool::of(["sh", "-c", ECHO].map(OsString::from), 1);
    let jobs: Vec<Job> = (0..50).map(job).collect();
    let results = pool.run(&jobs, |_, _| ControlFlow::Break(()));
    let begun = results.iter().filter(|result| !matches!(result, Err(Failure::NotBegun { .. }))).count();
    // The only thread may have taken another before it heard.
    assert!(begun < jobs.len(), "all {begun} were done");
    assert_eq!(results[0], Err(Failure::BadJob("0".into())));
}

#[test]
fn a_cell_reads_a_job_and_writes_what_came_of_it() {
    let mut answer = Vec::new();
    let question = serde_json::to_vec(&Job { on: Substrate::Native { threads: 1 }, ..job(1) }).expect("JSON");
    run_cell(question.as_slice(), &mut answer).expect("an answer");
    let answer: Result<Outcome, Failure> = serde_json::from_slice(&answer).expect("JSON");
    assert!(matches!(answer, Err(Failure::NoSuchWorkload { .. })), "{answer:?}");
    assert!(run_cell(b"{}".as_slice(), &mut Vec::new()).is_err());
}
