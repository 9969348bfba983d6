//! A check that a mount would not contain itself: a directory that is mounted on itself or below itself.
//!
//! Lightfoot holds a directory by a descriptor, so a mount above it hides nothing. With `stay`, the default, a mount point
//! below the directory ends the tree; with `cross` it would lead back into the mount.

use super::error::ServeError;
use crate::source::Source;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks the mount point against each directory in the tree.
///
/// # Errors
/// If the mount point is such a directory, or below one with `cross`.
pub(super) fn check(source: &Source, mountpoint: &Path) -> Result<(), ServeError> {
    // A path that cannot be resolved is not below; mounting will report it.
    let Ok(mountpoint) = mountpoint.canonicalize() else { return Ok(()) };
    for host in source.directories() {
        if is_same(&mountpoint, host.path) {
            return Err(ServeError::OnItself(mountpoint));
        }
        if mountpoint.starts_with(host.path) && host.is_crossed {
            return Err(ServeError::InItself { mountpoint, directory: host.path.into() });
        }
    }
    Ok(())
}

/// Returns whether both paths name the same directory.
fn is_same(one: &Path, other: &Path) -> bool {
    let numbers = |path| fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
    one == other || numbers(one).is_some_and(|number| numbers(other) == Some(number))
}
