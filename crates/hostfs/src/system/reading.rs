//! Calls that open and read. They change nothing but the position of a descriptor.
//!
//! See [`crate::system`].

use super::{Call, call, restarted};
use core::mem::MaybeUninit;
use prim::file_handle;
use rustix::fs::{AtFlags, Mode, OFlags, RawDir, RawDirEntry, ResolveFlags, SeekFrom, StatFs, Statx, StatxFlags};
use rustix::io::Errno as HostErrno;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Returns the canonical form of a path: `realpath(3)`.
pub(crate) fn realpath(path: &Path) -> Result<PathBuf, HostErrno> {
    restarted(Call::Realpath, || {
        std::fs::canonicalize(path).map_err(|error| HostErrno::from_io_error(&error).unwrap_or(HostErrno::IO))
    })
}

/// Opens a path that exists: `open(2)`.
pub(crate) fn open(path: impl rustix::path::Arg + Copy, flags: OFlags) -> Result<OwnedFd, HostErrno> {
    restarted(Call::Open, || rustix::fs::open(path, flags, Mode::empty()))
}

/// Opens a name that exists: `openat(2)`.
pub(crate) fn openat(dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, HostErrno> {
    restarted(Call::Open, || rustix::fs::openat(dir, name, flags, Mode::empty()))
}

/// Calls `openat2(2)`, as [`openat`].
pub(crate) fn openat2(
    dir: BorrowedFd<'_>,
    name: &[u8],
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, HostErrno> {
    restarted(Call::Open, || rustix::fs::openat2(dir, name, flags, Mode::empty(), resolve))
}

/// Returns whether the host has `openat2(2)`. A system call filter may return `EPERM`.
pub(crate) fn has_openat2(dir: BorrowedFd<'_>, resolve: ResolveFlags) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let tried = call(Call::ProbeOpenat2, || rustix::fs::openat2(dir, c".", flags, Mode::empty(), resolve));
    !matches!(tried, Err(HostErrno::NOSYS | HostErrno::PERM))
}

/// Calls `statx(2)`.
pub(crate) fn statx(dir: BorrowedFd<'_>, name: &[u8], flags: AtFlags, fields: StatxFlags) -> Result<Statx, HostErrno> {
    restarted(Call::Statx, || rustix::fs::statx(dir, name, flags, fields))
}

/// Returns the host's handle of a file: `name_to_handle_at(2)`.
pub(crate) fn name_to_handle(fd: BorrowedFd<'_>) -> Result<(i32, Vec<u8>), HostErrno> {
    restarted(Call::NameToHandle, || file_handle::name_to_handle(fd))
}

/// Opens a file by its handle, on the file system of `mount`: `open_by_handle_at(2)`.
pub(crate) fn open_by_handle(mount: &OwnedFd, handle: (i32, &[u8]), flags: OFlags) -> Result<OwnedFd, HostErrno> {
    restarted(Call::OpenByHandle, || file_handle::open_by_handle(mount.as_fd(), handle, flags))
}

/// Returns whether the process may open files by handles.
pub(crate) fn has_handles(dir: &OwnedFd) -> bool {
    let tried = restarted(Call::ProbeHandles, || {
        let (kind, bytes) = file_handle::name_to_handle(dir.as_fd())?;
        file_handle::open_by_handle(dir.as_fd(), (kind, &bytes), OFlags::PATH)
    });
    tried.is_ok()
}

/// Calls `fstatfs(2)`.
pub(crate) fn fstatfs(fd: impl AsFd) -> Result<StatFs, HostErrno> {
    restarted(Call::Fstatfs, || rustix::fs::fstatfs(&fd))
}

/// `fcntl(2)`: adds `flags` to the flags of a descriptor.
pub(crate) fn add_flags(fd: impl AsFd, flags: OFlags) -> Result<(), HostErrno> {
    restarted(Call::Setfl, || rustix::fs::fcntl_setfl(&fd, rustix::fs::fcntl_getfl(&fd)? | flags))
}

/// Calls `readlinkat(2)`: the number of bytes.
pub(crate) fn readlinkat(dir: BorrowedFd<'_>, name: &[u8], buf: &mut [u8]) -> Result<usize, HostErrno> {
    restarted(Call::Readlink, || rustix::fs::readlinkat_raw(dir, name, &mut *buf))
}

/// Calls `getxattr(2)`, through symbolic links.
pub(crate) fn getxattr(path: &[u8], name: &[u8], buf: &mut [u8]) -> Result<usize, HostErrno> {
    restarted(Call::Getxattr, || rustix::fs::getxattr(path, name, &mut *buf))
}

/// Calls `lgetxattr(2)`.
pub(crate) fn lgetxattr(path: &[u8], name: &[u8], buf: &mut [u8]) -> Result<usize, HostErrno> {
    restarted(Call::Getxattr, || rustix::fs::lgetxattr(path, name, &mut *buf))
}

/// Returns whether the file system of a directory has ACLs.
pub(crate) fn has_acls(dir: &OwnedFd) -> bool {
    let probed =
        restarted(Call::ProbeAcls, || rustix::fs::fgetxattr(dir, c"system.posix_acl_access", &mut [0u8; 0][..]));
    !matches!(probed, Err(HostErrno::OPNOTSUPP))
}

/// Calls `listxattr(2)`, through symbolic links.
pub(crate) fn listxattr(path: &[u8], buf: &mut [u8]) -> Result<usize, HostErrno> {
    restarted(Call::Listxattr, || rustix::fs::listxattr(path, &mut *buf))
}

/// Calls `pread(2)`.
pub(crate) fn pread(fd: &OwnedFd, buf: &mut [u8], offset: u64) -> Result<usize, HostErrno> {
    restarted(Call::Pread, || rustix::io::pread(fd, &mut *buf, offset))
}

/// Calls `lseek(2)`.
pub(crate) fn seek(fd: &OwnedFd, to: SeekFrom) -> Result<u64, HostErrno> {
    restarted(Call::Lseek, || rustix::fs::seek(fd, to))
}

/// Returns the flags of a file: `ioctl(2)` with `FS_IOC_GETFLAGS`.
pub(crate) fn inode_flags(fd: &OwnedFd) -> Result<u32, HostErrno> {
    restarted(Call::Getflags, || rustix::fs::ioctl_getflags(fd).map(|flags| flags.bits()))
}

/// `fsync(2)`.
pub(crate) fn fsync(fd: &OwnedFd) -> Result<(), HostErrno> {
    restarted(Call::Fsync, || rustix::fs::fsync(fd))
}

/// `fdatasync(2)`.
pub(crate) fn fdatasync(fd: &OwnedFd) -> Result<(), HostErrno> {
    restarted(Call::Fdatasync, || rustix::fs::fdatasync(fd))
}

/// Returns another descriptor of the same open file: `fcntl(2)` with `F_DUPFD_CLOEXEC`.
pub(crate) fn dup(fd: &OwnedFd) -> Result<OwnedFd, HostErrno> {
    restarted(Call::Dup, || rustix::io::fcntl_dupfd_cloexec(fd, 0))
}

/// `close(2)`, which closes `fd` also if it fails.
pub(crate) fn close(fd: OwnedFd) -> Result<(), HostErrno> {
    let mut fd = Some(fd);
    call(Call::Close, || fd.take().map_or(Ok(()), prim::descriptor::close))
}

/// Reads entries of a directory into `buf` by one call, and gives each to `each`: `getdents64(2)`. Returns whether there
/// were any.
pub(crate) fn read_entries(
    fd: &OwnedFd,
    buf: &mut [MaybeUninit<u8>],
    mut each: impl FnMut(&RawDirEntry<'_>),
) -> Result<bool, HostErrno> {
    restarted(Call::Getdents, || {
        let mut raw = RawDir::new(fd, &mut *buf);
        while let Some(entry) = raw.next() {
            each(&entry?);
            if raw.is_buffer_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    })
}

/// Returns the umask of the process; 0 if it cannot be read.
pub(crate) fn umask() -> u32 {
    let status = restarted(Call::ReadUmask, || {
        std::fs::read_to_string("/proc/self/status")
            .map_err(|error| HostErrno::from_io_error(&error).unwrap_or(HostErrno::IO))
    });
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0)
}
