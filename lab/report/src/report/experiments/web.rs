//! Static web serving, 2002: statistics of the global lock.

use super::{Experiment, Origin, Published, Setting, change, claim, row, tuned};
use crate::report::Key;
use sync::lockstat::Row;

const SCHEMES: [(&str, &str); 3] =
    [("dcache-lock", "dcache_lock"), ("fastwalk", "fastwalk"), ("dcache-rcu", "dcache_rcu")];

/// Column of the published table, what it is, and how it is read.
type Column = (&'static str, &'static str, fn(&Row) -> f64);

const COLUMNS: [Column; 5] = [
    ("utilization", "UTIL %", |lock| lock.utilization_percent),
    ("contention", "CON %", |lock| lock.contention_percent),
    ("hold_mean", "HOLD mean us", |lock| lock.hold_mean_us),
    ("wait_mean", "WAIT mean us", |lock| lock.wait_mean_us),
    ("wait_cpu", "WAIT % of CPU", |lock| lock.wait_cpu_percent),
];

pub(super) fn experiment(published: &Published) -> Experiment {
    let setting = Setting::new("piii8", "static-web", 4_000_000)
        .interrupts(300_000, 200_000)
        .set("think_ns", 330_000)
        .option("component_ns", 0)
        .option("search_ns", 850)
        .option("permission_ns", 250)
        .option("path_ns", 600)
        .option("is_pinned", 1);
    let mut rows = Vec::new();
    for (era, scheme) in SCHEMES {
        let key = [("scheme", Key::Text(scheme))];
        for (column, label, read) in COLUMNS {
            let figure = published.figure("lockmeter_2002", &key, column);
            let origin = if era == "dcache-lock" { Origin::Tuned } else { Origin::Predicted };
            rows.push(row(format!("{label}, {era}"), Some(figure), origin, move |outcomes| {
                read(outcomes.of(era).lock("dcache_lock"))
            }));
        }
    }
    let acquisitions = |era| published.figure("lockmeter_2002", &[("scheme", Key::Text(era))], "acquisitions");
    for (era, scheme) in &SCHEMES[1..] {
        let figure = change(acquisitions("dcache_lock"), acquisitions(scheme));
        rows.push(row(format!("acquisitions, change %, {era}"), Some(figure), Origin::Input, |outcomes| {
            let of = |era| outcomes.of(era).lock("dcache_lock").acquisitions as f64 / outcomes.rate(era);
            change(of("dcache-lock"), of(era))
        }));
        let gain = published.figure("webserver_2002", &[("scheme", Key::Text(scheme))], "gain_percent");
        rows.push(row(format!("throughput, change %, {era}"), Some(gain), Origin::Predicted, |outcomes| {
            change(outcomes.rate("dcache-lock"), outcomes.rate(era))
        }));
    }
    Experiment {
        name: "web",
        title: "Static web serving, 2002",
        sources: &["lockmeter_2002", "webserver_2002"],
        about: "Eight processors serve files. Between walks, the program and the rest of the kernel compute. The table has the \
                lock statistics of `dcache_lock` in the columns of Lockmeter.",
        tuned: vec![
            tuned("mean time between walks", "330 us", "UTIL of dcache_lock"),
            tuned("searching a chain; checking a permission", "850 ns; 250 ns", "HOLD of dcache_lock"),
            tuned("interrupts of each CPU", "every 300 us, 200 us long", "WAIT of dcache_lock"),
            tuned("components of a path", "4.79", "published acquisitions"),
            tuned("other uses of the lock", "691 for 1,000 walks", "published acquisitions"),
        ],
        cells: SCHEMES.iter().map(|(era, _)| setting.cell(*era, era, 8)).collect(),
        rows,
        claims: vec![
            claim("fastwalk holds the lock 3 to 3.8 times as long", |figures| {
                let factor = figures.of("HOLD mean us, fastwalk") / figures.of("HOLD mean us, dcache-lock");
                (3.0..=3.8).contains(&factor)
            }),
            claim("with dcache_rcu, waiting takes less than 0.5 % of the CPUs", |figures| {
                figures.of("WAIT % of CPU, dcache-rcu") < 0.5
            }),
            claim("dcache_rcu has the longest mean wait", |figures| {
                let of = |era| figures.of(&format!("WAIT mean us, {era}"));
                of("dcache-rcu") > of("fastwalk") && of("dcache-rcu") > of("dcache-lock")
            }),
        ],
        figures: vec![],
        has_box: true,
        remarks: "The published gain of 12 percent in connections does not follow from 4.4 percent of CPU time spent waiting: \
                  SPECweb99 counts connections above a minimum rate, a threshold that the simulation does not model. The mean \
                  wait of dcache_rcu is the longest because most of the remaining waits are for a holder that was interrupted.",
    }
}
