//! The other tests of January 2013: maps of processes beside renames, and a search of a tree; each of the four patches.

use super::super::input::Input;
use super::{Claim, Experiment, Setting, at_most, change, claim, row};
use crate::report::{Drawing, Figure, Grid};

/// The patches of January 2013 up to each number, the merged version, and ours.
const ERAS: [(&str, &str); 6] = [
    ("rcu-walk", "before"),
    ("patch-2013-1", "patches 1 and 2"),
    ("patch-2013-3", "to 3"),
    ("patch-2013-4", "to 4"),
    ("linux-3.12", "as merged"),
    (OURS, "ours"),
];
const OURS: &str = "lightfoot";
const RENAMERS: [usize; 3] = [0, 1, 8];
const CPUS: usize = 40;

fn one(era: &str) -> String {
    format!("maps, one reader, {era}: thousand lines/s")
}

fn maps(era: &str, renamers: usize) -> String {
    format!("maps, {CPUS} CPUs, {renamers} rename, {era}: million lines/s")
}

fn find(era: &str, cpus: usize) -> String {
    format!("find, {cpus} CPU{}, {era}: change %", if cpus == 1 { "" } else { "s" })
}

pub(super) fn experiment() -> Experiment {
    let maps_setting = Setting::new("dl980", "proc-maps", 2_000).slack(20);
    let find_setting = Setting::new("dl980", "find-size", 800).slack(20);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (era, _) in ERAS {
        let key = format!("maps {era} one");
        cells.push(maps_setting.clone().set("renamers", 0).cell(key.clone(), era, 1));
        rows.push(row(one(era), None, move |outcomes| outcomes.rate(&key) / 1e3));
        for renamers in RENAMERS {
            let key = format!("maps {era} {renamers}");
            cells.push(maps_setting.clone().set("renamers", renamers as u64).cell(key.clone(), era, CPUS));
            rows.push(row(maps(era, renamers), None, move |outcomes| outcomes.rate(&key) / 1e6));
        }
        for cpus in [1, CPUS] {
            let key = move |era: &str| format!("find {era} {cpus}");
            cells.push(find_setting.cell(key(era), era, cpus));
            if era != ERAS[0].0 {
                rows.push(row(find(era, cpus), None, move |outcomes| {
                    change(outcomes.rate(&key(ERAS[0].0)), outcomes.rate(&key(era)))
                }));
            }
        }
    }
    let dots = ERAS.map(|(era, step)| (format!("{era}: {step}"), maps(era, 1)));
    Experiment {
        name: "other-tests",
        title: "Maps of processes and a search, 2013",
        sources: &["slob_cpu_2013"],
        about: "The patches of January 2013 were also tried with `cat /proc/*/maps` and `find -size 0b`, and were reported to \
                change them by a few percent. Here each of the four patches: the reverse paths of twelve mapped files by one \
                reader, and by 40 CPUs of which 0, 1 or 8 rename files; and a search that lists 200 directories and looks at \
                each file.",
        inputs: inputs(),
        cells,
        rows,
        grids: vec![maps_grid(), find_grid()],
        claims: claims(),
        figures: vec![Figure {
            name: "other-tests",
            title: "reverse paths of common files on 40 CPUs, one of which renames, DL980 (simulated)",
            drawing: Drawing::Dots { unit: Some("million lines of maps/s"), rows: dots.into() },
        }],
        remarks: "The readers of a real `cat` are few, so the published few percent are those of one reader. What was merged takes \
                  no lock in a reverse path unless something moved: more than the four patches gave.",
        ..Experiment::default()
    }
}

fn inputs() -> Vec<Input> {
    vec![
        Input::parameters("workers that rename", &["renamers"]).from("swept"),
        Input::parameters(
            "program and kernel for each line or file; mapped files; time between two renames",
            &["user_ns", "kernel_ns", "maps", "pause_ns"],
        )
        .from("assumed"),
        Input::occupancies().from("fitted to lock loops of 2013 and to AIM7 short"),
    ]
}

fn maps_grid() -> Grid {
    let head = ["maps", "one reader, thousand lines/s", "40 CPUs, million lines/s", "1 renames", "8 rename"];
    let line = |(era, step): (&str, &str)| {
        let labels = [one(era)].into_iter().chain(RENAMERS.map(|renamers| maps(era, renamers)));
        (format!("{era}: {step}"), labels.collect())
    };
    Grid { head: head.map(str::to_owned).into(), lines: ERAS.into_iter().map(line).collect() }
}

fn find_grid() -> Grid {
    let head = ["find, change from before, %", "1 CPU", "40 CPUs"];
    let line = |&(era, step): &(&str, &str)| (format!("{era}: {step}"), [1, CPUS].map(|cpus| find(era, cpus)).into());
    Grid { head: head.map(str::to_owned).into(), lines: ERAS[1..].iter().map(line).collect() }
}

fn claims() -> Vec<Claim> {
    vec![
        claim(
            "find changes by at most 6 % with each step up to what was merged, as published (a few percent)",
            |figures| {
                ERAS[1..5]
                    .iter()
                    .all(|(era, _)| [1, CPUS].iter().all(|&cpus| figures.of(&find(era, cpus)).abs() <= 6.0))
            },
        ),
        claim("one reader of maps loses or gains at most 10 % with each of the four patches", |figures| {
            let before = figures.of(&one(ERAS[0].0));
            ERAS[1..4].iter().all(|(era, _)| change(before, figures.of(&one(era))).abs() <= 10.0)
        }),
        claim(
            "with 40 CPUs each of the last three steps reads more lines of maps than the one before, without renames",
            |figures| {
                ERAS[1..5]
                    .windows(2)
                    .all(|pair| at_most(figures.of(&maps(pair[0].0, 0)), figures.of(&maps(pair[1].0, 0))))
            },
        ),
        claim("beside 8 that rename, what was merged keeps 0.4 of its rate, and ours 0.7", |figures| {
            let kept = |era: &str| figures.of(&maps(era, 8)) / figures.of(&maps(era, 0));
            kept(ERAS[4].0) >= 0.4 && kept(OURS) >= 0.7
        }),
    ]
}
