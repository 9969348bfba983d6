//! The host: system calls in the form that is used here.
//!
//! # What it is
//! Each function is one call, but for what is said at it. Names are single components: not empty, not `.` or `..`,
//! without a slash. A single component below a descriptor leads nowhere else unless it is a symbolic link or a mount
//! point; links are never followed, mount points only where they may be.
//!
//! # How it is locked
//! Not at all.
//!
//! # Where it comes from
//! `openat2(2)`, `statx(2)`, `proc(5)`: `/proc/self/fd` stands in for calls that take no `O_PATH` descriptor.

use crate::errno::errno;
use crate::identity::ASKED;
use rustix::fs::{AtFlags, FsWord, Mode, OFlags, ResolveFlags, Statx};
use rustix::io::Errno as HostErrno;
use std::fmt::Write as _;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use vfs::Errno;

/// `openat2(2)` answers `EAGAIN` where a rename might lead out of bounds; it is asked again so often.
const TRIES: usize = 8;

/// Types of file systems whose attributes are on this machine: asking costs no round trip, and `AT_STATX_DONT_SYNC` no
/// freshness. ext4, tmpfs, ramfs, XFS, Btrfs, F2FS, overlayfs, ZFS, bcachefs, SquashFS, EROFS: `statfs(2)`.
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

/// Whether a file system of this type is on this machine.
pub(crate) fn is_local(kind: FsWord) -> bool {
    LOCAL.contains(&kind)
}

/// Whether `name` can be a component.
///
/// # Errors
/// `EINVAL`.
pub(crate) fn check_name(name: &[u8]) -> Result<(), Errno> {
    let is_plain = !matches!(name, b"" | b"." | b"..") && !name.iter().any(|byte| matches!(byte, 0 | b'/'));
    if is_plain { Ok(()) } else { Err(Errno::EINVAL) }
}

/// Attributes of `name` in `dir`; a symbolic link's own. Never waits for a server: what stands on a mount point may be
/// known by what it said last.
pub(crate) fn stat_at(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, HostErrno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT | AtFlags::STATX_DONT_SYNC;
    rustix::fs::statx(dir, name, flags, ASKED)
}

/// The same as its server knows it now.
pub(crate) fn stat_at_synced(dir: BorrowedFd<'_>, name: &[u8]) -> Result<Statx, HostErrno> {
    rustix::fs::statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, ASKED)
}

/// Attributes of what a descriptor is of.
pub(crate) fn stat_fd(fd: BorrowedFd<'_>) -> Result<Statx, HostErrno> {
    rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, ASKED)
}

/// How names are opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    resolve: ResolveFlags,
    /// Whether the host has `openat2(2)`.
    has_openat2: bool,
}

impl Opening {
    /// Finds out what the host has.
    pub(crate) fn new(dir: BorrowedFd<'_>, crosses: bool) -> Self {
        let mut resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
        if !crosses {
            resolve |= ResolveFlags::NO_XDEV;
        }
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let tried = rustix::fs::openat2(dir, c".", flags, Mode::empty(), resolve);
        // A filter of system calls may answer EPERM.
        let has_openat2 = !matches!(tried, Err(HostErrno::NOSYS | HostErrno::PERM));
        Self { resolve, has_openat2 }
    }

    /// Opens `name` in `dir`, which is a component or `.`; never a symbolic link unless with `O_PATH`.
    pub(crate) fn open(
        &self,
        dir: BorrowedFd<'_>,
        name: &[u8],
        flags: OFlags,
        mode: u32,
    ) -> Result<OwnedFd, HostErrno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(mode & 0o7777);
        if !self.has_openat2 {
            return rustix::fs::openat(dir, name, flags, mode);
        }
        for _ in 0..TRIES {
            match rustix::fs::openat2(dir, name, flags, mode, self.resolve) {
                Err(HostErrno::AGAIN) => {}
                done => return done,
            }
        }
        Err(HostErrno::AGAIN)
    }
}

/// A path that leads to what a descriptor is of, also of one with `O_PATH`.
pub(crate) struct ProcPath([u8; 32], usize);

impl ProcPath {
    pub(crate) fn new(fd: impl AsFd) -> Self {
        let mut path = Self([0; 32], 0);
        // 14 bytes and at most 10 of a number fit.
        let _ = write!(path, "/proc/self/fd/{}", fd.as_fd().as_raw_fd());
        path
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0[..self.1]
    }
}

impl core::fmt::Write for ProcPath {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        let end = self.1 + text.len();
        let room = self.0.get_mut(self.1..end).ok_or(core::fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.1 = end;
        Ok(())
    }
}

/// Opens what a descriptor is of once more: it may have no name any more.
pub(crate) fn reopen(fd: BorrowedFd<'_>, flags: OFlags) -> Result<OwnedFd, HostErrno> {
    rustix::fs::open(ProcPath::new(fd).bytes(), flags | OFlags::CLOEXEC | OFlags::NOCTTY, Mode::empty())
}

/// The body of a symbolic link: `name` in `dir`, or with an empty name what `dir` is of. One call unless it is long.
///
/// # Errors
/// `ESTALE` if it is none.
pub(crate) fn read_link(dir: BorrowedFd<'_>, name: &[u8], size: u64) -> Result<Box<[u8]>, Errno> {
    let most = vfs::PATH_MAX + 1;
    let mut room = usize::try_from(size).unwrap_or(most).saturating_add(1).clamp(64, most);
    loop {
        let mut body = vec![0; room];
        match rustix::fs::readlinkat_raw(dir, name, body.as_mut_slice()) {
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

/// Whether the file system of a directory has ACLs.
pub(crate) fn has_acls(dir: &OwnedFd) -> bool {
    let asked = rustix::fs::fgetxattr(dir, c"system.posix_acl_access", &mut [0u8; 0][..]);
    !matches!(asked, Err(HostErrno::OPNOTSUPP))
}

/// The umask of the process; 0 if it cannot be read.
pub(crate) fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    line.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0)
}
