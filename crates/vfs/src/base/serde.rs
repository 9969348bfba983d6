//! How types of the crate are serialized, where a derived way would fail.
//!
//! # What it is
//! The serializers of feature `serde` that fields name. A path is any byte string without NUL, so
//! one that is not UTF-8 must have a form, too.

use serde::Serializer;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Writes a path as a string; as bytes, if it is not UTF-8.
pub(crate) fn path<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(path) => serializer.serialize_str(path),
        None => serializer.serialize_bytes(path.as_os_str().as_bytes()),
    }
}
