//! The state of a source that the kernel may cache, unless options change that.

use super::{Kind, PlannedMount, Source};
use crate::options::HostSettings;
use fuse::{MountOptions, Ttls};
use hostfs::{MountPoints, Revalidate};
use lightfoot::MountFlags;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long the kernel caches a directory that has no option about it.
const DEFAULT_TTL: Duration = Duration::from_secs(1);

/// The most names that the kernel may cache before Lightfoot invalidates some.
const MAX_NAMES: usize = 500_000;

/// A directory of this machine in a tree.
pub(crate) struct SourceDirectory<'a> {
    /// Its absolute path.
    pub(crate) path: &'a Path,
    /// Whether mount points below it are shown.
    pub(crate) is_crossed: bool,
}

impl Source {
    /// Returns the mount point of each source in the tree, and the source's name.
    pub(crate) fn sources(&self) -> Vec<(PathBuf, String)> {
        let named = |mount: &PlannedMount| (mount.at.clone().into(), mount.kind.name().to_string_lossy().into_owned());
        self.mounts.iter().map(named).collect()
    }

    /// Returns whether all file systems of the tree are `ram:`.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.mounts.iter().all(|mount| matches!(mount.kind, Kind::Ram))
    }

    /// Returns how long the kernel may cache: the shortest time of all sources in the tree.
    pub(crate) fn ttls(&self) -> Ttls {
        let each = self.mounts.iter().map(|mount| match &mount.kind {
            Kind::Ram => Ttls::LONG.entry,
            Kind::Directory(_) => ttl(&mount.settings.host),
            Kind::Objects(_) => mount.settings.objects.ttl / 2,
        });
        let ttls = each.min().map_or(Ttls::LONG, Ttls::all);
        // No notice reaches all absent names.
        Ttls { negative: if self.reports_changes() { ttls.negative.min(DEFAULT_TTL) } else { ttls.negative }, ..ttls }
    }

    /// Returns whether a source reports changes by other programs.
    pub(crate) fn reports_changes(&self) -> bool {
        self.hosts().any(|host| host.watch == Some(true))
    }

    /// Returns whether a source is a directory that other programs change at the same time (`watch`, `always`).
    pub(crate) fn is_shared_with_host(&self) -> bool {
        self.hosts().any(|host| host.watch == Some(true) || host.policy == Some(Revalidate::Always))
    }

    fn hosts(&self) -> impl Iterator<Item = &HostSettings> {
        let hosts = self.mounts.iter().filter(|mount| matches!(mount.kind, Kind::Directory(_)));
        hosts.map(|mount| &mount.settings.host)
    }

    /// Returns the number of names that the kernel may cache. Each pins an entry of ours, so some
    /// room must remain for others.
    pub(crate) fn max_names(&self) -> usize {
        let cached = self.mounts.iter().filter(|mount| !matches!(mount.kind, Kind::Ram));
        let fit = cached.map(|mount| usize::try_from(mount.settings.budget.names()).unwrap_or(usize::MAX) / 2);
        fit.min().unwrap_or(usize::MAX).min(MAX_NAMES)
    }

    /// Adds to `mount` what a source forbids. The kernel has one mount for all sources, so it forbids this in all of them; the
    /// tree cannot, since the kernel runs programs, opens devices and follows links by itself.
    pub(crate) fn forbid(&self, mount: &mut MountOptions) {
        for flags in self.mounts.iter().map(|mount| mount.settings.flags) {
            let has = |flag: MountFlags| flags.bits() & flag.bits() != 0;
            mount.nosuid |= has(MountFlags::NOSUID);
            mount.nodev |= has(MountFlags::NODEV);
            mount.noexec |= has(MountFlags::NOEXEC);
            mount.nosymfollow |= has(MountFlags::NOSYMFOLLOW);
        }
    }

    /// Returns the directories of this machine in the tree, in the order in which [`Source::open`]
    /// opens them.
    pub(crate) fn directories(&self) -> impl Iterator<Item = SourceDirectory<'_>> {
        self.mounts.iter().filter_map(|mount| match &mount.kind {
            Kind::Directory(path) => {
                let is_crossed = mount.settings.host.mount_points == Some(MountPoints::Cross);
                Some(SourceDirectory { path, is_crossed })
            }
            Kind::Ram | Kind::Objects(_) => None,
        })
    }
}

/// Long only where nothing else changes the directory, or inotify reports changes.
fn ttl(host: &HostSettings) -> Duration {
    match host.policy {
        Some(Revalidate::Exclusive) => Ttls::LONG.entry,
        Some(Revalidate::Always) => Duration::ZERO,
        Some(Revalidate::Ttl(ttl)) => ttl,
        None if host.watch == Some(true) => Ttls::LONG.entry,
        None | Some(_) => DEFAULT_TTL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Settings;

    #[test]
    fn only_directories_that_are_watched_or_never_cached_are_shared_with_the_host() {
        let is_shared = |kind, host: HostSettings| {
            let mut settings = Settings::new();
            settings.host = host;
            let mount = PlannedMount { at: "/".into(), kind, settings, origin: None };
            Source { name: "test".into(), mounts: vec![mount] }.is_shared_with_host()
        };
        let directory = || Kind::Directory("/".into());
        let of = |policy, watch| HostSettings { policy, watch, ..HostSettings::default() };
        let ttl = Some(Revalidate::Ttl(DEFAULT_TTL));
        for (policy, watch, expected) in [
            (None, None, false),
            (ttl, Some(false), false),
            (Some(Revalidate::Exclusive), None, false),
            (Some(Revalidate::Always), None, true),
            (ttl, Some(true), true),
            (None, Some(true), true),
        ] {
            assert_eq!(is_shared(directory(), of(policy, watch)), expected, "{policy:?}, {watch:?}");
            assert!(!is_shared(Kind::Ram, of(policy, watch)));
        }
    }
}
