//! Cached `git diff`, 2009: serial and with threads.

use super::super::input::{Input, Number};
use super::{Claim, Experiment, Published, Row, Setting, claim, is_near, parts, row};
use crate::report::{Key, Outcomes, Reason};

/// Machine, published table, its column of elapsed time, and threads.
const MACHINES: [(&str, &str, &str, usize); 3] = [
    ("opteron2", "git_diff_opteron_2009", "elapsed", 8),
    ("nehalem-ex", "git_diff_nehalem_2009", "real", 20),
    (NIAGARA, "git_diff_niagara_2009", "real", 20),
];
const NIAGARA: &str = "niagara2";

/// [`NIAGARA`] with the next revision of the patches.
const SECOND: &str = "git_diff_niagara_second_2009";

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

/// A figure of an era on a machine in a mode.
type Read = fn(&Outcomes<'_>, &str, &str, &str) -> f64;

/// Returns the rows of one cell: elapsed and system time, as parts of 2.6.32's serial run.
fn rows_of(
    published: &Published,
    of: (&'static str, &str, &str),
    (era, scheme): (&'static str, &str),
    mode: &'static str,
    run: &str,
) -> Vec<Row> {
    let (machine, table, column) = of;
    let figure = |scheme: &str, mode: &str, column: &str| {
        published.figure(table, &[("scheme", Key::Text(scheme)), ("mode", Key::Text(mode))], column)
    };
    let of_vanilla = |column: &str| figure(scheme, mode, column) / figure(SCHEMES[0].1, "serial", column);
    let read: [(&str, &str, Read); 2] = [("elapsed", column, elapsed), ("system", "system", system)];
    let row_of = |(what, column, read): (&str, &str, Read)| {
        let label = label(machine, era, mode, &format!("{what}{run}"));
        if (era, mode) == (SCHEMES[0].0, "serial") {
            return Row::base(label);
        }
        row(label, Some(of_vanilla(column)), move |outcomes| {
            read(outcomes, machine, era, mode) / read(outcomes, machine, SCHEMES[0].0, "serial")
        })
    };
    read.map(row_of).into()
}

fn locking_label(era: &str) -> String {
    format!("opteron2, {era}, serial: kernel time in locks, %")
}

pub(super) fn experiment(published: &Published) -> Experiment {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (machine, table, column, threads) in MACHINES {
        let setting = Setting::new(machine, "git-diff-serial", 5_000).set("user_ns", 0);
        for (era, scheme) in SCHEMES {
            for (mode, workload) in MODES {
                let workers = if mode == "serial" { 1 } else { threads };
                cells.push(setting.clone().with_workload(workload).cell(key(machine, era, mode), era, workers));
                let of = (machine, table, column);
                rows.extend(rows_of(published, of, (era, scheme), mode, ""));
                if machine == NIAGARA && (era, mode) != (SCHEMES[0].0, "serial") {
                    let of = (machine, SECOND, column);
                    rows.extend(rows_of(published, of, (era, scheme), mode, " beside the second run"));
                }
            }
        }
    }
    for (era, scheme) in SCHEMES {
        let at = [("scheme", Key::Text(scheme)), ("mode", Key::Text("serial"))];
        let figure = published.figure("git_diff_profile_2009", &at, "locking_percent");
        rows.push(row(locking_label(era), Some(figure), move |outcomes| {
            outcomes.of(&key("opteron2", era, "serial")).locking_percent_of_system()
        }));
    }
    let figures = vec![parts("git-diff", "cached git diff, three machines (simulated)", &rows)];
    Experiment {
        name: "git-diff",
        title: "Cached git diff of a kernel tree, 2009",
        sources: &[
            "git_diff_opteron_2009",
            "git_diff_nehalem_2009",
            "git_diff_niagara_2009",
            SECOND,
            "git_diff_profile_2009",
        ],
        about: "One thread looks up each file of a kernel-like tree, or threads of one process share the files, as with \
                `core.preloadIndex`. Elapsed time is git's own time, which is serial in both, plus the lookups.",
        inputs: vec![
            Input::new("git's own part of the serial time", [Number::Other("43 %")])
                .from("read off the Opteron's serial row of 2.6.32, which is the base"),
            Input::parameters("git's own time in the simulated threads", &["user_ns"])
                .from("left out there, and added to the elapsed time"),
            Input::parameters("the kernel's time for each file besides the walk", &["kernel_ns"])
                .from("chosen with the workload; no figure of this table was in view"),
        ],
        cells,
        rows,
        reasons: reasons(),
        claims: claims(),
        figures,
        has_box: true,
        remarks: "For the store-free walk with threads, the published system time is 0.1 of serial. Lookups of the same files \
                  cannot take so little: the kernel accounts time by ticks and misses threads that sleep before the tick. The profile's shares of single functions, such as 36 % in \
                  `d_lookup`, are not compared: the simulator charges instructions by estimates, so such shares would be input.",
        ..Experiment::default()
    }
}

fn reasons() -> Vec<Reason> {
    vec![
        Reason {
            rows: |row| row.contains(SCHEMES[1].0) && row.contains("parallel: system"),
            why: "lookups of the same files cannot take a tenth of the time: the kernel accounts by ticks, and misses \
                  threads that sleep before the tick",
        },
        Reason {
            rows: |row| row.contains("linux-2.6.32, parallel"),
            why: "the simulated threads share the files evenly and start at once; the published ones are made by the \
                  program and wait for each other",
        },
    ]
}

/// A figure by era, mode and quantity.
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
            "the store-free walk takes less system time than 2.6.32, serial and with threads, on each machine",
            everywhere(|of| {
                of(SCHEMES[1].0, "serial", "system") < of("linux-2.6.32", "serial", "system")
                    && of(SCHEMES[1].0, "parallel", "system") < of("linux-2.6.32", "parallel", "system")
            }),
        )
        .unless("less system time on each machine", "On the Nehalem-EX it takes 2 % more: the walk as posted holds the mount lock, and the locks that it saves were free"),
        claim("serial system time of the store-free walk is 0.79, 0.84 and 0.76 of 2.6.32, within 25 %", |figures| {
            let published = [5.62 / 7.12, 0.84, 2.270 / 2.970];
            let of = |machine| figures.of(&label(machine, SCHEMES[1].0, "serial", "system"));
            MACHINES.iter().zip(published).all(|((machine, ..), published)| is_near(of(machine), published, 0.25))
        }),
        claim("on the Nehalem-EX, system time of 2.6.32 is 8.4 times as long with threads, within 50 %", |figures| {
            is_near(figures.of(&label("nehalem-ex", "linux-2.6.32", "parallel", "system")), 8.38, 0.5)
        }),
        claim(
            "elapsed time: 2.6.32 serial is longest, store-free parallel is shortest, on each machine",
            everywhere(|of| {
                let elapsed = |era, mode| of(era, mode, "elapsed");
                elapsed(SCHEMES[1].0, "parallel") < elapsed("linux-2.6.32", "parallel")
                    && elapsed(SCHEMES[1].0, "parallel") < elapsed(SCHEMES[1].0, "serial")
                    && elapsed(SCHEMES[1].0, "serial") < elapsed("linux-2.6.32", "serial")
            }),
        )
        .unless("the order of elapsed times on each machine", "As above: on the Nehalem-EX the serial store-free run is longest by 1 %"),
    ]
}
