//! One end of a copy: what can be asked of the host and of a source alike.

use std::io;

/// Type bits of a mode.
const S_IFMT: u32 = 0o170_000;

/// What is known of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    /// Type and permission bits.
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) len: u64,
    /// Storage taken, in units of 512 bytes.
    pub(super) blocks: u64,
    /// The number of a device, as 12 bits of major and 20 of minor number.
    pub(super) rdev: u32,
    /// What it is, whatever its names are; unique on its end.
    pub(super) identity: (u64, u64),
    /// Nanoseconds since the epoch.
    pub(super) atime: i64,
    pub(super) mtime: i64,
}

impl Facts {
    pub(super) fn kind(&self) -> u32 {
        self.mode & S_IFMT
    }

    pub(super) fn is_dir(&self) -> bool {
        self.kind() == lightfoot::fs::S_IFDIR
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind() == lightfoot::fs::S_IFREG
    }

    pub(super) fn is_symlink(&self) -> bool {
        self.kind() == lightfoot::fs::S_IFLNK
    }
}

/// An open regular file.
pub(super) trait Contents {
    /// Reads at an offset; 0 at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `data` at an offset.
    fn write_all_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file, or lets a hole follow.
    fn set_len(&self, len: u64) -> io::Result<()>;

    /// Its length now.
    fn len(&self) -> io::Result<u64>;
}

/// One end of a copy. Errors are those of the system calls.
pub(super) trait End {
    /// What the source is called in errors; `None` for the host.
    fn source(&self) -> Option<&str>;

    /// `stat(2)`, or `lstat(2)` if it does not follow.
    fn facts(&self, path: &[u8], follows: bool) -> io::Result<Facts>;

    /// The names in a directory, in the order of their bytes.
    fn names(&self, path: &[u8]) -> io::Result<Vec<Vec<u8>>>;

    fn read_link(&self, path: &[u8]) -> io::Result<Vec<u8>>;

    /// The path without symbolic links, `.` and `..`.
    fn canonical(&self, path: &[u8]) -> io::Result<Vec<u8>>;

    /// Opens for reading.
    fn open(&self, path: &[u8]) -> io::Result<Box<dyn Contents>>;

    /// Opens for writing, and makes the file with `mode` if it is not there; does not cut it. Follows a symbolic link
    /// only if `follows`.
    fn create(&self, path: &[u8], mode: u32, follows: bool) -> io::Result<Box<dyn Contents>>;

    fn mkdir(&self, path: &[u8], mode: u32) -> io::Result<()>;

    fn symlink(&self, body: &[u8], path: &[u8]) -> io::Result<()>;

    /// Makes a FIFO, socket or device.
    fn mknod(&self, path: &[u8], mode: u32, rdev: u32) -> io::Result<()>;

    fn remove_file(&self, path: &[u8]) -> io::Result<()>;

    /// Permission bits, of what is no symbolic link.
    fn chmod(&self, path: &[u8], mode: u32) -> io::Result<()>;

    /// Owner and group; a symbolic link's own.
    fn chown(&self, path: &[u8], uid: u32, gid: u32) -> io::Result<()>;

    /// Times of the last access and change; a symbolic link's own.
    fn set_times(&self, path: &[u8], atime: i64, mtime: i64) -> io::Result<()>;

    /// The mask of creation modes.
    fn umask(&self) -> u32;
}
