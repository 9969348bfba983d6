//! Changes of one directory by many CPUs.

use super::super::input::{Input, Number};
use super::{Claim, Experiment, Figures, Setting, claim, row};
use crate::report::Grid;

const ERA: &str = "lightfoot";

/// The machine, the workload, its work, and the numbers of CPUs.
const LOADS: [(&str, &str, &str, [usize; 3]); 6] = [
    ("epyc192", "MWCM", "create in a common directory", [1, 48, 192]),
    ("epyc192", "MWUM", "unlink in a common directory", [1, 48, 192]),
    ("epyc192", "MWRM", "move from a private directory to a common one", [1, 48, 192]),
    ("epyc192", "MWCL", "create in a private directory", [1, 48, 192]),
    ("epyc192", "create-unlink-common", "create and unlink in a common directory", [1, 16, 64]),
    ("altix64", "create-unlink-common", "create and unlink in a common directory", [1, 16, 64]),
];

const REMARKS: &str = "The targets are those of issue 16: 0.7 of the rate of one CPU for each of 64 that create and unlink in a \
    common directory, 0.85 and 0.7 with 48 and 192 CPUs that create or unlink there, 0.6 with 192 that move files there, 0.85 and 0.65 \
    with 48 and 192 that create in private directories. Before a contended directory was split, 64 CPUs of the Altix did 0.015 \
    of the work of one, each.";

fn label(machine: &str, workload: &str, cpus: usize) -> String {
    format!("{workload} on {machine}, {cpus} CPU{}: thousand operations/s and CPU", if cpus == 1 { "" } else { "s" })
}

pub(super) fn experiment() -> Experiment {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (machine, workload, _, numbers) in LOADS {
        for cpus in numbers {
            let key = format!("{machine} {workload} {cpus}");
            // So long that the tables double several times, and that the files of a thread which end in between do not count much.
            let run_us = if workload == "MWCL" { 12_000 } else { 4_000 };
            let setting = Setting::new(machine, workload, run_us).warm_up(800).slack(20);
            cells.push(setting.cell(key.clone(), ERA, cpus));
            rows.push(row(label(machine, workload, cpus), None, move |outcomes| {
                outcomes.rate(&key) / cpus as f64 / 1e3
            }));
        }
    }
    Experiment {
        name: "writers",
        title: "Changes of one directory by many CPUs",
        about: "`FxMark`'s loads that change directories on two sockets of 96 cores, and creating and unlinking in one directory also \
                on the Altix of 2009. Lightfoot alone; nothing here was published. A directory that many threads change is split, so \
                that threads with different names share no line.",
        inputs: vec![
            Input::parameters("program and kernel for each operation", &["user_ns", "kernel_ns"]).from("assumed"),
            Input::new(
                "occupancy of a node, and of a line's home (altix64)",
                [Number::Machine("queue.local_occupancy_ns"), Number::Machine("queue.home_occupancy_ns")],
            )
            .from("as for creating and unlinking files, 2009"),
            Input::run_ahead(),
            Input::transfer(),
        ],
        cells,
        rows,
        grids: LOADS.map(grid).into(),
        claims: claims(),
        remarks: REMARKS,
        ..Experiment::default()
    }
}

/// Returns a table of one load with each number of CPUs.
fn grid((machine, workload, what, numbers): (&str, &str, &str, [usize; 3])) -> Grid {
    let head = numbers.map(|cpus| format!("{cpus} CPUs"));
    Grid::new(
        format!("{machine}; thousand operations/s and CPU"),
        head,
        vec![(format!("{workload}: {what}"), numbers.map(|cpus| label(machine, workload, cpus)).into())],
    )
}

/// Returns whether, for each pair of `least`, each of so many CPUs has at least this part of the
/// rate of one CPU.
fn keeps(figures: &Figures<'_>, machine: &str, workload: &str, least: &[(usize, f64)]) -> bool {
    let rate = |cpus| figures.of(&label(machine, workload, cpus));
    least.iter().all(|&(cpus, part)| rate(cpus) >= part * rate(1))
}

fn claims() -> Vec<Claim> {
    let both = |least: [(usize, f64); 1]| {
        move |figures: &Figures<'_>| ["MWCM", "MWUM"].iter().all(|workload| keeps(figures, "epyc192", workload, &least))
    };
    vec![
        claim("64 CPUs that create and unlink in one directory keep 0.7 of the rate of one, on both machines", |figures| {
            ["epyc192", "altix64"].iter().all(|machine| keeps(figures, machine, "create-unlink-common", &[(64, 0.7)]))
        })
        .unless(
            "the Altix in each run",
            "A directory is split by a thread that waited for it; with one seed the first 64 on the Altix sleep in a row for longer \
             than the warm-up, so a part of the window is before the split",
        ),
        claim("48 CPUs keep 0.85 of the rate of one in MWCM and MWUM", both([(48, 0.85)])),
        claim("192 CPUs keep 0.7 of the rate of one in MWCM and MWUM", both([(192, 0.7)])).unless(
            "MWCM, MWUM with 192 CPUs",
            "The hash of a name chooses its stripe and its bucket, so both lines mostly come from another CPU, and threads of one \
             stripe meet; the directory's own line comes too, since one operation in thirty counts the directory \
             (`lightfoot-lab run --stalls`)",
        ),
        claim("192 CPUs keep 0.6 of the rate of one in MWRM", |figures| {
            keeps(figures, "epyc192", "MWRM", &[(192, 0.6)])
        })
        .unless(
            "MWRM with 192",
            "As above; and a rename takes the sequences of both names, which are two of 1024 lines that all CPUs write",
        ),
        claim("48 and 192 CPUs keep 0.85 and 0.65 of the rate of one in MWCL", |figures| {
            keeps(figures, "epyc192", "MWCL", &[(48, 0.85), (192, 0.65)])
        }),
    ]
}
