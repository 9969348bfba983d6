//! The directory to mount on, as a descriptor.
//!
//! All checks of a mount point and the mount itself concern one opened directory, since another user may
//! exchange names above it meanwhile.

use super::MountError;
use rustix::fs::{CWD, Mode, OFlags, open, openat, readlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Opens the directory to mount on, as a path. A descriptor of it does not keep a mount on it busy.
pub(super) fn open_mountpoint(mountpoint: &Path) -> Result<OwnedFd, MountError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(mountpoint, flags, Mode::empty()).map_err(|errno| match errno {
        Errno::NOTDIR if mountpoint.metadata().is_ok() => MountError::NotADirectory(mountpoint.into()),
        errno => MountError::NoMountpoint { mountpoint: mountpoint.into(), source: errno.into() },
    })
}

/// Returns a path that leads to the directory of the descriptor.
pub(super) fn path_of(opened: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()))
}

/// Returns the directory that is visible at the name of `opened`: the root of a mount on it, if there is one.
pub(super) fn visible_of(opened: OwnedFd) -> Result<OwnedFd, Errno> {
    let full = readlinkat(CWD, path_of(&opened), Vec::new())?;
    let Some(name) = Path::new(OsStr::from_bytes(full.to_bytes())).file_name() else { return Ok(opened) };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let parent = openat(&opened, "..", flags, Mode::empty())?;
    openat(&parent, name, flags, Mode::empty())
}
