//! The names of operations and gauges.
//!
//! Source: `enum fuse_opcode` in Linux's
//! `include/uapi/linux/fuse.h`.

/// Defines an enumeration with all its values in order, and their names.
macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($value:ident = $text:literal, $what:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = $what] $value,)*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$value,)*];

            /// Its name in snapshots.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }
    };
}

named! {
    /// An operation of FUSE.
    Op {
        Lookup = "lookup", "A name in a directory";
        Forget = "forget", "Subtracts from the lookup count of one node";
        BatchForget = "batch_forget", "Subtracts from the lookup counts of many nodes";
        Getattr = "getattr", "Attributes: `stat(2)`";
        Setattr = "setattr", "Changes attributes: `chmod(2)`, `chown(2)`, `truncate(2)`, `utimensat(2)`";
        Readlink = "readlink", "`readlink(2)`";
        Mknod = "mknod", "`mknod(2)`";
        Mkdir = "mkdir", "`mkdir(2)`";
        Unlink = "unlink", "`unlink(2)`";
        Rmdir = "rmdir", "`rmdir(2)`";
        Symlink = "symlink", "`symlink(2)`";
        Rename = "rename", "`rename(2)` and `renameat2(2)`";
        Link = "link", "`link(2)`";
        Open = "open", "`open(2)` of a file";
        Read = "read", "`read(2)`";
        Write = "write", "`write(2)`";
        Statfs = "statfs", "`statfs(2)`";
        Release = "release", "The last `close(2)` of a file";
        Fsync = "fsync", "`fsync(2)` of a file";
        Setxattr = "setxattr", "`setxattr(2)`";
        Getxattr = "getxattr", "`getxattr(2)`";
        Listxattr = "listxattr", "`listxattr(2)`";
        Removexattr = "removexattr", "`removexattr(2)`";
        Flush = "flush", "Each `close(2)` of a file";
        Opendir = "opendir", "`open(2)` of a directory";
        Readdir = "readdir", "`getdents(2)`";
        Readdirplus = "readdirplus", "`getdents(2)`, with lookups of the names";
        Releasedir = "releasedir", "The last `close(2)` of a directory";
        Fsyncdir = "fsyncdir", "`fsync(2)` of a directory";
        Getlk = "getlk", "`fcntl(2)` with `F_GETLK`";
        Setlk = "setlk", "`fcntl(2)` with `F_SETLK` or `F_SETLKW`, and `flock(2)`";
        Access = "access", "`access(2)`";
        Create = "create", "`open(2)` with `O_CREAT`";
        Bmap = "bmap", "`ioctl(2)` with `FIBMAP`";
        Ioctl = "ioctl", "`ioctl(2)`";
        Poll = "poll", "`poll(2)`";
        Fallocate = "fallocate", "`fallocate(2)`";
        Lseek = "lseek", "`lseek(2)` with `SEEK_DATA` or `SEEK_HOLE`";
        Tmpfile = "tmpfile", "`open(2)` with `O_TMPFILE`";
        Statx = "statx", "`statx(2)` with `STATX_BTIME`";
        CopyFileRange = "copy_file_range", "`copy_file_range(2)`";
    }
}

/// Results of an operation that are a regular "no": the reply to a question, or one after which the kernel or the program does
/// without. Nobody has to mend them, so they do not count as errors. `ENOSYS` is one for each operation: the kernel then
/// sends no more, or does it by itself.
pub(super) const REGULAR_NOES: &[(Op, &[&str])] = &[
    (Op::Lookup, &["ENOENT"]),
    (Op::Getxattr, &["ENODATA", "EOPNOTSUPP", "ERANGE"]),
    (Op::Listxattr, &["EOPNOTSUPP", "ERANGE"]),
    (Op::Access, &["EACCES"]),
    (Op::Setlk, &["EAGAIN"]),
    (Op::Ioctl, &["ENOTTY"]),
    (Op::Lseek, &["ENXIO"]),
    (Op::Tmpfile, &["EOPNOTSUPP"]),
    (Op::Fallocate, &["EOPNOTSUPP"]),
    (Op::CopyFileRange, &["EOPNOTSUPP", "EXDEV"]),
];

/// Whether the operation of this name ends with this errno as a regular "no".
pub(super) fn is_regular_no(op: &str, errno: &str) -> bool {
    let of = REGULAR_NOES.iter().filter(|(of, _)| of.name() == op);
    errno == "ENOSYS" || of.flat_map(|(_, errnos)| *errnos).any(|regular| *regular == errno)
}

named! {
    /// A figure of the session.
    Gauge {
        Nodes = "nodes", "Nodes that the kernel knows";
        Lookups = "lookups", "The sum of their lookup counts";
        ExcessForgets = "excess_forgets", "Lookups that the kernel took back in excess of its counts: more than 0 is a defect";
        Handles = "handles", "Open files and directories";
        NoticesSent = "notices_sent", "Notices that were sent; \"everything\" counts as one";
        NoticesFailed = "notices_failed", "Notices that failed, except with `ENOENT`";
        NoticesCollapsed = "notices_collapsed", "How often the queue was full and became \"everything\"";
        SlowNotices = "slow_notices", "Notices that took longer than half a second";
        Panics = "panics", "Requests and notices that panicked: more than 0 is a defect";
        LockWaiters = "lock_waiters", "Requests that wait for a lock";
        InFlight = "in_flight", "Requests that were received and have no reply yet";
    }
}

impl Gauge {
    /// Whether it never falls, so that a difference counts what happened in between.
    #[must_use]
    pub const fn is_counter(self) -> bool {
        !matches!(self, Self::Nodes | Self::Lookups | Self::Handles | Self::LockWaiters | Self::InFlight)
    }
}
