//! Opening and closing separate files under a common directory, 2009.

use super::super::input::{Input, Number};
use super::{Cell, Claim, Experiment, Published, Row, Setting, Sketch, change, claim, curves, is_near, row};
use crate::report::{Grid, Outcomes, Reason};

const ERAS: [&str; 5] = ["linux-2.6.32", "vfs-scale", "store-free-2009", "lockref-2013", "lightfoot"];
const CPUS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

fn key(era: &str, cpus: usize) -> String {
    format!("{era} {cpus}")
}

fn label(era: &str, cpus: usize) -> String {
    format!("{era}: total at {cpus} CPUs, 1 = the same era at 1")
}

/// Eras in separate directories, beside the common one.
const SEPARATE: [&str; 3] = ["linux-2.6.32", "store-free-2009", "lightfoot"];
const FEW: [usize; 2] = [8, 64];

fn separate(era: &str, cpus: usize) -> String {
    format!("{era}: total in separate directories at {cpus} CPUs, 1 = the same era at 1")
}

const REMOUNT: &str =
    "slower by a remount that clears the flag of counts for each CPU, store-free-2009 at 64 CPUs, times";
const GAIN: &str = "one thread, store-free-2009 to linux-2.6.32, change %";
const VANILLA: &str = "CPUs up to which each doubling adds a tenth, linux-2.6.32";
const STORE_FREE: &str = "CPUs up to which each doubling adds a tenth, store-free-2009";

/// Returns the runs, and the figures that are read from them.
fn cells_and_rows(published: &Published) -> (Vec<Cell>, Vec<Row>) {
    let setting = Setting::new("power5", "open-close", 1_500);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for era in ERAS {
        for cpus in CPUS {
            cells.push(setting.cell(key(era, cpus), era, cpus));
            if cpus > 1 {
                rows.push(row(label(era, cpus), None, move |outcomes| {
                    outcomes.rate(&key(era, cpus)) / outcomes.rate(&key(era, 1))
                }));
            }
        }
    }
    for era in SEPARATE {
        let setting = setting.clone().with_workload("open-close-separate");
        let key = move |cpus: usize| format!("separate {era} {cpus}");
        cells.extend([1].into_iter().chain(FEW).map(|cpus| setting.cell(key(cpus), era, cpus)));
        for cpus in FEW {
            let read = move |outcomes: &Outcomes<'_>| outcomes.rate(&key(cpus)) / outcomes.rate(&key(1));
            rows.push(row(separate(era, cpus), None, read));
        }
    }
    cells.push(setting.clone().option("is_remounted", 1).cell("remounted", "store-free-2009", 64));
    let slowdown = published.single("open_close_remount_2009", &["slowdown"]);
    rows.push(row(REMOUNT, Some(slowdown), |outcomes| {
        outcomes.rate(&key("store-free-2009", 64)) / outcomes.rate("remounted")
    }));
    let single = |name: &str| Some(published.single("open_close_2009", &[name]));
    rows.push(row(GAIN, single("single_thread_gain_percent"), |outcomes| {
        change(outcomes.rate(&key("linux-2.6.32", 1)), outcomes.rate(&key("store-free-2009", 1)))
    }));
    rows.push(row(VANILLA, single("vanilla_stops_scaling_at_cores"), |outcomes| {
        grows_to(|cpus| outcomes.rate(&key("linux-2.6.32", cpus)))
    }));
    rows.push(row(STORE_FREE, single("vfs_scale_scales_to_cores"), |outcomes| {
        grows_to(|cpus| outcomes.rate(&key("store-free-2009", cpus)))
    }));
    (cells, rows)
}

pub(super) fn experiment(published: &Published) -> Experiment {
    let (cells, rows) = cells_and_rows(published);
    let curve =
        |era: &'static str| Sketch::new(era, era, CPUS[1..].iter().map(move |&cpus| (cpus as f64, label(era, cpus))));
    let head = CPUS[1..].iter().map(|cpus| format!("{cpus} CPUs"));
    let line = |era: &str| (era.to_owned(), CPUS[1..].iter().map(|&cpus| label(era, cpus)).collect());
    Experiment {
        name: "open-close",
        title: "Opening and closing separate files in a common directory, 2009",
        sources: &["open_close_2009", "open_close_remount_2009"],
        about: "Each process opens and closes its own file in a loop. All files are in one directory. The publication has no \
                rates; it reports where scaling stops. The second table has each era's total rate, 1 = the same era on one \
                CPU. Beside it: each process in its own directory; and the common one after a remount that cleared the flag by \
                which each CPU has its own count of the mount.",
        inputs: vec![
            Input::parameters(
                "program and kernel for each pair, outside of the directory cache",
                &["user_ns", "kernel_ns"],
            )
            .from("chosen with the workload; no figure of this table was in view"),
            Input::new(
                "whether a remount has cleared the flag of counts for each CPU",
                [Number::Option("is_remounted")],
            )
            .from("what that run differs in"),
            Input::parameters("components of a path", &["depth"]).from("assumed"),
        ],
        cells,
        rows,
        grids: vec![Grid::new("era", head, ERAS.iter().map(|era| line(era))), separate_grid()],
        reasons: reasons(),
        claims: claims(),
        figures: vec![curves(
            "open-close",
            "open and close in a common directory, 64-core POWER5+ (simulated); published: 2.6.32 stops at 2, the other scales to 64",
            "times one CPU",
            ERAS.into_iter().map(curve).collect(),
        )],
        has_box: true,
        remarks: "The published machine ran 128 hardware threads, two for each core. The simulator does not model \
                  simultaneous multithreading, so the table ends at 64.",
        ..Experiment::default()
    }
}

fn separate_grid() -> Grid {
    let head = FEW.map(|cpus| format!("{cpus} CPUs"));
    let line = |era: &str| (era.to_owned(), FEW.iter().map(|&cpus| separate(era, cpus)).collect());
    Grid::new("in separate directories", head, SEPARATE.iter().map(|era| line(era)))
}

fn reasons() -> Vec<Reason> {
    vec![
        Reason {
            rows: |row| row == GAIN,
            why: "on one CPU the simulator charges the locks that the walk no longer takes as hits; the chosen times of \
                      a pair besides the walk may be too long",
        },
        Reason {
            rows: |row| row == VANILLA,
            why: "the locks saturate later: the published machine's time for a pair outside of them is not known",
        },
    ]
}

fn claims() -> Vec<Claim> {
    vec![
        claim("the total of linux-2.6.32 stops growing at 2 CPUs, at the latest at 4", |figures| {
            let total = |cpus| figures.of(&label("linux-2.6.32", cpus));
            figures.of(VANILLA) <= 4.0 && CPUS[3..].iter().all(|&cpus| total(cpus) <= 1.1 * total(4))
        })
        .unless("2.6.32 stops growing at 2 to 4 CPUs", "It grows to 8 CPUs, and falls from there"),
        claim("linux-2.6.32 gains at most a tenth from 2 to 64 CPUs", |figures| {
            figures.of(&label("linux-2.6.32", 64)) <= 1.1 * figures.of(&label("linux-2.6.32", 2))
        })
        .unless("2.6.32 gains nothing from 2 to 64", "With occupancies halved it is a fifth faster"),
        claim("the store-free walk scales to 64 CPUs: 48 times one CPU at least", |figures| {
            figures.of(STORE_FREE) >= 64.0 && figures.of(&label("store-free-2009", 64)) >= 48.0
        })
        .unless(
            "store-free 48 times one CPU on 64",
            "With occupancies doubled it is 36 times: the walk as posted holds the mount lock",
        ),
        claim("with one thread the store-free walk gains 20 %, within a half", |figures| {
            is_near(figures.of(GAIN), 20.0, 0.5)
        })
        .unless("one thread gains 20 %", "Uncontended locks cost little on the simulated machine"),
        claim("lightfoot keeps 0.9 of the rate of one CPU for each of 64", |figures| {
            figures.of(&label("lightfoot", 64)) >= 0.9 * 64.0
        }),
    ]
}

/// Returns the largest number of CPUs up to which each doubling of the CPUs adds at least a tenth
/// to the rate.
fn grows_to(rate: impl Fn(usize) -> f64) -> f64 {
    let doublings = CPUS.windows(2).take_while(|pair| rate(pair[1]) >= 1.1 * rate(pair[0]));
    doublings.last().map_or(1, |pair| pair[1]) as f64
}
