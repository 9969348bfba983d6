//! Options of sessions and mounts.

use std::time::Duration;

/// Which side checks permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checks {
    /// The kernel, by mode and ACL: `default_permissions` of `mount.fuse(8)`. The kernel checks
    /// cached names as well.
    #[default]
    Kernel,
    /// Lightfoot, with the caller's supplementary groups, read from `/proc` for each request that
    /// needs them. The kernel checks nothing for which it sends no request: cached names, FIFOs,
    /// sockets and devices. So [`crate::mount`] lets in only the mounting user, and refuses
    /// [`MountOptions::allow_other`].
    Own,
}

/// Overrides of attributes: `uid=`, `gid=` and `umask=` of `mount.fuse(8)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    /// Owner of all files.
    pub uid: Option<u32>,
    /// Group of all files.
    pub gid: Option<u32>,
    /// All files have the permission bits `0o777 & !umask`.
    pub umask: Option<u32>,
}

/// How long the kernel may cache answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttls {
    /// The time for which the kernel may cache the file that a name leads to.
    pub entry: Duration,
    /// The time for which the kernel may cache attributes.
    pub attr: Duration,
    /// The time for which the kernel may cache that a name does not exist. It should be short with
    /// [`SessionOptions::reports_changes`]: a notice for everything ([`vfs::Observer::all`]) does
    /// not reach absent names, since nothing lists them.
    pub negative: Duration,
}

impl Ttls {
    /// A day, or as long as the tree's file systems report their answers valid ([`vfs::Valid`]), if that is shorter: for a
    /// tree that only this mount changes, or whose file systems report changes.
    pub const LONG: Self = Self::all(Duration::from_secs(24 * 3600));

    /// Returns `ttl` for all three times.
    #[must_use]
    pub const fn all(ttl: Duration) -> Self {
        Self { entry: ttl, attr: ttl, negative: ttl }
    }
}

/// Options of a session, for any transport.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Which side checks permissions.
    pub checks: Checks,
    /// Overrides of attributes.
    pub shown: Shown,
    /// How long the kernel may cache answers.
    pub ttls: Ttls,
    /// Programs outside of the tree change its files, and a file system reports the changes of some
    /// files ([`vfs::Invalidator`]). With this option the kernel drops its pages of a file also
    /// when it finds another size or time of the file. Before Linux 6.2, which cannot expire names,
    /// the kernel caches names only for [`Ttls::negative`].
    pub reports_changes: bool,
    /// The program changes the tree directly, or mounts it more than once. Operations on the tree
    /// that do not come from this session then invalidate the kernel's cache.
    pub tree_changes: bool,
    /// Programs outside of the tree append to its files. A file that is opened only to append has no pages in the kernel, so
    /// each `write(2)` of up to [`MountOptions::max_write`] bytes is one write to the tree. No effect with
    /// [`writeback`](Self::writeback) and [`no_open`](Self::no_open).
    pub direct_appends: bool,
    /// The number of nodes above which the session requests that the kernel drops some.
    pub max_nodes: usize,
    /// The kernel collects writes, and keeps sizes and times until it sends the writes. The session
    /// opens files for reading as well when they are opened for writing.
    pub writeback: bool,
    /// The kernel keeps its pages of a file that has not changed also if it may not cache attributes:
    /// `kernel_cache` of `mount.fuse(8)`. No effect with [`reports_changes`](Self::reports_changes).
    pub kernel_cache: bool,
    /// The kernel reads and writes the backing files of a host directory without requests.
    pub passthrough: bool,
    /// Locks of `fcntl(2)` and `flock(2)` are taken in the tree, where other users of the tree see
    /// them. Without this option the kernel keeps the locks of this mount. With
    /// [`no_open`](Self::no_open) it always keeps the locks of `flock(2)`.
    pub locks: bool,
    /// The kernel sends no OPEN and RELEASE, of directories neither, and reads and writes by node,
    /// which saves two requests for each open. This is for file systems with [`vfs::Opens::No`].
    /// The session cannot identify the caller of a write, so each write clears set-id bits.
    pub no_open: bool,
    /// Mounts of this file system may map users and groups (`MOUNT_ATTR_IDMAP` of
    /// `mount_setattr(2)`; Linux 6.12, no effect before). With this option only requests that
    /// create a file name their user. All other requests act as root after the kernel has checked
    /// them, but keep no set-id bits when contents change. So it needs [`Checks::Kernel`], and
    /// excludes [`shown`](Self::shown) owners and [`no_open`](Self::no_open). On host directories it
    /// excludes [`MountOptions::allow_other`].
    pub idmap: bool,
    /// A security module of the kernel (SELinux, Smack) gives each new file a label, which the
    /// session stores as an extended attribute; if it cannot, the file is not made (Linux 5.17).
    /// Default: `false`.
    pub labels: bool,
    /// ACLs decide about permissions (in the kernel, if it checks permissions), and can be read and
    /// set. Without this option calls for ACLs fail with `EOPNOTSUPP`. Default: `true`.
    pub acl: bool,
}

impl Default for SessionOptions {
    fn default() -> Self {
        Self {
            checks: Checks::default(),
            shown: Shown::default(),
            ttls: Ttls::all(Duration::from_secs(1)),
            reports_changes: false,
            tree_changes: false,
            direct_appends: false,
            max_nodes: 500_000,
            writeback: false,
            kernel_cache: false,
            passthrough: false,
            locks: false,
            no_open: false,
            idmap: false,
            labels: false,
            acl: true,
        }
    }
}

/// Whether requests come through io_uring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Uring {
    /// Through io_uring if the kernel offers it (Linux 6.14, and `Y` in
    /// `/sys/module/fuse/parameters/enable_uring`) and lets this process use it.
    #[default]
    IfOffered,
    /// Never.
    Never,
    /// Through io_uring; a mount without it fails.
    Required,
}

/// Options of a mount.
#[derive(Clone, Debug)]
pub struct MountOptions {
    /// The session's options.
    pub session: SessionOptions,
    /// The source, the first column of a list of mounts.
    pub name: String,
    /// Other users may use the mount. (If root does not mount, `/etc/fuse.conf` must have `user_allow_other`.) Only with
    /// [`Checks::Kernel`] and [`acl`](SessionOptions::acl): see [`crate::checker`].
    pub allow_other: bool,
    /// The mount point may have entries, which the mount hides, or may be a mount of Lightfoot.
    pub nonempty: bool,
    /// All changes fail with `EROFS`.
    pub read_only: bool,
    /// Set-id bits have no effect. Default: `true`.
    pub nosuid: bool,
    /// Devices cannot be opened. Default: `true`.
    pub nodev: bool,
    /// Files cannot be executed.
    pub noexec: bool,
    /// Symbolic links are not followed (`ELOOP`). Linux 5.10; mounting by `fusermount3` may fail with it.
    pub nosymfollow: bool,
    /// Reading does not change access times.
    pub noatime: bool,
    /// Whether requests come through io_uring.
    pub uring: Uring,
    /// With io_uring: each thread runs only on the processor whose requests it serves. Without it the kernel chooses, which costs
    /// processor time, and keeps processors free that are isolated for other work. Default: `true`.
    pub pin: bool,
    /// Threads that serve requests of `/dev/fuse`, from 1 to 256. `None`: one for each CPU, at
    /// least 2 and at most 8. If the tree may wait, up to 64 threads start while all of them hang.
    pub threads: Option<usize>,
    /// Each of these threads has its own descriptor of `/dev/fuse`.
    pub clone_fd: bool,
    /// Longest read and write, in bytes.
    pub max_write: u32,
    /// Requests in the background (readahead, writeback, asynchronous I/O) that the kernel has under way, at most.
    pub max_background: u16,
    /// For how many seconds a request may have no reply before the kernel aborts the whole mount
    /// (Linux 6.15; without effect before): all later operations fail, and the server ends. The
    /// kernel looks every 15 seconds, and waits for 15 seconds at least. With a timeout the kernel
    /// keeps the locks of this mount, as without [`locks`](SessionOptions::locks). Default: `None`,
    /// for ever.
    pub request_timeout: Option<u16>,
    /// The mount is unmounted even if the process is killed: `fusermount3` mounts, and waits for
    /// the end of the process.
    pub auto_unmount: bool,
}

impl Default for MountOptions {
    fn default() -> Self {
        Self {
            session: SessionOptions::default(),
            name: "lightfoot".into(),
            allow_other: false,
            nonempty: false,
            read_only: false,
            nosuid: true,
            nodev: true,
            noexec: false,
            nosymfollow: false,
            noatime: false,
            uring: Uring::default(),
            pin: true,
            threads: None,
            clone_fd: true,
            max_write: 1 << 20,
            max_background: 64,
            request_timeout: None,
            auto_unmount: false,
        }
    }
}
