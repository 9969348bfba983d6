//! Options of sessions and mounts.

use std::time::Duration;

/// Which side checks permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Checks {
    /// The kernel, by mode and ACL: `default_permissions` of `mount.fuse(8)`. It also checks names that it has cached.
    #[default]
    Kernel,
    /// Lightfoot, with the caller's supplementary groups, read from `/proc` for each request that needs them. The kernel then
    /// checks nothing where it sends no request: for names that it has cached, and for FIFOs, sockets and devices. So
    /// [`crate::mount`] lets in only the mounting user, and refuses [`MountOptions::allow_other`].
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
    /// The file that a name leads to.
    pub entry: Duration,
    /// Attributes.
    pub attr: Duration,
    /// That a name does not exist. With [`SessionOptions::reports_changes`] it should be short: a notice for everything
    /// ([`vfs::Observer::all`]) does not reach names that do not exist, as nobody has a list of them.
    pub negative: Duration,
}

impl Ttls {
    /// A day, or as long as the tree's file systems report their answers valid ([`vfs::Valid`]), if that is shorter: for a
    /// tree that only this mount changes, or whose file systems report changes.
    pub const LONG: Self = Self::all(Duration::from_secs(24 * 3600));

    /// One time for all three.
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
    /// Others change the tree's files too, and a file system reports that ([`vfs::Invalidator`]), though not for all files.
    /// Then the kernel drops its pages of a file also when it finds that the file has another size or time; and before
    /// Linux 6.2, which cannot expire names, it caches names only for [`Ttls::negative`].
    pub reports_changes: bool,
    /// The program changes the tree itself, too, or mounts it more than once. Operations on the
    /// tree that do not come from this session then invalidate the kernel's cache.
    pub tree_changes: bool,
    /// The number of nodes above which the session requests that the kernel drops some.
    pub max_nodes: usize,
    /// The kernel collects writes and keeps sizes and times meanwhile. Files opened for writing are then readable too.
    pub writeback: bool,
    /// The kernel keeps its pages of a file also when it finds that the file has another time, and the same size: `kernel_cache`
    /// of `mount.fuse(8)`. Without effect if [`reports_changes`](Self::reports_changes).
    pub kernel_cache: bool,
    /// The kernel reads and writes the backing files of a host directory without requests.
    pub passthrough: bool,
    /// Locks of `fcntl(2)` and `flock(2)` are taken in the tree, where its other users see them.
    /// Otherwise the kernel keeps the locks of this mount. With [`no_open`](Self::no_open) it
    /// always keeps the locks of `flock(2)`.
    pub locks: bool,
    /// The kernel sends no OPEN and RELEASE, also of directories, and reads and writes by node, which saves two requests for each open. For file
    /// systems with [`vfs::Opens::No`]. The caller of a write is then unknown, so each write clears
    /// set-id bits.
    pub no_open: bool,
    /// Mounts of this file system may map users and groups (`MOUNT_ATTR_IDMAP` of `mount_setattr(2)`; Linux 6.12, without effect
    /// before). Only requests that create a file then name their user, so all others act as root once the kernel has checked
    /// them: only with [`Checks::Kernel`] and without [`shown`](Self::shown) owners.
    pub idmap: bool,
    /// A security module of the kernel (SELinux, Smack) gives each new file a label, which is stored as an extended attribute, or the
    /// file is not made (Linux 5.17). Default: `false`.
    pub labels: bool,
    /// ACLs are obeyed (by the kernel, if it checks permissions), and can be read and set. Otherwise their calls fail with
    /// `EOPNOTSUPP`. Default: `true`.
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
    /// Where the kernel offers it (Linux 6.14, and `Y` in `/sys/module/fuse/parameters/enable_uring`) and lets this process
    /// use it.
    #[default]
    IfOffered,
    /// Never.
    Never,
    /// Otherwise mounting fails.
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
    /// Threads that serve requests of `/dev/fuse`, from 1 to 256. `None`: one for each CPU, at least 2 and at most 8. Of a tree
    /// that may wait, up to 64 start while all hang.
    pub threads: Option<usize>,
    /// Each of these threads has its own descriptor of `/dev/fuse`.
    pub clone_fd: bool,
    /// Longest read and write, in bytes.
    pub max_write: u32,
    /// Requests in the background (readahead, writeback, asynchronous I/O) that the kernel has under way, at most.
    pub max_background: u16,
    /// For how many seconds a request may have no reply before the kernel aborts the whole mount (Linux 6.15; without effect before):
    /// all later operations fail, and the server ends. The kernel looks every 15 seconds, and waits for 15 seconds at least. The locks
    /// of this mount are then the kernel's, as without [`locks`](SessionOptions::locks). Default: `None`, for ever.
    pub request_timeout: Option<u16>,
    /// The mount is unmounted also if the process is killed: `fusermount3`, which mounts then, waits for the end of the process.
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
