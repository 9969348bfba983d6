//! The operations: what one process can do in a namespace.

mod extra;

pub(crate) use extra::{Extra, Lock, MOUNT_FLAGS, MountPoints, Storage, XattrAt};

use std::fmt;
use std::ops::Deref;

pub(crate) const S_IFMT: u32 = 0o170000;
pub(crate) const S_IFSOCK: u32 = 0o140000;
pub(crate) const S_IFLNK: u32 = 0o120000;
pub(crate) const S_IFREG: u32 = 0o100000;
pub(crate) const S_IFBLK: u32 = 0o060000;
pub(crate) const S_IFDIR: u32 = 0o040000;
pub(crate) const S_IFCHR: u32 = 0o020000;
pub(crate) const S_IFIFO: u32 = 0o010000;
pub(crate) const S_ISVTX: u32 = 0o1000;

/// `open` flags, numbered as Linux on x86-64 numbers them.
pub(crate) mod flags {
    pub(crate) const O_RDONLY: u32 = 0;
    pub(crate) const O_WRONLY: u32 = 1;
    pub(crate) const O_RDWR: u32 = 2;
    pub(crate) const O_CREAT: u32 = 0o100;
    pub(crate) const O_EXCL: u32 = 0o200;
    pub(crate) const O_TRUNC: u32 = 0o1000;
    pub(crate) const O_APPEND: u32 = 0o2000;
    pub(crate) const O_DIRECTORY: u32 = 0o200000;
    pub(crate) const O_NOFOLLOW: u32 = 0o400000;
    pub(crate) const O_NOATIME: u32 = 0o1_000_000;
    pub(crate) const O_PATH: u32 = 0o10_000_000;
    pub(crate) const O_TMPFILE: u32 = 0o20_200_000;
    /// Flags of `openat2(2)`.
    pub(crate) const RESOLVE_NO_XDEV: u64 = 1;
    pub(crate) const RESOLVE_NO_MAGICLINKS: u64 = 2;
    pub(crate) const RESOLVE_NO_SYMLINKS: u64 = 4;
    pub(crate) const RESOLVE_BENEATH: u64 = 8;
    pub(crate) const RESOLVE_IN_ROOT: u64 = 16;
    /// Flags of `renameat2(2)`.
    pub(crate) const RENAME_NOREPLACE: u32 = 1;
    pub(crate) const RENAME_EXCHANGE: u32 = 2;
}

/// How many open files a process has room for.
pub(crate) const SLOTS: usize = 6;
/// The slot that the driver's sweep over the whole tree uses; random operations leave it alone.
pub(crate) const SWEEP_SLOT: usize = SLOTS - 1;

/// The users a privileged run switches between: user, group, supplementary groups.
pub(crate) const USERS: [(u32, u32, &[u32]); 3] = [(0, 0, &[]), (1000, 1000, &[]), (1001, 1000, &[1000, 2000])];

/// The bytes of a path, shown with long runs folded.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct RawPath(pub(crate) Vec<u8>);

impl Deref for RawPath {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl<T: AsRef<[u8]>> From<T> for RawPath {
    fn from(bytes: T) -> Self {
        RawPath(bytes.as_ref().to_vec())
    }
}

impl fmt::Debug for RawPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", fold(&self.0))
    }
}

/// Escapes bytes and folds what repeats: `"./" * 2000` comes out as `(./){2000}`.
pub(crate) fn fold(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut at = 0;
    while at < bytes.len() {
        let unit = |len: usize| bytes[at..].chunks_exact(len).take_while(|c| *c == &bytes[at..at + len]).count();
        let units = (1..=4.min(bytes.len() - at)).rev().map(|len| (len, unit(len)));
        let (len, times) = units.max_by_key(|(_, times)| *times).expect("a byte is left");
        let (len, times, folded) = if times > 8 { (len, times, true) } else { (1, 1, false) };
        let text = bytes[at..at + len].escape_ascii();
        out += &if folded { format!("({text}){{{times}}}") } else { text.to_string() };
        at += len * times;
    }
    out
}

/// One operation. Slots name open files; operations on an empty slot answer `EBADF`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    // Takes on the credentials of [`USERS`]`[n]`.
    Become(usize),
    // Sets the file mode creation mask and answers the old one.
    Umask(u32),
    Mkdir { path: RawPath, mode: u32 },
    // `mode` includes the file type.
    Mknod { path: RawPath, mode: u32, rdev: (u32, u32) },
    Symlink { body: RawPath, path: RawPath },
    // `linkat` without `AT_SYMLINK_FOLLOW`.
    Link { from: RawPath, to: RawPath },
    Unlink { path: RawPath },
    Rmdir { path: RawPath },
    Rename { from: RawPath, to: RawPath },
    // Opens into the slot, closing what it held only if the open succeeds. Special files answer `ENXIO` once every
    // check has passed: what opening one means is not the namespace's business.
    Open { slot: usize, path: RawPath, flags: u32, mode: u32 },
    Close { slot: usize },
    Readlink { path: RawPath },
    Stat { path: RawPath },
    Lstat { path: RawPath },
    // The whole listing; a removed directory lists nothing.
    ReadDir { path: RawPath },
    Chmod { path: RawPath, mode: u32 },
    Chown { path: RawPath, uid: Option<u32>, gid: Option<u32>, follow: bool },
    Truncate { path: RawPath, len: i64 },
    // Access and modification time in nanoseconds; `None` leaves one as it is.
    Utimens { path: RawPath, atime: Option<i64>, mtime: Option<i64> },
    // `faccessat` with `AT_EACCESS`; bits are 4 read, 2 write, 1 execute.
    Access { path: RawPath, bits: u32 },
    Chdir { path: RawPath },
    Getcwd,
    Write { slot: usize, fill: u8, len: usize },
    Pwrite { slot: usize, offset: u64, fill: u8, len: usize },
    Read { slot: usize, len: usize },
    Pread { slot: usize, offset: u64, len: usize },
    Ftruncate { slot: usize, len: u64 },
    Fstat { slot: usize },
    Fchmod { slot: usize, mode: u32 },
    Lseek { slot: usize, whence: Whence, offset: i64 },
    // The operation with relative paths from the directory in the slot on: `openat(2)` and its like. With an empty slot
    // `EBADF`, whatever the path is.
    At { slot: usize, op: Box<Op> },
    // The operation by the second process: see [`Extra::Fork`].
    Other(Box<Op>),
    Extra(Extra),
}

/// Where [`Op::Lseek`] counts from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Whence {
    Start,
    Current,
    End,
}
