//! AIM7 on 80 cores, 2013: the lockless count.

use super::{Claim, Experiment, Origin, Published, Row, Setting, change, claim, row, tuned};
use crate::report::{Figure, Key, Outcomes, Sketch};

const NODES: [usize; 4] = [1, 2, 4, 8];

/// Before and after: the store-free walk with a count under the entry's ticket lock, and with the rule of 2013.
const SCHEMES: [&str; 2] = ["linux-3.10", "lockref-2013"];

/// The published groups of users, and the numbers of users that stand for each. A figure is their mean, as published.
const GROUPS: [(&str, &[usize]); 3] = [
    ("10-100", &[10, 20, 30, 40, 50, 60, 70, 80, 90, 100]),
    ("200-1000", &[200, 600, 1000]),
    ("1100-2000", &[1100, 2000]),
];

fn setting() -> Setting {
    Setting::new("dl980", "aim7-short", 3_000).set("idle_permille", 20).set("idle_ns", 600_000)
}

fn key(era: &str, nodes: usize, users: usize) -> String {
    format!("{era} {nodes} {users}")
}

fn mean(outcomes: &Outcomes<'_>, era: &str, nodes: usize, users: &[usize]) -> f64 {
    users.iter().map(|&users| outcomes.rate(&key(era, nodes, users))).sum::<f64>() / users.len() as f64
}

fn change_label(group: &str, nodes: usize) -> String {
    format!("change by the lockless count, {group} users, {nodes} nodes, %")
}

fn total_label(era: &str, group: &str, nodes: usize) -> String {
    format!("{era}, {group} users, {nodes} nodes, 1 = before on 1 node")
}

pub(super) fn short(published: &Published) -> Experiment {
    let mut cells = Vec::new();
    for era in SCHEMES {
        for nodes in NODES {
            let setting = setting().on_nodes(nodes).spread();
            for &users in GROUPS.iter().flat_map(|(_, users)| *users) {
                cells.push(setting.cell(key(era, nodes, users), era, users));
            }
        }
    }
    Experiment {
        name: "aim7-short",
        title: "AIM7 short, 2013: the lockless count",
        sources: &["aim7_short_2013"],
        about: "Users compute, take and drop a reference on the directory of their files (`dget_parent`, `dput`), and \
                sometimes sleep. Before: the count changes under the entry's ticket lock. After: a compare-exchange changes \
                it while the lock is free; after two failures, the thread takes the lock.",
        tuned: vec![
            tuned("user time of a turn", "7 us", "where 20 CPUs saturate without the change"),
            tuned("home occupancy of the machine", "60 ns", "the slope of the collapse without the change"),
            tuned(
                "turns that end in sleep, and how long",
                "20 in 1,000, 600 us",
                "10-100 users, 8 nodes, both columns",
            ),
        ],
        cells,
        rows: short_rows(published),
        claims: short_claims(),
        figures: vec![Figure {
            name: "aim7-short",
            title: "AIM7 short, 1100 to 2000 users, DL980 (simulated)",
            unit: "times one node before",
            curves: SCHEMES.into_iter().flat_map(sketches).collect(),
        }],
        has_box: true,
        remarks: "The published 79 percent of time in spinlocks at 1500 users does not agree with the throughput of the \
                  same table if users only compute: 8 nodes with 0.42 of the throughput of one node spend 94 percent of \
                  their time waiting. The rest must have been idle time.",
    }
}

/// The published and the simulated curve of an era.
fn sketches(era: &'static str) -> [Sketch; 2] {
    let points = || NODES.iter().map(move |&n| (10.0 * n as f64, total_label(era, "1100-2000", n)));
    [Sketch::new(format!("{era}, published"), true, points()), Sketch::new(era, false, points())]
}

/// Changes and totals by group of users, and the share of time in spinlocks.
fn short_rows(published: &Published) -> Vec<Row> {
    let mut rows = Vec::new();
    for (group, users) in GROUPS {
        let figure = |nodes: usize, column: &str| {
            let at = [("users", Key::Text(group)), ("nodes", Key::Number(nodes as i64))];
            published.figure("aim7_short_2013", &at, column)
        };
        for nodes in NODES {
            rows.push(row(
                change_label(group, nodes),
                Some(figure(nodes, "gain_percent")),
                Origin::Predicted,
                move |outcomes| {
                    change(mean(outcomes, SCHEMES[0], nodes, users), mean(outcomes, SCHEMES[1], nodes, users))
                },
            ));
        }
        for (era, column) in SCHEMES.into_iter().zip(["before", "after"]) {
            for nodes in NODES {
                let of_one = figure(nodes, column) / figure(1, "before");
                let origin = if era == SCHEMES[0] { Origin::Tuned } else { Origin::Predicted };
                rows.push(row(total_label(era, group, nodes), Some(of_one), origin, move |outcomes| {
                    mean(outcomes, era, nodes, users) / mean(outcomes, SCHEMES[0], 1, users)
                }));
            }
        }
    }
    for (era, column) in SCHEMES.into_iter().zip(["before", "after"]) {
        let figure = published.single("aim7_short_2013", &["spinlock_percent", column]);
        rows.push(row(
            format!("time in spinlocks, {era}, 1000 users, 8 nodes, %"),
            Some(figure),
            Origin::Predicted,
            move |outcomes| outcomes.of(&key(era, 8, 1000)).spin_percent(),
        ));
    }
    rows
}

fn short_claims() -> Vec<Claim> {
    let saturated = ["200-1000", "1100-2000"];
    vec![
        claim("on one node, saturated, the change is at most 2 %", move |figures| {
            saturated.iter().all(|group| figures.of(&change_label(group, 1)).abs() <= 2.0)
        }),
        claim("on eight nodes, saturated, the change is between +350 and +800 %", move |figures| {
            saturated.iter().all(|group| (350.0..=800.0).contains(&figures.of(&change_label(group, 8))))
        }),
        claim("the change grows with each doubling of the nodes, as published", move |figures| {
            let rises = |group: &str| {
                NODES
                    .windows(2)
                    .all(|pair| figures.of(&change_label(group, pair[0])) < figures.of(&change_label(group, pair[1])))
            };
            GROUPS.iter().all(|(group, _)| rises(group))
        }),
        claim(
            "with 10 to 100 users on 2, 4 and 8 nodes, the change is nearer to the published one than without idle time",
            |figures| {
                // Without idle time the changes are +103, +275 and +388 %; published are +48.9, +182.7 and +228.4 %.
                let cells = [(2, 48.9, 103.0), (4, 182.7, 275.0), (8, 228.4, 388.0)];
                cells.iter().all(|&(nodes, published, busy): &(usize, f64, f64)| {
                    (figures.of(&change_label("10-100", nodes)) - published).abs() < busy - published
                })
            },
        ),
    ]
}

const MIXES: [(&str, &str); 6] = [
    ("alltests", "aim7-alltests"),
    ("five_sec", "aim7-five-sec"),
    ("fserver", "aim7-fserver"),
    ("high_systime", "aim7-high-systime"),
    ("new_fserver", "aim7-new-fserver"),
    ("shared", "aim7-shared"),
];

/// Users that stand for each published group.
const USERS: [(&str, usize); 3] = [("users_10_100", 50), ("users_200_1000", 600), ("users_1100_2000", 1500)];

pub(super) fn others(published: &Published) -> Experiment {
    let setting = Setting::new("dl980", "aim7-alltests", 3_000).spread();
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for (name, workload) in MIXES {
        for (column, users) in USERS {
            let key = move |era: &str| format!("{era} {name} {users}");
            for era in SCHEMES {
                cells.push(setting.clone().with_workload(workload).cell(key(era), era, users));
            }
            let figure = published.figure("aim7_other_2013", &[("workload", Key::Text(name))], column);
            rows.push(row(
                format!("{name}, {users} users, change %"),
                Some(figure),
                Origin::Predicted,
                move |outcomes| change(outcomes.rate(&key(SCHEMES[0])), outcomes.rate(&key(SCHEMES[1]))),
            ));
        }
    }
    Experiment {
        name: "aim7-others",
        title: "The six other AIM7 workloads, 2013",
        sources: &["aim7_other_2013"],
        about: "The same comparison on eight nodes, with mixes in which the directory cache is a small part of the work.",
        tuned: vec![tuned(
            "weights of the mixes",
            "see the workloads",
            "descriptions of the AIM7 work files, no figure",
        )],
        cells,
        rows,
        claims: vec![claim("no mix changes by more than 20 % (short changes by hundreds)", |figures| {
            figures.0.values().all(|change| change.abs() <= 20.0)
        })],
        figures: vec![],
        has_box: true,
        remarks: "The published changes are as large as their own scatter, and some are negative.",
    }
}
