//! Whether a mount would show itself: a directory that is mounted on itself or below itself.
//!
//! # What it is
//! A check before the mount. A directory of the host is held by a descriptor, so what is mounted above it hides nothing of
//! it; a mount point below it is left out by `stay`, which is the default, and would lead back to us by `cross`.

use super::failure::Failure;
use crate::source::Source;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// # Errors
/// If the mount point is the source, or below it where mount points are crossed.
pub(super) fn check(source: &Source, mountpoint: &Path) -> Result<(), Failure> {
    // What cannot be found is not below; that it cannot be mounted on is said later.
    let Ok(mountpoint) = mountpoint.canonicalize() else { return Ok(()) };
    for host in source.host_dirs() {
        if is_same(&mountpoint, host.path) {
            return Err(Failure::OnItself(mountpoint));
        }
        if mountpoint.starts_with(host.path) && host.crosses {
            return Err(Failure::InItself { mountpoint, source_dir: host.path.into() });
        }
    }
    Ok(())
}

/// Whether both are one directory, though perhaps by two names.
fn is_same(one: &Path, other: &Path) -> bool {
    let numbers = |path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    one == other || numbers(one).is_some_and(|number| numbers(other) == Some(number))
}
