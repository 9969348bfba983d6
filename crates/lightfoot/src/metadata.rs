//! Metadata, shaped like `std`'s with the methods of its `MetadataExt`.

mod debug;

use std::io;
use std::time::SystemTime;
use vfs::{
    Attr, PackedAttr, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK, SetAttr, SetTime,
    from_system_time, to_system_time,
};

/// Bytes of a page.
const BLOCK_BYTES: u64 = 4096;

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Attributes of a file at one moment: `stat(2)`.
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.write("/file", "text")?;
/// let metadata = ctx.metadata("/file")?;
/// assert!(metadata.is_file());
/// assert_eq!((metadata.len(), metadata.nlink(), metadata.uid()), (4, 1, 0));
/// println!("{metadata:?}");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Metadata {
    attr: PackedAttr,
    dev: u64,
}

/// Methods that return one of the attributes.
macro_rules! attributes {
    ($($(#[$meta:meta])* $name:ident: $type:ty = |$attr:ident| $value:expr;)*) => {
        $($(#[$meta])*
        #[must_use]
        pub fn $name(&self) -> $type {
            let $attr = self.attr.unpack();
            $value
        })*
    };
}

impl Metadata {
    #[inline(always)]
    pub(crate) fn new(attr: PackedAttr, dev: u64) -> Self {
        Self { attr, dev }
    }

    pub(crate) fn attr(&self) -> Attr {
        self.attr.unpack()
    }

    /// Returns the time of the last change of the contents.
    ///
    /// # Errors
    /// None; the form is `std`'s.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(to_system_time(self.attr.unpack().mtime))
    }

    /// Returns the time of the last access, as far as it is recorded (relatime).
    ///
    /// # Errors
    /// None; the form is `std`'s.
    pub fn accessed(&self) -> io::Result<SystemTime> {
        Ok(to_system_time(self.attr.unpack().atime))
    }

    /// Returns the time when the file was made, if its file system keeps all names in the cache, as
    /// the file system in memory does. This time never changes.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported) for files of other file systems, host
    /// directories among them, as `std` returns where `statx(2)` reports no `STATX_BTIME`.
    pub fn created(&self) -> io::Result<SystemTime> {
        self.attr.birth().map(to_system_time).ok_or_else(|| io::ErrorKind::Unsupported.into())
    }

    /// Returns the number of its file system, unique in the tree.
    #[must_use]
    pub fn dev(&self) -> u64 {
        self.dev
    }

    /// Returns the preferred size of reads and writes: a page. (File systems do not report one.)
    #[must_use]
    pub fn blksize(&self) -> u64 {
        BLOCK_BYTES
    }

    attributes! {
        /// The kind of the file.
        file_type: FileType = |attr| FileType::new(attr.mode);
        /// Whether it is a directory.
        is_dir: bool = |attr| FileType::new(attr.mode).is_dir();
        /// Whether it is a regular file.
        is_file: bool = |attr| FileType::new(attr.mode).is_file();
        /// Whether it is a symbolic link.
        is_symlink: bool = |attr| FileType::new(attr.mode).is_symlink();
        /// Permission bits.
        permissions: Permissions = |attr| Permissions::from_mode(attr.mode);
        /// Length in bytes.
        #[expect(clippy::len_without_is_empty, reason = "std's Metadata has none")]
        len: u64 = |attr| attr.size;
        /// Inode number, unique in its file system.
        ino: u64 = |attr| attr.ino;
        /// File type and permission bits.
        mode: u32 = |attr| attr.mode;
        /// Number of names.
        nlink: u64 = |attr| attr.nlink.into();
        /// Owner.
        uid: u32 = |attr| attr.uid;
        /// Group.
        gid: u32 = |attr| attr.gid;
        /// Device number of a device node.
        rdev: u64 = |attr| attr.rdev.into();
        /// Length in bytes, as [`Metadata::len`].
        size: u64 = |attr| attr.size;
        /// Storage taken, in units of 512 bytes.
        blocks: u64 = |attr| attr.blocks;
        /// Last access, whole seconds since the epoch.
        atime: i64 = |attr| attr.atime.div_euclid(SECOND_NS);
        /// The nanoseconds beyond the seconds of [`Metadata::atime`].
        atime_nsec: i64 = |attr| attr.atime.rem_euclid(SECOND_NS);
        /// Last change of the contents, whole seconds since the epoch.
        mtime: i64 = |attr| attr.mtime.div_euclid(SECOND_NS);
        /// The nanoseconds beyond the seconds of [`Metadata::mtime`].
        mtime_nsec: i64 = |attr| attr.mtime.rem_euclid(SECOND_NS);
        /// Last change of the inode, whole seconds since the epoch.
        ctime: i64 = |attr| attr.ctime.div_euclid(SECOND_NS);
        /// The nanoseconds beyond the seconds of [`Metadata::ctime`].
        ctime_nsec: i64 = |attr| attr.ctime.rem_euclid(SECOND_NS);
        /// Last access in nanoseconds since the epoch.
        atime_ns: i64 = |attr| attr.atime;
        /// Last change of the contents in nanoseconds since the epoch.
        mtime_ns: i64 = |attr| attr.mtime;
        /// Last change of the inode in nanoseconds since the epoch.
        ctime_ns: i64 = |attr| attr.ctime;
    }
}

/// The kind of a file.
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.symlink("/nowhere", "/link")?;
/// let kind = ctx.symlink_metadata("/link")?.file_type();
/// assert!(kind.is_symlink() && !kind.is_file());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileType {
    kind: u32,
}

/// Methods that compare the kind.
macro_rules! kinds {
    ($($(#[$meta:meta])* $name:ident: $kind:ident;)*) => {
        $($(#[$meta])*
        #[must_use]
        pub fn $name(&self) -> bool {
            self.kind == $kind
        })*
    };
}

impl FileType {
    pub(crate) fn new(mode: u32) -> Self {
        Self { kind: mode & S_IFMT }
    }

    kinds! {
        /// A directory.
        is_dir: S_IFDIR;
        /// A regular file.
        is_file: S_IFREG;
        /// A symbolic link.
        is_symlink: S_IFLNK;
        /// A FIFO.
        is_fifo: S_IFIFO;
        /// A socket.
        is_socket: S_IFSOCK;
        /// A character device.
        is_char_device: S_IFCHR;
        /// A block device.
        is_block_device: S_IFBLK;
    }
}

/// Permission bits: `chmod(2)`.
///
/// ```
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.write("/script", "echo")?;
/// let mut permissions = ctx.metadata("/script")?.permissions();
/// permissions.set_mode(permissions.mode() | 0o111);
/// ctx.set_permissions("/script", permissions)?;
/// assert_eq!(ctx.metadata("/script")?.permissions().mode() & 0o777, 0o755);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Permissions {
    mode: u32,
}

impl Permissions {
    /// Returns permissions from a mode; bits outside of 07777 are ignored.
    #[must_use]
    pub fn from_mode(mode: u32) -> Self {
        Self { mode }
    }

    /// Returns the mode.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// Replaces the mode.
    pub fn set_mode(&mut self, mode: u32) {
        self.mode = mode;
    }

    /// Returns whether no class of users may write.
    #[must_use]
    pub fn readonly(&self) -> bool {
        self.mode & 0o222 == 0
    }

    /// Removes write permission for all classes of users, or adds it for all.
    pub fn set_readonly(&mut self, readonly: bool) {
        self.mode = if readonly { self.mode & !0o222 } else { self.mode | 0o222 };
    }
}

/// Times to set on a file: `utimensat(2)`. A time without a value here does not change.
///
/// ```
/// use lightfoot::FileTimes;
/// use std::time::{Duration, SystemTime};
///
/// let ctx = lightfoot::Vfs::ram().context();
/// ctx.write("/file", "")?;
/// let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
/// ctx.set_times("/file", FileTimes::new().set_modified(time))?;
/// assert_eq!(ctx.metadata("/file")?.modified()?, time);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileTimes {
    pub(crate) atime: Option<SetTime>,
    pub(crate) mtime: Option<SetTime>,
}

impl FileTimes {
    /// Returns a value that sets nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a value that sets both times to the current time, as `touch(1)`. Write permission
    /// suffices.
    #[must_use]
    pub fn now() -> Self {
        Self { atime: Some(SetTime::Now), mtime: Some(SetTime::Now) }
    }

    pub(crate) fn to_set(self) -> SetAttr {
        SetAttr { atime: self.atime, mtime: self.mtime, ..SetAttr::default() }
    }

    /// Sets the access time.
    #[must_use]
    pub fn set_accessed(mut self, time: SystemTime) -> Self {
        self.atime = Some(SetTime::At(from_system_time(time)));
        self
    }

    /// Sets the modification time.
    #[must_use]
    pub fn set_modified(mut self, time: SystemTime) -> Self {
        self.mtime = Some(SetTime::At(from_system_time(time)));
        self
    }
}
