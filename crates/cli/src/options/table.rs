//! The table of options: each row is one option.
//!
//! Parsing, errors, `--help`, the manual page and the table in `docs/mounting.md` are all made from it.
//!
//! # Where it comes from
//! `mount(8)`, `mount.fuse(8)`, `tmpfs(5)`; names that only Lightfoot has are its own.

mod objects;
mod sources;

use super::row::Owner::{self, Directory, Mount, Objects, Ram};
use super::row::{Row, Section, switch, value};
use super::values::{at_least_one, duration, group, octal, on_or_off, user};
use fuse::{Checks, Uring};
use hostfs::Revalidate;
use lightfoot::MountFlags;
use objects::OF_OBJECTS;
use sources::{OF_DIRECTORY, OF_RAM, OF_RAM_AND_DIRECTORY};

/// All options, in the order of `--help`.
pub(super) static SECTIONS: [Section; 7] = [
    Section { heading: "Options of the mount (-o)", valid: &[Mount], rows: OF_MOUNT },
    Section {
        heading: "Options of the mount, of a directory and of s3: (-o, [[mount]])",
        valid: &[Mount, Directory, Objects],
        rows: OF_CACHES,
    },
    Section {
        heading: "Options of the mount and of all sources (-o, ram:, [[mount]])",
        valid: &[Mount, Ram, Directory, Objects],
        rows: OF_ALL,
    },
    Section {
        heading: "Options of ram: and of a directory (-o, ram:, [[mount]])",
        valid: &[Ram, Directory],
        rows: OF_RAM_AND_DIRECTORY,
    },
    Section { heading: "Options of ram: (-o, ram:, [[mount]])", valid: &[Ram], rows: OF_RAM },
    Section { heading: "Options of a directory (-o, [[mount]])", valid: &[Directory], rows: OF_DIRECTORY },
    Section { heading: "Options of s3: (-o, [[mount]])", valid: &[Objects], rows: OF_OBJECTS },
];

/// Sets `slot`, if there is a value.
fn put<T>(slot: &mut T, value: Option<impl Into<T>>) -> Option<()> {
    *slot = value?.into();
    Some(())
}

/// Returns all options, in the order of the documents, and the objects that each is an option of.
pub(super) fn rows() -> impl Iterator<Item = (&'static [Owner], &'static Row)> {
    SECTIONS.iter().flat_map(|section| section.rows.iter().map(|row| (section.valid, row)))
}

const OF_MOUNT: &[Row] = &[
    switch("allow_other", "", |s, on| s.mount.allow_other = on)
        .by_default("off, also for root")
        .help("Allow other users. Unless root mounts, /etc/fuse.conf needs user_allow_other."),
    switch("own_permissions", "default_permissions", |s, on| {
        s.checks = Some(if on { Checks::Own } else { Checks::Kernel })
    })
    .by_default("own_permissions for root without allow_other and no_open, else default_permissions")
    .help("Check permissions in Lightfoot instead of the kernel. Not with allow_other or no_open."),
    switch("idmap", "", |s, on| s.mount.session.idmap = on).by_default("off").help(
        "Mounts of it may map users and groups (Linux 6.12). The kernel then checks all permissions. Not \
         with uid=, gid= or no_open, and with allow_other not for a directory.",
    ),
    value("uid", "USER", "uid=1000 or uid=root", |s, value| put(&mut s.mount.session.shown.uid, user(value)))
        .by_default("as stored")
        .help(
            "Show this user as the owner of every file. In a mounted directory, new files still belong to the \
             mounting user.",
        ),
    value("gid", "GROUP", "gid=1000 or gid=root", |s, value| put(&mut s.mount.session.shown.gid, group(value)))
        .by_default("as stored")
        .help(
            "Show this group as the group of every file. In a mounted directory, new files still belong to the \
             mounting user.",
        ),
    value("umask", "OCTAL", "umask=022", |s, value| put(&mut s.mount.session.shown.umask, octal(value, 0o777)))
        .by_default("as stored")
        .help(
            "Show every file with the mode 0777 & ~umask. In a mounted directory, new files belong to the \
             mounting user.",
        ),
    value("entry_timeout", "TIME", "entry_timeout=0.5", |s, value| put(&mut s.entry_timeout, duration(value)))
        .by_default("ttl")
        .help("How long the kernel caches names."),
    value("attr_timeout", "TIME", "attr_timeout=0.5", |s, value| put(&mut s.attr_timeout, duration(value)))
        .by_default("ttl")
        .help("How long the kernel caches attributes."),
    value("negative_timeout", "TIME", "negative_timeout=0.5", |s, value| put(&mut s.negative_timeout, duration(value)))
        .by_default("ttl; 1s with watch")
        .help("How long the kernel caches that a name does not exist."),
    switch("uring", "no_uring", |s, on| s.mount.uring = if on { Uring::Required } else { Uring::Never })
        .by_default("io_uring where the kernel offers it")
        .help("Receive requests through io_uring, or fail; or only through /dev/fuse."),
    value("pin", "WORD", "pin=off", |s, value| put(&mut s.mount.pin, on_or_off(value))).by_default("on").help(
        "on or off. With io_uring: keep each thread on the processor whose requests it serves. off is for \
         machines with isolated processors.",
    ),
    value("threads", "N", "threads=4", |s, value| put(&mut s.mount.threads, at_least_one(value)))
        .by_default("one a CPU, 2 to 8")
        .help(
            "Number of threads that serve /dev/fuse, at most 256. While all hang, more start, up to 64. With \
             io_uring each processor has its own.",
        ),
    value("max_threads", "N", "max_threads=4", |s, value| put(&mut s.mount.threads, at_least_one(value)))
        .help("Same as threads, as libfuse calls it."),
    switch("clone_fd", "no_clone_fd", |s, on| s.mount.clone_fd = on).by_default("clone_fd").help(
        "Give each thread that serves /dev/fuse its own channel to the kernel. With io_uring one thread \
         does.",
    ),
    switch("writeback", "nowriteback", |s, on| {
        s.writeback = Some(on);
        // The kernel does one or the other.
        s.mount.session.passthrough &= !on;
    })
    .by_default("writeback for ram: without no_open")
    .help("Let the kernel collect small writes. They are lost if the process dies."),
    switch("kernel_cache", "auto_cache", |s, on| s.mount.session.kernel_cache = on)
        .by_default("auto_cache")
        .help("Let the kernel keep what it has read of an unchanged file also with attr_timeout=0. Not with watch."),
    switch("passthrough", "nopassthrough", |s, on| {
        s.mount.session.passthrough = on;
        s.writeback = if on { Some(false) } else { s.writeback };
    })
    .by_default("nopassthrough")
    .help("Let the kernel access files of a directory itself (Linux 6.9, root, not with writeback)."),
    switch("acl", "noacl", |s, on| s.mount.session.acl = on)
        .by_default("acl")
        .help("Obey POSIX ACLs. With noacl only modes count; not with allow_other."),
    switch("security_ctx", "", |s, on| s.mount.session.labels = on)
        .by_default("off")
        .help("Store the label that a security module (SELinux, Smack) gives each new file (Linux 5.17)."),
    switch("no_open", "open", |s, on| s.mount.session.no_open = on)
        .by_default("open")
        .help("For trees in memory: read and write without a request to open."),
    switch("locks", "nolocks", |s, on| s.mount.session.locks = on)
        .by_default("nolocks")
        .help("Handle locks in Lightfoot instead of the kernel: other users of the tree see them."),
    switch("nonempty", "", |s, on| s.mount.nonempty = on)
        .by_default("off")
        .help("Mount over a directory that has files, or over a mount of Lightfoot."),
    value("max_names", "N", "max_names=500000", |s, value| put(&mut s.max_names, at_least_one(value)))
        .by_default("500,000; of a directory at most half the cache")
        .help("How many names the kernel may cache."),
    value("max_background", "N", "max_background=64", |s, value| {
        put(&mut s.mount.max_background, u16::try_from(at_least_one(value)?).ok())
    })
    .by_default("64")
    .help("How many requests of readahead and writeback the kernel sends at a time, at most 65,535."),
    value("request_timeout", "S", "request_timeout=60", |s, value| {
        put(&mut s.mount.request_timeout, u16::try_from(at_least_one(value)?).ok())
    })
    .by_default("off")
    .help(
        "Seconds without a reply after which the kernel aborts the whole mount (Linux 6.15). Locks are then \
         local.",
    ),
    switch("auto_unmount", "", |s, on| s.mount.auto_unmount = on)
        .by_default("off")
        .help("Unmount also when the process is killed. Needs fusermount3, for root too."),
    value("max_write", "BYTES", "max_write=128k", |s, value| {
        put(&mut s.mount.max_write, u32::try_from(at_least_one(value)?).ok())
    })
    .by_default("1m")
    .help("The longest read and write request."),
    value("fsname", "NAME", "fsname=data", |s, value| put(&mut s.mount.name, Some(value)))
        .by_default("SOURCE")
        .help("The name that df and findmnt show."),
];

const OF_CACHES: &[Row] = &[value("ttl", "TIME", "ttl=500ms", |s, value| {
    put(&mut s.ttl, duration(value))?;
    put(&mut s.objects.ttl, s.ttl)?;
    put(&mut s.host.policy, s.ttl.map(Revalidate::Ttl))
})
.by_default("1s for a directory; 5s for s3:; a day for ram:, exclusive and watch")
.help("How long names and attributes are cached.")];

const OF_ALL: &[Row] = &[
    switch("ro", "rw", |s, on| {
        s.mount.read_only = on;
        s.flag(MountFlags::RDONLY, on);
    })
    .by_default("rw")
    .help("Refuse all changes."),
    switch("nosuid", "suid", |s, on| {
        s.mount.nosuid = on;
        s.flag(MountFlags::NOSUID, on);
    })
    .by_default("nosuid; suid for a source")
    .help("Ignore set-user-ID and set-group-ID bits. Unless root mounts, suid has no effect."),
    switch("nodev", "dev", |s, on| {
        s.mount.nodev = on;
        s.flag(MountFlags::NODEV, on);
    })
    .by_default("nodev; dev for a source")
    .help("Refuse to open devices. Unless root mounts, dev has no effect."),
    switch("noexec", "exec", |s, on| {
        s.mount.noexec = on;
        s.flag(MountFlags::NOEXEC, on);
    })
    .by_default("exec")
    .help("Refuse to run programs."),
    switch("noatime", "atime", |s, on| {
        s.mount.noatime = on;
        s.set_access_times(if on { MountFlags::NOATIME } else { MountFlags::default() });
    })
    .by_default("relatime")
    .help(
        "Do not update access times. In a mounted directory, this works for files that the mounting user \
         may change.",
    ),
    switch("strictatime", "relatime", |s, on| {
        s.mount.noatime = false;
        s.set_access_times(if on { MountFlags::STRICTATIME } else { MountFlags::default() });
    })
    .by_default("relatime")
    .help(
        "Update access times at each read, or only if they are old (relatime). Of a directory, as its own \
         mount does.",
    ),
];
