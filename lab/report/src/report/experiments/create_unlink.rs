//! Creating and unlinking, in one common directory and in separate ones, 2009.

use super::{Experiment, Origin, Published, Setting, claim, row, tuned};
use crate::report::{Figure, Key, Sketch};

const PROCESSES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const ERAS: [&str; 2] = ["store-free-2009", "lightfoot"];
const PLACES: [(&str, &str, &str); 2] =
    [("separate", "create-unlink-separate", "separate_cwd"), ("common", "create-unlink-common", "same_cwd")];

fn label(era: &str, place: &str, processes: usize) -> String {
    format!("{era}, {place}: operations/s/process at {processes}")
}

pub(super) fn experiment(published: &Published) -> Experiment {
    let base =
        Setting::new("altix64", "create-unlink-common", 20_000).interrupts(4_000_000, 5_000).set("kernel_ns", 5_100);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for era in ERAS {
        for (place, workload, column) in PLACES {
            for processes in PROCESSES {
                let key = format!("{era} {place} {processes}");
                cells.push(base.clone().with_workload(workload).cell(&key, era, processes));
                let at = [("processes", Key::Number(processes as i64))];
                let figure = (era == ERAS[0]).then(|| published.figure("create_unlink_2009", &at, column));
                let origin = if processes == 1 && figure.is_some() { Origin::Tuned } else { Origin::Predicted };
                rows.push(row(label(era, place, processes), figure, origin, move |outcomes| {
                    outcomes.rate(&key) / processes as f64
                }));
            }
        }
    }
    let curve = |era: &str, place: &str, is_published: bool| {
        let name = if is_published { format!("published, {place}") } else { format!("{era}, {place}") };
        let points = PROCESSES.iter().map(|&processes| (processes as f64, label(era, place, processes)));
        Sketch::new(name, is_published, points)
    };
    Experiment {
        name: "create-unlink",
        title: "Creating and unlinking files, 2009",
        sources: &["create_unlink_2009"],
        about: "Each process creates, closes and unlinks a file in its working directory: a separate one, or one common to all.",
        tuned: vec![tuned(
            "instructions of one create, close and unlink",
            "parameters of the workload",
            "the cells of one process",
        )],
        cells,
        rows,
        claims: vec![
            claim(
                "in a common directory the rate of a process falls by a factor of more than 500 from 1 to 64",
                |figures| figures.of(&label(ERAS[0], "common", 1)) / figures.of(&label(ERAS[0], "common", 64)) > 500.0,
            ),
            claim("in separate directories a process keeps 0.7 of its rate at 64", |figures| {
                figures.of(&label(ERAS[0], "separate", 64)) / figures.of(&label(ERAS[0], "separate", 1)) > 0.7
            }),
            claim("lightfoot is faster than the 2009 era in a common directory at 64", |figures| {
                figures.of(&label("lightfoot", "common", 64)) > figures.of(&label(ERAS[0], "common", 64))
            }),
            claim("with lightfoot in separate directories a process keeps 0.7 of its rate at 64", |figures| {
                figures.of(&label("lightfoot", "separate", 64)) / figures.of(&label("lightfoot", "separate", 1)) > 0.7
            }),
        ],
        figures: vec![Figure {
            name: "create-unlink",
            title: "create and unlink, 64-way ia64 (simulated)",
            unit: "operations/s/process",
            curves: vec![
                curve(ERAS[0], "separate", true),
                curve(ERAS[0], "common", true),
                curve(ERAS[0], "separate", false),
                curve(ERAS[0], "common", false),
                curve("lightfoot", "separate", false),
                curve("lightfoot", "common", false),
            ],
        }],
        has_box: true,
        remarks: "The publication reports the collapse and not its mechanism. In the simulation it is the directory's mutex \
                  with spinning waiters; a profile of another machine, in the same thread, shows the lock of the directory's \
                  entry.",
    }
}
