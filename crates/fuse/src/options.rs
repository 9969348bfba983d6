//! What a mount is asked to be.

use std::time::Duration;

/// Who decides what a caller may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// The kernel, by mode and ACL: `default_permissions` of `mount.fuse(8)`. It checks names that it has cached too.
    #[default]
    Kernel,
    /// Lightfoot, with the caller's supplementary groups (read from `/proc`, so for each request that needs them). A directory's
    /// search permission is checked when a name is looked up, not when the kernel uses a name that it has cached: with several
    /// users, set `entry_ttl` to 0.
    Own,
}

/// How attributes are shown, whatever they are: `uid=`, `gid=`, `umask=` of `mount.fuse(8)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Owner of all files.
    pub uid: Option<u32>,
    /// Group of all files.
    pub gid: Option<u32>,
    /// All files have the permissions that this leaves of 0777.
    pub umask: Option<u32>,
}

/// For how long the kernel may use what it was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttls {
    /// What a name leads to.
    pub entry: Duration,
    /// Attributes.
    pub attr: Duration,
    /// That a name is not there.
    pub negative: Duration,
}

impl Ttls {
    /// For a tree that nobody else changes, or that is told of changes: a day.
    pub const LONG: Self = Self::all(Duration::from_secs(24 * 3600));

    /// The same time for everything.
    #[must_use]
    pub const fn all(ttl: Duration) -> Self {
        Self { entry: ttl, attr: ttl, negative: ttl }
    }
}

/// What a session is asked to be, whatever carries it.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Who decides what a caller may do.
    pub checks: Checks,
    /// How attributes are shown.
    pub shown: Shown,
    /// For how long the kernel may use what it was told.
    pub ttls: Ttls,
    /// The kernel may know so many names before it is asked to let go of some.
    pub max_nodes: usize,
    /// The kernel collects writes and knows sizes and times by itself. Then files opened to write can be read.
    pub writeback: bool,
    /// Files of the host behind the tree are handed to the kernel, which reads and writes them by itself.
    pub passthrough: bool,
    /// Locks are taken in Lightfoot, where other users of the tree see them; else they are the kernel's own.
    pub locks: bool,
    /// Files are not opened: the kernel reads and writes by node, and saves two requests for each open. For trees that do
    /// not have to know ([`vfs::FileSystem::wants_opens`]). Who writes is not known then, so each write takes set-id bits away.
    pub no_open: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            checks: Checks::default(),
            shown: Shown::default(),
            ttls: Ttls::all(Duration::from_secs(1)),
            max_nodes: 500_000,
            writeback: false,
            passthrough: false,
            locks: false,
            no_open: false,
        }
    }
}

/// What a mount is asked to be.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// The session behind it.
    pub session: SessionOptions,
    /// What stands first in a list of mounts.
    pub name: String,
    /// Other users than the one who mounts may use it. (For others than root `/etc/fuse.conf` must say `user_allow_other`.)
    pub allow_other: bool,
    /// The mount point may hold files, which are hidden then, or be a mount of Lightfoot.
    pub nonempty: bool,
    /// Nothing can be changed.
    pub read_only: bool,
    /// Set-id bits mean nothing.
    pub nosuid: bool,
    /// Devices are not opened.
    pub nodev: bool,
    /// Nothing is executed.
    pub noexec: bool,
    /// Reading a file does not change when it was read.
    pub noatime: bool,
    /// ACLs are obeyed by the kernel. Only with [`Checks::Kernel`].
    pub acl: bool,
    /// Threads that answer; `None`: one for each CPU, two at least and eight at most.
    pub threads: Option<usize>,
    /// Each thread has its own channel to the kernel.
    pub clone_fd: bool,
    /// Longest read and write, in bytes.
    pub max_write: u32,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            session: SessionOptions::default(),
            name: "lightfoot".into(),
            allow_other: false,
            nonempty: false,
            read_only: false,
            nosuid: false,
            nodev: false,
            noexec: false,
            noatime: false,
            acl: true,
            threads: None,
            clone_fd: true,
            max_write: 1 << 20,
        }
    }
}
