//! Sets of flags, by Linux's numbers: of opening, mounting, unmounting, renaming, and path resolution.

use crate::base::access::credentials::{MAY_OVERWRITE, MAY_READ, MAY_WRITE};
use crate::base::errno::Errno;
use bitflags::bitflags;

bitflags! {
    /// Flags of a regular file or directory, as `chattr(1)` sets them: `FS_*_FL` in `linux/fs.h`. Those that have no name here are
    /// kept (`from_bits_retain`): their meaning is the file system's.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct InodeFlags: u32 {
        /// Writes are as with `O_SYNC`: `S`.
        const SYNC = 0x8;
        /// Nothing of the file can be changed: `i`.
        const IMMUTABLE = 0x10;
        /// Data can only be appended: `a`.
        const APPEND = 0x20;
        /// Backups leave it out: `d`.
        const NODUMP = 0x40;
        /// Reads do not change the access time: `A`.
        const NOATIME = 0x80;
        /// Contents are not cached: `x`.
        const DAX = 0x200_0000;
        /// New files get the directory's project: `P`.
        const PROJINHERIT = 0x2000_0000;
        /// All others.
        const _ = !0;
    }
}

impl InodeFlags {
    /// Flags that the VFS obeys, whatever the file system does.
    pub(crate) const OBEYED: Self = Self::FIXED.union(Self::NOATIME);
    /// Each of them forbids to remove, rename and link the file, and to change its attributes.
    pub(crate) const FIXED: Self = Self::IMMUTABLE.union(Self::APPEND);
}

bitflags! {
    /// Flags of `open(2)`, by Linux's numbers on x86-64. Those without meaning here (`O_CLOEXEC`, `O_NONBLOCK`, ...) are kept
    /// (`from_bits_retain`) and ignored.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct OpenFlags: u32 {
        /// Read only.
        const RDONLY = 0;
        /// Write only.
        const WRONLY = 1;
        /// Read and write.
        const RDWR = 2;
        /// Create the file if it does not exist.
        const CREAT = 0o100;
        /// With `CREAT`: fail with `EEXIST` if the file exists.
        const EXCL = 0o200;
        /// Truncate the file to length 0.
        const TRUNC = 0o1000;
        /// Each write appends at the end.
        const APPEND = 0o2000;
        /// `O_DSYNC`: a write returns when the data are in permanent storage.
        const DSYNC = 0o10_000;
        /// `O_SYNC`: a write returns when the data and the attributes are in permanent storage.
        const SYNC = 0o4_010_000;
        /// Data bypass the host's cache, if there is a host: buffers, offsets and lengths must then
        /// be aligned as it requires.
        const DIRECT = 0o40_000;
        /// The file must be a directory.
        const DIRECTORY = 0o200_000;
        /// The file must not be a symbolic link.
        const NOFOLLOW = 0o400_000;
        /// Do not record accesses; for the owner.
        const NOATIME = 0o1_000_000;
        /// A reference to a place, not an open file: nothing can be read or written.
        const PATH = 0o10_000_000;
        /// Creates a file without a name, on the file system of the directory at the path.
        /// [`Context::link`](crate::Context::link) can name the file later, unless `EXCL` is set.
        const TMPFILE = 0o20_000_000 | 0o200_000;
    }

    /// Flags of a mount, by the numbers of `mount(2)`.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    #[cfg_attr(feature = "serde", derive(serde::Deserialize, serde::Serialize))]
    pub struct MountFlags: u32 {
        /// No changes through this mount: `EROFS`.
        const RDONLY = 1;
        /// Set-id bits have no effect. (Nothing is executed here; the flag is only listed.)
        const NOSUID = 2;
        /// Devices are not opened: `EACCES`.
        const NODEV = 4;
        /// Nothing is executed: `access` for `X_OK` of a file is `EACCES`.
        const NOEXEC = 8;
        /// Symbolic links are not followed: `ELOOP`.
        const NOSYMFOLLOW = 256;
        /// Accesses are not recorded.
        const NOATIME = 1024;
        /// Listings of directories are not recorded.
        const NODIRATIME = 2048;
        /// Every access is recorded, not by relatime.
        const STRICTATIME = 1 << 24;
    }

    /// Flags of `umount2(2)`, by Linux's numbers.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct UnmountFlags: u32 {
        /// Unmount at once, with everything mounted below; open files stay usable: `MNT_DETACH`.
        const DETACH = 2;
        /// Do not follow a symbolic link: `UMOUNT_NOFOLLOW`.
        const NOFOLLOW = 8;
    }

    /// Flags of `renameat2(2)`, by Linux's numbers.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct RenameFlags: u32 {
        /// Fail with `EEXIST` if the new name exists.
        const NOREPLACE = 1;
        /// Exchange both names, which must exist.
        const EXCHANGE = 2;
    }

    /// Flags of `openat2(2)`'s `resolve`, by Linux's numbers.
    #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
    pub struct Resolve: u32 {
        /// Cross no mount point, down or up: `EXDEV`.
        const NO_XDEV = 1;
        /// Follow no magic link. No file system here has any, so this changes nothing.
        const NO_MAGICLINKS = 2;
        /// Follow no symbolic link: `ELOOP`.
        const NO_SYMLINKS = 4;
        /// Stay below the start: an absolute path or link, or a `..` that leads out, fails with `EXDEV`.
        const BENEATH = 8;
        /// The start is the root: absolute paths and links begin there, and `..` stays there.
        const IN_ROOT = 16;
        /// Use only the cache; fail with `EAGAIN` if that is not enough.
        const CACHED = 32;
    }
}

impl OpenFlags {
    /// Flags that have a meaning with `PATH`.
    const WITH_PATH: Self = Self::PATH.union(Self::DIRECTORY).union(Self::NOFOLLOW);

    /// Returns whether the file can be read.
    #[must_use]
    pub const fn can_read(self) -> bool {
        matches!(self.bits() & 3, 0 | 2) && !self.contains(Self::PATH)
    }

    /// Returns whether the file can be written.
    #[must_use]
    pub const fn can_write(self) -> bool {
        matches!(self.bits() & 3, 1 | 2) && !self.contains(Self::PATH)
    }

    /// With `PATH`, only `DIRECTORY` and `NOFOLLOW` have a meaning.
    pub(crate) fn cleaned(self) -> Self {
        if self.contains(Self::PATH) { self & Self::WITH_PATH } else { self }
    }

    /// Returns the permissions that an existing file must grant.
    pub(crate) fn mask(self) -> u32 {
        let read = if self.can_read() { MAY_READ } else { 0 };
        let write = if self.can_write() || self.contains(Self::TRUNC) { MAY_WRITE } else { 0 };
        let is_append = self.contains(Self::APPEND) && !self.contains(Self::TRUNC);
        read | write | if is_append || write == 0 { 0 } else { MAY_OVERWRITE }
    }
}

impl Resolve {
    /// Internal: symbolic links are protected ([`crate::Policy`]).
    pub(crate) const PROTECTED_LINKS: Self = Self::from_bits_retain(1 << 31);

    /// Flags from Linux's numbers, checked as by `openat2(2)`.
    ///
    /// # Errors
    /// `EINVAL` for unknown flags, and for `BENEATH` with `IN_ROOT`.
    pub const fn from_linux(bits: u32) -> Result<Self, Errno> {
        match Self::from_bits(bits) {
            Some(flags) if !flags.contains(Self::BENEATH.union(Self::IN_ROOT)) => Ok(flags),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Returns whether the set is empty.
    #[inline(always)]
    pub(crate) const fn is_plain(self) -> bool {
        self.difference(Self::PROTECTED_LINKS).is_empty()
    }

    /// Returns whether the start of the walk is its root.
    #[inline(always)]
    pub(crate) const fn is_scoped(self) -> bool {
        self.intersects(Self::BENEATH.union(Self::IN_ROOT))
    }
}
