//! Storage of a file system, and flags of its mount: `statvfs(3)`.

use crate::base::access::credentials::Credentials;
use crate::base::errno::Errno;
use crate::base::flags::MountFlags;
use crate::fs::{Request, StatFs};
use crate::mount::place::PathRef;

/// The result of [`Context::statvfs`](crate::Context::statvfs): storage of the file system, and flags of the
/// mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct StatVfs {
    /// Total and free storage of the file system.
    pub fs: StatFs,
    /// `st_dev` of its files.
    pub dev: u64,
    /// Flags of the mount at the end of the path.
    pub flags: MountFlags,
}

impl PathRef {
    /// [`Context::statvfs`](crate::Context::statvfs) of a held place.
    ///
    /// # Errors
    /// `ENOSYS` if the file system has no such figures.
    pub fn statvfs(&self) -> Result<StatVfs, Errno> {
        self.statvfs_for(&Request::of(&Credentials::root()))
    }

    pub(crate) fn statvfs_for(&self, request: &Request) -> Result<StatVfs, Errno> {
        let fs = self.sb().fs().statfs(request, self.inode()?)?;
        Ok(StatVfs { fs, dev: self.sb().slots().dev, flags: self.mount().flags() })
    }
}
