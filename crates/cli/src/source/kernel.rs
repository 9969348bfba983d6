//! What a kernel that shows a source is told of it.

use super::Source;
use super::host::HostWords;
use super::plan::Kind;
use fuse::Ttls;
use hostfs::{MountPoints, Revalidate};
use std::path::Path;
use std::time::Duration;
use vfs::Budget;

/// For how long the kernel believes a directory of which nothing was said.
const UNSAID: Duration = Duration::from_secs(1);

/// A directory of the host that is shown.
pub(crate) struct HostDir<'a> {
    /// Where it is.
    pub(crate) path: &'a Path,
    /// Whether what is mounted below is shown too.
    pub(crate) crosses: bool,
}

/// A kernel that knows more names than this is asked to let go of some.
const MOST_NAMES: usize = 500_000;

impl Source {
    /// What the caches of the root may hold.
    pub(crate) fn budget(&self) -> Budget {
        self.mounts.first().map_or_else(Budget::default, |root| root.mounted.budget)
    }

    /// For how long a kernel may believe what it was told: of several mounts, the shortest.
    pub(crate) fn ttls(&self) -> Ttls {
        let each = self.mounts.iter().map(|mount| match &mount.kind {
            Kind::Ram(..) | Kind::File(_) => Ttls::LONG.entry,
            Kind::Host(_, host, _) => believed(host),
        });
        each.min().map_or(Ttls::LONG, Ttls::all)
    }

    /// How many names a kernel may know: what it knows is held, and must leave room in the caches of directories.
    pub(crate) fn max_names(&self) -> usize {
        let hosts = self.mounts.iter().filter(|mount| matches!(mount.kind, Kind::Host(..)));
        let fit = hosts.map(|mount| usize::try_from(mount.mounted.budget.names()).unwrap_or(usize::MAX) / 2);
        fit.min().unwrap_or(usize::MAX).min(MOST_NAMES)
    }

    /// The directories of the host that are shown, in the order in which [`Source::open_telling`] tells of them.
    pub(crate) fn host_dirs(&self) -> impl Iterator<Item = HostDir<'_>> {
        self.mounts.iter().filter_map(|mount| match &mount.kind {
            Kind::Host(path, host, _) => {
                Some(HostDir { path, crosses: matches!(host.mount_points, Some(MountPoints::Cross)) })
            }
            Kind::Ram(..) | Kind::File(_) => None,
        })
    }
}

/// Nobody else changes what is believed for long, or the host tells.
fn believed(host: &HostWords) -> Duration {
    match host.trust {
        Some(Revalidate::Exclusive) => Ttls::LONG.entry,
        Some(Revalidate::Always) => Duration::ZERO,
        Some(Revalidate::Ttl(ttl)) => ttl,
        None if host.watch == Some(true) => Ttls::LONG.entry,
        None => UNSAID,
    }
}
