//! Error numbers of the host and of the VFS: the same numbers, two types.

use rustix::io::Errno as HostErrno;
use vfs::Errno;

/// Converts the host's number.
#[cold]
pub(crate) fn errno(host: HostErrno) -> Errno {
    Errno::from_raw(host.raw_os_error())
}
