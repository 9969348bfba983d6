//! The status of a mount as Prometheus reads it: what `fuse` writes of operations, session and caches, and what is the
//! process's.
//!
//! Source: "Exposition formats", version 0.0.4, and "Metric and label naming", both at prometheus.io.

use crate::control::Status;
use std::fmt::{Display, Write};

/// The page.
pub(crate) fn text(status: &Status) -> String {
    let mount = escaped(&status.mountpoint);
    let mut page = Page { text: status.snapshot.to_prometheus(&status.mountpoint), mount };
    let budget = [
        ("entries", status.budget.entries),
        ("negatives", status.budget.negatives),
        ("listings", status.budget.listings),
    ];
    let name = page.head("cache_budget_bytes", "gauge", "What the caches of the root may hold");
    budget.iter().for_each(|(cache, bytes)| page.sample(&name, "cache", cache, bytes));
    let (rcu, memory) = (&status.rcu, &status.memory);
    page.figure("rcu_grace_periods_total", "counter", "Grace periods that ended", rcu.grace_periods);
    page.figure("rcu_stalls_total", "counter", "Grace periods that waited long for a reader", rcu.stalls);
    page.figure("rcu_deferred_bytes", "gauge", "What waits to be freed", rcu.deferred_bytes);
    page.figure("resident_memory_bytes", "gauge", "Memory of the process", memory.resident_bytes);
    page.figure("resident_memory_peak_bytes", "gauge", "The most it ever was", memory.peak_bytes);
    page.hosts(status);
    page.text
}

struct Page {
    text: String,
    /// Escaped.
    mount: String,
}

impl Page {
    fn hosts(&mut self, status: &Status) {
        type Figure = (&'static str, &'static str, &'static str, fn(&crate::control::HostStatus) -> u64);
        let figures: [Figure; 6] = [
            ("host_nodes", "gauge", "Files of the host that are known", |host| host.nodes),
            ("host_open_fds", "gauge", "Descriptors that are open", |host| host.open_fds),
            ("host_evicted_fds_total", "counter", "Descriptors that were closed for want of room", |host| {
                host.evicted_fds
            }),
            ("host_reopened_fds_total", "counter", "Descriptors that were opened again", |host| host.reopened),
            ("host_watches", "gauge", "Directories that are watched", |host| host.watches),
            ("host_pushes_total", "counter", "Changes by others that were told", |host| host.pushes),
        ];
        for (name, kind, help, of) in figures.iter().filter(|_| !status.hosts.is_empty()) {
            let name = self.head(name, kind, help);
            status.hosts.iter().for_each(|host| self.sample(&name, "source", &host.path, of(host)));
        }
    }

    fn figure(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        let name = self.head(name, kind, help);
        self.line(format_args!("{name}{{mount=\"{}\"}} {value}", self.mount.clone()));
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) -> String {
        let name = format!("lightfoot_{name}");
        self.line(format_args!("# HELP {name} {help}."));
        self.line(format_args!("# TYPE {name} {kind}"));
        name
    }

    fn sample(&mut self, name: &str, label: &str, value: &str, figure: impl Display) {
        let (mount, value) = (self.mount.clone(), escaped(value));
        self.line(format_args!("{name}{{mount=\"{mount}\",{label}=\"{value}\"}} {figure}"));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

/// As a label's value may have it.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
