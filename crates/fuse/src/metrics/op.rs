//! The names of operations and gauges.
//!
//! Source: `enum fuse_opcode` in Linux's
//! `include/uapi/linux/fuse.h`.

use fusedev::wire::abi::opcode;

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

            /// Returns its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$value => $text,)*
                }
            }
        }
    };
}

pub(crate) use named;

/// Defines the operations with their names, and the opcodes of requests that count as each.
macro_rules! operations {
    ($($value:ident $([$($code:ident),+])? = $text:literal, $what:literal;)*) => {
        named! {
            /// An operation of FUSE.
            Op { $($value = $text, $what;)* }
        }

        impl Op {
            /// Returns the operation as which a request with this opcode is counted. `None`: it has
            /// no reply, or is not served.
            pub(crate) const fn of(code: u32) -> Option<Self> {
                match code {
                    $($($(opcode::$code)|+ => Some(Self::$value),)?)*
                    _ => None,
                }
            }
        }
    };
}

operations! {
    Lookup[LOOKUP] = "lookup", "A name in a directory";
    Forget = "forget", "Subtracts from the lookup count of one node";
    BatchForget = "batch_forget", "Subtracts from the lookup counts of many nodes";
    Getattr[GETATTR] = "getattr", "Attributes: `stat(2)`";
    Setattr[SETATTR] = "setattr", "Changes attributes: `chmod(2)`, `chown(2)`, `truncate(2)`, `utimensat(2)`";
    Readlink[READLINK] = "readlink", "`readlink(2)`";
    Mknod[MKNOD] = "mknod", "`mknod(2)`";
    Mkdir[MKDIR] = "mkdir", "`mkdir(2)`";
    Unlink[UNLINK] = "unlink", "`unlink(2)`";
    Rmdir[RMDIR] = "rmdir", "`rmdir(2)`";
    Symlink[SYMLINK] = "symlink", "`symlink(2)`";
    Rename[RENAME, RENAME2] = "rename", "`rename(2)` and `renameat2(2)`";
    Link[LINK] = "link", "`link(2)`";
    Open[OPEN] = "open", "`open(2)` of a file";
    Read[READ] = "read", "`read(2)`";
    Write[WRITE] = "write", "`write(2)`";
    Statfs[STATFS] = "statfs", "`statfs(2)`";
    Release[RELEASE] = "release", "The last `close(2)` of a file";
    Fsync[FSYNC] = "fsync", "`fsync(2)` of a file";
    Setxattr[SETXATTR] = "setxattr", "`setxattr(2)`";
    Getxattr[GETXATTR] = "getxattr", "`getxattr(2)`";
    Listxattr[LISTXATTR] = "listxattr", "`listxattr(2)`";
    Removexattr[REMOVEXATTR] = "removexattr", "`removexattr(2)`";
    Flush[FLUSH] = "flush", "Each `close(2)` of a file";
    Opendir[OPENDIR] = "opendir", "`open(2)` of a directory";
    Readdir[READDIR] = "readdir", "`getdents(2)`";
    Readdirplus[READDIRPLUS] = "readdirplus", "`getdents(2)`, with lookups of the names";
    Releasedir[RELEASEDIR] = "releasedir", "The last `close(2)` of a directory";
    Fsyncdir[FSYNCDIR] = "fsyncdir", "`fsync(2)` of a directory";
    Getlk[GETLK] = "getlk", "`fcntl(2)` with `F_GETLK`";
    Setlk[SETLK, SETLKW] = "setlk", "`fcntl(2)` with `F_SETLK` or `F_SETLKW`, and `flock(2)`";
    Access[ACCESS] = "access", "`access(2)`";
    Create[CREATE] = "create", "`open(2)` with `O_CREAT`";
    Bmap[BMAP] = "bmap", "`ioctl(2)` with `FIBMAP`";
    Ioctl[IOCTL] = "ioctl", "`ioctl(2)`";
    Poll[POLL] = "poll", "`poll(2)`";
    Fallocate[FALLOCATE] = "fallocate", "`fallocate(2)`";
    Lseek[LSEEK] = "lseek", "`lseek(2)` with `SEEK_DATA` or `SEEK_HOLE`";
    Tmpfile[TMPFILE] = "tmpfile", "`open(2)` with `O_TMPFILE`";
    Statx[STATX] = "statx", "`statx(2)` with `STATX_BTIME`";
    CopyFileRange[COPY_FILE_RANGE, COPY_FILE_RANGE_64] = "copy_file_range", "`copy_file_range(2)`";
}

/// Results of an operation that are a regular "no": an answer, or a refusal after which the kernel
/// or the program continues. Nobody has to repair anything, so they do not count as errors.
/// `ENOSYS` is one for each operation: after it the kernel sends no more, or does the work by
/// itself.
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

/// Returns whether the operation of this name ends with this errno as a regular "no".
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
    /// Returns whether it never falls, so that a difference counts what happened in between.
    #[must_use]
    pub const fn is_counter(self) -> bool {
        !matches!(self, Self::Nodes | Self::Lookups | Self::Handles | Self::LockWaiters | Self::InFlight)
    }
}
