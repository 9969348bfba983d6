//! The status of a mount, which its process reports.

use crate::source::StoreHandle;
use fuse::{NameStats, Op, Session, Snapshot, TransportKind};
use hostfs::HostHandle;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use vfs::{Budget, CacheStats, Fallback, MountInfo, RankWaits, RcuStats};

/// A mount that this process serves.
pub(crate) struct ServedMount {
    /// The session that serves it.
    pub(crate) session: Arc<Session>,
    /// Name of the source in the table of mounts.
    pub(crate) source: String,
    /// Its mount point.
    pub(crate) mountpoint: PathBuf,
    /// Whether it began with `ro`.
    pub(crate) is_read_only: bool,
    /// When it was mounted.
    pub(crate) began: SystemTime,
    /// The transport of its requests.
    pub(crate) transport_kind: TransportKind,
    /// The sources of the tree: the mount point of each in the tree, and its name.
    pub(crate) sources: Vec<(PathBuf, String)>,
    /// Directories of this machine in the tree.
    pub(crate) hosts: Vec<(PathBuf, HostHandle)>,
    /// Stores in the tree.
    pub(crate) stores: Vec<StoreHandle>,
    /// Forks of the tree.
    pub(crate) forks: crate::workspaces_server::Forks,
}

/// The status of a mount.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Status {
    /// Version of the program that serves it.
    pub(crate) version: String,
    /// The commit that the program was built from, if the build recorded it.
    pub(crate) commit: Option<String>,
    /// When it was mounted, in seconds since the epoch.
    pub(crate) began_s: u64,
    /// Name of the source.
    pub(crate) source: String,
    /// Its mount point.
    pub(crate) mountpoint: String,
    /// Whether it began with `ro`.
    #[serde(default)]
    pub(crate) is_read_only: bool,
    /// The transport of its requests, and why not io_uring.
    pub(crate) transport: String,
    /// Why not io_uring, as one word: [`fuse::NoRing::name`].
    #[serde(default)]
    pub(crate) no_io_uring: Option<String>,
    /// The process that serves it.
    pub(crate) pid: u32,
    /// Operations, the session, the caches of all file systems together, fallbacks of the fast walk.
    pub(crate) snapshot: Snapshot,
    /// The file systems of the tree, the root's first.
    pub(crate) file_systems: Vec<FileSystemStatus>,
    /// Waits for the locks of the tree, by rank.
    pub(crate) locks: Vec<LockStatus>,
    /// Deferred freeing.
    pub(crate) rcu: RcuStatus,
    /// Memory of the process.
    pub(crate) memory: MemoryStatus,
    /// Directories of this machine in the tree.
    pub(crate) hosts: Vec<HostStatus>,
    /// Object stores in the tree.
    #[serde(default)]
    pub(crate) stores: Vec<StoreStatus>,
}

/// A file system of the tree. Names and their hits are as in [`fuse::NameStats`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileSystemStatus {
    /// Its first mount point, as a path in the tree.
    pub(crate) at: String,
    /// Name of the source; for one that was mounted later, the type of the file system.
    pub(crate) source: String,
    /// Names that the cache answered.
    pub(crate) hits: u64,
    /// Names that were requested from the file system.
    pub(crate) misses: u64,
    /// Entries in memory.
    pub(crate) live: u64,
    /// References on entries.
    pub(crate) held: u64,
    /// Bytes of entries, used or free.
    pub(crate) slot_bytes: u64,
    /// The memory that counts against the budget.
    pub(crate) used: Budget,
    /// The limit of the caches; `None`: the names are the file system's data, so they have no limit
    /// here.
    pub(crate) budget: Option<Budget>,
    /// Entries that were evicted to make room.
    pub(crate) evicted: u64,
    /// Names that a cached listing answered.
    pub(crate) answered_by_listing: u64,
    /// Slots that were examined to evict.
    pub(crate) looked: u64,
    /// The most slots that were examined at once.
    pub(crate) longest_look: u64,
}

/// Waits for the locks of one rank.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct LockStatus {
    /// The name of the rank.
    pub(crate) name: String,
    /// Times that a thread found the lock taken and waited.
    pub(crate) waits: u64,
    /// Nanoseconds of these waits together.
    pub(crate) waited_ns: u64,
    /// The longest wait, in nanoseconds.
    pub(crate) longest_ns: u64,
}

/// Deferred freeing.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct RcuStatus {
    /// Grace periods that ended.
    pub(crate) grace_periods: u64,
    /// Objects that wait to be freed.
    pub(crate) deferred_callbacks: u64,
    /// Their bytes.
    pub(crate) deferred_bytes: u64,
    /// Grace periods that waited long for a reader.
    pub(crate) stalls: u64,
    pub(crate) longest_grace_period_ns: u64,
}

/// The memory of the process.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct MemoryStatus {
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

/// An object store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoreStatus {
    /// Its URL.
    pub(crate) url: String,
    /// Requests by kind.
    pub(crate) requests: Vec<(String, u64)>,
    /// Retries, errors, bytes, hidden objects.
    pub(crate) numbers: Vec<(String, u64)>,
}

impl ServedMount {
    /// Returns the current status of the mount. Visits each entry of the cache, which takes some
    /// milliseconds for a million entries.
    pub(crate) fn status(&self) -> Status {
        let vfs = self.session.vfs();
        self.session.measure();
        let mut snapshot = self.session.metrics().snapshot();
        let (file_systems, tree) = self.file_systems();
        snapshot.cache = cache(&tree, &file_systems);
        let fallback = |reason: Fallback| (reason.name().to_owned(), vfs.fallbacks(reason));
        snapshot.fallbacks = Fallback::ALL.into_iter().map(fallback).collect();
        let RcuStats { grace_periods, deferred_callbacks, deferred_bytes, stalls, longest_grace_period_ns, .. } =
            vfs.rcu_stats();
        Status {
            version: env!("CARGO_PKG_VERSION").into(),
            commit: option_env!("LIGHTFOOT_BUILT_FROM").map(String::from),
            began_s: self.began.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            source: self.source.clone(),
            mountpoint: self.mountpoint.to_string_lossy().into(),
            is_read_only: self.is_read_only,
            transport: self.transport_kind.to_string(),
            no_io_uring: self.transport_kind.fallback().map(|reason| reason.name().into()),
            pid: std::process::id(),
            snapshot,
            file_systems,
            locks: vfs.lock_waits().map(LockStatus::from).collect(),
            rcu: RcuStatus { grace_periods, deferred_callbacks, deferred_bytes, stalls, longest_grace_period_ns },
            memory: memory(),
            hosts: self.hosts.iter().map(|(path, handle)| host(&path.to_string_lossy(), handle)).collect(),
            stores: self.stores.iter().map(StoreStatus::of).collect(),
        }
    }

    /// Returns the file systems, and the cache figures of one of them, whose table is the table of
    /// the whole tree.
    fn file_systems(&self) -> (Vec<FileSystemStatus>, CacheStats) {
        let vfs = self.session.vfs();
        let names = self.session.metrics().names();
        let mut mounts = vfs.context().mounts();
        let mut seen = BTreeSet::new();
        mounts.retain(|mount| seen.insert(mount.dev));
        let status = |mount: &MountInfo| {
            let source = self.sources.iter().find(|(at, _)| *at == mount.mountpoint);
            let source = source.map_or(&mount.type_name, |(_, name)| name);
            let names = names.iter().find(|names| names.dev == mount.dev).copied().unwrap_or_default();
            let stats = vfs.stats_of(mount.dev)?;
            Some((file_system(&mount.mountpoint.to_string_lossy(), source, names, &stats), stats))
        };
        let (statuses, stats): (Vec<_>, Vec<_>) = mounts.iter().filter_map(status).unzip();
        (statuses, stats.first().copied().unwrap_or_default())
    }
}

fn file_system(at: &str, source: &str, names: NameStats, stats: &CacheStats) -> FileSystemStatus {
    FileSystemStatus {
        at: at.into(),
        source: source.into(),
        hits: names.hits,
        misses: names.misses,
        live: stats.live_dentries as u64,
        held: stats.held as u64,
        slot_bytes: stats.slot_bytes as u64,
        used: Budget { entries: stats.entry_bytes, negatives: stats.negative_bytes, listings: stats.listing_bytes },
        budget: stats.budget,
        evicted: stats.evicted,
        answered_by_listing: stats.answered_by_listing,
        looked: stats.looked,
        longest_look: stats.longest_look,
    }
}

impl From<RankWaits> for LockStatus {
    fn from(of: RankWaits) -> Self {
        Self { name: of.name.into(), waits: of.waits, waited_ns: of.waited_ns, longest_ns: of.longest_ns }
    }
}

impl LockStatus {
    /// Returns the counts since `earlier`, an older status of the same rank. The longest wait is
    /// the longest since the mount.
    fn since(&self, earlier: &Self) -> Self {
        let waits = self.waits.saturating_sub(earlier.waits);
        Self { waits, waited_ns: self.waited_ns.saturating_sub(earlier.waited_ns), ..self.clone() }
    }
}

impl FileSystemStatus {
    /// Returns the counts since `earlier`, an older status of the same file system.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            hits: self.hits.saturating_sub(earlier.hits),
            misses: self.misses.saturating_sub(earlier.misses),
            evicted: self.evicted.saturating_sub(earlier.evicted),
            answered_by_listing: self.answered_by_listing.saturating_sub(earlier.answered_by_listing),
            looked: self.looked.saturating_sub(earlier.looked),
            ..self.clone()
        }
    }
}

impl StoreStatus {
    fn of(store: &StoreHandle) -> Self {
        let [requests, numbers] = store.numbers();
        Self { url: store.url().into(), requests, numbers }
    }

    /// Returns the counts since `earlier`, an older status of the same store.
    fn since(&self, earlier: &Self) -> Self {
        let since = |now: &[(String, u64)], before: &[(String, u64)]| {
            let change = |(name, value): &(String, u64)| (name.clone(), value.saturating_sub(find(before, name)));
            now.iter().map(change).collect()
        };
        Self {
            url: self.url.clone(),
            requests: since(&self.requests, &earlier.requests),
            numbers: since(&self.numbers, &earlier.numbers),
        }
    }

    /// Returns a number by its name.
    pub(crate) fn number(&self, name: &str) -> u64 {
        find(&self.numbers, name)
    }
}

/// Returns the figures of all file systems together by name; names of counters end in `_total`.
fn cache(tree: &CacheStats, file_systems: &[FileSystemStatus]) -> Vec<(String, u64)> {
    let &CacheStats { entries, table_bytes, buckets, .. } = tree;
    let sum = |figure: fn(&FileSystemStatus) -> u64| file_systems.iter().map(figure).sum();
    let figures = [
        ("entries", entries as u64),
        ("live", sum(|of| of.live)),
        ("held", sum(|of| of.held)),
        ("entry_bytes", sum(|of| of.used.entries)),
        ("negative_bytes", sum(|of| of.used.negatives)),
        ("listing_bytes", sum(|of| of.used.listings)),
        ("slot_bytes", sum(|of| of.slot_bytes)),
        ("table_bytes", table_bytes as u64),
        ("table_buckets", buckets as u64),
        ("hits_total", sum(|of| of.hits)),
        ("misses_total", sum(|of| of.misses)),
        ("evicted_total", sum(|of| of.evicted)),
        ("looked_total", sum(|of| of.looked)),
        ("longest_look", file_systems.iter().map(|of| of.longest_look).max().unwrap_or(0)),
        ("answered_by_listing_total", sum(|of| of.answered_by_listing)),
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
    /// Returns the counts since `earlier`, an older status of the same mount. Gauges keep their
    /// value.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let file_systems = self.file_systems.iter().map(|now| {
            let before =
                earlier.file_systems.iter().find(|before| (&before.at, &before.source) == (&now.at, &now.source));
            before.map_or_else(|| now.clone(), |before| now.since(before))
        });
        let locks = self.locks.iter().map(|now| {
            let before = earlier.locks.iter().find(|before| before.name == now.name);
            before.map_or_else(|| now.clone(), |before| now.since(before))
        });
        let stores = self.stores.iter().map(|now| {
            let before = earlier.stores.iter().find(|before| before.url == now.url);
            before.map_or_else(|| now.clone(), |before| now.since(before))
        });
        let stores = stores.collect();
        let (snapshot, file_systems) = (self.snapshot.since(&earlier.snapshot), file_systems.collect());
        Self { snapshot, file_systems, locks: locks.collect(), stores, ..self.clone() }
    }

    /// Returns a figure of the caches, by name.
    pub(crate) fn cache(&self, name: &str) -> u64 {
        find(&self.snapshot.cache, name)
    }

    /// Returns a figure of the session, by name.
    pub(crate) fn gauge(&self, name: &str) -> u64 {
        find(&self.snapshot.gauges, name)
    }

    /// Returns the bytes of contents that requests of an operation have read or written.
    pub(crate) fn moved(&self, op: Op) -> u64 {
        self.snapshot.ops.iter().find(|stats| stats.name == op.name()).map_or(0, |stats| stats.bytes)
    }
}

fn find(figures: &[(String, u64)], name: &str) -> u64 {
    figures.iter().find(|(figure, _)| figure == name).map_or(0, |&(_, value)| value)
}
