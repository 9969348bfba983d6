//! Operations that came later than the rest, and that the reference model has only in part: it follows what they do to names.

use super::RawPath;

/// Whose extended attribute.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum XattrAt {
    Path(RawPath),
    /// A symbolic link in the last place is not followed.
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

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Extra {
    /// `renameat2` with its flags.
    Rename {
        from: RawPath,
        to: RawPath,
        flags: u32,
    },
    /// `linkat` with `AT_SYMLINK_FOLLOW`.
    LinkFollowing {
        from: RawPath,
        to: RawPath,
    },
    /// `linkat` with `AT_EMPTY_PATH`: a name for what is open.
    LinkOpen {
        slot: usize,
        to: RawPath,
    },
    /// `openat2`. The flags make sense together: it refuses what `open` ignores.
    OpenHow {
        slot: usize,
        path: RawPath,
        flags: u32,
        mode: u32,
        resolve: u64,
    },
    /// `faccessat2` with `AT_EACCESS` and `AT_SYMLINK_NOFOLLOW`.
    AccessLink {
        path: RawPath,
        bits: u32,
    },
    /// `setxattr`; `how` is 0, `XATTR_CREATE` 1 or `XATTR_REPLACE` 2.
    SetXattr {
        at: XattrAt,
        name: XattrName,
        value: RawPath,
        how: u32,
    },
    GetXattr {
        at: XattrAt,
        name: XattrName,
    },
    RemoveXattr {
        at: XattrAt,
        name: XattrName,
    },
    ListXattrs {
        at: XattrAt,
    },
    Allocate {
        slot: usize,
        how: Storage,
        offset: u64,
        len: u64,
    },
    /// `lseek` with `SEEK_DATA` or `SEEK_HOLE`.
    SeekFor {
        slot: usize,
        hole: bool,
        offset: u64,
    },
    /// Block size, longest name, and the flags of the mount.
    StatVfs {
        path: RawPath,
    },
    /// The next entries of the open directory, 64 at most, sorted: what an exchange does to the order differs.
    List {
        slot: usize,
    },
    /// Begins the listing again.
    Rewind {
        slot: usize,
    },
    /// A fresh file system, with flags of `ST_*` for the mount as everything that mounts.
    Mount {
        path: RawPath,
        flags: u32,
    },
    Bind {
        from: RawPath,
        to: RawPath,
        flags: u32,
        recursive: bool,
    },
    MoveMount {
        from: RawPath,
        to: RawPath,
    },
    Remount {
        path: RawPath,
        flags: u32,
    },
    Unmount {
        path: RawPath,
        detach: bool,
    },
}

/// Flags of mounts, as [`Extra::StatVfs`] answers them: `ST_RDONLY`, `ST_NOSUID`, `ST_NODEV`, `ST_NOEXEC`, `ST_NOATIME`,
/// `ST_NODIRATIME`, `ST_NOSYMFOLLOW`.
pub(crate) const MOUNT_FLAGS: [u32; 7] = [1, 2, 4, 8, 1024, 2048, 0x2000];
