//! A host directory as a file system: the words of the command line, told to the crate that does it.

use hostfs::{HostFs, HostOptions, MountPoints, Revalidate};
use std::io;
use std::path::Path;

/// What the words of a host directory say; `None`: as the file system thinks best.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostWords {
    /// How long what was learnt of the host is believed.
    pub(crate) trust: Option<Revalidate>,
    /// Whether the host is asked to tell of changes.
    pub(crate) watch: Option<bool>,
    /// What is done about mount points below the directory.
    pub(crate) mount_points: Option<MountPoints>,
    /// The most files that are kept open.
    pub(crate) max_fds: Option<usize>,
    /// Whether nothing is changed.
    pub(crate) read_only: bool,
}

impl HostWords {
    /// The directory at `path`, shown like this.
    pub(crate) fn open(&self, path: &Path) -> io::Result<HostFs> {
        let usual = HostOptions::default();
        let options = HostOptions {
            policy: self.trust.unwrap_or(usual.policy),
            mount_points: self.mount_points.unwrap_or(usual.mount_points),
            max_fds: self.max_fds.unwrap_or(usual.max_fds),
            watch: self.watch.unwrap_or(usual.watch),
            read_only: self.read_only,
            ..usual
        };
        HostFs::new(path, &options)
    }
}
