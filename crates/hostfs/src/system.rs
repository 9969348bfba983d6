//! System calls: the one way from this crate to the host.
//!
//! # What it is
//! One function for each call, in the form in which this crate uses it. No other module calls the host, except
//! [`crate::calls`], which has those that change it; its calls go through [`call`] and [`restarted`] as well
//! (`tests/it/guarded.rs`). So a test can let each call fail, with each error, once: `faults.rs`.
//!
//! # Interruption
//! A call that can be repeated without another effect is repeated when a signal interrupts it (`EINTR`). Calls that
//! change names are not: as after `EIO`, the host may have made the change.
//!
//! # Where it comes from
//! The pages of section 2 of the manual that [`Call`] names.

mod reading;
mod rights;
mod watching;

pub(crate) use reading::*;
pub(crate) use rights::*;
pub(crate) use watching::*;

use rustix::io::Errno as HostErrno;

/// A system call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    AddWatch,
    Capget,
    Capset,
    Chmod,
    Chown,
    /// `ioctl(2)` with `FICLONERANGE`.
    Clone,
    Close,
    /// `copy_file_range(2)`.
    Copy,
    /// `fcntl(2)` with `F_DUPFD_CLOEXEC`.
    Dup,
    Fallocate,
    Fdatasync,
    Fstatfs,
    Fsync,
    Ftruncate,
    Getdents,
    /// `ioctl(2)` with `FS_IOC_GETFLAGS`.
    Getflags,
    Getgroups,
    Getxattr,
    InotifyInit,
    Eventfd,
    Link,
    Listxattr,
    Lseek,
    /// `open(2)` with `O_CREAT` and `O_EXCL`, or `O_TMPFILE`.
    Make,
    Mkdir,
    Mknod,
    /// `name_to_handle_at(2)`.
    NameToHandle,
    /// `open(2)`, `openat(2)`, `openat2(2)` of a file that exists.
    Open,
    /// `open_by_handle_at(2)`.
    OpenByHandle,
    /// Both, to find out whether the process may.
    ProbeHandles,
    /// `openat2(2)`, to find out whether the host has it.
    ProbeOpenat2,
    /// `fgetxattr(2)`, to find out whether the host has ACLs.
    ProbeAcls,
    Pread,
    Pwrite,
    /// Reads the umask in `/proc/self/status`.
    ReadUmask,
    Readlink,
    /// `realpath(3)`.
    Realpath,
    Removexattr,
    Rename,
    /// `ioctl(2)` with `FS_IOC_SETFLAGS`.
    Setflags,
    Setgid,
    Setgroups,
    Setuid,
    /// `fcntl(2)` with `F_SETFL`: `O_NOATIME`.
    Setfl,
    Setxattr,
    Statx,
    /// Gives a thread the rights of the process again.
    SwitchBack,
    Symlink,
    Unlink,
    Utimens,
}

/// Calls the host once.
#[inline(always)]
pub(crate) fn call<R>(kind: Call, mut make: impl FnMut() -> Result<R, HostErrno>) -> Result<R, HostErrno> {
    #[cfg(test)]
    if let Some(fault) = crate::faults::meet(kind) {
        return Err(fault.instead_of(|| drop(make())));
    }
    let _ = kind;
    make()
}

/// Calls the host, again when a signal interrupted the call.
#[inline(always)]
pub(crate) fn restarted<R>(kind: Call, mut make: impl FnMut() -> Result<R, HostErrno>) -> Result<R, HostErrno> {
    loop {
        match call(kind, &mut make) {
            Err(HostErrno::INTR) => {}
            done => return done,
        }
    }
}
