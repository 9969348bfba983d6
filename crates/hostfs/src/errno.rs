//! Error numbers of the host, as the VFS has them.
//!
//! Numbers that the VFS has no name for become the nearest that it has, or `EIO`. Own code.

use rustix::io::Errno as Host;
use vfs::Errno;

/// The VFS's number for the host's.
#[cold]
pub(crate) fn errno(host: Host) -> Errno {
    const SAME: [Errno; 32] = [
        Errno::EPERM,
        Errno::ENOENT,
        Errno::EINTR,
        Errno::EIO,
        Errno::ENXIO,
        Errno::E2BIG,
        Errno::EBADF,
        Errno::EAGAIN,
        Errno::ENOMEM,
        Errno::EACCES,
        Errno::EBUSY,
        Errno::EEXIST,
        Errno::EXDEV,
        Errno::ENODEV,
        Errno::ENOTDIR,
        Errno::EISDIR,
        Errno::EINVAL,
        Errno::EFBIG,
        Errno::ENOSPC,
        Errno::ESPIPE,
        Errno::EROFS,
        Errno::EMLINK,
        Errno::ERANGE,
        Errno::ENAMETOOLONG,
        Errno::ENOSYS,
        Errno::ENOTEMPTY,
        Errno::ELOOP,
        Errno::ENODATA,
        Errno::EOVERFLOW,
        Errno::EOPNOTSUPP,
        Errno::ESTALE,
        Errno::EDQUOT,
    ];
    let number = host.raw_os_error();
    if let Some(same) = SAME.into_iter().find(|same| same.raw() == number) {
        return same;
    }
    match host {
        Host::TIMEDOUT => Errno::ETIMEDOUT,
        Host::DEADLK => Errno::EDEADLK,
        // The VFS has no ETXTBSY, EMFILE and ENFILE.
        Host::TXTBSY => Errno::EBUSY,
        Host::MFILE | Host::NFILE => Errno::ENOMEM,
        _ => Errno::EIO,
    }
}
