//! Eras on a machine of today.

use super::super::input::Input;
use super::row;
use super::{Claim, Experiment, Setting, Sketch, at_most, claim};
use crate::report::{Drawing, Figure, Figures, Grid};

const ERAS: [&str; 8] =
    ["big-lock", "dcache-lock", "fastwalk", "dcache-rcu", "linux-2.6.32", "vfs-scale", "lockref-2013", OURS];
const OURS: &str = "lightfoot";

/// `FxMark`'s names, and their meaning.
const WORKLOADS: [(&str, &str); 5] = [
    ("MRPL", "stat of a private path"),
    ("MRPM", "stat of any path of a common tree"),
    ("MRPH", "stat of one path"),
    ("MWCM", "create in a common directory"),
    ("MWCL", "create in a private directory"),
];

const CPUS: [usize; 4] = [1, 8, 48, 192];

fn label(workload: &str, era: &str, cpus: usize) -> String {
    format!("{workload}, {era}, {cpus} CPUs: million operations/s")
}

pub(super) fn experiment() -> Experiment {
    let setting = Setting::new("epyc192", "MRPL", 400).warm_up(600).slack(20);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (workload, _) in WORKLOADS {
        for era in ERAS {
            for cpus in CPUS {
                let key = format!("{workload} {era} {cpus}");
                cells.push(setting.clone().with_workload(workload).cell(key.clone(), era, cpus));
                rows.push(row(label(workload, era, cpus), None, move |outcomes| outcomes.rate(&key) / 1e6));
            }
        }
    }
    let curve =
        |workload, era| Sketch::new(era, era, CPUS.iter().map(move |&cpus| (cpus as f64, label(workload, era, cpus))));
    let panel = |(workload, what): (&'static str, &str)| {
        (format!("{workload}: {what}"), ERAS.iter().map(|era| curve(workload, era)).collect())
    };
    Experiment {
        name: "eras",
        title: "Eras on a machine of today",
        about: "`FxMark`'s metadata loads on two sockets of 96 cores: `MRPL`, `MRPM`, `MRPH` look up private paths, any path of a \
                common tree, and one single path, five components deep. `MWCL` and `MWCM` create files in a private directory \
                and in a common one. None of these figures was published. Million operations a second; the plot has all \
                numbers of CPUs.",
        inputs: vec![
            Input::parameters("program and kernel for each operation", &["user_ns", "kernel_ns"]).from("assumed"),
            Input::run_ahead(),
            Input::transfer(),
        ],
        cells,
        rows,
        grids: CPUS.map(grid).into(),
        claims: claims(),
        figures: vec![Figure {
            name: "eras",
            title: "eras on 2 x 96 cores (simulated)",
            drawing: Drawing::Curves {
                unit: "million operations/s",
                panels: WORKLOADS.into_iter().map(panel).collect(),
            },
        }],
        remarks: "`MWCM`: a directory in which threads often wait for each other is split, which the short window of this section shows \
                  in part; the [section on writers](#changes-of-one-directory-by-many-cpus) has a longer one. `MWCL`: an operation takes \
                  longer with more CPUs, though few threads wait for a lock.",
        summary: Some(Box::new(behind)),
        ..Experiment::default()
    }
}

/// Returns all eras and workloads with so many CPUs.
fn grid(cpus: usize) -> Grid {
    let head = WORKLOADS.iter().map(|(workload, _)| (*workload).to_owned());
    let line = |era: &str| (era.to_owned(), WORKLOADS.iter().map(|(workload, _)| label(workload, era, cpus)).collect());
    Grid::new(format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }), head, ERAS.iter().map(|era| line(era)))
}

/// Where another era is faster than Lightfoot by more than a twentieth.
fn behind(figures: &Figures<'_>) -> Vec<String> {
    let of = |(workload, what): (&str, &str)| {
        let case = |cpus: usize| {
            let rate = |era: &str| figures.of(&label(workload, era, cpus));
            let others = ERAS.iter().filter(|era| **era != OURS && rate(era).is_finite());
            let best = others.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
            (rate(best) > 1.05 * rate(OURS))
                .then(|| format!("{:.2} against {:.2} of {best} with {cpus}", rate(OURS), rate(best)))
        };
        let cases: Vec<String> = CPUS.into_iter().filter_map(case).collect();
        let mend = if workload == "MWCL" { " (issue 16)" } else { "" };
        (!cases.is_empty())
            .then(|| format!("{workload}, {what} (million operations/s by CPUs): {}{mend}", cases.join("; ")))
    };
    WORKLOADS.into_iter().filter_map(of).collect()
}

fn claims() -> Vec<Claim> {
    vec![
        claim("with 192 CPUs lightfoot is the fastest in MRPL, MRPM and MRPH", |figures| {
            ["MRPL", "MRPM", "MRPH"].iter().all(|workload| {
                let of = |era| figures.of(&label(workload, era, 192));
                of(OURS).is_finite() && ERAS.iter().all(|era| at_most(of(era), of(OURS)))
            })
        }),
        claim("lightfoot keeps 0.9 of the rate of one CPU for each of 192 in MRPL", |figures| {
            figures.of(&label("MRPL", OURS, 192)) >= 0.9 * 192.0 * figures.of(&label("MRPL", OURS, 1))
        }),
        claim(
            "the eras that walk under dcache_lock or the big lock are slower with 192 CPUs than with 1 in MRPM",
            |figures| {
                ERAS[..3]
                    .iter()
                    .all(|era| at_most(figures.of(&label("MRPM", era, 192)), figures.of(&label("MRPM", era, 1))))
            },
        ),
        claim("no era is faster than lightfoot in MWCL with 48 and 192 CPUs", |figures| {
            [48, 192].iter().all(|&cpus| {
                let of = |era| figures.of(&label("MWCL", era, cpus));
                of(OURS).is_finite() && ERAS.iter().all(|era| at_most(of(era), of(OURS)))
            })
        })
        .unless(
            "lightfoot first in MWCL",
            "Creation in own directories: an operation touches more lines that other CPUs have (issue 16)",
        ),
    ]
}
