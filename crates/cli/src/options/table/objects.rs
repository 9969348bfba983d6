//! Options of object stores.

use super::put;
use crate::options::row::{Row, switch, value};
use crate::options::values::{duration, given, size_of_memory};
use std::time::Duration;

pub(super) const OF_OBJECTS: &[Row] = &[
    value("endpoint", "URL", "endpoint=http://127.0.0.1:9000", |s, value| put(&mut s.endpoint, given(value)))
        .by_default("AWS_ENDPOINT_URL, else AWS")
        .help(
            "The server. Credentials come from the environment (AWS_ACCESS_KEY_ID...), ~/.aws, or the machine's \
             role.",
        ),
    value("region", "NAME", "region=eu-central-1", |s, value| put(&mut s.region, given(value)))
        .by_default("AWS_REGION, else us-east-1")
        .help("The region of the bucket."),
    value("cache", "BYTES", "cache=256m", |s, value| put(&mut s.objects.cache_bytes, size_of_memory(value)))
        .by_default("64m")
        .help("Contents in memory: three quarters for blocks that were read, a quarter for requests ahead of readers."),
    value("rename_dirs", "WORD", "rename_dirs=copy", |s, value| {
        let copies = match value {
            "copy" => Some(true),
            "no" => Some(false),
            _ => None,
        };
        put(&mut s.objects.copies_directories, copies)
    })
    .by_default("no")
    .help("copy or no. Rename a directory by a copy of all objects below it, or refuse, so that mv copies."),
    switch("metadata", "nometadata", |s, on| s.objects.keeps_attributes = on)
        .by_default("metadata")
        .help(
            "Keep times, modes and owners in the metadata of objects, as rclone and s3fs do. With nometadata \
             listings are enough, and changes fail with EPERM.",
        ),
    switch("symlinks", "nosymlinks", |s, on| s.objects.symlinks = on)
        .by_default("nosymlinks")
        .help("Show NAME.rclonelink as the symbolic link NAME, as rclone does. Each name that does not exist takes a further request."),
    value("timeout", "TIME", "timeout=20s", |s, value| {
        put(&mut s.objects.timeout, duration(value).filter(|time| *time > Duration::ZERO))
    })
    .by_default("20s")
    .help(
        "How long one try of a request to the server may take; there are up to 4. Contents may take a second more \
         for each 32 KiB.",
    ),
];
