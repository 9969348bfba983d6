//! The host: system calls in the form that is used here.
//!
//! # What it is
//! Each function is one call ([`crate::system`]), unless its documentation states otherwise. Names are single components: not empty, not `.`
//! or `..`, without a slash. A single component below a descriptor leads elsewhere only as a symbolic link or a mount
//! point. Links are never followed, mount points only where the options allow it.
//!
//! # Where it comes from
//! `openat2(2)`, `statx(2)`, `proc(5)`: `/proc/self/fd` serves the calls that accept no `O_PATH` descriptor.

use crate::errno::errno;
use crate::identity::STATX_MASK;
use crate::system;
use rustix::fs::{AtFlags, FsWord, OFlags, ResolveFlags, Statx};
use rustix::io::Errno as HostErrno;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use vfs::{Acl, AclKind, Errno, NewInode, Valid};

/// Attempts of `openat2(2)`, which fails with `EAGAIN` if a rename at that moment might lead out of bounds.
const MAX_TRIES: usize = 8;

/// Types of file systems whose attributes are on this machine: a query costs no round trip, and its answer is fresh even
/// with `AT_STATX_DONT_SYNC`. ext4, tmpfs, ramfs, XFS, Btrfs, F2FS, overlayfs, ZFS, bcachefs, SquashFS, EROFS: `statfs(2)`.
const LOCAL: [FsWord; 11] = [
    0xEF53,
    0x0102_1994,
    0x8584_58F6,
    0x5846_5342,
    0x9123_683E,
    0xF2F5_2010,
    OVERLAY,
    0x2FC1_2FC1,
    0xCA45_1A4E,
    0x7371_7368,
    0xE0F5_E1E2,
];

/// overlayfs.
pub(crate) const OVERLAY: FsWord = 0x794C_7630;

/// Returns whether a file system of this type is on this machine.
pub(crate) fn is_local(kind: FsWord) -> bool {
    LOCAL.contains(&kind)
}

/// Checks that `name` can be a component of a path.
///
/// # Errors
/// `EINVAL`.
pub(crate) fn check_name(name: &[u8]) -> Result<(), Errno> {
    let is_plain = !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
    if is_plain { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Returns the attributes of `name` in `dir`. If the name is a symbolic link, returns the
/// attributes of the link. Never waits for a server: the attributes of a mount point may be the
/// last that the server reported.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, HostErrno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    system::statx(dir, name, flags, STATX_MASK)
}

/// Returns the attributes as [`stat_at`] does, but requests them from the server.
pub(crate) fn stat_at_synced(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, HostErrno> {
    system::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, STATX_MASK)
}

/// Returns the attributes of a descriptor's file.
pub(crate) fn stat_fd(fd: BorrowedFd<'_>) -> Result<Statx, HostErrno> {
    system::statx(fd, b"", AtFlags::EMPTY_PATH, STATX_MASK)
}

/// How names are opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    resolve: ResolveFlags,
    /// Whether the host has `openat2(2)`.
    has_openat2: bool,
}

impl Opening {
    /// Probes the host.
    pub(crate) fn new(dir: BorrowedFd<'_>, crosses: bool) -> Self {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        if !crosses {
            resolve |= ResolveFlags::NO_XDEV;
        }
        let has_openat2 = system::has_openat2(dir, resolve);
        Self { resolve, has_openat2 }
    }

    /// Opens `name` in `dir`, which is a component or `.`; a symbolic link only with `O_PATH`.
    pub(crate) fn open(&self, dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, HostErrno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if !self.has_openat2 {
            return system::openat(dir, name, flags);
        }
        several_times(|| system::openat2(dir, name, flags, self.resolve))
    }

    /// Returns the rules by which `openat2(2)` finds a name; `None` if the host has only
    /// `openat(2)`.
    pub(crate) fn resolve(&self) -> Option<ResolveFlags> {
        self.has_openat2.then_some(self.resolve)
    }
}

/// Returns the result of `open`, a call of `openat2(2)`.
pub(crate) fn several_times(open: impl Fn() -> Result<OwnedFd, HostErrno>) -> Result<OwnedFd, HostErrno> {
    for _ in 0..MAX_TRIES {
        match open() {
            Err(HostErrno::AGAIN) => {}
            done => return done,
        }
    }
    Err(HostErrno::AGAIN)
}

/// A path that leads to a descriptor's file, also for an `O_PATH` descriptor.
pub(crate) struct ProcPath([u8; 32], usize);

impl ProcPath {
    pub(crate) fn new(fd: impl AsFd) -> Self {
        let mut path = [0; 32];
        let mut room = &mut path[..];
        // 14 bytes and a number of at most 10 digits fit.
        let _ = write!(room, "/proc/self/fd/{}", fd.as_fd().as_raw_fd());
        let len = 32 - room.len();
        Self(path, len)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

/// Reads by this descriptor leave the access time as it is, if the process may decide that.
pub(crate) fn keep_access_time(fd: &OwnedFd) {
    // `EPERM`: the file belongs to another user.
    let _ = system::add_flags(fd, OFlags::NOATIME);
}

/// Opens a descriptor's file once more; it may have lost its name.
pub(crate) fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, HostErrno> {
    system::open(ProcPath::new(fd).bytes(), flags | OFlags::CLOEXEC | OFlags::NOCTTY)
}

/// Returns the body of a symbolic link: `name` in `dir`, or `dir` itself with an empty name. One
/// call unless it is long.
///
/// # Errors
/// `ESTALE` if the file is not a symbolic link.
pub(crate) fn read_link(dir: BorrowedFd<'_>, name: &[u8], size: u64) -> Result<Box<[u8]>, Errno> {
    let most = vfs::PATH_MAX + 1;
    let mut room = usize::try_from(size).unwrap_or(most).saturating_add(1).clamp(64, most);
    loop {
        let mut body = vec![0; room];
        match system::readlinkat(dir, name, &mut body) {
            Ok(len) if len < room || room == most => {
                body.truncate(len);
                return Ok(body.into());
            }
            Ok(_) => room = most,
            Err(HostErrno::INVAL) => return Err(Errno::ESTALE),
            Err(error) => return Err(errno(error)),
        }
    }
}

/// Longest value of an extended attribute, and longest list of names: `xattr(7)`.
const MAX_XATTR: usize = 65_536;

/// The size of the buffer that is tried first.
const FIRST_XATTR: usize = 512;

/// Returns the result of `read`, which fills a buffer and fails with `ERANGE` if the buffer is too
/// small. Calls `read` once or twice.
///
/// # Errors
/// As for `read`; `E2BIG`.
pub(crate) fn xattr(read: impl Fn(&mut [u8]) -> Result<usize, HostErrno>) -> Result<Box<[u8]>, Errno> {
    for room in [FIRST_XATTR, MAX_XATTR] {
        let mut buf = vec![0; room];
        match read(&mut buf) {
            Ok(len) => {
                buf.truncate(len);
                return Ok(buf.into());
            }
            Err(HostErrno::RANGE) => {}
            Err(error) => return Err(errno(error)),
        }
    }
    Err(Errno::E2BIG)
}

/// Reads the ACLs of `name` in `dir`, which has the attributes in `new`. If its access ACL cannot be read, its group class has
/// no permission; if that may change, the answer is not cached.
pub(crate) fn read_acls(dir: &OwnedFd, name: &[u8], new: &mut NewInode) {
    let access = acl(dir, name, AclKind::Access);
    new.access_acl = access.unwrap_or_else(|errno| {
        if Acl::is_transient(errno) {
            new.valid = Valid::For(0);
        }
        Some(Acl::unreadable(new.attr.mode))
    });
    // The host applies it to new files; this copy is for the caches.
    new.default_acl = if new.attr.is_dir() { acl(dir, name, AclKind::Default).ok().flatten() } else { None };
}

/// Returns whether a directory has a default ACL. If that cannot be read, it counts as none: the
/// umask applies.
pub(crate) fn has_default_acl(dir: impl AsFd) -> bool {
    acl(dir, b".", AclKind::Default).is_ok_and(|acl| acl.is_some())
}

/// Returns the ACL of `name` in `dir`, if it has one.
///
/// # Errors
/// As for `lgetxattr(2)`; `EINVAL` for a value that is not an ACL.
fn acl(dir: impl AsFd, name: &[u8], kind: AclKind) -> Result<Option<Acl>, Errno> {
    let mut path = ProcPath::new(dir).bytes().to_vec();
    path.push(b'/');
    path.extend_from_slice(name);
    match xattr(|buf| system::lgetxattr(&path, kind.xattr_name(), buf)) {
        Ok(value) => Acl::from_xattr(&value),
        Err(Errno::ENODATA | Errno::EOPNOTSUPP) => Ok(None),
        Err(error) => Err(error),
    }
}
