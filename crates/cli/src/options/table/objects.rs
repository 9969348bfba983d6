//! Options of object stores.

use super::put;
use crate::options::row::Form::Value;
use crate::options::row::Owner::Objects;
use crate::options::row::Row;
use crate::options::values::{duration, given, size_of_memory};
use std::time::Duration;

pub(super) static OBJECT_TABLE: [Row; 5] = [
    Row {
        name: "endpoint",
        form: Value {
            shape: "URL",
            example: "endpoint=http://127.0.0.1:9000",
            set: |s, value| put(&mut s.objects.endpoint, given(value).map(Some)),
        },
        valid: &[Objects],
        default: "AWS_ENDPOINT_URL, else AWS",
        help: "The server. Credentials come from the environment (AWS_ACCESS_KEY_ID...), ~/.aws, or the machine's role.",
    },
    Row {
        name: "region",
        form: Value {
            shape: "NAME",
            example: "region=eu-central-1",
            set: |s, value| put(&mut s.objects.region, given(value).map(Some)),
        },
        valid: &[Objects],
        default: "AWS_REGION, else us-east-1",
        help: "The region of the bucket.",
    },
    Row {
        name: "cache",
        form: Value {
            shape: "BYTES",
            example: "cache=256m",
            set: |s, value| put(&mut s.objects.cache_bytes, size_of_memory(value).map(Some)),
        },
        valid: &[Objects],
        default: "64m",
        help: "Contents that are cached.",
    },
    Row {
        name: "rename_dirs",
        form: Value {
            shape: "WORD",
            example: "rename_dirs=copy",
            set: |s, value| {
                let copies = match value {
                    "copy" => Some(true),
                    "no" => Some(false),
                    _ => None,
                };
                put(&mut s.objects.copies_directories, copies)
            },
        },
        valid: &[Objects],
        default: "no",
        help: "copy or no. Rename a directory by a copy of all objects below it, or refuse.",
    },
    Row {
        name: "timeout",
        form: Value {
            shape: "TIME",
            example: "timeout=20s",
            set: |s, value| {
                put(&mut s.objects.timeout, duration(value).filter(|time| *time > Duration::ZERO).map(Some))
            },
        },
        valid: &[Objects],
        default: "20s",
        help: "How long one try of a request to the server may take; there are up to 4.",
    },
];
