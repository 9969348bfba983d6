//! Opening and closing separate files under a common directory, 2009.

use super::{Experiment, Origin, Published, Setting, change, claim, row, tuned};
use crate::report::{Figure, Sketch};

const ERAS: [&str; 5] = ["linux-2.6.32", "vfs-scale", "store-free-2009", "lockref-2013", "lightfoot"];
const CPUS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

pub(super) fn experiment(published: &Published) -> Experiment {
    let setting = Setting::new("power5", "open-close", 1_500);
    let key = |era: &str, cpus: usize| format!("{era} {cpus}");
    let label = |era: &str, cpus: usize| format!("{era}: total at {cpus} CPUs, 1 = the same era at 1");
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for era in ERAS {
        for cpus in CPUS {
            cells.push(setting.cell(key(era, cpus), era, cpus));
            if cpus > 1 {
                rows.push(row(label(era, cpus), None, Origin::Predicted, move |outcomes| {
                    outcomes.rate(&key(era, cpus)) / outcomes.rate(&key(era, 1))
                }));
            }
        }
    }
    let gain = published.single("open_close_2009", &["single_thread_gain_percent"]);
    rows.push(row(
        "one thread, store-free-2009 to linux-2.6.32, change %",
        Some(gain),
        Origin::Predicted,
        move |outcomes| change(outcomes.rate(&key("linux-2.6.32", 1)), outcomes.rate(&key("store-free-2009", 1))),
    ));
    rows.push(row(
        "CPUs to which linux-2.6.32 gains at least half of the ideal",
        Some(published.single("open_close_2009", &["vanilla_stops_scaling_at_cores"])),
        Origin::Predicted,
        move |outcomes| scales_to(|cpus| outcomes.rate(&key("linux-2.6.32", cpus))),
    ));
    rows.push(row(
        "CPUs to which store-free-2009 gains at least half of the ideal",
        Some(published.single("open_close_2009", &["vfs_scale_scales_to_cores"])),
        Origin::Predicted,
        move |outcomes| scales_to(|cpus| outcomes.rate(&key("store-free-2009", cpus))),
    ));
    let curve = |era: &str| {
        let points = CPUS[1..].iter().map(|&cpus| (cpus as f64, label(era, cpus)));
        Sketch::new(era, false, points)
    };
    Experiment {
        name: "open-close",
        title: "Opening and closing separate files in a common directory, 2009",
        sources: &["open_close_2009"],
        about: "Each process opens and closes its own file in a loop. All files are in one directory.",
        tuned: vec![tuned("nothing", "-", "the publication has no rates; it reports where scaling stops")],
        cells,
        rows,
        claims: vec![
            claim("linux-2.6.32 stops scaling by 4 CPUs", |figures| {
                figures.of("CPUs to which linux-2.6.32 gains at least half of the ideal") <= 4.0
            }),
            claim("the store-free walk scales to 64 CPUs", |figures| {
                figures.of("CPUs to which store-free-2009 gains at least half of the ideal") >= 64.0
            }),
            claim("lightfoot keeps 0.9 of the rate of one CPU for each of 64", move |figures| {
                figures.of(&label("lightfoot", 64)) >= 0.9 * 64.0
            }),
        ],
        figures: vec![Figure {
            name: "open-close",
            title: "open and close in a common directory, 64-core POWER5+ (simulated)",
            unit: "times one CPU",
            curves: ERAS.into_iter().map(curve).collect(),
        }],
        has_box: true,
        remarks: "The published machine ran 128 hardware threads, two for each core. The simulator does not model \
                  simultaneous multithreading, so the table ends at 64.",
    }
}

/// The largest number of CPUs up to which each doubling of the CPUs gains at least half of the ideal.
fn scales_to(rate: impl Fn(usize) -> f64) -> f64 {
    let doublings = CPUS.windows(2).take_while(|pair| rate(pair[1]) >= 1.5 * rate(pair[0]));
    doublings.last().map_or(1, |pair| pair[1]) as f64
}
