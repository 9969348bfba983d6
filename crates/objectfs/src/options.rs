//! The options of the file system.

use crate::limits::{MAX_PARTS, PART};
use core::time::Duration;
use rustix::process::{getegid, geteuid};

/// Options of an [`ObjectFs`](crate::ObjectFs). Fields may be added: end with `..ObjectOptions::default()`.
#[derive(Clone, Debug)]
pub struct ObjectOptions {
    /// The longest time for which an answer of the store is used: after this time changes by others
    /// are visible. 0: each use requests the answer again.
    pub ttl: Duration,
    /// Bytes of contents in memory: three quarters for blocks that were read, a quarter for requests ahead of
    /// readers.
    pub cache_bytes: u64,
    /// The most bytes of a file that can be written; beyond that, `EFBIG`. A hole is stored as zeros.
    pub max_file: u64,
    /// The most bytes of contents that wait here for their upload, in memory and in the directory for
    /// temporary files; beyond that, `ENOSPC`. `None`: half of the space that is free in that directory
    /// when the file system is made.
    pub buffer_bytes: Option<u64>,
    /// How long one try of a request may take, and a second more for each 32 KiB of contents.
    pub timeout: Duration,
    /// Further tries after an error that may pass.
    pub retries: usize,
    /// Directories are renamed by a copy of everything below them; without this option such a
    /// rename fails with `EOPNOTSUPP`.
    pub copies_directories: bool,
    /// Modes, times and owners that programs set are kept in the metadata of the objects. Listings do not
    /// have them, so the attributes of each file need a request. Only in a bucket of S3; else, and without
    /// this option, such changes fail with `EPERM`.
    pub keeps_attributes: bool,
    /// Objects whose names end with `.rclonelink` stand for symbolic links, as rclone writes them; without
    /// this option symbolic links fail with `EOPNOTSUPP`.
    pub symlinks: bool,
    /// User and group of all files; with `keeps_attributes` and the user 0, of files whose objects do not keep their owners.
    pub owner: (u32, u32),
}

impl Default for ObjectOptions {
    /// 5 seconds, a cache of 64 MiB, files of 78 GiB (the 10,000 parts that S3 allows), half of the free space for buffers, 20 seconds for each of 4 tries, the user of this
    /// process.
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(5),
            cache_bytes: 64 << 20,
            max_file: MAX_PARTS * PART as u64,
            buffer_bytes: None,
            timeout: Duration::from_secs(20),
            retries: 3,
            copies_directories: false,
            keeps_attributes: true,
            symlinks: false,
            owner: (geteuid().as_raw(), getegid().as_raw()),
        }
    }
}
