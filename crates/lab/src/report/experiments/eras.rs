//! Every era on a machine of today.

use super::{Experiment, Origin, Setting, claim, row, tuned};
use crate::report::{Figure, Sketch};

const ERAS: [&str; 8] =
    ["big-lock", "dcache-lock", "fastwalk", "dcache-rcu", "linux-2.6.32", "vfs-scale", "lockref-2013", "ours"];

/// `FxMark`'s names, and what they are.
const WORKLOADS: [(&str, &str); 5] = [
    ("MRPL", "stat of a path of one's own"),
    ("MRPM", "stat of any path of a common tree"),
    ("MRPH", "stat of one path"),
    ("MWCM", "create in a common directory"),
    ("MWCL", "create in a directory of one's own"),
];

const CPUS: [usize; 4] = [1, 8, 48, 192];

fn label(workload: &str, era: &str, cpus: usize) -> String {
    format!("{workload}, {era}, {cpus} CPUs: million operations/s")
}

pub(super) fn experiment() -> Experiment {
    let setting = Setting::new("epyc192", "MRPL", 400);
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
        title: "Every era on a machine of today",
        sources: &[],
        about: "`FxMark`'s metadata loads on two sockets of 96 cores: `MRPL`, `MRPM`, `MRPH` look up paths of one's own, any path of a \
                common tree, and one single path, five deep; `MWCL` and `MWCM` create files in a directory of one's own and in a common \
                one. Nothing of this was published; it is what the generations come to on one machine.",
        tuned: vec![tuned("nothing", "-", "-")],
        cells,
        rows,
        claims: vec![
            claim("ours is first with 192 CPUs in MRPL, MRPM and MRPH", |figures| {
                ["MRPL", "MRPM", "MRPH"].iter().all(|workload| {
                    let of = |era| figures.of(&label(workload, era, 192));
                    ERAS.iter().all(|era| of(era) <= of("ours"))
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
        remarks: "Where ours stops scaling is in the table too. `MWCM`: a directory's changes still follow one another \
                  under its lock. `MWCL`: an operation takes longer the more CPUs there are, though hardly any of them waits \
                  for a lock.",
    }
}
