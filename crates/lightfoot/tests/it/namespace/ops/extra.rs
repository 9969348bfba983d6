//! Further operations: of locks, extended attributes, storage, mounts and a second process.

use super::{Op, RawPath};

/// Whose extended attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum XattrAt {
    Path(RawPath),
    // A symbolic link in the last place is not followed.
    Link(RawPath),
    Slot(usize),
}

/// The name of an extended attribute.
pub(crate) type XattrName = RawPath;

/// What `fallocate(2)` does; tmpfs has no more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storage {
    Reserve,
    ReserveKeepSize,
    PunchHole,
}

/// What a lock becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lock {
    Shared,
    Exclusive,
    None,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    // Begins the second process again: with the root, working directory, umask and user of the first, whose open files it
    // shares. `unshare`: with a copy of the mounts (`CLONE_NEWNS`).
    Fork { unshare: bool },
    // Only in the second process, so that the first sees the whole tree.
    Chroot { path: RawPath },
    // Only in a second process that has its own mounts.
    PivotRoot { new_root: RawPath, put_old: RawPath },
    // `flock(2)` without waiting.
    Flock { slot: usize, lock: Lock },
    // `F_OFD_SETLK`.
    LockRange { slot: usize, lock: Lock, start: u64, len: u64 },
    // `F_OFD_GETLK`.
    TestLock { slot: usize, lock: Lock, start: u64, len: u64 },
    // `renameat2` with its flags.
    Rename { from: RawPath, to: RawPath, flags: u32 },
    // `linkat` with `AT_SYMLINK_FOLLOW`.
    LinkFollowing { from: RawPath, to: RawPath },
    // `linkat` with `AT_EMPTY_PATH`: a name for what is open.
    LinkOpen { slot: usize, to: RawPath },
    // `openat2`. The flags make sense together: it refuses what `open` ignores.
    OpenHow { slot: usize, path: RawPath, flags: u32, mode: u32, resolve: u64 },
    // `faccessat2` with `AT_EACCESS` and `AT_SYMLINK_NOFOLLOW`.
    AccessLink { path: RawPath, bits: u32 },
    // `setxattr`; `how` is 0, `XATTR_CREATE` 1 or `XATTR_REPLACE` 2.
    SetXattr { at: XattrAt, name: XattrName, value: RawPath, how: u32 },
    GetXattr { at: XattrAt, name: XattrName },
    RemoveXattr { at: XattrAt, name: XattrName },
    ListXattrs { at: XattrAt },
    Allocate { slot: usize, how: Storage, offset: u64, len: u64 },
    // `lseek` with `SEEK_DATA` or `SEEK_HOLE`.
    SeekFor { slot: usize, hole: bool, offset: u64 },
    // Block size, longest name, and the flags of the mount.
    StatVfs { path: RawPath },
    // The next entries of the open directory, 64 at most, sorted: what an exchange does to the order differs.
    List { slot: usize },
    // Begins the listing again.
    Rewind { slot: usize },
    // A fresh file system, with flags of `ST_*` for the mount as everything that mounts.
    Mount { path: RawPath, flags: u32 },
    Bind { from: RawPath, to: RawPath, flags: u32, recursive: bool },
    MoveMount { from: RawPath, to: RawPath },
    Remount { path: RawPath, flags: u32 },
    Unmount { path: RawPath, detach: bool },
}

/// Flags of mounts, as [`Extra::StatVfs`] answers them: `ST_RDONLY`, `ST_NOSUID`, `ST_NODEV`, `ST_NOEXEC`, `ST_NOATIME`,
/// `ST_NODIRATIME`, `ST_NOSYMFOLLOW`.
pub(crate) const MOUNT_FLAGS: [u32; 7] = [1, 2, 4, 8, 1024, 2048, 0x2000];

impl Op {
    /// The names that the operation removes, replaces or moves.
    pub(crate) fn removed(&self) -> Vec<&RawPath> {
        match self {
            Op::Unlink { path } | Op::Rmdir { path } => vec![path],
            Op::Rename { from, to } | Op::Extra(Extra::Rename { from, to, .. }) => vec![from, to],
            _ => Vec::new(),
        }
    }

    /// Where the operation mounts something.
    pub(crate) fn mounted_on(&self) -> Option<&RawPath> {
        match self {
            Op::Extra(Extra::Mount { path, .. }) => Some(path),
            Op::Extra(Extra::Bind { to, .. } | Extra::MoveMount { to, .. }) => Some(to),
            Op::Extra(Extra::PivotRoot { put_old, .. }) => Some(put_old),
            _ => None,
        }
    }
}

/// The files on which something was mounted. No operation removes them while the processes have different mounts: see
/// [`EXCEPTIONS`](crate::namespace::exceptions::EXCEPTIONS).
#[derive(Clone, Debug, Default)]
pub(crate) struct MountPoints {
    files: Vec<(u64, u64)>,
    apart: bool,
}

impl MountPoints {
    pub(crate) fn fork(&mut self, unshare: bool) {
        self.apart = unshare;
    }

    /// Whether the operation must not be done. `of` gives the device and number of the file at a path; links are followed if it
    /// receives `true`.
    pub(crate) fn refuses(&mut self, op: &Op, of: impl Fn(&RawPath, bool) -> Option<(u64, u64)>) -> bool {
        if let Some(file) = op.mounted_on().and_then(|path| of(path, true)) {
            self.files.push(file);
        }
        self.apart && op.removed().iter().filter_map(|path| of(path, false)).any(|file| self.files.contains(&file))
    }
}
