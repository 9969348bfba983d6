//! The report's experiments beside what is kept of their outcomes: nothing is unexplained, and no input is missing.

use lightfoot_lab_report::report::{Experiment, Number, Origin, Record, Run, experiments, owing, summary};
use lightfoot_lab_report::{Interrupts, Substrate};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn kept(experiment: &Experiment) -> (Record, Vec<Run>) {
    let record: Record = serde_json::from_str(&text(&format!("outcomes/{}.json", experiment.name))).expect("a record");
    let runs = record.runs_of(experiment).unwrap_or_else(|error| panic!("{error}"));
    (record, runs)
}

#[test]
fn every_figure_that_is_off_and_every_claim_that_fails_has_a_reason_and_no_other_has() {
    let owed: Vec<String> =
        experiments().iter().flat_map(|experiment| owing(experiment, &kept(experiment).1)).collect();
    assert!(owed.is_empty(), "{}", owed.join("\n"));
}

#[test]
fn the_summary_fits_one_page() {
    let experiments = experiments();
    let records: Vec<(Record, Vec<Run>)> = experiments.iter().map(kept).collect();
    let sections = experiments.iter().zip(&records);
    let sections: Vec<_> = sections.map(|(experiment, (record, runs))| (experiment, record, runs.clone())).collect();
    let text = summary(&sections);
    // What a line takes at 100 columns; a link's target is not shown.
    let width = |line: &str| match line.split_once("](") {
        Some((before, after)) => before.len() + after.split_once(')').map_or(0, |(_, rest)| rest.len()),
        None => line.len(),
    };
    let rows = |line: &str| if line.starts_with('|') { 1 } else { width(line).div_ceil(100).max(1) };
    let lines: usize = text.lines().map(rows).sum();
    assert!(lines <= 60, "{lines} lines:\n{text}");
}

#[test]
fn each_era_each_workload_of_a_publication_and_each_published_table_is_in_an_experiment() {
    let experiments = experiments();
    let jobs = || experiments.iter().flat_map(|experiment| &experiment.cells).map(|cell| &cell.job);
    let eras = eras::catalogue().iter().map(|era| era.name).filter(|name| jobs().all(|job| job.era != *name));
    let others = eras::workload::catalogue().iter().filter(|entry| !entry.source.starts_with("FxMark"));
    let loads = others.map(|entry| entry.name).filter(|name| jobs().all(|job| job.workload != *name));
    let tables: toml::Table = text("report/published.toml").parse().expect("published.toml is TOML");
    let sources: BTreeSet<&str> = experiments.iter().flat_map(|experiment| experiment.sources).copied().collect();
    let tables = tables.keys().map(String::as_str).filter(|table| !sources.contains(table));
    let missing: Vec<&str> = eras.chain(loads).chain(tables).collect();
    assert!(missing.is_empty(), "in no experiment: {}", missing.join(", "));
}

#[test]
fn outcomes_are_small_and_name_their_commit() {
    let texts: Vec<String> = experiments().iter().map(|e| text(&format!("outcomes/{}.json", e.name))).collect();
    assert!(texts.iter().map(String::len).sum::<usize>() < 300_000);
    for experiment in experiments() {
        let (record, _) = kept(&experiment);
        assert!(record.commit.len() >= 7 && !record.commit.starts_with("unknown"), "{}", experiment.name);
        assert_eq!(experiment.cells.len(), record.windows.iter().map(|window| window.cells).sum::<usize>());
    }
}

/// The numbers that the inputs of `experiment` set.
fn listed(experiment: &Experiment) -> BTreeSet<String> {
    experiment.inputs.iter().flat_map(|input| &input.numbers).map(|number| format!("{number:?}")).collect()
}

/// The numbers that its jobs have and that are not the defaults, or whose defaults were set on published figures.
fn chosen(experiment: &Experiment) -> BTreeSet<String> {
    let mut chosen = BTreeSet::new();
    let mut add = |number: Number| chosen.insert(format!("{number:?}"));
    for cell in &experiment.cells {
        let job = &cell.job;
        let entry = eras::workload::find(&job.workload).expect("a workload");
        for parameter in entry.parameters {
            let is_set = job.parameters.get(parameter.name).is_some_and(|&value| value != parameter.default);
            let of_figures = ["set on", "set by", "in that search", "published", "from the serial cell"];
            if is_set || of_figures.iter().any(|words| parameter.what.contains(words)) {
                add(Number::Parameter(parameter.name));
            }
        }
        let known = [
            "is_pinned",
            "is_remounted",
            "mounts",
            "table_kib",
            "component_ns",
            "search_ns",
            "permission_ns",
            "path_ns",
            "stat_ns",
        ];
        for name in job.era_options.keys() {
            let name = known.into_iter().find(|known| known == name);
            add(Number::Option(name.expect("an option that this test has in its list")));
        }
        let Substrate::Simulated(simulation) = &job.on else { panic!("a report is of simulated machines") };
        if simulation.interrupts != Some(Interrupts { every_ns: 1_000_000, mean_ns: 3_000 }) {
            add(Number::Interrupts);
        }
        for field in marked(&simulation.machine.name) {
            add(Number::Machine(field));
        }
    }
    chosen
}

/// The values of a machine's file whose comments name figures that they were set on.
fn marked(machine: &str) -> Vec<&'static str> {
    let text = text(&format!("sim/machines/{machine}.toml"));
    let queue = text.split("[queue]").nth(1).expect("a machine has a queue");
    let fields = [
        ("local_occupancy_ns", "queue.local_occupancy_ns"),
        ("home_occupancy_ns", "queue.home_occupancy_ns"),
        ("keep", "queue.keep"),
        ("rest", "queue.rest"),
    ];
    let is_marked = |name: &str| {
        let line = queue.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        ["tuned", "fitted", "the fit "].iter().any(|word| line.contains(word))
    };
    fields.into_iter().filter(|(name, _)| is_marked(name)).map(|(_, field)| field).collect()
}

#[test]
fn every_number_that_is_not_the_default_is_in_the_list_of_inputs() {
    for experiment in experiments() {
        let missing: Vec<String> = chosen(&experiment).difference(&listed(&experiment)).cloned().collect();
        assert!(missing.is_empty(), "{}: not in the list of inputs: {}", experiment.name, missing.join(", "));
    }
}

#[test]
fn every_input_has_a_value_and_its_views_have_rows() {
    for experiment in experiments() {
        for input in &experiment.inputs {
            assert!(!input.values(&experiment.cells).is_empty(), "{}: {}", experiment.name, input.what);
            for (_, rows) in &input.views {
                let has_row = experiment.rows.iter().any(|row| rows(&row.label));
                assert!(has_row, "{}: {} is in view of no row", experiment.name, input.what);
            }
        }
    }
}

#[test]
fn a_figure_is_predicted_only_if_no_input_had_it_in_view() {
    let experiments = experiments();
    let label = |name: &str, row: &str| {
        let experiment = experiments.iter().find(|experiment| experiment.name == name).expect("an experiment");
        let row = &experiment.rows[experiment.place(row).unwrap_or_else(|| panic!("no row {row}"))];
        Origin::of(experiment, row).word()
    };
    for (experiment, row, origin) in [
        ("web", "HOLD mean us, dcache-rcu", "tuned"),
        ("web", "UTIL %, fastwalk", "in view"),
        ("web", "acquisitions, change %, fastwalk", "input"),
        ("web", "throughput, change %, dcache-rcu", "predicted"),
        ("dbench", "throughput of linux-2.6.32, 1 = linux-2.6.32", "base"),
        ("dbench", "throughput of lightfoot, 1 = linux-2.6.32", "new"),
        ("aim7-short", "after, 10-100 users, 8 nodes, 1 = before on 1 node", "tuned"),
        ("aim7-short", "change by the lockless count, 10-100 users, 2 nodes, %", "in view"),
    ] {
        assert_eq!(label(experiment, row), origin, "{row}");
    }
    for row in experiments.iter().find(|e| e.name == "create-unlink").expect("an experiment").rows.iter() {
        let word = label("create-unlink", &row.label);
        assert!(row.published.is_none() || word == "tuned" || word == "in view", "{}: {word}", row.label);
    }
}
