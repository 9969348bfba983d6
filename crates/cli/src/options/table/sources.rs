//! Options of sources alone.

use super::put;
use crate::options::row::Form::{Switch, Value};
use crate::options::row::Owner::{self, Directory, Ram};
use crate::options::row::Row;
use crate::options::values::{at_least_one, budget, duration, group, limit, number, octal, size_of_memory, user};
use hostfs::{MountPoints, Revalidate};

const SOURCES: &[Owner] = &[Ram, Directory];

/// Bytes of a block of `nr_blocks`.
const PAGE_BYTES: u64 = 4096;

pub(super) static SOURCE_TABLE: [Row; 16] = [
    Row {
        name: "cache",
        form: Value {
            shape: "BYTES",
            example: "cache=64m",
            set: |s, value| put(&mut s.budget, size_of_memory(value).map(budget)),
        },
        valid: SOURCES,
        default: "320m",
        help: "Size of the cache: 80% for names, 10% for missing names, 10% for listings.",
    },
    Row {
        name: "size",
        form: Value {
            shape: "BYTES",
            example: "size=512m or size=10%",
            set: |s, value| put(&mut s.ram.limits.bytes, size_of_memory(value).map(limit)),
        },
        valid: &[Ram],
        default: "half of memory",
        help: "Space for contents of files; 0 for no limit.",
    },
    Row {
        name: "nr_blocks",
        form: Value {
            shape: "N",
            example: "nr_blocks=10k",
            set: |s, value| put(&mut s.ram.limits.bytes, number(value)?.checked_mul(PAGE_BYTES).map(limit)),
        },
        valid: &[Ram],
        default: "",
        help: "The same in blocks of 4096 bytes.",
    },
    Row {
        name: "nr_inodes",
        form: Value {
            shape: "N",
            example: "nr_inodes=10k",
            set: |s, value| put(&mut s.ram.limits.inodes, number(value).map(limit)),
        },
        valid: &[Ram],
        default: "one for two pages of memory",
        help: "Number of files, and of further names of files; 0 for no limit.",
    },
    Row {
        name: "usrquota_block_hardlimit",
        form: Value {
            shape: "BYTES",
            example: "usrquota_block_hardlimit=64m",
            set: |s, value| put(&mut s.per_user().bytes, size_of_memory(value).map(Some)),
        },
        valid: &[Ram],
        default: "none",
        help: "Space for each user.",
    },
    Row {
        name: "usrquota_inode_hardlimit",
        form: Value {
            shape: "N",
            example: "usrquota_inode_hardlimit=10k",
            set: |s, value| put(&mut s.per_user().inodes, number(value).map(Some)),
        },
        valid: &[Ram],
        default: "none",
        help: "Number of files for each user.",
    },
    Row {
        name: "mode",
        form: Value {
            shape: "OCTAL",
            example: "mode=0755",
            set: |s, value| put(&mut s.ram.mode, octal(value, 0o7777)),
        },
        valid: &[Ram],
        default: "0755",
        help: "Permissions of the root directory.",
    },
    Row {
        name: "uid",
        form: Value {
            shape: "USER",
            example: "uid=1000 or uid=root",
            set: |s, value| put(&mut s.ram.uid, user(value)),
        },
        valid: &[Ram],
        default: "the mounting user",
        help: "The owner of the root directory. Write it as ram:uid=USER; after -o, uid has another meaning.",
    },
    Row {
        name: "gid",
        form: Value {
            shape: "GROUP",
            example: "gid=1000 or gid=root",
            set: |s, value| put(&mut s.ram.gid, group(value)),
        },
        valid: &[Ram],
        default: "the group of the mounting user",
        help: "The group of the root directory. Write it as ram:gid=GROUP; after -o, gid has another meaning.",
    },
    Row {
        name: "casefold",
        form: Switch { off: "", set: |s, on| s.ram.case_insensitive = on },
        valid: &[Ram],
        default: "off",
        help: "Treat names that differ only in case as the same name.",
    },
    Row {
        name: "always",
        form: Switch { off: "", set: |s, _| s.host.policy = Some(Revalidate::Always) },
        valid: &[Directory],
        default: "ttl=1s",
        help: "Do not cache: read the directory again for each request.",
    },
    Row {
        name: "exclusive",
        form: Switch { off: "", set: |s, _| s.host.policy = Some(Revalidate::Exclusive) },
        valid: &[Directory],
        default: "ttl=1s",
        help: "Cache without a limit of time. No other program may change the directory.",
    },
    Row {
        name: "watch",
        form: Switch { off: "nowatch", set: |s, on| s.host.watch = Some(on) },
        valid: &[Directory],
        default: "nowatch",
        help: "Cache until inotify reports a change; for the ttl where it cannot.",
    },
    Row {
        name: "cross",
        form: Switch {
            off: "stay",
            set: |s, on| s.host.mount_points = Some(if on { MountPoints::Cross } else { MountPoints::Stay }),
        },
        valid: &[Directory],
        default: "stay",
        help: "Show what is mounted below the directory.",
    },
    Row {
        name: "fds",
        form: Value {
            shape: "N",
            example: "fds=4096",
            set: |s, value| put(&mut s.host.max_fds, at_least_one(value).map(Some)),
        },
        valid: &[Directory],
        default: "half of the limit of open files, at most 16,384",
        help: "Number of file descriptors to keep open.",
    },
    Row {
        name: "call_timeout",
        form: Value {
            shape: "TIME",
            example: "call_timeout=30s",
            set: |s, value| put(&mut s.host.call_timeout, duration(value).map(Some)),
        },
        valid: &[Directory],
        default: "30s on nfs, cifs and fuse without passthrough; else 0",
        help: "A call into the directory that takes longer fails with ETIMEDOUT. 0: none does.",
    },
];
