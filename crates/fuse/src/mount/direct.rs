//! Mounting without the helper: as root, or with `CAP_SYS_ADMIN` in the user namespace of the mount namespace.

use crate::mountinfo::{self, FS_TYPE, MountInfo};
use crate::options::{Checks, MountOptions};
use fusedev::Device;
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use vfs::Foreign;

/// `MS_NOSYMFOLLOW`, which `rustix` does not have.
const NOSYMFOLLOW: MountFlags = MountFlags::from_bits_retain(256);

/// Opens `/dev/fuse` and mounts it on `mountpoint`. `None`: this process may not, the helper may.
///
/// # Errors
/// As for `open(2)` on the device and of `mount(2)`.
pub(super) fn mount_directly(mountpoint: &Path, options: &MountOptions) -> io::Result<Option<Device>> {
    let device = Device::open()?;
    let root = std::fs::metadata(mountpoint)?;
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={}",
        device.as_fd().as_raw_fd(),
        root.mode() & 0o170_000,
        uid.as_raw(),
        gid.as_raw()
    );
    if options.allow_other {
        data.push_str(",allow_other");
    }
    if options.session.checks == Checks::Kernel {
        data.push_str(",default_permissions");
    }
    let data = CString::new(data)?;
    let name = CString::new(options.name.as_bytes())?;
    let at = CString::new(mountpoint.as_os_str().as_bytes())?;
    match mount(&*name, &*at, FS_TYPE, flags(options), &*data) {
        Ok(()) => Ok(Some(device)),
        Err(Errno::PERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Gives the mount on `mountpoint` the flags that [`mount`](super::mount) would give it with `options`; other options have no
/// effect. `mount(8)` calls that `remount`.
///
/// # Errors
/// As for `mount(2)`: `EPERM` without `CAP_SYS_ADMIN`; `EBUSY` for `read_only` while a file is open
/// for writing.
pub fn remount(mountpoint: &Path, options: &MountOptions) -> io::Result<()> {
    // Without a flag about access times the kernel keeps those that the mount has.
    let relatime = if options.noatime { MountFlags::empty() } else { MountFlags::RELATIME };
    Ok(mount_remount(mountpoint, flags(options) | relatime, c"")?)
}

/// Unmounts `mount`, and no other mount: see [`mountinfo::Pinned`].
pub(super) fn unmount_pinned(mount: &MountInfo, flags: UnmountFlags) -> Result<(), Errno> {
    unmount(mount.pin()?.path(), flags | UnmountFlags::NOFOLLOW)
}

fn flags(options: &MountOptions) -> MountFlags {
    let switches = [
        (options.read_only, MountFlags::RDONLY),
        (options.nosuid, MountFlags::NOSUID),
        (options.nodev, MountFlags::NODEV),
        (options.noexec, MountFlags::NOEXEC),
        (options.nosymfollow, NOSYMFOLLOW),
        (options.noatime, MountFlags::NOATIME),
    ];
    switches.into_iter().filter(|(is_on, _)| *is_on).fold(MountFlags::empty(), |all, (_, flag)| all | flag)
}

/// Ends the connection of a mount: all requests fail.
pub(super) fn abort(mountpoint: &Path, device: u64) {
    // fusectl, where it is mounted, gives this file to the user who made the mount. Without it, root can still unmount by force.
    let file = format!("/sys/fs/fuse/connections/{}/abort", rustix::fs::minor(device));
    if device == 0 || std::fs::write(file, "1").is_ok() {
        return;
    }
    let top = mountinfo::top(mountpoint).ok().flatten();
    let Some(ours) = top.filter(|mount: &MountInfo| mount.device == device) else { return };
    if let Err(error) = unmount_pinned(&ours, UnmountFlags::FORCE)
        && error != Errno::BUSY
    {
        tracing::error!(%error, mountpoint = %Foreign::of(mountpoint), "the connection could not be aborted");
    }
}
