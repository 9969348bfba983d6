//! How a host directory is shown.
//!
//! Plain values, set once. Own code; the words are those of FUSE (`entry_timeout`) and of `mount(8)`.

use core::time::Duration;

/// Most descriptors that [`HostOptions::default`] asks for.
const MOST_FDS: u64 = 16_384;

/// Descriptors that are asked for where the limit of the process is not known.
const SOME_FDS: u64 = 512;

/// For how long the default takes an answer of the host for good.
const DEFAULT_TTL: Duration = Duration::from_secs(1);

/// How a host directory is shown; see each field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOptions {
    /// Who else changes the directory, and so for how long an answer of the host is good. Default: [`Revalidate::Ttl`]
    /// of a second.
    pub policy: Revalidate,
    /// What is done about mount points below the source. Default: [`MountPoints::Stay`].
    pub mount_points: MountPoints,
    /// Descriptors that are kept open at most, besides those of files that are open and of files that were removed
    /// while they are in use. At least 8 are used. Default: half of what the process may have (`RLIMIT_NOFILE`), at
    /// most 16384.
    pub max_fds: usize,
    /// Refuses all changes with `EROFS`. Default: `false`.
    pub read_only: bool,
    /// Whose what is made is. Default: [`Ownership::Caller`] for a process of root, [`Ownership::Daemon`] for others.
    pub ownership: Ownership,
    /// Heeds POSIX ACLs: each lookup of a file reads its ACL, and of a directory two, by as many system calls more.
    /// Without, a file's mode alone decides who may do what with it (whose group bits are the mask of an ACL, if it has
    /// one), and giving it an ACL is `EOPNOTSUPP`. Nothing is asked where the source's file system has none. Default:
    /// `false`.
    pub acls: bool,
    /// Asks the host by `inotify(7)` to say what others change. With [`Revalidate::Ttl`], what is in watched
    /// directories is then good until the host says otherwise. Default: `false`.
    pub watch: bool,
}

impl Default for HostOptions {
    fn default() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let fds = limit.map_or(SOME_FDS, |limit| limit / 2).min(MOST_FDS);
        let is_root = rustix::process::geteuid().is_root();
        Self {
            policy: Revalidate::Ttl(DEFAULT_TTL),
            mount_points: MountPoints::Stay,
            max_fds: usize::try_from(fds).unwrap_or(usize::MAX),
            read_only: false,
            ownership: if is_root { Ownership::Caller } else { Ownership::Daemon },
            acls: false,
            watch: false,
        }
    }
}

/// For how long an answer of the host is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revalidate {
    /// Until this file system changes it: nobody else does. Whole listings are kept.
    Exclusive,
    /// For so long. With [`HostOptions::watch`]: in directories that cannot be watched, and for files with several
    /// names.
    Ttl(Duration),
    /// Not at all: the host is asked each time. [`HostOptions::watch`] adds nothing.
    Always,
}

/// What is done about mount points below the source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountPoints {
    /// What is mounted below is shown. Inode numbers are mixed with the device there, so that they stay unique; a
    /// listing says the number of the directory that is covered, as the host's does.
    Cross,
    /// What is mounted below is not entered: such a name is `EXDEV`, though listings have it. What the mount covers is
    /// not seen.
    #[default]
    Stay,
}

/// Whose what is made is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// The caller's: the thread takes the caller's user and group while it makes something, so that owner, quota and
    /// directories that hand on their group are right. Where that is refused (the caller is allowed by a supplementary
    /// group), it is made by the process and then given to the caller. Only a process of root can; for others it is
    /// [`Ownership::Daemon`].
    Caller,
    /// The process's.
    Daemon,
}
