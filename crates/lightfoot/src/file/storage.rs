//! Storage of contents, copies of ranges, and extended attributes.

use super::File;
use crate::error::error;
use crate::view::os_strings;
use std::ffi::OsString;
use std::io;
use vfs::{Allocate, SetXattr, StatVfs};

/// # Copies of ranges
///
/// ```
/// use lightfoot::Vfs;
///
/// let ctx = Vfs::ram().context();
/// ctx.write("/image", vec![7; 1 << 20])?;
/// let (image, snapshot) = (ctx.open("/image")?, ctx.create("/snapshot")?);
/// image.clone_to(0, &snapshot, 0, 0)?; // All of it, without copying a byte.
/// assert_eq!(snapshot.metadata()?.len(), 1 << 20);
/// assert_eq!(image.copy_to(100, &snapshot, 1 << 20, 50)?, 50);
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Copies up to `len` bytes from `offset` on to `target`, from `to` on, and moves no position:
    /// `copy_file_range(2)`. Returns the number of copied bytes: fewer than `len` at the end of
    /// this file, or if an error followed. The file system shares the storage where it can.
    ///
    /// # Errors
    /// `EBADF` if this file is not open for reading, or `target` is not open for writing or was
    /// opened to append; `EXDEV` for files of two file systems; `EINVAL` for ranges of one file
    /// that overlap, and for a file that is not regular; `EISDIR`; `EOVERFLOW` for a range whose
    /// end exceeds `i64::MAX`; `EFBIG`, `ENOSPC`, `EDQUOT`.
    pub fn copy_to(&self, offset: u64, target: &Self, to: u64, len: u64) -> io::Result<u64> {
        self.inner().copy_to(offset, target.inner(), to, len).map_err(error)
    }

    /// Makes `len` bytes of `target`, from `to` on, share the storage of the bytes of this file
    /// from `offset` on, until one of the files changes: `ioctl_ficlonerange(2)`. A length of 0
    /// means all bytes up to the end. The call shares all bytes or none. Both ranges must begin at
    /// the start of a block of the file system. The range of this file must end at the end of a
    /// block or of this file.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if the file system cannot; `EINVAL` for a range that does not begin or end so,
    /// or that is not inside of this file, for an end inside of a block if it is inside of
    /// `target`, and for ranges of one file that overlap; `EXDEV`, `EBADF`, `EISDIR`, `EPERM`,
    /// `ENOSPC`, `EDQUOT`.
    pub fn clone_to(&self, offset: u64, target: &Self, to: u64, len: u64) -> io::Result<()> {
        self.inner().clone_to(offset, target.inner(), to, len).map_err(error)
    }
}

/// # Allocation and extended attributes
///
/// ```
/// use lightfoot::{Allocate, SetXattr, Vfs};
///
/// let ctx = Vfs::ram().context();
/// let file = ctx.create("/disk.img")?;
/// file.allocate(Allocate::Reserve, false, 0, 1 << 20)?; // Later writes cannot fail for want of space.
/// assert_eq!(file.metadata()?.len(), 1 << 20);
/// file.set_xattr("user.origin", "installer", SetXattr::Any)?;
/// assert_eq!(file.list_xattrs()?, ["user.origin"]);
/// # Ok::<(), std::io::Error>(())
/// ```
impl File {
    /// Changes the storage of `len` bytes from `offset` on: `fallocate(2)`. Without `keep_size`, a
    /// range that extends beyond the end of the file moves the end ([`Allocate::PunchHole`] never
    /// does).
    ///
    /// # Errors
    /// `EBADF` if not open for writing; `EINVAL` for an empty range, and for an offset or length
    /// above `i64::MAX`; `EFBIG` for an end above `i64::MAX`; `ENODEV` if the file is not regular,
    /// `EISDIR` for a directory; `EOPNOTSUPP`, `ENOSPC`, `EDQUOT`.
    pub fn allocate(&self, how: Allocate, keep_size: bool, offset: u64, len: u64) -> io::Result<()> {
        self.inner().allocate(how, keep_size, offset, len).map_err(error)
    }

    /// Returns the free space of the file's file system, and the flags of the file's mount:
    /// `fstatvfs(3)`.
    ///
    /// # Errors
    /// `ENOSYS` if the file system does not report it.
    pub fn statvfs(&self) -> io::Result<StatVfs> {
        self.inner().statvfs().map_err(error)
    }

    /// Returns the value of the extended attribute `name`: `fgetxattr(2)`.
    ///
    /// # Errors
    /// As for [`View::get_xattr`](crate::View::get_xattr); `EBADF` on a file opened with `O_PATH`.
    pub fn get_xattr(&self, name: impl AsRef<[u8]>) -> io::Result<Vec<u8>> {
        self.inner().get_xattr(name.as_ref()).map(Vec::from).map_err(error)
    }

    /// Sets the extended attribute `name`: `fsetxattr(2)`.
    ///
    /// # Errors
    /// As for [`View::set_xattr`](crate::View::set_xattr); `EBADF` on a file opened with `O_PATH`.
    pub fn set_xattr(&self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>, how: SetXattr) -> io::Result<()> {
        self.inner().set_xattr(name.as_ref(), value.as_ref(), how).map_err(error)
    }

    /// Removes the extended attribute `name`: `fremovexattr(2)`.
    ///
    /// # Errors
    /// As for [`View::remove_xattr`](crate::View::remove_xattr); `EBADF` on a file opened with `O_PATH`.
    pub fn remove_xattr(&self, name: impl AsRef<[u8]>) -> io::Result<()> {
        self.inner().remove_xattr(name.as_ref()).map_err(error)
    }

    /// Returns the names of all extended attributes that the caller may see: `flistxattr(2)`.
    ///
    /// # Errors
    /// The file system's; `EBADF` on a file opened with `O_PATH`.
    pub fn list_xattrs(&self) -> io::Result<Vec<OsString>> {
        self.inner().list_xattrs().map(os_strings).map_err(error)
    }
}
