//! A mount point that is held while a call uses it.
//!
//! # What it is
//! The user who owns a directory above a mount point can exchange names while root looks at the mount
//! and then changes it. So root opens the directory of the mount point once, without following links,
//! compares the number of the mount, and passes the kernel a path below the descriptor. A name on which
//! something is mounted cannot be renamed or removed, so that path leads to the same mount until it is
//! unmounted.
//!
//! # What it is not
//! A descriptor of the mount itself: that would keep it busy.
//!
//! # Where it comes from
//! `openat2(2)`, `proc_pid_fd(5)`, `STATX_MNT_ID` in `statx(2)`.

use super::MountInfo;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags, Statx, StatxFlags, openat, openat2, statx};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

/// The last name of a path, in a directory that is open.
#[derive(Debug)]
pub struct Pinned {
    parent: OwnedFd,
    name: OsString,
}

impl Pinned {
    /// Returns a path that leads to the mount point as long as this is kept. Its last part is not a link.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.parent.as_raw_fd())).join(&self.name)
    }
}

impl MountInfo {
    /// Opens the directory of the mount point.
    ///
    /// # Errors
    /// `ENOENT` if another mount is there now, or none; `EINVAL` for `/`; as for `openat2(2)`: `ELOOP` if
    /// a directory above was replaced by a link.
    pub fn pin(&self) -> Result<Pinned, Errno> {
        let (Some(parent), Some(name)) = (self.mountpoint.parent(), self.mountpoint.file_name()) else {
            return Err(Errno::INVAL);
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let parent = match openat2(CWD, parent, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            // Before Linux 5.6.
            Err(Errno::NOSYS) => openat(CWD, parent, flags, Mode::empty())?,
            opened => opened?,
        };
        // Not by a request to the server, which may hang.
        let how = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC | AtFlags::NO_AUTOMOUNT;
        let found = statx(&parent, name, how, StatxFlags::MNT_ID);
        // Without a number (before Linux 5.8), or from a mount whose server has exited, nothing can be compared.
        let is_other = |found: Statx| found.stx_mask & StatxFlags::MNT_ID.bits() != 0 && found.stx_mnt_id != self.id;
        if found.is_ok_and(is_other) {
            return Err(Errno::NOENT);
        }
        Ok(Pinned { parent, name: name.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::list;
    use super::*;
    use std::path::Path;

    #[test]
    fn a_mount_is_pinned_by_its_number_and_not_through_links() {
        let proc = list().unwrap().into_iter().rfind(|mount| mount.mountpoint == Path::new("/proc")).unwrap();
        let pinned = proc.pin().unwrap();
        assert!(pinned.path().join("self").exists() && pinned.path().starts_with("/proc/self/fd"));
        assert_eq!(MountInfo { id: proc.id + 1_000_000, ..proc.clone() }.pin().err(), Some(Errno::NOENT));
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("link")).unwrap();
        let by_link = MountInfo { mountpoint: dir.path().join("link/proc"), ..proc.clone() };
        assert_eq!(by_link.pin().err(), Some(Errno::LOOP));
        assert_eq!(MountInfo { mountpoint: "/".into(), ..proc }.pin().err(), Some(Errno::INVAL));
    }
}
