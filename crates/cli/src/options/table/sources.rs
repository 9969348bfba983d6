//! Options of sources alone.

use super::put;
use crate::options::row::{Row, switch, value};
use crate::options::values::{at_least_one, budget, duration, group, limit, number, octal, size_of_memory, user};
use hostfs::{MountPoints, Revalidate};
use lightfoot::MountFlags;

/// Bytes of a block of `nr_blocks`.
const PAGE_BYTES: u64 = 4096;

pub(super) const OF_RAM_AND_DIRECTORY: &[Row] = &[
    switch("nodiratime", "diratime", |s, on| s.flag(MountFlags::NODIRATIME, on))
        .by_default("diratime")
        .help("Do not update access times of directories."),
    switch("nosymfollow", "symfollow", |s, on| s.flag(MountFlags::NOSYMFOLLOW, on))
        .by_default("symfollow")
        .help("Do not follow symbolic links."),
    value("cache", "BYTES", "cache=64m", |s, value| put(&mut s.budget, size_of_memory(value).map(budget)))
        .by_default("320m")
        .help("Size of the cache: 80% for names, 10% for missing names, 10% for listings. All forks together have a second one."),
];

pub(super) const OF_RAM: &[Row] = &[
    value("size", "BYTES", "size=512m or size=10%", |s, value| {
        put(&mut s.ram.limits.bytes, size_of_memory(value).map(limit))
    })
    .by_default("half of memory")
    .help("Space for contents of files; 0 for no limit."),
    value("nr_blocks", "N", "nr_blocks=10k", |s, value| {
        put(&mut s.ram.limits.bytes, number(value)?.checked_mul(PAGE_BYTES).map(limit))
    })
    .help("The same in blocks of 4096 bytes."),
    value("nr_inodes", "N", "nr_inodes=10k", |s, value| put(&mut s.ram.limits.inodes, number(value).map(limit)))
        .by_default("one for two pages of memory")
        .help("Number of files, and of further names of files; 0 for no limit."),
    value("usrquota_block_hardlimit", "BYTES", "usrquota_block_hardlimit=64m", |s, value| {
        put(&mut s.per_user().bytes, size_of_memory(value))
    })
    .by_default("none")
    .help("Space for each user."),
    value("usrquota_inode_hardlimit", "N", "usrquota_inode_hardlimit=10k", |s, value| {
        put(&mut s.per_user().inodes, number(value))
    })
    .by_default("none")
    .help("Number of files for each user."),
    value("mode", "OCTAL", "mode=0755", |s, value| put(&mut s.ram.mode, octal(value, 0o7777)))
        .by_default("0755")
        .help("Permissions of the root directory."),
    value("uid", "USER", "uid=1000 or uid=root", |s, value| put(&mut s.ram.uid, user(value)))
        .by_default("the mounting user")
        .help("The owner of the root directory. Write it as ram:uid=USER; after -o, uid has another meaning."),
    value("gid", "GROUP", "gid=1000 or gid=root", |s, value| put(&mut s.ram.gid, group(value)))
        .by_default("the group of the mounting user")
        .help("The group of the root directory. Write it as ram:gid=GROUP; after -o, gid has another meaning."),
    switch("casefold", "", |s, on| s.ram.case_insensitive = on)
        .by_default("off")
        .help("Treat names that differ only in case as the same name."),
];

pub(super) const OF_DIRECTORY: &[Row] = &[
    switch("always", "", |s, _| s.host.policy = Some(Revalidate::Always))
        .by_default("ttl=1s")
        .help("Do not cache: read the directory again for each request."),
    switch("exclusive", "", |s, _| s.host.policy = Some(Revalidate::Exclusive))
        .by_default("ttl=1s")
        .help("Cache without a limit of time. No other program may change the directory."),
    switch("watch", "nowatch", |s, on| s.host.watch = Some(on))
        .by_default("nowatch")
        .help("Cache until inotify reports a change; for the ttl where it cannot."),
    switch("cross", "stay", |s, on| {
        s.host.mount_points = Some(if on { MountPoints::Cross } else { MountPoints::Stay })
    })
    .by_default("stay")
    .help("Show what is mounted below the directory."),
    value("fds", "N", "fds=4096", |s, value| put(&mut s.host.max_fds, at_least_one(value)))
        .by_default("half of the limit of open files, at most 16,384")
        .help("Number of file descriptors to keep open."),
    value("call_timeout", "TIME", "call_timeout=30s", |s, value| put(&mut s.host.call_timeout, duration(value)))
        .by_default("30s on nfs, cifs and fuse without passthrough; else 0")
        .help("A call into the directory that takes longer fails with ETIMEDOUT. 0: none does."),
];
