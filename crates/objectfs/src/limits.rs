//! The limits of S3 for one request, and the sizes that follow from them.
//!
//! | limit of S3 | value | here |
//! |---|---|---|
//! | parts of an upload | 10,000 | [`ObjectOptions::max_file`](crate::ObjectOptions::max_file), [`copied_part`] |
//! | bytes of a part but the last | 5 MiB to 5 GiB | [`PART`], [`COPIED_PART`] |
//! | bytes of an object that one request copies | 5 GiB | [`COPIED_PART`] |
//! | bytes of a key | 1,024 | [`MAX_KEY`] |
//!
//! # Where it comes from
//! "Amazon S3 multipart upload limits" and "Naming Amazon S3 objects" of the user guide of S3.

use core::time::Duration;

/// The bytes of a part of an object that is sent in parts.
pub(crate) const PART: usize = 8 << 20;

/// The most parts of an object.
pub(crate) const MAX_PARTS: u64 = 10_000;

/// The bytes that the store copies at a time: few enough to be copied within the time of a request.
pub(crate) const COPIED_PART: u64 = 256 << 20;

/// The most bytes of a key, with the prefix of the mount.
pub(crate) const MAX_KEY: usize = 1024;

/// The shortest and the longest time between two tries of a request.
pub(crate) const MIN_DELAY: Duration = Duration::from_millis(100);
pub(crate) const MAX_DELAY: Duration = Duration::from_secs(2);

/// The most tries at an object that other programs keep replacing.
pub(crate) const TRIES: u32 = 4;

/// The slowest rate in bytes a second at which contents may come and go.
pub(crate) const SLOWEST: u64 = 32 << 10;

/// Returns the bytes of a part of an object of `size` bytes that the store copies in parts.
pub(crate) fn copied_part(size: u64) -> u64 {
    // Some parts are left for contents that are sent.
    COPIED_PART.max(size.div_ceil(MAX_PARTS - 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_breaks_a_limit() {
        for size in [0, 1, COPIED_PART, 5 << 30, 5 << 40, 48 << 40] {
            let part = copied_part(size);
            assert!((5 << 20..=5 << 30).contains(&part), "{size}");
            assert!(size.div_ceil(part) <= MAX_PARTS, "{size}");
        }
        assert!((5 << 20..=5 << 30).contains(&PART));
    }
}
