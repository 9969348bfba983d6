//! The status of a mount as a page for Prometheus: the session's families, and the families of
//! caches, RCU, process and directories.

use crate::control::{FileSystemStatus, HostStatus, LockStatus, Status, StoreStatus};
use fuse::prometheus::FamilyKind::{self, Counter, Gauge};
use fuse::prometheus::Page;
use std::time::Duration;
use vfs::Budget;

/// Returns the page.
pub(crate) fn text(status: &Status) -> String {
    let mut page = Page::new(&status.mountpoint);
    let commit = status.commit.as_deref().unwrap_or("unknown");
    let mut family = page.family("lightfoot_build_info", Gauge, "The program that serves the mount; always 1");
    family.sample(&[("version", &status.version), ("commit", commit)], 1);
    let mut family = page.family("lightfoot_mount_start_time_seconds", Gauge, "When it was mounted, since the epoch");
    family.sample(&[], status.began_s);
    status.snapshot.write_prometheus(&mut page);
    write_file_systems(&status.file_systems, &mut page);
    let (rcu, memory) = (&status.rcu, &status.memory);
    let figures = [
        ("lightfoot_rcu_grace_periods_total", Counter, "Grace periods that ended", rcu.grace_periods),
        ("lightfoot_rcu_stalls_total", Counter, "Grace periods that waited long for a reader", rcu.stalls),
        ("lightfoot_rcu_deferred_bytes", Gauge, "Memory that waits to be freed", rcu.deferred_bytes),
        ("lightfoot_resident_memory_bytes", Gauge, "Memory of the process", memory.resident_bytes),
        ("lightfoot_resident_memory_peak_bytes", Gauge, "Highest memory of the process", memory.peak_bytes),
    ];
    figures.iter().for_each(|(name, kind, help, value)| page.family(name, *kind, help).sample(&[], value));
    write_locks(&status.locks, &mut page);
    write_hosts(&status.hosts, &mut page);
    write_stores(&status.stores, &mut page);
    page.into_text()
}

/// Families with the mount point in the tree as a label.
fn write_file_systems(file_systems: &[FileSystemStatus], page: &mut Page) {
    let kinds = |of: &Budget| [("entries", of.entries), ("negatives", of.negatives), ("listings", of.listings)];
    let mut family = page.family("lightfoot_cache_used_bytes", Gauge, "What counts against the budgets of the caches");
    for of in file_systems {
        kinds(&of.used).iter().for_each(|(cache, bytes)| family.sample(&[("at", &of.at), ("cache", cache)], bytes));
    }
    let mut family =
        page.family("lightfoot_cache_budget_bytes", Gauge, "What the caches may hold, where they are limited");
    for (of, budget) in file_systems.iter().filter_map(|of| Some((of, of.budget.as_ref()?))) {
        kinds(budget).iter().for_each(|(cache, bytes)| family.sample(&[("at", &of.at), ("cache", cache)], bytes));
    }
    let mut family =
        page.family("lightfoot_names_total", Counter, "Names looked up for the kernel; a hit needs no request");
    for of in file_systems {
        family.sample(&[("at", &of.at), ("result", "hit")], of.hits);
        family.sample(&[("at", &of.at), ("result", "miss")], of.misses);
    }
    type Figure = (&'static str, FamilyKind, &'static str, fn(&FileSystemStatus) -> u64);
    let figures: [Figure; 4] = [
        ("lightfoot_cache_entries", Gauge, "Entries in memory", |of| of.live),
        ("lightfoot_cache_held", Gauge, "References on entries", |of| of.held),
        ("lightfoot_cache_slot_bytes", Gauge, "Memory of entries, used or free", |of| of.slot_bytes),
        ("lightfoot_cache_evicted_total", Counter, "Entries evicted to make room", |of| of.evicted),
    ];
    for (name, kind, help, value) in figures {
        let mut family = page.family(name, kind, help);
        file_systems.iter().for_each(|of| family.sample(&[("at", &of.at)], value(of)));
    }
}

/// Waits for the locks of the tree, with the name of the rank as a label.
fn write_locks(locks: &[LockStatus], page: &mut Page) {
    let mut family = page.family("lightfoot_lock_waits_total", Counter, "Waits of threads for a lock that was taken");
    locks.iter().for_each(|lock| family.sample(&[("lock", &lock.name)], lock.waits));
    let mut family = page.family("lightfoot_lock_wait_seconds_total", Counter, "Time that threads waited for locks");
    locks
        .iter()
        .for_each(|lock| family.sample(&[("lock", &lock.name)], Duration::from_nanos(lock.waited_ns).as_secs_f64()));
}

fn write_stores(stores: &[StoreStatus], page: &mut Page) {
    if stores.is_empty() {
        return;
    }
    let mut family = page.family("lightfoot_store_requests_total", Counter, "Requests to the store, without retries");
    for store in stores {
        for (kind, count) in &store.requests {
            family.sample(&[("source", &store.url), ("kind", kind)], count);
        }
    }
    let figures = [
        ("lightfoot_store_retries_total", "Further tries of requests to the store", "retries"),
        ("lightfoot_store_errors_total", "Requests to the store that failed after all tries", "errors"),
        ("lightfoot_store_sent_bytes_total", "Bytes sent to the store", "sent_bytes"),
        ("lightfoot_store_received_bytes_total", "Bytes received from the store", "received_bytes"),
        ("lightfoot_store_hidden_total", "Listed objects that no request can name", "hidden"),
    ];
    for (name, help, number) in figures {
        let mut family = page.family(name, Counter, help);
        stores.iter().for_each(|store| family.sample(&[("source", &store.url)], store.number(number)));
    }
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
