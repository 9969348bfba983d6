//! Lookups in a common working directory: own names, one name, and beside renames.

use super::super::input::Input;
use super::{Claim, Experiment, Setting, at_most, claim, row};
use crate::report::{Drawing, Figure, Grid};

/// The eras that look up separate names.
const OWN: [&str; 6] = ["linux-2.6.32", "vfs-scale", "store-free-2009", "rcu-walk", "linux-3.12", OURS];

/// An era, and the lock between its walks and the count of the one name.
const ONE: [(&str, &str); 7] = [
    ("rcu-walk", "ticket lock"),
    ("rcu-walk-mcs", "MCS lock"),
    ("rcu-walk-queued", "queued spinlock"),
    ("lockref-2013", "exchange, two tries, then the lock"),
    ("lockref-2013-word", "the same in the lock's word"),
    ("linux-3.12", "exchange while the lock is free"),
    (OURS, "no count"),
];
const CPUS: [usize; 3] = [1, 20, 80];

/// The eras that are disturbed, and the sequence that their walks sample.
const DISTURBED: [(&str, &str); 4] = [
    ("store-free-2009", "each entry's sequence, starts again with locks"),
    ("outer-sequence", "rename_lock once, starts again with locks"),
    ("rcu-walk", "each entry's sequence, goes on with counts"),
    (OURS, "each entry's sequence, no count"),
];
const RENAMERS: [usize; 3] = [0, 1, 8];
const OURS: &str = "lightfoot";

fn own(era: &str) -> String {
    format!("own names, {era}: total at 80 CPUs, 1 = the same era at 1")
}

fn one(era: &str, cpus: usize) -> String {
    format!("one name, {era}, {cpus} CPUs: million lookups/s")
}

fn beside(era: &str, renamers: usize) -> String {
    format!("own names beside {renamers} that rename elsewhere, {era}: million lookups/s")
}

pub(super) fn experiment() -> Experiment {
    let setting = Setting::new("dl980", "stat-cwd", 300).slack(20);
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for era in OWN {
        let key = move |cpus: usize| format!("own {era} {cpus}");
        cells.extend([1, 80].map(|cpus| setting.cell(key(cpus), era, cpus)));
        rows.push(row(own(era), None, move |outcomes| outcomes.rate(&key(80)) / outcomes.rate(&key(1))));
    }
    for (era, _) in ONE {
        for cpus in CPUS {
            let key = format!("one {era} {cpus}");
            cells.push(setting.clone().set("is_own", 0).cell(key.clone(), era, cpus));
            rows.push(row(one(era, cpus), None, move |outcomes| outcomes.rate(&key) / 1e6));
        }
    }
    for (era, _) in DISTURBED {
        for renamers in RENAMERS {
            let key = format!("beside {era} {renamers}");
            cells.push(setting.clone().set("renamers", renamers as u64).cell(key.clone(), era, 80));
            rows.push(row(beside(era, renamers), None, move |outcomes| outcomes.rate(&key) / 1e6));
        }
    }
    let dots = ONE.map(|(era, how)| (format!("{era}: {how}"), one(era, 80)));
    Experiment {
        name: "common-cwd",
        title: "Lookups in a common working directory",
        about: "80 CPUs of the DL980 look up names in one working directory: each its own, or all the same one. Then its own, \
                while 0, 1 or 8 of them rename files in another directory. The store-free walk of 2009 was said to scale \
                linearly with separate names; there are no published figures. The outer sequence is the alternative of \
                October 2009 that was not built: one sample of `rename_lock` around the walk.",
        inputs: vec![
            Input::parameters("whether names are own; workers that rename", &["is_own", "renamers"]).from("swept"),
            Input::parameters(
                "program and kernel for each lookup; time between two renames",
                &["user_ns", "kernel_ns", "pause_ns"],
            )
            .from("assumed"),
            Input::occupancies().from("fitted to lock loops of 2013 and to AIM7 short"),
        ],
        cells,
        rows,
        grids: vec![one_grid(), beside_grid()],
        claims: claims(),
        figures: vec![Figure {
            name: "common-cwd",
            title: "lookups of one name by 80 CPUs, DL980 (simulated)",
            drawing: Drawing::Dots { unit: Some("million lookups/s"), rows: dots.into() },
        }],
        remarks: "A count in the word of its lock is worse than one beside it where many thousands change it: once one thread falls \
                  back to the lock, the others find it taken and fall back too. A fair queue does not help a lock that is \
                  saturated. A sequence for each superblock would be the outer sequence where the renames are in the same \
                  superblock, and undisturbed (the column without renames) where they are in another.",
        ..Experiment::default()
    }
}

fn one_grid() -> Grid {
    let head = CPUS.map(|cpus| format!("{cpus} CPU{}", if cpus == 1 { "" } else { "s" }));
    let line = |(era, how): (&str, &str)| (format!("{era}: {how}"), CPUS.iter().map(|&cpus| one(era, cpus)).collect());
    Grid::new("one name, million lookups/s", head, ONE.into_iter().map(line))
}

fn beside_grid() -> Grid {
    let head = ["own names, 80 CPUs, million lookups/s", "none renames", "1 renames", "8 rename"];
    let line = |(era, how): (&str, &str)| (format!("{era}: {how}"), RENAMERS.iter().map(|&n| beside(era, n)).collect());
    Grid { head: head.map(str::to_owned).into(), lines: DISTURBED.into_iter().map(line).collect() }
}

fn claims() -> Vec<Claim> {
    vec![
        claim("with separate names, every store-free walk has 40 times its rate on one CPU, at least", |figures| {
            OWN[2..].iter().all(|era| figures.of(&own(era)) >= 40.0)
        }),
        claim("the walks that count each step have at most twice their rate on one CPU", |figures| {
            OWN[..2].iter().all(|era| at_most(figures.of(&own(era)), 2.0))
        }),
        claim("with one name, no kind of lock has more than 1.5 times its rate on one CPU", |figures| {
            ONE[..3].iter().all(|(era, _)| figures.of(&one(era, 80)) <= 1.5 * figures.of(&one(era, 1)))
        }),
        claim("with one name, lightfoot has 72 times its rate on one CPU, at least", |figures| {
            figures.of(&one(OURS, 80)) >= 72.0 * figures.of(&one(OURS, 1))
        }),
        claim(
            "beside 8 that rename, the outer sequence keeps less than half of its rate; a sequence in each entry keeps 0.85",
            |figures| {
                let kept = |era: &str| figures.of(&beside(era, 8)) / figures.of(&beside(era, 0));
                at_most(kept("outer-sequence"), 0.5)
                    && ["store-free-2009", "rcu-walk", OURS].iter().all(|era| kept(era) >= 0.85)
            },
        ),
    ]
}
