//! How a mount is: what its process tells who asks.

use fuse::{Session, Snapshot};
use hostfs::HostHandle;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use vfs::{Budget, Fallback};

/// What is asked when somebody asks how a mount is.
pub(crate) struct Served {
    /// What answers for it.
    pub(crate) session: Arc<Session>,
    /// What is shown, as the table of mounts has it.
    pub(crate) source: String,
    /// Where.
    pub(crate) mountpoint: PathBuf,
    /// What the caches of the root may hold.
    pub(crate) budget: Budget,
    /// Directories of the host.
    pub(crate) hosts: Vec<(PathBuf, HostHandle)>,
}

/// How a mount is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Of the program that serves it.
    pub(crate) version: String,
    /// What is shown.
    pub(crate) source: String,
    /// Where.
    pub(crate) mountpoint: String,
    /// Of the process that serves it.
    pub(crate) pid: u32,
    /// Operations, the session, the caches, ways out of the fast walk.
    pub(crate) snapshot: Snapshot,
    /// What the caches of the root may hold.
    pub(crate) budget: BudgetStatus,
    /// Deferred freeing.
    pub(crate) rcu: Rcu,
    /// Of the process.
    pub(crate) memory: Memory,
    /// Directories of the host.
    pub(crate) hosts: Vec<HostStatus>,
    /// Classes of locks that are measured; none if none is.
    pub(crate) locks: Vec<LockStatus>,
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
pub(crate) struct Rcu {
    /// Grace periods that ended.
    pub(crate) grace_periods: u64,
    /// What waits to be freed.
    pub(crate) deferred_callbacks: u64,
    /// Its bytes.
    pub(crate) deferred_bytes: u64,
    /// Grace periods that waited long for a reader.
    pub(crate) stalls: u64,
    /// The longest grace period, in nanoseconds.
    pub(crate) longest_grace_period_ns: u64,
}

/// The memory of the process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Bytes that are in memory.
    pub(crate) resident_bytes: u64,
    /// The most that ever were.
    pub(crate) peak_bytes: u64,
}

/// A directory of the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HostStatus {
    /// Where it is.
    pub(crate) path: String,
    /// Files that it has a record of.
    pub(crate) nodes: u64,
    /// Descriptors that are open.
    pub(crate) open_fds: u64,
    /// Descriptors that were opened again.
    pub(crate) reopened: u64,
    /// Descriptors that were closed for want of room.
    pub(crate) evicted_fds: u64,
    /// Changes by others that it was told of.
    pub(crate) pushes: u64,
    /// Directories that are watched.
    pub(crate) watches: u64,
}

/// A class of locks that is measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LockStatus {
    /// What it is called.
    pub(crate) name: String,
    /// Times one was taken.
    pub(crate) acquisitions: u64,
    /// Of those, times it was not free.
    pub(crate) contended: u64,
    /// Time waited, in nanoseconds.
    pub(crate) wait_ns: u64,
}

impl Served {
    /// How it is now. Looks at each entry of the cache, which takes milliseconds where there are a million.
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
            source: self.source.clone(),
            mountpoint: self.mountpoint.to_string_lossy().into(),
            pid: std::process::id(),
            snapshot,
            budget: BudgetStatus {
                entries: self.budget.entries,
                negatives: self.budget.negatives,
                listings: self.budget.listings,
            },
            rcu: Rcu {
                grace_periods: rcu.grace_periods,
                deferred_callbacks: rcu.deferred_callbacks,
                deferred_bytes: rcu.deferred_bytes,
                stalls: rcu.stalls,
                longest_grace_period_ns: rcu.longest_grace_period_ns,
            },
            memory: memory(),
            hosts: self.hosts.iter().map(|(path, handle)| host(&path.to_string_lossy(), handle)).collect(),
            // Nothing in the core wraps its locks for `sync::lockstat`.
            locks: Vec::new(),
        }
    }
}

/// The caches' figures by name; what never falls ends in `_total`.
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
        pushes: stats.pushes,
        watches: stats.watches as u64,
    }
}

/// From `/proc/self/status`; 0 where it does not say.
fn memory() -> Memory {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()).unwrap_or(0) << 10
    };
    Memory { resident_bytes: bytes("VmRSS"), peak_bytes: bytes("VmHWM") }
}

impl Status {
    /// What happened after `earlier`, a status of the same mount; levels are as they are here.
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

    /// How often the walk left its fast path for the reason of this name.
    pub(crate) fn fallback(&self, reason: Fallback) -> u64 {
        find(&self.snapshot.fallbacks, reason.name())
    }
}

fn find(figures: &[(String, u64)], name: &str) -> u64 {
    figures.iter().find(|(figure, _)| figure == name).map_or(0, |&(_, value)| value)
}
