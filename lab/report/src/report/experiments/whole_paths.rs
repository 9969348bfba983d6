//! A table of whole paths beside renames of directories, on a machine of today.

use super::super::input::{Input, Number};
use super::{Claim, Experiment, Figures, Setting, claim, row};
use crate::report::Grid;

const ERA: &str = "lightfoot";

/// With and without a table, and its KiB.
const SIDES: [(&str, u64); 2] = [("walk", 0), ("table", 1024)];

const CPUS: [usize; 2] = [64, 192];

/// The renamed directory and the pause: the parameters `moved` and `pause_ns`.
const RENAMES: [(&str, u64, u64); 5] = [
    (QUIET, 0, 100_000),
    ("another directory each 1 ms", 1, 1_000_000),
    ("another directory each 100 us", 1, 100_000),
    ("the directory of all paths each 1 ms", 2, 1_000_000),
    ("the directory of all paths each 100 us", 2, 100_000),
];
const QUIET: &str = "nothing";

const REMARKS: &str = "A change makes the stamps of all entries old. A lookup that finds an old stamp compares the list of the \
    path's directories, and in the end a CPU writes the new stamp into the entry: then every other CPU must fetch that line. \
    This experiment found that this did not scale: when each CPU wrote stamps at once, renames of another directory each \
    100 us left 127 million of 806 million lookups with 192 CPUs (in a window of 1 ms), fewer than the walk does. Now one use \
    in four times the number of other CPUs writes it, and each CPU keeps which lists are right until the next change. Where \
    the directory of all paths is renamed, every entry ends with each rename; walks beside it leave rcu-walk and wait for the lock of the root, with a table and without.";

fn label(side: &str, renamed: &str, cpus: usize) -> String {
    format!("{side}, {cpus} CPUs, {renamed} renamed: million lookups/s")
}

fn renames(side: &str, renamed: &str, cpus: usize) -> String {
    format!("{side}, {cpus} CPUs, {renamed} renamed: thousand renames/s")
}

pub(super) fn experiment() -> Experiment {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (side, table_kib) in SIDES {
        for (renamed, moved, pause_ns) in RENAMES {
            for cpus in CPUS {
                let key = format!("{side} {moved} {pause_ns} {cpus}");
                let setting = Setting::new("epyc192", "whole-paths", 3_000).warm_up(1_000).slack(20);
                let setting = setting.set("moved", moved).set("pause_ns", pause_ns);
                let setting = setting.option("table_kib", table_kib).option("stat_ns", 20);
                cells.push(setting.cell(key.clone(), ERA, cpus));
                let of_lookups = key.clone();
                rows.push(row(label(side, renamed, cpus), None, move |outcomes| outcomes.rate(&of_lookups) / 1e6));
                if moved > 0 {
                    rows.push(row(renames(side, renamed, cpus), None, move |outcomes| {
                        2.0 * outcomes.of(&key).rate_of_role("renamer") / 1e3
                    }));
                }
            }
        }
    }
    Experiment {
        name: "whole-paths",
        title: "A table of whole paths beside renames of directories",
        about: "All CPUs but one look up random paths of a common tree of 1024 files, six components deep. The last CPU renames \
                a directory away and back, waits, and begins again. The directory is one that no path passes (though a recorded \
                path did, so the rename counts), or one that all of them pass. Lightfoot walks, or has a table of whole paths \
                in front of the walk. Nothing here was published.",
        inputs: inputs(),
        cells,
        rows,
        grids: vec![lookup_grid(), rename_grid()],
        claims: claims(),
        remarks: REMARKS,
        ..Experiment::default()
    }
}

fn inputs() -> Vec<Input> {
    vec![
        Input::parameters("what is renamed, and the pause", &["moved", "pause_ns"]).from("swept"),
        Input::parameters("the program for each lookup", &["user_ns"]).from("assumed"),
        Input::new(
            "KiB of the table; what a lookup takes after the walk",
            [Number::Option("table_kib"), Number::Option("stat_ns")],
        )
        .from("assumed; a lookup of the table is charged as one component, a walk as six"),
        Input::run_ahead(),
        Input::transfer(),
    ]
}

fn columns(unit: &str) -> Vec<String> {
    let head = SIDES.iter().flat_map(|(side, _)| CPUS.map(|cpus| format!("{side}, {cpus} CPUs")));
    [format!("renamed; {unit}")].into_iter().chain(head).collect()
}

fn lookup_grid() -> Grid {
    let line = |(renamed, ..): (&str, u64, u64)| {
        let labels = SIDES.iter().flat_map(|(side, _)| CPUS.map(|cpus| label(side, renamed, cpus)));
        (renamed.to_owned(), labels.collect())
    };
    Grid { head: columns("million lookups/s"), lines: RENAMES.into_iter().map(line).collect() }
}

fn rename_grid() -> Grid {
    let line = |(renamed, ..): &(&str, u64, u64)| {
        let labels = SIDES.iter().flat_map(|(side, _)| CPUS.map(|cpus| renames(side, renamed, cpus)));
        ((*renamed).to_owned(), labels.collect())
    };
    Grid { head: columns("thousand renames/s"), lines: RENAMES[1..].iter().map(line).collect() }
}

/// Returns the least, over the numbers of CPUs, of the rate beside renames as a part of another
/// rate.
fn least(figures: &Figures<'_>, of: impl Fn(usize) -> [String; 2]) -> f64 {
    let part = |cpus| {
        let [beside, other] = of(cpus);
        figures.of(&beside) / figures.of(&other)
    };
    CPUS.into_iter().map(part).fold(f64::INFINITY, f64::min)
}

fn claims() -> Vec<Claim> {
    let beside = |side: &'static str, at: usize| {
        move |figures: &Figures<'_>| least(figures, |cpus| [label(side, RENAMES[at].0, cpus), label(side, QUIET, cpus)])
    };
    let of_walk = |at: usize| {
        move |figures: &Figures<'_>| {
            least(figures, |cpus| [label("table", RENAMES[at].0, cpus), label("walk", RENAMES[at].0, cpus)])
        }
    };
    vec![
        claim("in quiet the table makes lookups twice as many, at least", move |figures| of_walk(0)(figures) >= 2.0),
        claim("renames of another directory each 1 ms leave 0.9 of the lookups by the table", move |figures| {
            beside("table", 1)(figures) >= 0.9
        })
        .unless(
            "0.9 of the lookups beside renames of another directory",
            "Two renames follow each other each millisecond, and after each an entry is found by its list until it gets the \
             new stamp: at its fourth use by each CPU, on average",
        ),
        claim(
            "beside renames of another directory lookups by the table are 1.3 times as many as walks",
            move |figures| [1, 2].into_iter().all(|at| of_walk(at)(figures) >= 1.3),
        ),
        claim("with 192 CPUs there are 2.7 times the lookups by the table that there are with 64", |figures| {
            RENAMES[..3].iter().all(|(renamed, ..)| {
                figures.of(&label("table", renamed, 192)) >= 2.7 * figures.of(&label("table", renamed, 64))
            })
        }),
    ]
}
