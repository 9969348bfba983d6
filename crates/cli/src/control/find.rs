//! Finding a mount of Lightfoot by the path that a user types.
//!
//! The search does not access the mount, so it finds even a mount whose process hangs.

use super::ControlError;
use fuse::mountinfo::{self, MountInfo};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Returns the mount of Lightfoot at `path`, which may be a symbolic link or end in a slash.
///
/// # Errors
/// If nothing is mounted there, or another file system.
pub(crate) fn find(path: &Path) -> Result<MountInfo, ControlError> {
    let mounts = mountinfo::list().unwrap_or_default();
    let at = |mountpoint: &Path| mounts.iter().rfind(|mount| mount.mountpoint == mountpoint).cloned();
    // A path as the kernel lists it needs no access. Otherwise resolve the directory above, and only then the path itself.
    let found = plain(path).and_then(|path| at(&path).or_else(|| at(&with_resolved_parent(&path).ok()?)));
    let found = found.or_else(|| at(&path.canonicalize().ok()?));
    match found {
        Some(mount) if mount.is_lightfoot() => Ok(mount),
        Some(mount) => Err(ControlError::OtherMount { path: path.into(), fs_type: mount.fs_type }),
        None => Err(ControlError::NotMounted(path.into())),
    }
}

/// Returns `path` made absolute, without `.` and repeated slashes; `None` if it has a `..`, which
/// may follow a symbolic link.
fn plain(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let is_plain = |part: &Component<'_>| !matches!(part, Component::ParentDir);
    absolute.components().all(|part| is_plain(&part)).then(|| absolute.components().collect())
}

fn with_resolved_parent(path: &Path) -> io::Result<PathBuf> {
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_without_a_mount_of_lightfoot_is_an_error() {
        let text = |path: &str| find(Path::new(path)).expect_err("no mount of Lightfoot").to_string();
        assert!(text("/proc").starts_with("/proc: a mount of proc, not of Lightfoot"));
        assert!(text("/proc/self/").starts_with("/proc/self/: not a mount point"));
        assert!(text("/no/such/place").contains("not a mount point"));
    }
}
