//! Containers that start on a machine of today: mounts, lookups and unmounts, with four ways to keep mounts still.

use super::super::input::Input;
use super::{Claim, Experiment, Figures, Setting, Sketch, at_most, claim, curves, row};
use crate::report::Grid;

/// An era, and how it keeps mounts still.
const ERAS: [(&str, &str); 4] = [
    ("linux-2.6.32", "one lock"),
    ("linux-3.12", "a lock for each CPU"),
    ("rwsem-2018", "a sequence"),
    (OURS, "sequences, and no lock in a walk"),
];
const OURS: &str = "lightfoot";

/// CPUs, and the microseconds that containers start for: with many CPUs all of them queue for the namespace, so a container
/// takes long.
const CPUS: [(usize, u64); 4] = [(1, 4_000), (16, 8_000), (48, 16_000), (192, 24_000)];

/// Workers that mount beside those that walk.
const MOUNTERS: [usize; 3] = [0, 1, 8];

const REMARKS: &str = "The lock of the namespace limits all of them, from a few CPUs on. What differs beyond that is what a mount \
    pays for walks that run beside it. The adapter to Lightfoot charges the 2 us under a lock before the call.\n\n\
    **Where the time goes** (Lightfoot, each step timed in the simulator): an unmount closes and sums up the mount's counts, one \
    for each CPU, which takes a grace period of those; it does so before it takes the lock of the mounts. Until November 2026 it \
    did so under that lock, took that lock twice, and waited after each unmount until the replaced tables of mounts were freed; \
    now it waits so only after the last mount of a file system. That made 9.0 thousand containers on one CPU, 17.0 on 16 and 6.4 \
    on 192. What remains with many CPUs is the lock itself: it is held for 4 us with 48 CPUs and for 8 with 192, mostly to copy \
    tables that lie in the caches of other CPUs, and its waiters sleep.";

fn starts(era: &str, cpus: usize) -> String {
    format!("container starts, {era}, {cpus} CPUs: thousand/s")
}

fn walks(era: &str, mounters: usize) -> String {
    format!("192 CPUs, {mounters} of them mount, {era}: million lookups/s")
}

fn changes(era: &str, mounters: usize) -> String {
    format!("192 CPUs, {mounters} of them mount, {era}: thousand mounts and unmounts/s")
}

pub(super) fn experiment() -> Experiment {
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (era, _) in ERAS {
        for (cpus, run_us) in CPUS {
            let key = format!("start {era} {cpus}");
            cells.push(Setting::new("epyc192", "container-start", run_us).cell(key.clone(), era, cpus));
            rows.push(row(starts(era, cpus), None, move |outcomes| outcomes.rate(&key) / 1e3));
        }
        for mounters in MOUNTERS {
            let key = format!("walk {era} {mounters}");
            let setting = Setting::new("epyc192", "mounts", 300).warm_up(300).slack(20);
            cells.push(setting.set("mounters", mounters as u64).cell(key.clone(), era, 192));
            let of_walks = key.clone();
            rows.push(row(walks(era, mounters), None, move |outcomes| outcomes.rate(&of_walks) / 1e6));
            if mounters > 0 {
                rows.push(row(changes(era, mounters), None, move |outcomes| {
                    outcomes.of(&key).rate_of_role("mounter") / 1e3
                }));
            }
        }
    }
    let curve = |(era, how): (&'static str, &str)| {
        Sketch::new(
            format!("{era}: {how}"),
            era,
            CPUS.into_iter().map(move |(cpus, _)| (cpus as f64, starts(era, cpus))),
        )
    };
    Experiment {
        name: "containers",
        title: "Containers that start on a machine of today",
        about: "Each worker is a container: it mounts four directories on themselves, looks up 32 names in them, computes for 20 \
                us, and unmounts. Then: workers that look up private paths on 192 CPUs while 0, 1 or 8 others mount and \
                unmount. Linux keeps mounts still by one lock (2.6.32), by a lock for each CPU, of which a mount takes all \
                (2009 to 3.12), or by a sequence (since 3.13, here with the locks of 2018). In each era a mount holds one \
                lock of the namespace for 2 us. Nothing here was published.",
        inputs: inputs(),
        cells,
        rows,
        grids: vec![start_grid(), walk_grid()],
        claims: claims(),
        figures: vec![curves(
            "containers",
            "containers that start, 2 x 96 cores (simulated)",
            "thousand containers/s",
            ERAS.into_iter().map(curve).collect(),
        )],
        remarks: REMARKS,
        summary: Some(Box::new(behind)),
        ..Experiment::default()
    }
}

fn inputs() -> Vec<Input> {
    vec![
        Input::parameters("workers that mount", &["mounters"]).from("swept"),
        Input::parameters(
            "mounts, lookups and own time of a container; times of walkers and of those that mount",
            &["mounts", "lookups", "user_ns", "pause_ns", "walk_ns"],
        )
        .from("assumed"),
        Input::transfer(),
    ]
}

fn start_grid() -> Grid {
    let head = CPUS.map(|(cpus, _)| format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }));
    let line =
        |(era, how): (&str, &str)| (format!("{era}: {how}"), CPUS.iter().map(|&(cpus, _)| starts(era, cpus)).collect());
    Grid::new("thousand containers/s", head, ERAS.into_iter().map(line))
}

fn walk_grid() -> Grid {
    let head = ["192 CPUs, million lookups/s (thousand mounts and unmounts/s)", "none mounts", "1", "8", "(1)", "(8)"];
    let line = |(era, _): (&str, &str)| {
        let walks = MOUNTERS.iter().map(|&mounters| walks(era, mounters));
        (era.to_owned(), walks.chain(MOUNTERS[1..].iter().map(|&mounters| changes(era, mounters))).collect())
    };
    Grid { head: head.map(str::to_owned).into(), lines: ERAS.into_iter().map(line).collect() }
}

/// Where another era starts more containers than Lightfoot.
fn behind(figures: &Figures<'_>) -> Vec<String> {
    let rate = |era: &str, cpus| figures.of(&starts(era, cpus));
    let of = |(cpus, _): (usize, u64)| {
        let others = ERAS[..ERAS.len() - 1].iter().filter(|(era, _)| rate(era, cpus).is_finite());
        let best = others.max_by(|a, b| rate(a.0, cpus).total_cmp(&rate(b.0, cpus)))?.0;
        let (best_rate, ours) = (rate(best, cpus), rate(OURS, cpus));
        (best_rate > 1.05 * ours).then(|| format!("{ours:.1} against {best_rate:.1} of {best} with {cpus}"))
    };
    let cases: Vec<String> = CPUS.into_iter().filter_map(of).collect();
    if cases.is_empty() {
        return Vec::new();
    }
    vec![format!("container starts (thousand/s by CPUs): {}", cases.join("; "))]
}

fn claims() -> Vec<Claim> {
    vec![
        claim("locks for each CPU start fewer containers with 48 and 192 CPUs than one lock does", |figures| {
            [48, 192].iter().all(|&cpus| {
                at_most(figures.of(&starts("linux-3.12", cpus)), figures.of(&starts("linux-2.6.32", cpus)))
            })
        }),
        claim(
            "with one lock, 192 CPUs look up less than a hundredth of what a lock for each CPU lets them",
            |figures| figures.of(&walks("linux-2.6.32", 0)) < 0.01 * figures.of(&walks("linux-3.12", 0)),
        ),
        claim(
            "8 that mount take at most a tenth of the lookups of 184 others, with a sequence and with ours",
            |figures| {
                ["rwsem-2018", OURS]
                    .iter()
                    .all(|era| figures.of(&walks(era, 8)) >= 0.9 * (184.0 / 192.0) * figures.of(&walks(era, 0)))
            },
        ),
        claim("no era starts more containers than lightfoot with 192 CPUs", |figures| {
            ERAS.iter().all(|(era, _)| at_most(figures.of(&starts(era, 192)), figures.of(&starts(OURS, 192))))
        })
        .unless(
            "lightfoot first in container starts",
            "A mount and an unmount of Lightfoot's copy tables under the lock of the mounts, and its waiters sleep",
        ),
    ]
}
