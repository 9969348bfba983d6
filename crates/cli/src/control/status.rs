//! The status of a mount: what its process reports.

use fuse::{Carrier, Op, Session, Snapshot};
use hostfs::HostHandle;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use vfs::{Budget, Fallback};

/// A mount that this process serves.
pub(crate) struct ServedMount {
    /// The session that serves it.
    pub(crate) session: Arc<Session>,
    /// Name of the source in the table of mounts.
    pub(crate) source: String,
    /// Its mount point.
    pub(crate) mountpoint: PathBuf,
    /// When it was mounted.
    pub(crate) began: SystemTime,
    /// What carries its requests.
    pub(crate) carrier: Carrier,
    /// What the caches of the root may hold.
    pub(crate) budget: Budget,
    /// Directories of this machine in the tree.
    pub(crate) hosts: Vec<(PathBuf, HostHandle)>,
}

/// The status of a mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Version of the program that serves it.
    pub(crate) version: String,
    /// The commit that the program was built from, if that is known.
    pub(crate) commit: Option<String>,
    /// When it was mounted, in seconds since the epoch.
    pub(crate) began_s: u64,
    /// Name of the source.
    pub(crate) source: String,
    /// Its mount point.
    pub(crate) mountpoint: String,
    /// What carries its requests, and why not io_uring.
    pub(crate) transport: String,
    /// The process that serves it.
    pub(crate) pid: u32,
    /// Operations, the session, the caches, fallbacks of the fast walk.
    pub(crate) snapshot: Snapshot,
    /// What the caches of the root may hold.
    pub(crate) budget: BudgetStatus,
    /// Deferred freeing.
    pub(crate) rcu: RcuStatus,
    /// Memory of the process.
    pub(crate) memory: MemoryStatus,
    /// Directories of this machine in the tree.
    pub(crate) hosts: Vec<HostStatus>,
}

/// What the caches of the root may hold, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct BudgetStatus {
    /// Entries.
    pub(crate) entries: u64,
    /// Negative entries.
    pub(crate) negatives: u64,
    /// Listings.
    pub(crate) listings: u64,
}

/// Deferred freeing.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct RcuStatus {
    /// Grace periods that ended.
    pub(crate) grace_periods: u64,
    /// Objects that wait to be freed.
    pub(crate) deferred_callbacks: u64,
    /// Their bytes.
    pub(crate) deferred_bytes: u64,
    /// Grace periods that waited long for a reader.
    pub(crate) stalls: u64,
    /// The longest grace period, in nanoseconds.
    pub(crate) longest_grace_period_ns: u64,
}

/// The memory of the process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct MemoryStatus {
    /// Resident bytes.
    pub(crate) resident_bytes: u64,
    /// The most that were ever resident.
    pub(crate) peak_bytes: u64,
}

/// A directory of this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostStatus {
    /// Where it is.
    pub(crate) path: String,
    /// Files of which Lightfoot has a record.
    pub(crate) nodes: u64,
    /// Descriptors that are open.
    pub(crate) open_fds: u64,
    /// Descriptors that were opened again.
    pub(crate) reopened: u64,
    /// Descriptors that were closed to stay within the limit.
    pub(crate) evicted_fds: u64,
    /// Changes that inotify reported.
    pub(crate) pushes: u64,
    /// Directories that are watched.
    pub(crate) watches: u64,
}

impl ServedMount {
    /// Its status now. Visits each entry of the cache, which takes some milliseconds for a million entries.
    pub(crate) fn status(&self) -> Status {
        let vfs = self.session.vfs();
        self.session.measure();
        let mut snapshot = self.session.metrics().snapshot();
        snapshot.cache = cache(vfs);
        let fallback = |reason: Fallback| (reason.name().to_owned(), vfs.fallbacks(reason));
        snapshot.fallbacks = Fallback::ALL.into_iter().map(fallback).collect();
        let rcu = vfs.rcu_stats();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("LIGHTFOOT_BUILT_FROM").map(String::from),
            began_s: self.began.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            source: self.source.clone(),
            mountpoint: self.mountpoint.to_string_lossy().into(),
            transport: self.carrier.to_string(),
            pid: std::process::id(),
            snapshot,
            budget: BudgetStatus {
                entries: self.budget.entries,
                negatives: self.budget.negatives,
                listings: self.budget.listings,
            },
            rcu: RcuStatus {
                grace_periods: rcu.grace_periods,
                deferred_callbacks: rcu.deferred_callbacks,
                deferred_bytes: rcu.deferred_bytes,
                stalls: rcu.stalls,
                longest_grace_period_ns: rcu.longest_grace_period_ns,
            },
            memory: memory(),
            hosts: self.hosts.iter().map(|(path, handle)| host(&path.to_string_lossy(), handle)).collect(),
        }
    }
}

/// The caches' figures by name; names of counters end in `_total`.
fn cache(vfs: &vfs::Vfs) -> Vec<(String, u64)> {
    let stats = vfs.stats();
    let figures = [
        ("entries", stats.entries as u64),
        ("live", stats.live_dentries as u64),
        ("held", stats.held as u64),
        ("entry_bytes", stats.entry_bytes),
        ("negative_bytes", stats.negative_bytes),
        ("listing_bytes", stats.listing_bytes),
        ("slot_bytes", stats.slot_bytes as u64),
        ("table_bytes", stats.table_bytes as u64),
        ("table_buckets", stats.buckets as u64),
        ("evicted_total", stats.evicted),
        ("looked_total", stats.looked),
        ("longest_look", stats.longest_look),
        ("answered_by_listing_total", stats.answered_by_listing),
    ];
    figures.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn host(path: &str, handle: &HostHandle) -> HostStatus {
    let stats = handle.stats();
    HostStatus {
        path: path.into(),
        nodes: stats.nodes as u64,
        open_fds: stats.open_fds as u64,
        reopened: stats.reopened,
        evicted_fds: stats.evicted_fds,
        pushes: stats.invalidations,
        watches: stats.watches as u64,
    }
}

/// From `/proc/self/status`; 0 for a missing line.
fn memory() -> MemoryStatus {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
    };
    MemoryStatus { resident_bytes: bytes("VmRSS"), peak_bytes: bytes("VmHWM") }
}

impl Status {
    /// The counts since `earlier`, an older status of the same mount. Gauges keep their value.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        Self { snapshot: self.snapshot.since(&earlier.snapshot), ..self.clone() }
    }

    /// A figure of the caches, by name.
    pub(crate) fn cache(&self, name: &str) -> u64 {
        find(&self.snapshot.cache, name)
    }

    /// A figure of the session, by name.
    pub(crate) fn gauge(&self, name: &str) -> u64 {
        find(&self.snapshot.gauges, name)
    }

    /// Bytes of contents that requests of an operation moved.
    pub(crate) fn moved(&self, op: Op) -> u64 {
        self.snapshot.ops.iter().find(|stats| stats.name == op.name()).map_or(0, |stats| stats.bytes)
    }

    /// How often the walk left its fast path for this reason.
    pub(crate) fn fallback(&self, reason: Fallback) -> u64 {
        find(&self.snapshot.fallbacks, reason.name())
    }
}

fn find(figures: &[(String, u64)], name: &str) -> u64 {
    figures.iter().find(|(figure, _)| figure == name).map_or(0, |&(_, value)| value)
}
