//! Attributes of an inode, as in `inode(7)` and `stat(2)`.

use crate::base::errno::Errno;

/// Mask of the file type in a mode.
pub const S_IFMT: u32 = 0o170_000;
/// Socket.
pub const S_IFSOCK: u32 = 0o140_000;
/// Symbolic link.
pub const S_IFLNK: u32 = 0o120_000;
/// Regular file.
pub const S_IFREG: u32 = 0o100_000;
/// Block device.
pub const S_IFBLK: u32 = 0o060_000;
/// Directory.
pub const S_IFDIR: u32 = 0o040_000;
/// Character device.
pub const S_IFCHR: u32 = 0o020_000;
/// FIFO.
pub const S_IFIFO: u32 = 0o010_000;
/// Set-user-id.
pub const S_ISUID: u32 = 0o4000;
/// Set-group-id; on a directory: new entries take its group.
pub const S_ISGID: u32 = 0o2000;
/// Sticky: only the owner of an entry, or of the directory, may remove the entry.
pub const S_ISVTX: u32 = 0o1000;

/// Attributes of an inode at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attr {
    /// Inode number, unique in its file system.
    pub ino: u64,
    /// File type (`S_IFMT`) and permission bits.
    pub mode: u32,
    /// Names (and for a directory: itself and its sub-directories).
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number of a device node (`makedev(3)`, 32 bits: 12 major, 20 minor as Linux keeps it), else 0.
    pub rdev: u32,
    /// Length in bytes.
    pub size: u64,
    /// Storage taken, in units of 512 bytes.
    pub blocks: u64,
    /// Last access, nanoseconds since the epoch.
    pub atime: i64,
    /// Last change of the contents, nanoseconds since the epoch.
    pub mtime: i64,
    /// Last change of the inode, nanoseconds since the epoch.
    pub ctime: i64,
}

impl Attr {
    /// Returns the file type bits of the mode.
    #[must_use]
    pub fn kind(&self) -> u32 {
        self.mode & S_IFMT
    }

    /// Returns whether this is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.kind() == S_IFDIR
    }
}

/// A time to set: `utimensat(2)`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SetTime {
    /// The current time.
    Now,
    /// Nanoseconds since the epoch.
    At(i64),
}

/// Attributes to change; `None` keeps an attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SetAttr {
    /// Permission bits (07777).
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes.
    pub size: Option<u64>,
    /// Access time.
    pub atime: Option<SetTime>,
    /// Modification time.
    pub mtime: Option<SetTime>,
}

/// Checks that `mknod(2)` can create the type in `mode`; a mode without a type is a regular file.
///
/// # Errors
/// `EPERM` for a directory, `EINVAL` for any other type that is not a node type.
pub(crate) fn node_type(mode: u32) -> Result<u32, Errno> {
    match mode & S_IFMT {
        0 | S_IFREG => Ok(S_IFREG),
        kind @ (S_IFCHR | S_IFBLK | S_IFIFO | S_IFSOCK) => Ok(kind),
        S_IFDIR => Err(Errno::EPERM),
        _ => Err(Errno::EINVAL),
    }
}
