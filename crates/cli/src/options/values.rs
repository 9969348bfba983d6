//! Values of options: sizes, times, modes. Each function returns `None` for a value that it cannot read.
//!
//! Sizes have the suffixes of `tmpfs(5)`.

use nix::unistd::{Group, User};
use std::time::Duration;
use vfs::Budget;

/// Returns a number with a suffix `k`, `m`, `g` or `t` of 1024; or with `%`, as a part of `whole`,
/// if that is not 0.
fn size(text: &str, whole: u64) -> Option<u64> {
    let (digits, suffix) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
    let number: u64 = digits.parse().ok()?;
    let shift = match suffix.to_ascii_lowercase().as_str() {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        "%" if whole > 0 => return u64::try_from(u128::from(whole) * u128::from(number) / 100).ok(),
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

/// Returns a number of bytes; with `%`, a part of this machine's memory.
pub(crate) fn size_of_memory(text: &str) -> Option<u64> {
    let info = rustix::system::sysinfo();
    size(text, info.totalram.saturating_mul(u64::from(info.mem_unit)))
}

/// Returns a number, which may have a suffix.
pub(crate) fn number(text: &str) -> Option<u64> {
    size(text, 0)
}

/// Returns a number greater than 0, which may have a suffix.
pub(super) fn at_least_one(text: &str) -> Option<usize> {
    number(text).and_then(|number| usize::try_from(number).ok()).filter(|&number| number > 0)
}

pub(super) fn on_or_off(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

/// Any text but none.
pub(super) fn given(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.into())
}

/// Returns a limit, where 0 is none, as in `tmpfs(5)`.
pub(super) fn limit(number: u64) -> Option<u64> {
    (number != 0).then_some(number)
}

/// Octal digits of a number that is not above `most`.
pub(super) fn octal(text: &str, most: u32) -> Option<u32> {
    let is_octal = text.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
    u32::from_str_radix(text, 8).ok().filter(|&mode| is_octal && mode <= most)
}

/// Returns a time: a number, which may have a fraction, of `us`, `ms`, `s`, `m` or `h`; without a
/// unit, of seconds.
pub(super) fn duration(text: &str) -> Option<Duration> {
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (number, unit) = text.split_at(text.find(|letter| !is_number(letter)).unwrap_or(text.len()));
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" | "" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()
}

/// Returns a user: a number, or a name that the system has.
pub(super) fn user(text: &str) -> Option<u32> {
    let by_name = || User::from_name(text).ok().flatten().map(|user| user.uid.as_raw());
    id(text).or_else(by_name)
}

/// Returns a group: a number, or a name that the system has.
pub(super) fn group(text: &str) -> Option<u32> {
    let by_name = || Group::from_name(text).ok().flatten().map(|group| group.gid.as_raw());
    id(text).or_else(by_name)
}

/// Returns a number of a user or group. The largest one means "no change" to the kernel.
fn id(text: &str) -> Option<u32> {
    text.parse().ok().filter(|&id| id != u32::MAX)
}

/// Returns a cache of this many bytes, in the proportions of the default.
pub(super) fn budget(bytes: u64) -> Budget {
    let part = bytes / 10;
    Budget { entries: bytes - 2 * part, negatives: part, listings: part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_tmpfs() {
        let cases = [
            ("0", Some(0)),
            ("1", Some(1)),
            ("4k", Some(4096)),
            ("2M", Some(2 << 20)),
            ("1g", Some(1 << 30)),
            ("3t", Some(3 << 40)),
            ("50%", Some(500)),
            ("100%", Some(1000)),
            ("16777215t", Some(16_777_215 << 40)),
            ("16777216t", None),
            ("18446744073709551616", None),
            ("", None),
            ("k", None),
            ("-1", None),
            ("+1", None),
            ("1.5g", None),
            ("1kb", None),
            ("1 k", None),
            ("%", None),
        ];
        for (text, expected) in cases {
            assert_eq!(size(text, 1000), expected, "{text}");
        }
        assert_eq!(size("50%", 0), None, "a part of an unknown whole");
    }

    #[test]
    fn times_have_units() {
        let cases = [
            ("1s", Some(Duration::from_secs(1))),
            ("1", Some(Duration::from_secs(1))),
            ("0", Some(Duration::ZERO)),
            ("500ms", Some(Duration::from_millis(500))),
            ("0.25s", Some(Duration::from_millis(250))),
            ("2m", Some(Duration::from_secs(120))),
            ("1h", Some(Duration::from_secs(3600))),
            ("7us", Some(Duration::from_micros(7))),
            ("", None),
            ("s", None),
            ("1.2.3s", None),
            ("-1s", None),
            ("inf", None),
            ("1d", None),
            ("9999999999999999999999999s", None),
        ];
        for (text, expected) in cases {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn users_and_groups_have_names_or_numbers() {
        assert_eq!((user("root"), user("0"), user("1000")), (Some(0), Some(0), Some(1000)));
        assert_eq!((group("root"), group("7")), (Some(0), Some(7)));
        for text in ["", "-1", "no such name", "4294967295", "4294967296"] {
            assert_eq!((user(text), group(text)), (None, None), "{text}");
        }
    }

    #[test]
    fn modes_are_octal() {
        let cases =
            [("0755", Some(0o755)), ("7777", Some(0o7777)), ("10000", None), ("8", None), ("+7", None), ("", None)];
        for (text, expected) in cases {
            assert_eq!(octal(text, 0o7777), expected, "{text}");
        }
    }
}
