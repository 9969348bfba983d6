//! The deadline of calls on a directory, unless the option `call_timeout` sets it.
//!
//! A server on a network can hang. The kernel's clients of such servers then let a program wait for
//! ever, or as long as their own options set.

use fuse::mountinfo;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;
use vfs::Foreign;

/// Types of file systems whose calls wait for a server, as the table of mounts has them. `fuseblk` is not one: its server reads a
/// local disk.
const REMOTE: [&str; 5] = ["nfs", "nfs4", "cifs", "smb3", "fuse"];

/// The deadline where a server may hang.
const DEFAULT: Duration = Duration::from_secs(30);

/// Returns the deadline of calls on the directory at `path`; `None`: without one.
pub(super) fn default_at(path: &Path) -> Option<Duration> {
    let device = fs::metadata(path).ok()?.dev();
    let mounts = mountinfo::list().unwrap_or_default();
    let mount = mounts.iter().find(|mount| mount.device == device)?;
    let timeout = default_of(&mount.fs_type)?;
    let (of, seconds) = (Foreign::of(&mount.fs_type), timeout.as_secs());
    tracing::info!(path = %Foreign::of(path), "calls end after {seconds} s, since this is {of} (-o call_timeout=TIME changes it)");
    Some(timeout)
}

/// Returns the timeout of a file system of this type, which may have a subtype after a dot.
fn default_of(fs_type: &str) -> Option<Duration> {
    let kind = fs_type.split_once('.').map_or(fs_type, |(kind, _)| kind);
    REMOTE.contains(&kind).then_some(DEFAULT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_to_a_server_have_a_deadline_and_those_to_a_disk_have_none() {
        let cases = [
            ("nfs", true),
            ("nfs4", true),
            ("cifs", true),
            ("smb3", true),
            ("fuse", true),
            ("fuse.sshfs", true),
            ("fuse.lightfoot", true),
            ("fuseblk", false),
            ("fuseblk.ntfs", false),
            ("fusectl", false),
            ("nfsd", false),
            ("ext4", false),
            ("tmpfs", false),
            ("overlay", false),
            ("", false),
        ];
        for (fs_type, is_remote) in cases {
            assert_eq!(default_of(fs_type), is_remote.then_some(DEFAULT), "{fs_type}");
        }
        assert_eq!(default_at(Path::new("/proc")), None);
    }
}
