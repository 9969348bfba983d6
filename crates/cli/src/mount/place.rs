//! Whether a mount would show itself: a directory that is mounted on itself or below itself.
//!
//! # What it is
//! A check before the mount. A directory of the host is held by a descriptor, so what is mounted above it hides nothing of
//! it; a mount point below it is left out by `stay`, which is the default, and would lead back to us by `cross`.

use super::failure::Failure;
use super::options::Words;
use crate::source::Source;
use std::path::Path;

/// # Errors
/// If the mount point is the source, or below it with `cross`.
pub(super) fn check(source: &Source, mountpoint: &Path, words: &Words) -> Result<(), Failure> {
    // What cannot be found is not below; that it cannot be mounted on is said later.
    let Ok(mountpoint) = mountpoint.canonicalize() else { return Ok(()) };
    for host in source.host_dirs() {
        if mountpoint == *host {
            return Err(Failure::OnItself(mountpoint));
        }
        if mountpoint.starts_with(host) && words.tells_source("cross") {
            return Err(Failure::InItself { mountpoint, source_dir: host.into() });
        }
    }
    Ok(())
}
