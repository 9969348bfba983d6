//! Error numbers of the host, as the VFS has them: the same.
//!
//! Own code.

use rustix::io::Errno as Host;
use vfs::Errno;

/// The VFS's number for the host's.
#[cold]
pub(crate) fn errno(host: Host) -> Errno {
    Errno::from_raw(host.raw_os_error())
}
