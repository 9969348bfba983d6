//! The status of a mount as a page for Prometheus: the session's families, and those of caches, RCU, process and
//! directories.

use crate::control::{HostStatus, Status};
use fuse::prometheus::FamilyKind::{self, Counter, Gauge};
use fuse::prometheus::Page;

/// The page.
pub(crate) fn text(status: &Status) -> String {
    let mut page = Page::new(&status.mountpoint);
    let commit = status.commit.as_deref().unwrap_or("unknown");
    let mut family = page.family("lightfoot_build_info", Gauge, "The program that serves the mount; always 1");
    family.sample(&[("version", &status.version), ("commit", commit)], 1);
    let mut family = page.family("lightfoot_mount_start_time_seconds", Gauge, "When it was mounted, since the epoch");
    family.sample(&[], status.began_s);
    status.snapshot.write_prometheus(&mut page);
    let budget = [
        ("entries", status.budget.entries),
        ("negatives", status.budget.negatives),
        ("listings", status.budget.listings),
    ];
    let mut family = page.family("lightfoot_cache_budget_bytes", Gauge, "What the caches of the root may hold");
    budget.iter().for_each(|(cache, bytes)| family.sample(&[("cache", cache)], bytes));
    let (rcu, memory) = (&status.rcu, &status.memory);
    let figures = [
        ("lightfoot_rcu_grace_periods_total", Counter, "Grace periods that ended", rcu.grace_periods),
        ("lightfoot_rcu_stalls_total", Counter, "Grace periods that waited long for a reader", rcu.stalls),
        ("lightfoot_rcu_deferred_bytes", Gauge, "Memory that waits to be freed", rcu.deferred_bytes),
        ("lightfoot_resident_memory_bytes", Gauge, "Memory of the process", memory.resident_bytes),
        ("lightfoot_resident_memory_peak_bytes", Gauge, "Highest memory of the process", memory.peak_bytes),
    ];
    figures.iter().for_each(|(name, kind, help, value)| page.family(name, *kind, help).sample(&[], value));
    write_hosts(&status.hosts, &mut page);
    page.into_text()
}

fn write_hosts(hosts: &[HostStatus], page: &mut Page) {
    type Figure = (&'static str, FamilyKind, &'static str, fn(&HostStatus) -> u64);
    let figures: [Figure; 6] = [
        ("lightfoot_host_nodes", Gauge, "Files of the directory that are cached", |host| host.nodes),
        ("lightfoot_host_open_fds", Gauge, "Open descriptors", |host| host.open_fds),
        ("lightfoot_host_evicted_fds_total", Counter, "Descriptors closed to stay within the limit", |host| {
            host.evicted_fds
        }),
        ("lightfoot_host_reopened_fds_total", Counter, "Descriptors opened again", |host| host.reopened),
        ("lightfoot_host_watches", Gauge, "Watched directories", |host| host.watches),
        ("lightfoot_host_pushes_total", Counter, "Changes that inotify reported", |host| host.pushes),
    ];
    for (name, kind, help, value) in figures.iter().filter(|_| !hosts.is_empty()) {
        let mut family = page.family(name, *kind, help);
        hosts.iter().for_each(|host| family.sample(&[("source", &host.path)], value(host)));
    }
}
