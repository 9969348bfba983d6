//! How a host directory is shown.
//!
//! Plain values, set once. The terms are from FUSE (`entry_timeout`) and `mount(8)`.

use crate::system;
use core::time::Duration;
use vfs::Valid;

/// The largest budget of [`HostOptions::default`].
const MAX_DEFAULT_FDS: u64 = 16_384;

/// The budget if the process has no limit.
const UNLIMITED_FDS: u64 = 512;

/// The default of [`Revalidate::Ttl`].
const DEFAULT_TTL: Duration = Duration::from_secs(1);

/// How a host directory is shown; see each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// How long an answer of the host may be cached, which depends on what else changes the directory. Default:
    /// [`Revalidate::Ttl`] of one second.
    pub policy: Revalidate,
    /// How mount points below the source are shown. Default: [`MountPoints::Stay`].
    pub mount_points: MountPoints,
    /// Descriptors that are kept open at most, not counting open files and files that were removed
    /// while in use. At least 8. Default: half of the limit of the process (`RLIMIT_NOFILE`), at
    /// most 16384.
    pub max_fds: usize,
    /// Refuses all changes with `EROFS`. Default: `false`.
    pub read_only: bool,
    /// With whose rights the host is changed, and the owner of new files. Default: [`Ownership::Caller`] for a process of root, [`Ownership::Daemon`] for others.
    pub ownership: Ownership,
    /// The use of POSIX ACLs, if the source's file system has them. Default: [`HostAcls::Apply`].
    pub acls: HostAcls,
    /// Watches directories by `inotify(7)`. With this option and [`Revalidate::Ttl`], the contents
    /// of watched directories are cached until the host reports a change. Default: `false`.
    pub watch: bool,
    /// Which reads change access times on the host. Default: [`AccessTimes::Host`].
    pub access_times: AccessTimes,
}

impl Default for HostOptions {
    fn default() -> Self {
        let limit = system::max_descriptors();
        let fds = limit.map_or(UNLIMITED_FDS, |limit| limit / 2).min(MAX_DEFAULT_FDS);
        let is_root = system::user().is_root();
        Self {
            policy: Revalidate::Ttl(DEFAULT_TTL),
            mount_points: MountPoints::Stay,
            max_fds: usize::try_from(fds).unwrap_or(usize::MAX),
            read_only: false,
            ownership: if is_root { Ownership::Caller } else { Ownership::Daemon },
            acls: HostAcls::Apply,
            watch: false,
            access_times: AccessTimes::Host,
        }
    }
}

/// How long an answer of the host may be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Revalidate {
    /// Until this file system makes a change, as no other program changes the directory. Whole
    /// listings are cached as well.
    Exclusive,
    /// For this time. With [`HostOptions::watch`], it applies only to directories that cannot be watched and to files with
    /// several names.
    Ttl(Duration),
    /// Not at all: each use is a request to the host. [`HostOptions::watch`] has no effect.
    Always,
}

impl Revalidate {
    /// Returns how long an answer is valid that no watch invalidates.
    pub(crate) fn valid(self) -> Valid {
        match self {
            Self::Exclusive => Valid::UntilInvalidated,
            Self::Ttl(ttl) => Valid::For(u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX)),
            Self::Always => Valid::For(0),
        }
    }
}

/// The use of the POSIX ACLs of the source. The host obeys them for each change in any case
/// ([`Ownership::Caller`]), and applies default ACLs to new files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostAcls {
    /// The VFS obeys ACLs, and programs can set them. Each lookup, and each request for attributes,
    /// makes one more system call for a file, to read its ACL, and two for a directory, which has
    /// two ACLs. If an ACL cannot be read, the file's group class has no permission, since the
    /// group bits of the mode are the mask.
    #[default]
    Apply,
    /// Programs can read and set ACLs as extended attributes, but the VFS does not obey them. This
    /// is for a front end whose kernel checks permissions, and reads the ACLs that it needs.
    Store,
    /// Programs can read ACLs, but not set them (`EOPNOTSUPP`). The VFS does not obey ACLs: only a
    /// file's mode gives permissions. Its group bits are the mask of the ACL, and may allow more
    /// than the ACL.
    Refuse,
}

/// Which reads change access times on the host. Reads that a cache answers never do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AccessTimes {
    /// The reads that the host's mount selects: `relatime`, `noatime`... in `mount(8)`.
    #[default]
    Host,
    /// As `Host`, but never listings of directories: `nodiratime`.
    NotOfDirectories,
    /// None: `noatime`. For files of other users this needs root (`O_NOATIME` in `open(2)`);
    /// without root the host's mount decides.
    Keep,
}

/// How mount points below the source are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MountPoints {
    /// Mounted file systems are shown. Their inode numbers are mixed with the device, so that they stay unique; a listing
    /// has the number of the covered directory, as on the host.
    Cross,
    /// Mounted file systems are not entered: a lookup of a mount point fails with `EXDEV`, though listings contain it. The
    /// covered directory is not shown either.
    #[default]
    Stay,
}

/// With whose rights the host is changed, and the owner of new files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ownership {
    /// The caller. The thread takes the caller's user, group and supplementary groups while it
    /// makes a file, changes one or removes a name. The host checks the change by its present
    /// owners and modes; owners, quotas and inherited groups are right. If the host refuses the
    /// switch, the change fails with `EPERM`. This needs a root process; in another process it is
    /// as [`Ownership::Daemon`].
    Caller,
    /// The user and group of the process. Only the VFS, or the front end, checks the rights of
    /// callers, by the attributes in the caches. For callers other than the process's user, and
    /// without [`vfs::Capabilities::FSETID`], new files and changed modes get no set-id bits, and
    /// writes clear them.
    Daemon,
}
