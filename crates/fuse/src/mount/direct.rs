//! Mounting without a helper: as root, or with the capability, in the mount namespace that the process is in.

use crate::options::{Checks, MountOptions};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a list of mounts says of the type: `fuse.lightfoot`.
const TYPE: &str = "fuse.lightfoot";

/// Opens `/dev/fuse` and has the kernel mount on `mountpoint` what is answered there. `None`: only a helper may do that.
///
/// # Errors
/// Those of `open(2)` on the device and of `mount(2)`.
pub(super) fn mount_directly(mountpoint: &Path, options: &MountOptions) -> io::Result<Option<OwnedFd>> {
    let device = File::options().read(true).write(true).open("/dev/fuse")?;
    let root = std::fs::metadata(mountpoint)?;
    let (uid, gid) = (rustix::process::getuid(), rustix::process::getgid());
    let mut words = format!(
        "fd={},rootmode={:o},user_id={},group_id={}",
        device.as_raw_fd(),
        root.mode() & 0o170_000,
        uid.as_raw(),
        gid.as_raw()
    );
    if options.allow_other {
        words.push_str(",allow_other");
    }
    if options.session.checks == Checks::Kernel {
        words.push_str(",default_permissions");
    }
    let words = CString::new(words)?;
    let name = CString::new(options.name.as_bytes())?;
    let at = CString::new(mountpoint.as_os_str().as_bytes())?;
    match mount(&*name, &*at, TYPE, flags(options), &*words) {
        Ok(()) => Ok(Some(device.into())),
        Err(Errno::PERM) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn flags(options: &MountOptions) -> MountFlags {
    let switches = [
        (options.read_only, MountFlags::RDONLY),
        (options.nosuid, MountFlags::NOSUID),
        (options.nodev, MountFlags::NODEV),
        (options.noexec, MountFlags::NOEXEC),
        (options.noatime, MountFlags::NOATIME),
    ];
    switches.into_iter().filter(|(is_on, _)| *is_on).fold(MountFlags::empty(), |all, (_, flag)| all | flag)
}
