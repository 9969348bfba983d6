//! The structs and numbers of the protocol, as `linux/fuse.h` (7.45) lays them out, with its names.
//!
//! Numbers are in the machine's byte order. All padding has a name in the structs. The size of each
//! is checked when it is compiled.

#![allow(missing_docs, reason = "`linux/fuse.h` describes the fields")]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Version of the protocol.
pub const MAJOR: u32 = 7;
/// The newest minor version that this code supports.
pub const MINOR: u32 = 45;

/// The node of the root directory.
pub const ROOT_NODE: u64 = 1;

macro_rules! structs {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? } = $size:literal;)*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub struct $name { $(pub $field: $type),* }
        const _: () = assert!(size_of::<$name>() == $size);
    )*
    /// Of each struct: name, size, and its fields with offset and size.
    #[cfg(test)]
    const LAYOUTS: &[(&str, usize, &[(&str, usize, usize)])] = &[$((
        stringify!($name),
        size_of::<$name>(),
        &[$((stringify!($field), core::mem::offset_of!($name, $field), size_of::<$type>())),*],
    )),*];
    };
}

structs! {
    /// Before each request. `total_extlen` is in units of 8 bytes.
    InHeader { len: u32, opcode: u32, unique: u64, nodeid: u64, uid: u32, gid: u32, pid: u32, total_extlen: u16, padding: u16 } = 40;
    /// Before each reply and notice. `error` is 0, a negative errno, or the code of a notice.
    OutHeader { len: u32, error: i32, unique: u64 } = 16;
    /// Attributes. Seconds are signed (`as`); nanoseconds are below a billion.
    Attr { ino: u64, size: u64, blocks: u64, atime: u64, mtime: u64, ctime: u64, atimensec: u32, mtimensec: u32,
        ctimensec: u32, mode: u32, nlink: u32, uid: u32, gid: u32, rdev: u32, blksize: u32, flags: u32 } = 88;
    /// A name's node, and how long the kernel may cache both. Node 0: the name does not exist, and
    /// the kernel may cache that.
    EntryOut { nodeid: u64, generation: u64, entry_valid: u64, attr_valid: u64, entry_valid_nsec: u32,
        attr_valid_nsec: u32, attr: Attr } = 128;
    AttrOut { attr_valid: u64, attr_valid_nsec: u32, dummy: u32, attr: Attr } = 104;
    ForgetIn { nlookup: u64 } = 8;
    ForgetOne { nodeid: u64, nlookup: u64 } = 16;
    BatchForgetIn { count: u32, dummy: u32 } = 8;
    GetattrIn { getattr_flags: u32, dummy: u32, fh: u64 } = 16;
    SetattrIn { valid: u32, padding: u32, fh: u64, size: u64, lock_owner: u64, atime: u64, mtime: u64, ctime: u64,
        atimensec: u32, mtimensec: u32, ctimensec: u32, mode: u32, unused4: u32, uid: u32, gid: u32, unused5: u32 } = 88;
    MknodIn { mode: u32, rdev: u32, umask: u32, padding: u32 } = 16;
    MkdirIn { mode: u32, umask: u32 } = 8;
    RenameIn { newdir: u64 } = 8;
    Rename2In { newdir: u64, flags: u32, padding: u32 } = 16;
    LinkIn { oldnodeid: u64 } = 8;
    OpenIn { flags: u32, open_flags: u32 } = 8;
    CreateIn { flags: u32, mode: u32, umask: u32, open_flags: u32 } = 16;
    OpenOut { fh: u64, open_flags: u32, backing_id: i32 } = 16;
    CreateOut { entry: EntryOut, open: OpenOut } = 144;
    ReleaseIn { fh: u64, flags: u32, release_flags: u32, lock_owner: u64 } = 24;
    FlushIn { fh: u64, unused: u32, padding: u32, lock_owner: u64 } = 24;
    /// READ, READDIR and READDIRPLUS.
    ReadIn { fh: u64, offset: u64, size: u32, read_flags: u32, lock_owner: u64, flags: u32, padding: u32 } = 40;
    WriteIn { fh: u64, offset: u64, size: u32, write_flags: u32, lock_owner: u64, flags: u32, padding: u32 } = 40;
    WriteOut { size: u32, padding: u32 } = 8;
    StatfsOut { blocks: u64, bfree: u64, bavail: u64, files: u64, ffree: u64, bsize: u32, namelen: u32, frsize: u32,
        padding: u32, spare: [u32; 6] } = 80;
    FsyncIn { fh: u64, fsync_flags: u32, padding: u32 } = 16;
    /// Without `FUSE_SETXATTR_EXT`, which would make it longer.
    SetxattrIn { size: u32, flags: u32 } = 8;
    GetxattrIn { size: u32, padding: u32 } = 8;
    GetxattrOut { size: u32, padding: u32 } = 8;
    /// A lock of bytes `start` to `end`, both included. `kind` is `type` in C.
    FileLock { start: u64, end: u64, kind: u32, pid: u32 } = 24;
    LkIn { fh: u64, owner: u64, lk: FileLock, lk_flags: u32, padding: u32 } = 48;
    LkOut { lk: FileLock } = 24;
    AccessIn { mask: u32, padding: u32 } = 8;
    /// Before 7.36 only the first 16 bytes.
    InitIn { major: u32, minor: u32, max_readahead: u32, flags: u32, flags2: u32, unused: [u32; 11] } = 64;
    InitOut { major: u32, minor: u32, max_readahead: u32, flags: u32, max_background: u16, congestion_threshold: u16,
        max_write: u32, time_gran: u32, max_pages: u16, map_alignment: u16, flags2: u32, max_stack_depth: u32,
        request_timeout: u16, unused: [u16; 11] } = 64;
    InterruptIn { unique: u64 } = 8;
    /// `in_size` bytes of the argument follow.
    IoctlIn { fh: u64, flags: u32, cmd: u32, arg: u64, in_size: u32, out_size: u32 } = 32;
    /// `out_size` bytes of the result follow.
    IoctlOut { result: i32, flags: u32, in_iovs: u32, out_iovs: u32 } = 16;
    /// The argument of [`ioctl::FSGETXATTR`] and [`ioctl::FSSETXATTR`]: `struct fsxattr` in `linux/fs.h`.
    Fsxattr { xflags: u32, extsize: u32, nextents: u32, projid: u32, cowextsize: u32, pad: [u8; 8] } = 28;
    FallocateIn { fh: u64, offset: u64, length: u64, mode: u32, padding: u32 } = 32;
    LseekIn { fh: u64, offset: u64, whence: u32, padding: u32 } = 24;
    LseekOut { offset: u64 } = 8;
    /// COPY_FILE_RANGE, whose reply is a [`WriteOut`], and COPY_FILE_RANGE_64.
    CopyFileRangeIn { fh_in: u64, off_in: u64, nodeid_out: u64, fh_out: u64, off_out: u64, len: u64, flags: u64 } = 56;
    CopyFileRangeOut { bytes_copied: u64 } = 8;
    StatxIn { getattr_flags: u32, reserved: u32, fh: u64, sx_flags: u32, sx_mask: u32 } = 24;
    /// A time of [`Statx`]; `tv_sec` is signed.
    SxTime { tv_sec: u64, tv_nsec: u32, reserved: i32 } = 16;
    Statx { mask: u32, blksize: u32, attributes: u64, nlink: u32, uid: u32, gid: u32, mode: u16, spare0: u16, ino: u64,
        size: u64, blocks: u64, attributes_mask: u64, atime: SxTime, btime: SxTime, ctime: SxTime, mtime: SxTime,
        rdev_major: u32, rdev_minor: u32, dev_major: u32, dev_minor: u32, spare2: [u64; 14] } = 256;
    StatxOut { attr_valid: u64, attr_valid_nsec: u32, flags: u32, spare: [u64; 2], stat: Statx } = 288;
    /// An entry of READDIR; the name follows, with zeros up to a multiple of 8 bytes. `kind` is `type` in C: bits 12 to 15 of
    /// the mode.
    Dirent { ino: u64, off: u64, namelen: u32, kind: u32 } = 24;
    /// An entry of READDIRPLUS, as [`Dirent`].
    DirentPlus { entry: EntryOut, dirent: Dirent } = 152;
    NotifyInvalInodeOut { ino: u64, off: i64, len: i64 } = 24;
    NotifyInvalEntryOut { parent: u64, namelen: u32, flags: u32 } = 16;
    /// The name and a zero follow.
    NotifyDeleteOut { parent: u64, child: u64, namelen: u32, padding: u32 } = 24;
    NotifyRetrieveOut { notify_unique: u64, nodeid: u64, offset: u64, size: u32, padding: u32 } = 32;
    /// The node ids follow.
    NotifyPruneOut { count: u32, padding: u32, spare: u64 } = 16;
    /// The argument of the `ioctl(2)` that registers a backing file.
    BackingMap { fd: i32, flags: u32, padding: u64 } = 16;
    /// Before each extension of a request; `size` bytes with this struct, a multiple of 8. `kind` is `type` in C:
    /// [`ext::GROUPS`] if [`SuppGroups`] follow; up to 31 it is the number of [`Secctx`] that follow.
    ExtHeader { size: u32, kind: u32 } = 8;
    /// The groups follow, 4 bytes each.
    SuppGroups { nr_groups: u32 } = 4;
    /// The name of an attribute and a zero follow, then its value, of `size` bytes, and zeros up to a multiple of 8.
    Secctx { size: u32, padding: u32 } = 8;
    /// The rest of the memory of a request over io_uring, besides header and struct. `payload_sz`:
    /// bytes of names and data, of the request or of the reply.
    UringEntInOut { flags: u64, commit_id: u64, payload_sz: u32, padding: u32, reserved: u64 } = 32;
    /// The argument of a command over io_uring.
    UringCmdReq { flags: u64, commit_id: u64, qid: u16, padding: [u8; 6] } = 24;
}

/// Defines numbers of the protocol with one type.
macro_rules! numbers {
    ($type:ty: $($name:ident = $value:expr),* $(,)?) => {
        $(pub const $name: $type = $value;)*
        #[cfg(test)]
        pub(super) const ALL: &[(&str, $type)] = &[$((stringify!($name), $name)),*];
    };
}

/// `enum fuse_opcode`.
pub mod opcode {
    numbers! { u32:
        LOOKUP = 1, FORGET = 2, GETATTR = 3, SETATTR = 4, READLINK = 5, SYMLINK = 6, MKNOD = 8, MKDIR = 9, UNLINK = 10,
        RMDIR = 11, RENAME = 12, LINK = 13, OPEN = 14, READ = 15, WRITE = 16, STATFS = 17, RELEASE = 18, FSYNC = 20,
        SETXATTR = 21, GETXATTR = 22, LISTXATTR = 23, REMOVEXATTR = 24, FLUSH = 25, INIT = 26, OPENDIR = 27, READDIR = 28,
        RELEASEDIR = 29, FSYNCDIR = 30, GETLK = 31, SETLK = 32, SETLKW = 33, ACCESS = 34, CREATE = 35, INTERRUPT = 36,
        BMAP = 37, DESTROY = 38, IOCTL = 39, POLL = 40, NOTIFY_REPLY = 41, BATCH_FORGET = 42, FALLOCATE = 43,
        READDIRPLUS = 44, RENAME2 = 45, LSEEK = 46, COPY_FILE_RANGE = 47, TMPFILE = 51, STATX = 52,
        COPY_FILE_RANGE_64 = 53,
    }
}

/// `enum fuse_uring_cmd`.
pub mod uring {
    numbers! { u32: REGISTER = 1, COMMIT_AND_FETCH = 2 }
}

/// Commands of `ioctl(2)` in `linux/fs.h`, as in 64-bit programs: the kernel translates others.
pub mod ioctl {
    /// The flags of an inode: `FS_*_FL`.
    pub const GETFLAGS: u32 = 0x8008_6601;
    /// Sets them.
    pub const SETFLAGS: u32 = 0x4008_6602;
    /// These flags as `FS_XFLAG_*`, and more: [`Fsxattr`](super::Fsxattr).
    pub const FSGETXATTR: u32 = 0x801c_581f;
    /// Sets them.
    pub const FSSETXATTR: u32 = 0x401c_5820;
    /// The generation of an inode.
    pub const GETVERSION: u32 = 0x8008_7601;
}

/// `FATTR_*`: which fields of [`SetattrIn`] mean something.
pub mod fattr {
    numbers! { u32:
        MODE = 1, UID = 1 << 1, GID = 1 << 2, SIZE = 1 << 3, ATIME = 1 << 4, MTIME = 1 << 5, FH = 1 << 6,
        ATIME_NOW = 1 << 7, MTIME_NOW = 1 << 8, CTIME = 1 << 10, KILL_SUIDGID = 1 << 11,
    }
}

/// `FOPEN_*`: flags of [`OpenOut`].
pub mod fopen {
    numbers! { u32: DIRECT_IO = 1, KEEP_CACHE = 1 << 1, CACHE_DIR = 1 << 3, NOFLUSH = 1 << 5, PASSTHROUGH = 1 << 7 }
}

/// `FUSE_WRITE_*`: flags of [`WriteIn`].
pub mod write {
    numbers! { u32: CACHE = 1, KILL_SUIDGID = 1 << 2 }
}

/// `FUSE_EXT_*`: kinds of [`ExtHeader`].
pub mod ext {
    numbers! { u32: GROUPS = 32 }
}

/// `FUSE_LK_FLOCK`, a flag of [`LkIn`]: the lock is one of `flock(2)`.
pub const LK_FLOCK: u32 = 1;

/// `FUSE_RELEASE_FLOCK_UNLOCK`, a flag of [`ReleaseIn`]: the owner of locks of `flock(2)` ends.
pub const RELEASE_FLOCK_UNLOCK: u32 = 1 << 1;

/// The bits of [`Statx::mask`]: `STATX_BASIC_STATS` and `STATX_BTIME` in `linux/stat.h`.
pub mod statx {
    /// All that [`Attr`](super::Attr) has.
    pub const BASIC_STATS: u32 = 0x7ff;
    /// The time when the file was made.
    pub const BTIME: u32 = 0x800;
}

/// `FUSE_FSYNC_FDATASYNC`: the data, and the attributes that are needed to read them.
pub const FSYNC_DATA: u32 = 1;

#[cfg(test)]
mod tests;
