//! Files that are freed after a grace period, by three kinds of RCU.

use super::super::input::Input;
use super::{Claim, Experiment, Setting, Sketch, at_most, claim, curves, row};
use crate::outcome::Outcome;
use crate::report::Grid;

const ERAS: [(&str, &str); 3] = [
    ("rcu-classic", "one queue, one lock"),
    ("rcu-tree", "a queue for each CPU, a tree of locks"),
    ("rcu-ours", "Lightfoot's"),
];
const CPUS: [usize; 3] = [1, 16, 96];

/// The figure that is read from a cell, and its unit.
type Measure = (&'static str, fn(&Outcome) -> f64);

const MEASURES: [Measure; 3] = [
    ("million pairs/s", |outcome| outcome.ops_per_second / 1e6),
    ("grace periods/ms", |outcome| outcome.counter("grace_periods") / (1e3 * outcome.seconds)),
    ("files freed for each closed", |outcome| outcome.counter("freed_files") / outcome.operations()),
];

fn label(era: &str, cpus: usize, unit: &str) -> String {
    format!("{era}, {cpus} CPUs: {unit}")
}

pub(super) fn experiment() -> Experiment {
    let setting = Setting::new("epyc192", "open-close-separate", 4_000).warm_up(3_000).slack(20);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (era, _) in ERAS {
        for cpus in CPUS {
            let key = format!("{era} {cpus}");
            cells.push(setting.cell(key.clone(), era, cpus));
            for (unit, read) in MEASURES {
                let key = key.clone();
                rows.push(row(label(era, cpus, unit), None, move |outcomes| read(outcomes.of(&key))));
            }
        }
    }
    let curve = |(era, how): (&'static str, &str)| {
        let points = CPUS.into_iter().map(move |cpus| (cpus as f64, label(era, cpus, MEASURES[0].0)));
        Sketch::new(format!("{era}: {how}"), era, points)
    };
    Experiment {
        name: "rcu",
        title: "Files freed by three kinds of RCU",
        about: "Each CPU opens and closes its own file in its own directory. Since Linux 2.6.14 a closed file is freed after a \
                grace period, so each turn makes a callback. All else is Linux 3.12. Nothing here was published.",
        inputs: vec![
            Input::parameters(
                "program and kernel for each pair; components of a path",
                &["user_ns", "kernel_ns", "depth"],
            )
            .from("assumed"),
            Input::transfer(),
        ],
        cells,
        rows,
        grids: MEASURES.map(|(unit, _)| grid(unit)).into(),
        claims: claims(),
        figures: vec![curves(
            "rcu",
            "open and close of private files, 2 x 96 cores (simulated)",
            "million pairs/s",
            ERAS.into_iter().map(curve).collect(),
        )],
        remarks: "Lightfoot's RCU hands callbacks over in batches of 64 KiB to one thread, which here has no CPU for itself and waits \
                  for the end of a slice (2.8 ms): fewer grace periods serve more files.",
        ..Experiment::default()
    }
}

fn grid(unit: &str) -> Grid {
    let head = CPUS.map(|cpus| format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }));
    let line =
        |(era, how): (&str, &str)| (format!("{era}: {how}"), CPUS.iter().map(|&cpus| label(era, cpus, unit)).collect());
    Grid::new(unit, head, ERAS.into_iter().map(line))
}

fn claims() -> Vec<Claim> {
    let rate = |figures: &super::Figures<'_>, era: &str, cpus| figures.of(&label(era, cpus, MEASURES[0].0));
    vec![
        claim("with one queue and one lock, 96 CPUs have at most twice the rate of one", move |figures| {
            at_most(rate(figures, "rcu-classic", 96), 2.0 * rate(figures, "rcu-classic", 1))
        }),
        claim("with a tree of locks, 96 CPUs have 60 times the rate of one, at least", move |figures| {
            rate(figures, "rcu-tree", 96) >= 60.0 * rate(figures, "rcu-tree", 1)
        }),
        claim("with Lightfoot's RCU, 96 CPUs have 80 times the rate of one, at least", move |figures| {
            rate(figures, "rcu-ours", 96) >= 80.0 * rate(figures, "rcu-ours", 1)
        }),
        claim(
            "Lightfoot's RCU frees 0.5 to 1.5 files for each that is closed, on any number of CPUs",
            move |figures| {
                CPUS.iter().all(|&cpus| (0.5..=1.5).contains(&figures.of(&label("rcu-ours", cpus, MEASURES[2].0))))
            },
        )
        .unless(
            "lightfoot's RCU frees as many files as are closed",
            "With all CPUs busy the thread that frees waits for a CPU, and with 96 longer than this run",
        ),
    ]
}
