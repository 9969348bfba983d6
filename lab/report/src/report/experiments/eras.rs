//! Eras on a machine of today.

use super::{Experiment, Origin, Setting, claim, row, tuned};
use crate::report::{Figure, Sketch};

const ERAS: [&str; 8] =
    ["big-lock", "dcache-lock", "fastwalk", "dcache-rcu", "linux-2.6.32", "vfs-scale", "lockref-2013", "lightfoot"];

/// `FxMark`'s names, and what they are.
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
    let setting = Setting::new("epyc192", "MRPL", 400).warm_up(400);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (workload, _) in WORKLOADS {
        for era in ERAS {
            for cpus in CPUS {
                let key = format!("{workload} {era} {cpus}");
                cells.push(setting.clone().with_workload(workload).cell(key.clone(), era, cpus));
                rows.push(row(label(workload, era, cpus), None, Origin::Predicted, move |outcomes| {
                    outcomes.rate(&key) / 1e6
                }));
            }
        }
    }
    let figure = |(workload, what, name): (&'static str, &'static str, &'static str)| Figure {
        name,
        title: what,
        unit: "million operations/s",
        curves: ERAS
            .into_iter()
            .map(|era| {
                let points = CPUS.iter().map(|&cpus| (cpus as f64, label(workload, era, cpus)));
                Sketch::new(era, false, points)
            })
            .collect(),
    };
    Experiment {
        name: "eras",
        title: "Eras on a machine of today",
        sources: &[],
        about: "`FxMark`'s metadata loads on two sockets of 96 cores: `MRPL`, `MRPM`, `MRPH` look up private paths, any path of a \
                common tree, and one single path, five components deep. `MWCL` and `MWCM` create files in a private directory \
                and in a common one. None of these figures was published.",
        tuned: vec![tuned("nothing", "-", "-")],
        cells,
        rows,
        claims: vec![
            claim("with 192 CPUs lightfoot is the fastest in MRPL, MRPM and MRPH", |figures| {
                ["MRPL", "MRPM", "MRPH"].iter().all(|workload| {
                    let of = |era| figures.of(&label(workload, era, 192));
                    ERAS.iter().all(|era| of(era) <= of("lightfoot"))
                })
            }),
            claim(
                "the eras that walk under dcache_lock or the big lock are slower with 192 CPUs than with 1 in MRPM",
                |figures| {
                    ERAS[..3]
                        .iter()
                        .all(|era| figures.of(&label("MRPM", era, 192)) < figures.of(&label("MRPM", era, 1)))
                },
            ),
        ],
        figures: [
            ("MRPM", "stat of any path of a common tree, 2 x 96 cores (simulated)", "eras-mrpm"),
            ("MWCM", "create in a common directory, 2 x 96 cores (simulated)", "eras-mwcm"),
        ]
        .map(figure)
        .into(),
        has_box: false,
        remarks: "Lightfoot does not scale everywhere. `MWCM`: changes of one directory are serialized by its lock. `MWCL`: an \
                  operation takes longer with more CPUs, though few threads wait for a lock.",
    }
}
