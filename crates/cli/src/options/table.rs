//! The table of options: each row is one option.
//!
//! Parsing, errors, `--help`, the manual page and the table in `docs/mounting.md` are all made from it.
//!
//! # Where it comes from
//! `mount(8)`, `mount.fuse(8)`, `tmpfs(5)`; names that only Lightfoot has are its own.

mod objects;
mod sources;

use super::row::Form::{Switch, Value};
use super::row::Owner::{self, Directory, Mount, Objects, Ram};
use super::row::Row;
use super::values::{at_least_one, duration, group, octal, on_or_off, user};
use fuse::{Checks, Uring};
use hostfs::Revalidate;
use lightfoot::MountFlags;
use objects::OBJECT_TABLE;
use sources::SOURCE_TABLE;

const ALL: &[Owner] = &[Mount, Ram, Directory, Objects];
const SOURCES: &[Owner] = &[Ram, Directory];

/// Sets `slot`, if there is a value.
fn put<T>(slot: &mut T, value: Option<T>) -> Option<()> {
    *slot = value?;
    Some(())
}

/// All options, in the order of the documents.
pub(super) fn rows() -> impl Iterator<Item = &'static Row> {
    MOUNT_TABLE.iter().chain(&SOURCE_TABLE).chain(&OBJECT_TABLE)
}

static MOUNT_TABLE: [Row; 37] = [
    Row {
        name: "ro",
        form: Switch {
            off: "rw",
            set: |s, on| {
                s.mount.read_only = on;
                s.flag(MountFlags::RDONLY, on);
            },
        },
        valid: ALL,
        default: "rw",
        help: "Refuse all changes.",
    },
    Row {
        name: "allow_other",
        form: Switch { off: "", set: |s, on| s.mount.allow_other = on },
        valid: &[Mount],
        default: "off, also for root",
        help: "Allow other users. Unless root mounts, /etc/fuse.conf needs user_allow_other.",
    },
    Row {
        name: "own_permissions",
        form: Switch {
            off: "default_permissions",
            set: |s, on| s.checks = Some(if on { Checks::Own } else { Checks::Kernel }),
        },
        valid: &[Mount],
        default: "own_permissions for root without allow_other and no_open, else default_permissions",
        help: "Check permissions in Lightfoot instead of the kernel. Not with allow_other or no_open.",
    },
    Row {
        name: "idmap",
        form: Switch { off: "", set: |s, on| s.mount.session.idmap = on },
        valid: &[Mount],
        default: "off",
        help: "Mounts of it may map users and groups (Linux 6.12). The kernel then checks all permissions. Not with uid= and gid=.",
    },
    Row {
        name: "uid",
        form: Value {
            shape: "USER",
            example: "uid=1000 or uid=root",
            set: |s, value| put(&mut s.mount.session.shown.uid, user(value).map(Some)),
        },
        valid: &[Mount],
        default: "as stored",
        help: "Show this user as the owner of every file. In a mounted directory, new files still belong to the mounting user.",
    },
    Row {
        name: "gid",
        form: Value {
            shape: "GROUP",
            example: "gid=1000 or gid=root",
            set: |s, value| put(&mut s.mount.session.shown.gid, group(value).map(Some)),
        },
        valid: &[Mount],
        default: "as stored",
        help: "Show this group as the group of every file. In a mounted directory, new files still belong to the mounting user.",
    },
    Row {
        name: "umask",
        form: Value {
            shape: "OCTAL",
            example: "umask=022",
            set: |s, value| put(&mut s.mount.session.shown.umask, octal(value, 0o777).map(Some)),
        },
        valid: &[Mount],
        default: "as stored",
        help: "Show every file with the mode 0777 & ~umask. In a mounted directory, new files belong to the mounting user.",
    },
    Row {
        name: "ttl",
        form: Value {
            shape: "TIME",
            example: "ttl=500ms",
            set: |s, value| {
                put(&mut s.ttl, duration(value).map(Some))?;
                s.objects.ttl = s.ttl;
                put(&mut s.host.policy, s.ttl.map(Revalidate::Ttl).map(Some))
            },
        },
        valid: &[Mount, Directory, Objects],
        default: "1s for a directory; 5s for s3:; a day for ram:, exclusive and watch",
        help: "How long names and attributes are cached.",
    },
    Row {
        name: "entry_timeout",
        form: Value {
            shape: "TIME",
            example: "entry_timeout=0.5",
            set: |s, value| put(&mut s.entry_timeout, duration(value).map(Some)),
        },
        valid: &[Mount],
        default: "ttl",
        help: "How long the kernel caches names.",
    },
    Row {
        name: "attr_timeout",
        form: Value {
            shape: "TIME",
            example: "attr_timeout=0.5",
            set: |s, value| put(&mut s.attr_timeout, duration(value).map(Some)),
        },
        valid: &[Mount],
        default: "ttl",
        help: "How long the kernel caches attributes.",
    },
    Row {
        name: "negative_timeout",
        form: Value {
            shape: "TIME",
            example: "negative_timeout=0.5",
            set: |s, value| put(&mut s.negative_timeout, duration(value).map(Some)),
        },
        valid: &[Mount],
        default: "ttl; 1s with watch",
        help: "How long the kernel caches that a name does not exist.",
    },
    Row {
        name: "uring",
        form: Switch { off: "no_uring", set: |s, on| s.mount.uring = if on { Uring::Required } else { Uring::Never } },
        valid: &[Mount],
        default: "io_uring where the kernel offers it",
        help: "Receive requests through io_uring, or fail; or only through /dev/fuse.",
    },
    Row {
        name: "pin",
        form: Value { shape: "WORD", example: "pin=off", set: |s, value| put(&mut s.mount.pin, on_or_off(value)) },
        valid: &[Mount],
        default: "on",
        help: "on or off. With io_uring: keep each thread on the processor whose requests it serves. off is for machines with isolated processors.",
    },
    Row {
        name: "threads",
        form: Value {
            shape: "N",
            example: "threads=4",
            set: |s, value| put(&mut s.mount.threads, at_least_one(value).map(Some)),
        },
        valid: &[Mount],
        default: "one a CPU, 2 to 8",
        help: "Number of threads that serve /dev/fuse, at most 256. While all hang, more start, up to 64. With io_uring each processor has its own.",
    },
    Row {
        name: "max_threads",
        form: Value {
            shape: "N",
            example: "max_threads=4",
            set: |s, value| put(&mut s.mount.threads, at_least_one(value).map(Some)),
        },
        valid: &[Mount],
        default: "",
        help: "Same as threads, as libfuse calls it.",
    },
    Row {
        name: "clone_fd",
        form: Switch { off: "no_clone_fd", set: |s, on| s.mount.clone_fd = on },
        valid: &[Mount],
        default: "clone_fd",
        help: "Give each thread that serves /dev/fuse its own channel to the kernel. With io_uring one thread does.",
    },
    Row {
        name: "writeback",
        form: Switch {
            off: "nowriteback",
            set: |s, on| {
                s.writeback = Some(on);
                // The kernel does one or the other.
                s.mount.session.passthrough &= !on;
            },
        },
        valid: &[Mount],
        default: "writeback for ram: without no_open",
        help: "Let the kernel collect small writes. They are lost if the process dies.",
    },
    Row {
        name: "kernel_cache",
        form: Switch { off: "auto_cache", set: |s, on| s.mount.session.kernel_cache = on },
        valid: &[Mount],
        default: "auto_cache",
        help: "Let the kernel keep what it has read of a file when only its time changes. Not with watch.",
    },
    Row {
        name: "passthrough",
        form: Switch {
            off: "nopassthrough",
            set: |s, on| {
                s.mount.session.passthrough = on;
                s.writeback = if on { Some(false) } else { s.writeback };
            },
        },
        valid: &[Mount],
        default: "nopassthrough",
        help: "Let the kernel access files of a directory itself (Linux 6.9, root, not with writeback).",
    },
    Row {
        name: "acl",
        form: Switch { off: "noacl", set: |s, on| s.mount.session.acl = on },
        valid: &[Mount],
        default: "acl",
        help: "Obey POSIX ACLs. With noacl only modes count; not with allow_other.",
    },
    Row {
        name: "security_ctx",
        form: Switch { off: "", set: |s, on| s.mount.session.labels = on },
        valid: &[Mount],
        default: "off",
        help: "Store the label that a security module (SELinux, Smack) gives each new file (Linux 5.17).",
    },
    Row {
        name: "no_open",
        form: Switch { off: "open", set: |s, on| s.mount.session.no_open = on },
        valid: &[Mount],
        default: "open",
        help: "For trees in memory: read and write without a request to open.",
    },
    Row {
        name: "locks",
        form: Switch { off: "nolocks", set: |s, on| s.mount.session.locks = on },
        valid: &[Mount],
        default: "nolocks",
        help: "Handle locks in Lightfoot instead of the kernel: other users of the tree see them.",
    },
    Row {
        name: "nosuid",
        form: Switch {
            off: "suid",
            set: |s, on| {
                s.mount.nosuid = on;
                s.flag(MountFlags::NOSUID, on);
            },
        },
        valid: ALL,
        default: "nosuid; suid for a source",
        help: "Ignore set-user-ID and set-group-ID bits. Unless root mounts, suid has no effect.",
    },
    Row {
        name: "nodev",
        form: Switch {
            off: "dev",
            set: |s, on| {
                s.mount.nodev = on;
                s.flag(MountFlags::NODEV, on);
            },
        },
        valid: ALL,
        default: "nodev; dev for a source",
        help: "Refuse to open devices. Unless root mounts, dev has no effect.",
    },
    Row {
        name: "noexec",
        form: Switch {
            off: "exec",
            set: |s, on| {
                s.mount.noexec = on;
                s.flag(MountFlags::NOEXEC, on);
            },
        },
        valid: ALL,
        default: "exec",
        help: "Refuse to run programs.",
    },
    Row {
        name: "noatime",
        form: Switch {
            off: "atime",
            set: |s, on| {
                s.mount.noatime = on;
                s.set_access_times(if on { MountFlags::NOATIME } else { MountFlags::default() });
            },
        },
        valid: ALL,
        default: "relatime",
        help: "Do not update access times. In a mounted directory, this works for files that the mounting user may change.",
    },
    Row {
        name: "strictatime",
        form: Switch {
            off: "relatime",
            set: |s, on| {
                s.mount.noatime = false;
                s.set_access_times(if on { MountFlags::STRICTATIME } else { MountFlags::default() });
            },
        },
        valid: ALL,
        default: "relatime",
        help: "Update access times at each read, or only if they are old (relatime). Of a directory, as its own mount does.",
    },
    Row {
        name: "nodiratime",
        form: Switch { off: "diratime", set: |s, on| s.flag(MountFlags::NODIRATIME, on) },
        valid: SOURCES,
        default: "diratime",
        help: "Do not update access times of directories.",
    },
    Row {
        name: "nosymfollow",
        form: Switch { off: "symfollow", set: |s, on| s.flag(MountFlags::NOSYMFOLLOW, on) },
        valid: SOURCES,
        default: "symfollow",
        help: "Do not follow symbolic links.",
    },
    Row {
        name: "nonempty",
        form: Switch { off: "", set: |s, on| s.mount.nonempty = on },
        valid: &[Mount],
        default: "off",
        help: "Mount over a directory that has files, or over a mount of Lightfoot.",
    },
    Row {
        name: "max_names",
        form: Value {
            shape: "N",
            example: "max_names=500000",
            set: |s, value| put(&mut s.max_names, at_least_one(value).map(Some)),
        },
        valid: &[Mount],
        default: "500,000; of a directory at most half the cache",
        help: "How many names the kernel may cache.",
    },
    Row {
        name: "max_background",
        form: Value {
            shape: "N",
            example: "max_background=64",
            set: |s, value| put(&mut s.mount.max_background, u16::try_from(at_least_one(value)?).ok()),
        },
        valid: &[Mount],
        default: "64",
        help: "How many requests of readahead and writeback the kernel sends at a time, at most 65,535.",
    },
    Row {
        name: "request_timeout",
        form: Value {
            shape: "S",
            example: "request_timeout=60",
            set: |s, value| {
                let seconds = at_least_one(value).map(|seconds| u16::try_from(seconds).ok().map(Some));
                put(&mut s.mount.request_timeout, seconds.flatten())
            },
        },
        valid: &[Mount],
        default: "off",
        help: "Seconds without a reply after which the kernel aborts the whole mount (Linux 6.15). Locks are then local.",
    },
    Row {
        name: "auto_unmount",
        form: Switch { off: "", set: |s, on| s.mount.auto_unmount = on },
        valid: &[Mount],
        default: "off",
        help: "Unmount also when the process is killed. Needs fusermount3, for root too.",
    },
    Row {
        name: "max_write",
        form: Value {
            shape: "BYTES",
            example: "max_write=128k",
            set: |s, value| put(&mut s.mount.max_write, u32::try_from(at_least_one(value)?).ok()),
        },
        valid: &[Mount],
        default: "1m",
        help: "The longest read and write request.",
    },
    Row {
        name: "fsname",
        form: Value {
            shape: "NAME",
            example: "fsname=data",
            set: |s, value| put(&mut s.mount.name, Some(value.into())),
        },
        valid: &[Mount],
        default: "SOURCE",
        help: "The name that df and findmnt show.",
    },
];
