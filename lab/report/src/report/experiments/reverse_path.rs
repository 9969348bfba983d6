//! Reverse paths beside a database, 2013.

use super::{Claim, Experiment, Origin, Published, Setting, change, claim, row, tuned};
use crate::report::Key;

/// Before and after: `rename_lock` taken as a writer and each entry's lock, or as a blocking reader and no other lock.
const SCHEMES: [(&str, &str); 2] = [("rcu-walk", "before"), ("patch-2013-4", "after")];

const WRITERS: [usize; 2] = [0, 64];
const REDO_READERS: [usize; 4] = [8, 32, 80, 128];

fn label(scheme: &str, readers: usize, writers: usize) -> String {
    format!("kernel time in spinlocks, {scheme}, {readers} readers, {writers} writers, %")
}

pub(super) fn experiment(published: &Published) -> Experiment {
    let setting = Setting::new("dl980", "reverse-path", 20_000).spread();
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for writers in WRITERS {
        for (era, scheme) in SCHEMES {
            for readers in REDO_READERS {
                if writers == 0 && readers == 8 {
                    continue;
                }
                let key = format!("{era} {readers} {writers}");
                let setting = setting.clone().set("writers", writers as u64);
                cells.push(setting.cell(key.clone(), era, readers + writers));
                if readers == 8 {
                    continue;
                }
                let at = [("readers", Key::Number(readers as i64)), ("writers", Key::Number(writers as i64))];
                let figure = published.figure("slob_cpu_2013", &at, &format!("spinlock_{scheme}"));
                let is_tuned = scheme == "before" && writers == 0 && readers < 128;
                let origin = if is_tuned { Origin::Tuned } else { Origin::Predicted };
                rows.push(row(label(scheme, readers, writers), Some(figure), origin, move |outcomes| {
                    outcomes.of(&key).spin_percent_of_system()
                }));
            }
        }
    }
    for readers in REDO_READERS {
        let at = [("readers", Key::Number(readers as i64)), ("writers", Key::Number(64))];
        let figure = published.figure("slob_redo_2013", &at, "gain_percent");
        rows.push(row(
            format!("writers' rate, {readers} readers, change %"),
            Some(figure),
            Origin::Predicted,
            move |outcomes| {
                let rate = |era: &str| outcomes.of(&format!("{era} {readers} 64")).rate_of_role("writer");
                change(rate(SCHEMES[0].0), rate(SCHEMES[1].0))
            },
        ));
    }
    Experiment {
        name: "reverse-path",
        title: "Reverse paths beside a database, 2013",
        sources: &["slob_cpu_2013", "slob_redo_2013"],
        about: "Readers compute and call `d_path` on an open file; writers write and call it too. Before: a reverse path \
                takes `rename_lock` as a writer, and the lock of each entry. After: it is a blocking reader of a sequence lock \
                and takes no other lock, and counts are lockless.",
        tuned: vec![
            tuned(
                "user time, and other kernel time, for each path",
                "190 us and 8.5 us",
                "before, 32 and 80 readers, no writers",
            ),
            tuned("components of the path", "4", "assumed"),
        ],
        cells,
        rows,
        claims: claims(published),
        figures: vec![],
        has_box: true,
        remarks: "The published share after the change comes from other locks of that kernel, which are not simulated. The \
                  simulation shows only what the change removes. With 128 readers on 80 CPUs, threads wait in run queues.",
    }
}

fn published_before(published: &Published, readers: i64) -> f64 {
    let at = [("readers", Key::Number(readers)), ("writers", Key::Number(0))];
    published.figure("slob_cpu_2013", &at, "spinlock_before")
}

fn claims(published: &Published) -> Vec<Claim> {
    let before = |readers| published_before(published, readers);
    let (at_32, at_80) = (before(32), before(80));
    vec![
        claim("before: within 25 % of the published share at 32 and 80 readers", move |figures| {
            let is_near =
                |readers, published: f64| (figures.of(&label("before", readers, 0)) / published - 1.0).abs() <= 0.25;
            is_near(32, at_32) && is_near(80, at_80)
        }),
        claim("after: below 1 % at 32 and 80 readers", |figures| {
            figures.of(&label("after", 32, 0)) < 1.0 && figures.of(&label("after", 80, 0)) < 1.0
        }),
        claim("writers gain from the change", |figures| {
            REDO_READERS.iter().all(|readers| figures.of(&format!("writers' rate, {readers} readers, change %")) > 0.0)
        }),
    ]
}
