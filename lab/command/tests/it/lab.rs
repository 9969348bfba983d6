//! `lightfoot-lab` as its user meets it: output, exit status, and what it leaves behind.

use crate::command::{check_is_refused, check_makes_no_sense, empty_dir, stderr};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// The path of `name` in `dir`.
fn at(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().expect("a path that is UTF-8").into()
}

fn lab(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lightfoot-lab"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the command runs")
}

/// The name of the catalogue's first era, and of one more.
fn two_eras() -> String {
    let names: Vec<&str> = eras::catalogue().iter().map(|era| era.name).collect();
    format!("{},{}", names[0], names[names.len() - 1])
}

/// A short simulated run.
fn simulate(arguments: &[&str]) -> Output {
    let eras = two_eras();
    let fixed = ["run", "--era", &eras, "--workload", "create-unlink-common", "--on", "sim:dl980:2", "--cpus", "2,4"];
    lab(&[&fixed, &["--time-ms", "0.2"][..], arguments].concat())
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).expect("the output is UTF-8")
}

/// The outcomes in a report, without the time of this machine that they took.
fn outcomes(output: &Output) -> Vec<Value> {
    let report: Value = serde_json::from_str(&stdout(output)).expect("one JSON document");
    let outcome = |result: &Value| {
        let mut outcome = result["Ok"].clone();
        assert!(outcome["host_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{result}");
        outcome["host_seconds"] = Value::Null;
        outcome
    };
    report["results"].as_array().expect("results").iter().map(outcome).collect()
}

#[test]
fn the_list_has_every_era_workload_parameter_and_machine() {
    let text = stdout(&lab(&["list"]));
    let eras = eras::catalogue().iter().map(|era| era.name.to_owned());
    let workloads = eras::workload::catalogue().iter();
    let parameters = workloads.clone().flat_map(|entry| entry.parameters);
    let parameters = parameters.map(|parameter| format!("{}={}", parameter.name, parameter.default));
    let machines = sim::machine::presets().into_iter().map(|machine| machine.name);
    for part in eras.chain(workloads.map(|entry| entry.name.to_owned())).chain(parameters).chain(machines) {
        assert!(text.contains(&part), "{part} is not in\n{text}");
    }
}

#[test]
fn json_has_each_job_with_its_outcome() {
    let output = simulate(&["--json", "--set", "user_ns=300", "--lockstat"]);
    assert_eq!(stderr(&output), "", "no progress bar where there is no terminal");
    let outcomes = outcomes(&output);
    let cpus: Vec<_> = outcomes.iter().map(|outcome| outcome["job"]["on"]["simulated"]["cpus"].as_u64()).collect();
    assert_eq!(cpus, [2, 4, 2, 4].map(Some));
    for (outcome, cpus) in outcomes.iter().zip(cpus) {
        let job = &outcome["job"];
        assert_eq!((job["workload"].as_str(), job["seed"].as_u64()), (Some("create-unlink-common"), Some(1)));
        assert_eq!((job["parameters"]["user_ns"].as_u64(), job["run_ns"].as_u64()), (Some(300), Some(200_000)));
        assert!(outcome["ops_per_second"].as_f64().is_some_and(|rate| rate > 0.0), "{outcome}");
        assert_eq!(outcome["per_worker"].as_array().map(Vec::len), cpus.map(|cpus| cpus as usize));
        assert!(outcome["shares"].as_array().is_some_and(|shares| shares.len() > 3), "{outcome}");
    }
    assert!(outcomes[0]["locks"].as_array().is_some_and(|locks| !locks.is_empty()), "{}", outcomes[0]);
}

#[test]
fn the_same_seed_gives_the_same_simulated_figures_and_another_seed_others() {
    let of_seed = |seed: &str, processes: &str| outcomes(&simulate(&["--json", "--seed", seed, "--jobs", processes]));
    let first = of_seed("1", "1");
    assert_eq!(first, of_seed("1", "2"), "nor does it matter how many run at a time");
    assert_ne!(first, of_seed("2", "1"));
}

#[test]
fn the_table_has_a_row_for_each_run_and_with_lockstat_lockmeters_columns() {
    let text = stdout(&simulate(&["--lockstat", "--spread", "--interrupts-us", "100,5"]));
    for part in
        ["workload", "create-unlink-common", "virtual time", "ops/s", "1.00×", "spin", "UTIL", "NOWAIT", "TOTAL"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let first = eras::catalogue()[0].name;
    assert!(text.lines().filter(|line| line.contains(first)).count() >= 4, "two runs, with locks:\n{text}");
    assert!(!stdout(&simulate(&[])).contains("NOWAIT"));
}

#[test]
fn with_stalls_each_run_shows_what_it_waits_for() {
    let text = stdout(&simulate(&["--stalls"]));
    assert_eq!(text.matches("stalls of ").count(), 4, "two eras, 2 and 4 CPUs:\n{text}");
    assert!(text.contains("source line") && text.contains(".rs:"), "{text}");
    let refused = lab(&["run", "--workload", "open-close", "--threads", "1", "--stalls"]);
    assert!(!refused.status.success() && stderr(&refused).contains("--stalls"), "{}", stderr(&refused));
    assert!(!stdout(&simulate(&[])).contains("stalls of "));
}

#[test]
fn this_machine_runs_too() {
    let arguments = ["run", "--workload", "open-close", "--threads", "1", "--time-ms", "2", "--json"];
    let outcomes = outcomes(&lab(&arguments));
    assert_eq!(outcomes.len(), eras::catalogue().len());
    let has_run = |outcome: &Value| outcome["ops_per_second"].as_f64().is_some_and(|rate| rate > 0.0);
    assert!(outcomes.iter().all(has_run), "{outcomes:?}");
}

#[test]
fn a_machine_of_ones_own_comes_from_a_file() {
    let dir = empty_dir();
    let preset = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/machines/piii8.toml");
    let text = fs::read_to_string(preset).expect("the preset").replace("\"piii8\"", "\"mine\"");
    fs::write(at(&dir, "mine.toml"), text).expect("a file");
    let place = format!("sim:{}", at(&dir, "mine.toml"));
    let fixed = ["run", "--workload", "MRPL", "--time-ms", "0.1", "--cpus", "1"];
    let text = stdout(&lab(&[&fixed[..], &["--era", &two_eras(), "--on", &place]].concat()));
    assert!(text.contains("on         sim:mine: "), "{text}");
}

/// Runs it and expects status 2 and one sentence with all of `parts`.
fn check_refused(arguments: &[&str], parts: &[&str]) {
    let output = lab(&[&["run"], arguments].concat());
    check_is_refused(&output, arguments, parts);
}

#[test]
fn bad_input_gets_one_sentence_that_names_it_and_status_2() {
    let dir = empty_dir();
    fs::write(at(&dir, "bad.toml"), "name = \"bad\"\nnodes = 0\n").expect("a file");
    let on = |name: &str| format!("sim:{}", at(&dir, name));
    let first = eras::catalogue()[0].name;
    let with = |arguments: &[&'static str]| [&["--workload", "open-close"], arguments].concat();
    check_refused(&with(&["--era", "vax"]), &["\"vax\"", first, "all"]);
    check_refused(&["--workload", "rest"], &["\"rest\"", "static-web", "MWRM"]);
    check_refused(&with(&["--set", "thnk=1"]), &["open-close", "\"thnk\"", "user_ns"]);
    check_refused(&with(&["--set", "depth=0"]), &["depth cannot be 0", "between 1 and 32"]);
    check_refused(&with(&["--era-set", "x=1"]), &["--era-set", "\"x\"", "create_ns"]);
    check_refused(&with(&["--on", "moon"]), &["\"moon\"", "--on native", "sim:NAME"]);
    check_refused(&with(&["--on", "sim:vax"]), &["\"vax\"", "dl980", "sim:/path"]);
    check_refused(&with(&["--on", "sim:dl980:9"]), &["\"9\"", "dl980", "1 to 8"]);
    check_refused(&with(&["--on", "sim:dl980:x"]), &["\"x\"", "1 to 8"]);
    check_refused(&with(&["--on", "sim:dl980", "--cpus", "81"]), &["81 CPUs", "dl980", "80"]);
    check_refused(&with(&["--threads", "4096"]), &["4096 threads", "--threads"]);
    check_refused(&with(&["--cpus", "2"]), &["--cpus", "--on sim:NAME"]);
    check_refused(&with(&["--on", "sim:dl980", "--interrupts-us", "5"]), &["--interrupts-us", "300,100"]);
    check_refused(&["--workload", "open-close", "--on", &on("gone.toml")], &["gone.toml", "no such file"]);
    check_refused(&["--workload", "open-close", "--on", &on("bad.toml")], &["bad.toml", "machine", "lab/sim/machines"]);
}

#[test]
fn a_command_line_that_makes_no_sense_has_status_2() {
    for arguments in
        [&["run"][..], &[], &["run", "--workload", "x", "--set", "y"], &["run", "--workload", "x", "--time-ms", "0"]]
    {
        let output = lab(arguments);
        check_makes_no_sense(&output, arguments);
    }
}

#[test]
fn a_run_that_fails_is_said_in_a_sentence_and_the_others_are_shown() {
    // Room for the root and a directory, and none for a file; `lightfoot` has no such limit.
    let output = simulate(&["--era-set", "capacity=2"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("create-unlink-common on") && text.contains("NoSpace"), "{text}");
    let table = String::from_utf8(output.stdout).expect("the table is UTF-8");
    assert!(table.contains("not run: ") && table.contains("ops/s"), "{table}");
}
