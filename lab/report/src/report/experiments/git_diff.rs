//! Cached `git diff`, 2009: serial and with threads.

use super::{Claim, Experiment, Origin, Published, Setting, claim, row, tuned};
use crate::report::{Key, Outcomes};

/// Machine, published table, its column of elapsed time, and threads.
const MACHINES: [(&str, &str, &str, usize); 3] = [
    ("opteron2", "git_diff_opteron_2009", "elapsed", 8),
    ("nehalem-ex", "git_diff_nehalem_2009", "real", 20),
    ("niagara2", "git_diff_niagara_2009", "real", 20),
];

const SCHEMES: [(&str, &str); 2] = [("linux-2.6.32", "2.6.32-rc3"), ("store-free-2009", "rcu-walk")];
const MODES: [(&str, &str); 2] = [("serial", "git-diff-serial"), ("parallel", "git-diff-threads")];

/// Part of the serial run's time that git itself spent, on the Opteron with 2.6.32; its threads only look files up.
const OWN_TIME: f64 = 5.35 / 12.47;

fn key(machine: &str, era: &str, mode: &str) -> String {
    format!("{machine} {era} {mode}")
}

/// System time of one file, in seconds.
fn system(outcomes: &Outcomes<'_>, machine: &str, era: &str, mode: &str) -> f64 {
    let outcome = outcomes.of(&key(machine, era, mode));
    outcome.system_percent() / 100.0 * outcome.job.on.cpus() as f64 / outcome.ops_per_second
}

/// Elapsed time of one file: git's own time, which is serial, and the look-ups, which the threads share.
fn elapsed(outcomes: &Outcomes<'_>, machine: &str, era: &str, mode: &str) -> f64 {
    let serial = system(outcomes, machine, SCHEMES[0].0, "serial");
    let own = serial * OWN_TIME / (1.0 - OWN_TIME);
    own + 1.0 / outcomes.rate(&key(machine, era, mode))
}

fn label(machine: &str, era: &str, mode: &str, what: &str) -> String {
    format!("{machine}, {era}, {mode}: {what}, 1 = linux-2.6.32 serial")
}

pub(super) fn experiment(published: &Published) -> Experiment {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (machine, table, column, threads) in MACHINES {
        let setting = Setting::new(machine, "git-diff-serial", 10_000).set("user_ns", 0);
        for (era, scheme) in SCHEMES {
            for (mode, workload) in MODES {
                let workers = if mode == "serial" { 1 } else { threads };
                cells.push(setting.clone().with_workload(workload).cell(key(machine, era, mode), era, workers));
                let figure = |scheme: &str, mode: &str, column: &str| {
                    published.figure(table, &[("scheme", Key::Text(scheme)), ("mode", Key::Text(mode))], column)
                };
                let of_vanilla = |column: &str| figure(scheme, mode, column) / figure(SCHEMES[0].1, "serial", column);
                let base = |what: &str| if what == "real" { column } else { "system" }.to_owned();
                rows.push(row(
                    label(machine, era, mode, "elapsed"),
                    Some(of_vanilla(&base("real"))),
                    Origin::Predicted,
                    move |outcomes| {
                        elapsed(outcomes, machine, era, mode) / elapsed(outcomes, machine, SCHEMES[0].0, "serial")
                    },
                ));
                rows.push(row(
                    label(machine, era, mode, "system"),
                    Some(of_vanilla(&base("system"))),
                    Origin::Predicted,
                    move |outcomes| {
                        system(outcomes, machine, era, mode) / system(outcomes, machine, SCHEMES[0].0, "serial")
                    },
                ));
            }
        }
    }
    Experiment {
        name: "git-diff",
        title: "Cached git diff of a kernel tree, 2009",
        sources: &["git_diff_opteron_2009", "git_diff_nehalem_2009", "git_diff_niagara_2009"],
        about: "One thread looks up each file of a kernel-like tree, or threads of one process share the files, as with \
                `core.preloadIndex`. Elapsed time is git's own time, which is serial in both, plus the lookups.",
        tuned: vec![tuned("git's own part of the serial time", "43 %", "read off the Opteron's serial row of 2.6.32")],
        cells,
        rows,
        claims: claims(),
        figures: vec![],
        has_box: true,
        remarks: "For the store-free walk with threads, the published system time is 0.1 of serial. Lookups of the same files \
                  cannot take so little: the kernel accounts time by ticks and misses threads that sleep before the tick.",
    }
}

/// A figure by era, mode and what it is of.
type Of<'a> = dyn Fn(&str, &str, &str) -> f64 + 'a;

/// Orders that hold on each machine.
fn claims() -> Vec<Claim> {
    let everywhere = |holds: fn(&Of<'_>) -> bool| {
        move |figures: &super::Figures<'_>| {
            MACHINES.iter().all(|(machine, ..)| holds(&|era, mode, what| figures.of(&label(machine, era, mode, what))))
        }
    };
    vec![
        claim(
            "the store-free walk takes less system time, serial and parallel",
            everywhere(|of| {
                of("store-free-2009", "serial", "system") < of("linux-2.6.32", "serial", "system")
                    && of("store-free-2009", "parallel", "system") < of("linux-2.6.32", "parallel", "system")
            }),
        ),
        claim(
            "linux-2.6.32 takes more system time with threads than with one",
            everywhere(|of| of("linux-2.6.32", "parallel", "system") > of("linux-2.6.32", "serial", "system")),
        ),
        claim(
            "elapsed time: 2.6.32 serial is longest, store-free parallel is shortest",
            everywhere(|of| {
                let elapsed = |era, mode| of(era, mode, "elapsed");
                elapsed("store-free-2009", "parallel") < elapsed("linux-2.6.32", "parallel")
                    && elapsed("store-free-2009", "parallel") < elapsed("store-free-2009", "serial")
                    && elapsed("store-free-2009", "serial") < elapsed("linux-2.6.32", "serial")
            }),
        ),
    ]
}
