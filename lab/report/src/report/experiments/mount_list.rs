//! `statvfs(3)`: by the list of mounts or from the mount, 2009 and 2010.

use super::super::input::{Input, Number};
use super::{Experiment, Setting, Sketch, at_most, claim, curves, row};
use crate::report::Grid;

/// An era, and where `statvfs` reads the flags of the mount.
const ERAS: [(&str, &str); 4] = [
    ("linux-2.6.32", "list, dcache_lock"),
    ("vfs-scale", "list, rename_lock"),
    ("statvfs-mount", "the mount"),
    ("lightfoot", "the mount"),
];
const CPUS: [usize; 3] = [1, 8, 64];

fn label(era: &str, cpus: usize) -> String {
    format!("{era}, {cpus} CPUs: thousand calls/s")
}

pub(super) fn experiment() -> Experiment {
    // The list has the 30 mounts of the workload and no other lines.
    let setting = Setting::new("nehalem-ex", "statvfs", 2_000).option("mounts", 0);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (era, _) in ERAS {
        for cpus in CPUS {
            let key = format!("{era} {cpus}");
            cells.push(setting.cell(key.clone(), era, cpus));
            rows.push(row(label(era, cpus), None, move |outcomes| outcomes.rate(&key) / 1e3));
        }
    }
    let points = |era: &'static str| CPUS.into_iter().map(move |cpus| (cpus as f64, label(era, cpus)));
    let head = CPUS.map(|cpus| format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }));
    let line =
        |(era, how): (&str, &str)| (format!("{era}: {how}"), CPUS.iter().map(|&cpus| label(era, cpus)).collect());
    Experiment {
        name: "mount-list",
        title: "statvfs by the list of mounts, and from the mount",
        about: "Each client of dbench calls `statvfs(3)`, for which the C library of 2009 read the list of mounts; since 2.6.36 \
                `statfs(2)` returns the mount's flags. Here the call alone, on a private directory, with a list of 30 mounts \
                whose lines are paths of two components. Nothing here was published.",
        inputs: vec![
            Input::new("lines of the list; mounts", [Number::Option("mounts"), Number::Parameter("mounts")])
                .from("30 mounts with real paths, and no other lines"),
            Input::parameters("program and kernel for each call", &["user_ns", "kernel_ns"]).from("assumed"),
        ],
        cells,
        rows,
        grids: vec![Grid::new("thousand calls/s", head, ERAS.into_iter().map(line))],
        claims: vec![
            claim("by the list, 64 CPUs make fewer calls than one", |figures| {
                ["linux-2.6.32", "vfs-scale"]
                    .iter()
                    .all(|era| at_most(figures.of(&label(era, 64)), figures.of(&label(era, 1))))
            }),
            claim("from the mount, one CPU makes six times as many calls as by the list, at least", |figures| {
                figures.of(&label("statvfs-mount", 1)) >= 6.0 * figures.of(&label("vfs-scale", 1))
            }),
            claim("lightfoot has 58 times the calls of one CPU on 64, at least", |figures| {
                figures.of(&label("lightfoot", 64)) >= 58.0 * figures.of(&label("lightfoot", 1))
            }),
        ],
        figures: vec![curves(
            "mount-list",
            "statvfs with 30 mounts, Nehalem-EX (simulated)",
            "thousand calls/s",
            ERAS.into_iter().map(|(era, how)| Sketch::new(format!("{era}: {how}"), era, points(era))).collect(),
        )],
        remarks: "From the mount, 64 CPUs of `statvfs-mount` still count each component of the common part of their paths.",
        ..Experiment::default()
    }
}
