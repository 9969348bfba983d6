//! The options of the file system.

use core::time::Duration;
use rustix::process::{getegid, geteuid};

/// The bytes of a part of an object that is written in parts.
pub(crate) const PART: usize = 8 << 20;

/// Options of an [`ObjectFs`](crate::ObjectFs). Fields may be added: end with `..ObjectOptions::default()`.
#[derive(Clone, Debug)]
pub struct ObjectOptions {
    /// The longest time for which an answer of the store is used: after this time changes by others
    /// are visible. 0: each use requests the answer again.
    pub ttl: Duration,
    /// Bytes of contents that are cached.
    pub cache_bytes: u64,
    /// The most bytes of a file that can be written; beyond that, `EFBIG`. A hole is stored as zeros.
    pub max_file: u64,
    /// How long one try of a request may take.
    pub timeout: Duration,
    /// Further tries after an error that may pass.
    pub retries: usize,
    /// Directories are renamed by a copy of everything below them; without this option such a
    /// rename fails with `EOPNOTSUPP`.
    pub copies_directories: bool,
    /// User and group of all files.
    pub owner: (u32, u32),
}

impl Default for ObjectOptions {
    /// 5 seconds, a cache of 64 MiB, files of 78 GiB (the 10,000 parts that S3 allows), 20 seconds for each of 4 tries, the user of this
    /// process.
    fn default() -> Self {
        Self {
            ttl: Duration::from_secs(5),
            cache_bytes: 64 << 20,
            max_file: 10_000 * PART as u64,
            timeout: Duration::from_secs(20),
            retries: 3,
            copies_directories: false,
            owner: (geteuid().as_raw(), getegid().as_raw()),
        }
    }
}
