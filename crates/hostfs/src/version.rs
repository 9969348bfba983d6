//! Versions of contents: whether a file is as it was at its last open.
//!
//! # What it is
//! The version of a file's contents, or of a directory's names, is the host's time of the last
//! change (`stx_ctime`). Programs can set the size and the time of the contents (`stx_mtime`) as
//! they were, but not this time. A kernel that has cached the contents keeps them at an open with
//! the version of the open before.
//!
//! A file that changed a moment ago has no version. The host's clock for files advances in steps,
//! of a tick or, on FAT, of two seconds: the file may change again in the same step. And a call that
//! writes sets the time first and the contents later.
//!
//! # What it is not
//! The change cookie of Linux (`STATX_CHANGE_COOKIE`), which has no steps: the kernel shows it to
//! its NFS server only.
//!
//! # Limitations
//! - A call that writes for longer than [`STEP`] is one change. Contents that are read meanwhile may
//!   be kept.
//! - Writes through a memory map change the time when the program first writes to a page, and after
//!   each time that the host has stored the page.
//! - On another machine, the clock must not be later than here.
//!
//! # Where it comes from
//! The "racy" entries of git's index; close-to-open consistency of NFS.

use core::num::NonZeroU64;

/// The longest step of a host's clock for files, in nanoseconds.
const STEP: i64 = 2_000_000_000;

/// Returns the version of contents whose last change was at `changed`, if they have one at the time
/// `now`; both in nanoseconds since the epoch.
pub(crate) fn of(changed: i64, now: i64) -> Option<NonZeroU64> {
    let is_settled = now.saturating_sub(changed) > STEP;
    NonZeroU64::new(changed.cast_unsigned()).filter(|_| is_settled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_version_some_time_after_its_last_change() {
        let second = 1_000_000_000;
        let cases = [(1, 2 * second, false), (1, 2 * second + 2, true), (0, 9 * second, false), (5 * second, 0, false)];
        for (changed, now, is_known) in cases {
            let expected = is_known.then(|| NonZeroU64::new(changed as u64).unwrap());
            assert_eq!(of(changed, now), expected, "{changed} {now}");
        }
        assert_ne!(of(1, 9 * second), of(2, 9 * second));
    }
}
