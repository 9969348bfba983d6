//! `lightfoot-lab` as its user meets it: output, exit status, and what it leaves behind.

use serde_json::Value;
use std::fs;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

fn empty_dir() -> TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

/// The path of `name` in `dir`.
fn at(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().expect("a path that is UTF-8").into()
}

fn names(dir: &TempDir) -> Vec<String> {
    let names = fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
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

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("the errors are UTF-8")
}

/// The rows of a report, without the time of this machine that they took.
fn rows(output: &Output) -> Vec<Value> {
    let mut report: Value = serde_json::from_str(&stdout(output)).expect("one JSON document");
    let rows = report["rows"].as_array_mut().expect("rows");
    for row in rows.iter_mut() {
        assert!(row["host_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{row}");
        row["host_seconds"] = Value::Null;
    }
    rows.clone()
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
fn the_machines_are_shown_with_nodes_lines_and_latencies() {
    let text = stdout(&lab(&["machines"]));
    for machine in sim::machine::presets() {
        let line = text.lines().find(|line| line.contains(&format!(" {} ", machine.name))).unwrap_or_default();
        let nodes = format!("{} x {}", machine.nodes, machine.cpus_per_node);
        for part in [nodes, format!("{} B", machine.line_bytes), format!("{:.0}", machine.miss.memory_ns[0])] {
            assert!(line.contains(&part), "{part} is not in the line of {}: {line}", machine.name);
        }
    }
}

#[test]
fn a_json_row_has_what_is_needed_to_read_it() {
    let output = simulate(&["--json", "--set", "user_ns=300", "--lockstat"]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("one JSON document");
    assert_eq!(stderr(&output), "", "no progress bar where there is no terminal");
    assert_eq!(report["on"], "sim:dl980");
    assert_eq!(report["workload"]["name"], "create-unlink-common");
    assert_eq!(report["workload"]["parameters"]["user_ns"], 300);
    assert!(report["workload"]["parameters"]["kernel_ns"].is_u64(), "defaults are there too");
    assert_eq!((report["seed"].as_u64(), report["run_ms"].as_f64()), (Some(1), Some(0.2)));
    let rows = report["rows"].as_array().expect("rows");
    let places: Vec<_> = rows.iter().map(|row| (row["cpus"].as_u64(), row["threads"].as_u64())).collect();
    assert_eq!(places, [(Some(2), Some(2)), (Some(4), Some(4)), (Some(2), Some(2)), (Some(4), Some(4))]);
    for row in rows {
        for key in ["ops_per_second", "ops_per_second_per_cpu", "times_own_first", "times_first_era"] {
            assert!(row[key].as_f64().is_some_and(|value| value > 0.0), "{key} of {row}");
        }
        assert!(row["year"].as_u64().is_some_and(|year| year > 1990), "{row}");
        assert_eq!(row["per_worker"].as_array().map(Vec::len), row["cpus"].as_u64().map(|cpus| cpus as usize));
        assert!(row["shares"].as_array().is_some_and(|shares| shares.len() > 3), "{row}");
        assert!(row["failure"].is_null());
    }
    assert!(rows[0]["locks"].as_array().is_some_and(|locks| !locks.is_empty()), "{}", rows[0]);
    assert_eq!(rows[0]["times_own_first"], 1.0);
    assert_eq!(rows[1]["times_first_era"], 1.0);
}

#[test]
fn the_same_seed_gives_the_same_simulated_figures_and_another_seed_others() {
    let of_seed = |seed: &str, processes: &str| rows(&simulate(&["--json", "--seed", seed, "--jobs", processes]));
    let first = of_seed("1", "1");
    assert_eq!(first, of_seed("1", "2"), "nor does it matter how many run at a time");
    assert_ne!(first, of_seed("2", "1"));
}

#[test]
fn the_table_has_a_row_for_each_run_and_with_lockstat_lockmeters_columns() {
    let text = stdout(&simulate(&["--lockstat", "--spread", "--interrupts-us", "100,5"]));
    for part in ["workload", "create-unlink-common", "virtual time", "ops/s", "spin", "UTIL", "NOWAIT", "TOTAL"] {
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
    let rows = rows(&lab(&arguments));
    assert_eq!(rows.len(), eras::catalogue().len());
    let has_run = |row: &&Value| row["ops_per_second"].as_f64().is_some_and(|rate| rate > 0.0);
    assert!(rows.iter().filter(has_run).count() == rows.len(), "{rows:?}");
}

#[test]
fn a_machine_of_ones_own_comes_from_a_file() {
    let dir = empty_dir();
    let preset = concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/machines/piii8.toml");
    let text = fs::read_to_string(preset).expect("the preset").replace("\"piii8\"", "\"mine\"");
    fs::write(at(&dir, "mine.toml"), text).expect("a file");
    let place = format!("sim:{}", at(&dir, "mine.toml"));
    let output = lab(&[
        "run",
        "--era",
        &two_eras(),
        "--workload",
        "MRPL",
        "--on",
        &place,
        "--time-ms",
        "0.1",
        "--cpus",
        "1",
        "--json",
    ]);
    let report: Value = serde_json::from_str(&stdout(&output)).expect("one JSON document");
    assert_eq!(report["on"], "sim:mine");
}

#[test]
fn a_plot_has_two_panels_with_axes_and_a_legend_with_every_era() {
    let dir = empty_dir();
    let output = simulate(&["--plot", &at(&dir, "plot.svg")]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = fs::read_to_string(at(&dir, "plot.svg")).expect("a plot");
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
    let eras = two_eras();
    let of_eras: Vec<&str> = eras.split(',').collect();
    for part in
        ["per CPU", "all CPUs", "operations per second", of_eras[0], of_eras[1], "create-unlink-common on sim:dl980"]
    {
        assert!(svg.contains(part), "{part} is not in the plot");
    }
    assert_eq!(names(&dir), ["plot.svg"]);
}

/// Runs it and expects status 2 and one sentence with all of `parts`.
fn check_refused(arguments: &[&str], parts: &[&str]) {
    let output = lab(&[&["run"], arguments].concat());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {text}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    assert!(text.starts_with("lightfoot-lab: ") && text.lines().count() == 1, "{arguments:?}: {text}");
    for part in parts {
        assert!(text.contains(part), "{arguments:?}: {part} is not in {text}");
    }
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
    check_refused(&["--workload", "open-close", "--plot", &at(&dir, "gone/plot.svg")], &["gone/plot.svg"]);
    assert_eq!(names(&dir), ["bad.toml"], "nothing half done is left");
}

#[test]
fn a_command_line_that_makes_no_sense_has_status_2() {
    for arguments in
        [&["run"][..], &[], &["run", "--workload", "x", "--set", "y"], &["run", "--workload", "x", "--time-ms", "0"]]
    {
        let output = lab(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_ne!(stderr(&output), "", "{arguments:?}");
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
