//! The attributes of a file that the metadata of its object keep.
//!
//! # What it is
//! | name | value | also written by |
//! |---|---|---|
//! | `mtime` | seconds since the epoch, with a fraction | rclone, s3fs |
//! | `atime`, `ctime` | the same | s3fs |
//! | `mode` | type and permissions, in decimal; in octal is read, too | s3fs in decimal, rclone in octal |
//! | `uid`, `gid` | numbers | rclone, s3fs |
//!
//! The set-user-ID bit, and the set-group-ID bit of a file, are neither read nor written: a store must
//! not make a program that runs as another user.

use opendal::Metadata;
use std::collections::HashMap;
use vfs::{S_IFDIR, S_IFMT, S_IFREG, S_ISGID, SetAttr, SetTime};

/// Returns the bits of a mode that an object keeps.
pub(crate) fn kept_bits(is_dir: bool) -> u32 {
    if is_dir { 0o1777 | S_ISGID } else { 0o1777 }
}

const SECOND: i64 = 1_000_000_000;

/// See the [module documentation](self). `None`: the object does not have the attribute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Kept {
    /// The time of the last change of the contents, in nanoseconds since the epoch.
    pub(crate) mtime: Option<i64>,
    /// The time that a program set as the one of the last read. Reads do not change it.
    pub(crate) atime: Option<i64>,
    /// The time of the last change of contents or attributes.
    pub(crate) ctime: Option<i64>,
    /// The permissions, perhaps with bits that are not kept.
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
}

impl Kept {
    /// Returns the attributes in an object's metadata. A value that cannot be is left out.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        let all = metadata.user_metadata();
        Self::read(|name| all.as_ref().and_then(|all| all.get(name)))
    }

    /// Returns the attributes in metadata that `value` looks up by their names.
    pub(crate) fn read<'m>(value: impl Fn(&str) -> Option<&'m str>) -> Self {
        let number = |name| value(name)?.parse().ok();
        Self {
            mtime: value("mtime").and_then(time),
            atime: value("atime").and_then(time),
            ctime: value("ctime").and_then(time),
            mode: value("mode").and_then(permissions),
            uid: number("uid"),
            gid: number("gid"),
        }
    }

    /// Returns the names and values for the metadata of a file, or of a directory.
    pub(crate) fn pairs(&self, is_dir: bool) -> HashMap<String, String> {
        let kind = if is_dir { S_IFDIR } else { S_IFREG };
        let values = [
            ("mtime", self.mtime.map(seconds)),
            ("atime", self.atime.map(seconds)),
            ("ctime", self.ctime.map(seconds)),
            ("mode", self.mode.map(|mode| (kind | mode & kept_bits(is_dir)).to_string())),
            ("uid", self.uid.map(|uid| uid.to_string())),
            ("gid", self.gid.map(|gid| gid.to_string())),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Returns the attributes after a change at the time `now`.
    pub(crate) fn changed(self, set: &SetAttr, now: i64) -> Self {
        let time = |set: SetTime| match set {
            SetTime::Now => now,
            SetTime::At(at) => at,
        };
        let changed = Self {
            mtime: set.mtime.map(time).or(self.mtime),
            atime: set.atime.map(time).or(self.atime),
            mode: set.mode.or(self.mode),
            uid: set.uid.or(self.uid),
            gid: set.gid.or(self.gid),
            ctime: self.ctime,
        };
        if changed == self { self } else { Self { ctime: Some(now), ..changed } }
    }

    /// Returns the attributes after a change of the contents at the time `now`.
    pub(crate) fn written(self, now: i64) -> Self {
        Self { mtime: Some(now), ctime: Some(now), ..self }
    }
}

/// Returns a time in seconds as nanoseconds, if both can be.
fn time(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |text| (-1, text));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let nanos: i64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    whole.parse::<i64>().ok()?.checked_mul(SECOND)?.checked_add(nanos)?.checked_mul(sign)
}

fn seconds(time: i64) -> String {
    let sign = if time < 0 { "-" } else { "" };
    let time = time.unsigned_abs();
    format!("{sign}{}.{:09}", time / SECOND.unsigned_abs(), time % SECOND.unsigned_abs())
}

/// Returns the permissions in a mode: of s3fs, in decimal, or of rclone, in octal. As a number in the
/// other base each of them has another type than a file's or a directory's.
fn permissions(text: &str) -> Option<u32> {
    let is_mode = |mode: &u32| *mode <= 0o17_7777 && [S_IFREG, S_IFDIR].contains(&(mode & S_IFMT));
    let octal = || u32::from_str_radix(text, 8).ok();
    let plain = || octal().filter(|mode| *mode <= 0o7777);
    let mode = text.parse().ok().filter(is_mode).or_else(|| octal().filter(is_mode)).or_else(plain)?;
    Some(mode & 0o7777)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_with_a_fraction() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("1700000000", Some(1_700_000_000_000_000_000)),
            ("1700000000.123456789", Some(1_700_000_000_123_456_789)),
            ("1700000000.1", Some(1_700_000_000_100_000_000)),
            ("1700000000.1234567899", Some(1_700_000_000_123_456_789)),
            ("-1.5", Some(-1_500_000_000)),
            ("", None),
            ("-", None),
            ("1e9", None),
            ("+1", None),
            ("1.-5", None),
            ("99999999999", None),
            ("2006-01-02T15:04:05Z", None),
        ] {
            assert_eq!(time(text), nanos, "{text}");
        }
        for nanos in [0, 1, -1, 1_700_000_000_123_456_789, i64::MAX, -1_500_000_000] {
            assert_eq!(time(&seconds(nanos)), Some(nanos));
        }
    }

    #[test]
    fn modes_of_both_programs_are_read() {
        // The number, in octal, and in decimal, for each permission of a file and of a directory.
        for permissions_of in 0..=0o7777 {
            for kind in [S_IFREG, S_IFDIR] {
                let mode = kind | permissions_of;
                for text in [format!("{mode:o}"), format!("0{mode:o}"), mode.to_string()] {
                    assert_eq!(permissions(&text), Some(permissions_of), "{text}");
                }
            }
        }
        let others = [("644", Some(0o644)), ("0755", Some(0o755)), ("4755", Some(0o4755)), ("", None), ("rw", None)];
        for (text, mode) in others {
            assert_eq!(permissions(text), mode, "{text}");
        }
        assert_eq!([permissions("120777"), permissions("99999999999")], [None; 2]);
    }

    #[test]
    fn what_is_written_is_read() {
        let kept = Kept {
            mtime: Some(-5),
            atime: Some(6),
            ctime: Some(7),
            mode: Some(0o1750),
            uid: Some(0),
            gid: Some(u32::MAX),
        };
        for kept in [kept, Kept::default(), Kept { mtime: None, ..kept }] {
            let pairs = kept.pairs(false);
            assert_eq!(Kept::read(|name| pairs.get(name).map(|value| &**value)), kept);
        }
    }

    #[test]
    fn a_change_has_a_time_and_no_change_has_none() {
        let kept = Kept { mode: Some(0o644), ..Kept::default() };
        let set = SetAttr { mode: Some(0o755), mtime: Some(SetTime::At(5)), ..SetAttr::default() };
        let changed = Kept { mode: Some(0o755), mtime: Some(5), ctime: Some(9), ..kept };
        assert_eq!((kept.changed(&set, 9), changed.changed(&set, 10)), (changed, changed));
    }
}
