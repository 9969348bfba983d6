//! Creating and unlinking, in one common directory and in separate ones, 2009.

use super::super::input::{Input, Number};
use super::{Claim, Experiment, Published, Setting, Sketch, claim, curves, is_near, row};
use crate::report::{Key, Reason};

const PROCESSES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
const ERAS: [&str; 2] = ["store-free-2009", "lightfoot"];
const PLACES: [(&str, &str, &str); 2] =
    [("separate", "create-unlink-separate", "separate_cwd"), ("common", "create-unlink-common", "same_cwd")];

fn label(era: &str, place: &str, processes: usize) -> String {
    format!("{era}, {place}: operations/s/process at {processes}")
}

pub(super) fn experiment(published: &Published) -> Experiment {
    // Where processes wait for one another, operations are rarer.
    let setting = |workload, run_us| {
        Setting::new("altix64", workload, run_us).interrupts(4_000_000, 5_000).set("kernel_ns", 5_100)
    };
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for era in ERAS {
        for (place, workload, column) in PLACES {
            for processes in PROCESSES {
                let key = format!("{era} {place} {processes}");
                let run_us = if place == "common" { 20_000 } else { 4_000 };
                cells.push(setting(workload, run_us).cell(&key, era, processes));
                let at = [("processes", Key::Number(processes as i64))];
                let figure = (era == ERAS[0]).then(|| published.figure("create_unlink_2009", &at, column));
                rows.push(row(label(era, place, processes), figure, move |outcomes| {
                    outcomes.rate(&key) / processes as f64
                }));
            }
        }
    }
    let points = |era: &'static str, place: &'static str| {
        PROCESSES.iter().map(move |&processes| (processes as f64, label(era, place, processes)))
    };
    let simulated = |era, place| Sketch::new(format!("{era}, {place}"), era, points(era, place));
    let known = |place| Sketch::published(format!("published, {place}"), ERAS[0], points(ERAS[0], place));
    Experiment {
        name: "create-unlink",
        title: "Creating and unlinking files, 2009",
        sources: &["create_unlink_2009"],
        about: "Each process creates, closes and unlinks a file in its working directory: a separate one, or one common to all.",
        inputs: inputs(),
        cells,
        rows,
        reasons: vec![Reason {
            rows: |row| row.contains("common"),
            why: "the collapse begins later: here it is the directory's mutex, there (by a profile of another machine) the \
                  lock of the directory's entry, and no allocator or RCU work disturbs",
        }],
        claims: claims(published),
        figures: vec![curves(
            "create-unlink",
            "create and unlink, 64-way ia64 (simulated)",
            "operations/s/process",
            [known("separate"), known("common")]
                .into_iter()
                .chain(ERAS.into_iter().flat_map(|era| PLACES.map(|(place, ..)| simulated(era, place))))
                .collect(),
        )],
        has_box: true,
        remarks: "The publication reports the collapse and not its mechanism. In the simulation it is the directory's mutex \
                  with spinning waiters; a profile of another machine, in the same thread, shows the lock of the directory's \
                  entry. That the machine was an Altix is our guess.",
        ..Experiment::default()
    }
}

fn inputs() -> Vec<Input> {
    vec![
        Input::parameters("the kernel's time for each pair outside all locks", &["kernel_ns"])
            .fitted("set on the two cells of one process", |row| row.starts_with(ERAS[0]) && row.ends_with(" at 1")),
        Input::new("interrupts of each CPU", [Number::Interrupts]).from("assumed: a timer tick of 250 Hz"),
        Input::occupancies()
            .seen("about ten settings of the prototype were tried with the whole table in view", |row| {
                row.starts_with(ERAS[0])
            }),
        Input::new("part of a pair under the directory's lock", [Number::Other("create 1.5 us, unlink 1.2 us")]).seen(
            "the part was changed once after the cell of 2 processes in a common directory did not come out",
            |row| row.starts_with(ERAS[0]) && row.contains("common"),
        ),
    ]
}

fn claims(published: &Published) -> Vec<Claim> {
    let figure = |column: &str, processes: i64| {
        published.figure("create_unlink_2009", &[("processes", Key::Number(processes))], column)
    };
    let factor = figure("same_cwd", 1) / figure("same_cwd", 64);
    let kept = figure("separate_cwd", 64) / figure("separate_cwd", 1);
    vec![
        claim(
            "in a common directory the rate of a process falls by a factor of 959 from 1 to 64, within 25 %",
            move |figures| {
                let of = |processes| figures.of(&label(ERAS[0], "common", processes));
                is_near(of(1) / of(64), factor, 0.25)
            },
        )
        .unless(
            "a process falls by 959 from 1 to 64",
            "The factor follows the occupancies, which are guesses: 600 to 1,050",
        ),
        claim("each rate in a common directory is within a factor of 2 of the published one", {
            let published = PROCESSES.map(|processes| figure("same_cwd", processes as i64));
            move |figures| {
                let ratio = |(processes, published): (&usize, &f64)| {
                    figures.of(&label(ERAS[0], "common", *processes)) / published
                };
                PROCESSES.iter().zip(&published).map(ratio).all(|ratio| (0.5..=2.0).contains(&ratio))
            }
        })
        .unless("each rate within factor 2", "With 2 to 8 processes the simulated rates are 2.2 to 3.3 times too high"),
        claim("in separate directories a process keeps 0.78 of its rate at 64, within 25 %", move |figures| {
            let of = |processes| figures.of(&label(ERAS[0], "separate", processes));
            is_near(of(64) / of(1), kept, 0.25)
        }),
        claim("lightfoot is five times as fast as the 2009 era in a common directory at 64, at least", |figures| {
            figures.of(&label("lightfoot", "common", 64)) > 5.0 * figures.of(&label(ERAS[0], "common", 64))
        }),
        claim("with lightfoot in separate directories a process keeps 0.9 of its rate at 64", |figures| {
            figures.of(&label("lightfoot", "separate", 64)) / figures.of(&label("lightfoot", "separate", 1)) > 0.9
        }),
    ]
}
