//! Where on earth times are read: how far local time is from UTC at a moment.
//!
//! # What it is
//! The rules that `TZ` names, or those of `/etc/localtime`: the transitions of a file of the time zone database, and the
//! rule that goes on after the last of them.
//!
//! # What it is not
//! A calendar: leap seconds (`right/`) do not count, names of zones are not kept. What cannot be understood is UTC, as it
//! is to the C library.
//!
//! # Where it comes from
//! RFC 9636 (TZif), POSIX.1 8.3 for `TZ`. Own code, because the C library's `localtime_r` takes unsafe code.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const DATABASE: &str = "/usr/share/zoneinfo";
const LOCAL: &str = "/etc/localtime";
const DAY: i64 = 86_400;

/// The longest file that is one of the database.
const LONGEST: u64 = 1 << 20;

/// How far local time is from UTC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Zone {
    /// From these seconds since the epoch on, so many seconds east of UTC; in the order of time.
    transitions: Vec<(i64, i64)>,
    /// Before the first of them.
    before: i64,
    /// After the last of them.
    rule: Option<Rule>,
}

/// A zone whose years are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rule {
    /// Seconds east of UTC in winter.
    standard: i64,
    summer: Option<Summer>,
}

/// When there is summer time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Summer {
    /// Seconds east of UTC.
    offset: i64,
    start: Change,
    end: Change,
}

/// A moment of each year, in local time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Change {
    day: YearDay,
    /// Seconds from the day's beginning; may be another day's.
    time: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YearDay {
    /// From 1; 29 February is never counted.
    Julian(i64),
    /// From 0; it is counted.
    Counted(i64),
    /// Month, week (5: the last), day of the week from Sunday.
    Weekday(i64, i64, i64),
}

impl Zone {
    /// That of this process.
    pub(super) fn local() -> Self {
        match env::var_os("TZ") {
            None => Self::file(Path::new(LOCAL)),
            Some(name) => Self::named(&name),
        }
        .unwrap_or_default()
    }

    /// What `TZ` says.
    fn named(name: &OsStr) -> Option<Self> {
        let name = name.as_bytes().strip_prefix(b":").unwrap_or(name.as_bytes());
        if name.is_empty() {
            return None;
        }
        // As with the C library, no file outside of the database is named by dots.
        let is_inside = !name.split(|&byte| byte == b'/').any(|part| part == b"..");
        let from_file = is_inside.then(|| Self::file(&Path::new(DATABASE).join(OsStr::from_bytes(name)))).flatten();
        from_file.or_else(|| {
            let rule = Rule::parse(str::from_utf8(name).ok()?)?;
            Some(Self { before: rule.standard, rule: Some(rule), ..Self::default() })
        })
    }

    fn file(path: &Path) -> Option<Self> {
        let is_short = fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LONGEST);
        Self::parse(&fs::read(path).ok().filter(|_| is_short)?)
    }

    /// Seconds east of UTC at `seconds` since the epoch.
    pub(super) fn offset(&self, seconds: i64) -> i64 {
        let after = self.transitions.partition_point(|(from, _)| *from <= seconds);
        match (after.checked_sub(1).and_then(|last| self.transitions.get(last)), self.rule) {
            (_, Some(rule)) if after == self.transitions.len() => rule.offset(seconds),
            (Some((_, offset)), _) => *offset,
            (None, _) => self.before,
        }
    }

    /// A file of the database.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = Block::parse(bytes, 4)?;
        if first.version == 0 {
            return first.zone(None);
        }
        // From the second version on there is a second block of longer numbers, and the rule after it.
        let (second, footer) = Block::parse(rest, 8)?;
        let footer = footer.strip_prefix(b"\n")?;
        let footer = footer.get(..footer.iter().position(|&byte| byte == b'\n')?)?;
        second.zone(Rule::parse(str::from_utf8(footer).ok()?))
    }
}

/// A block of a file: transitions in numbers of `width` bytes, and what they lead to.
struct Block<'b> {
    version: u8,
    width: usize,
    times: &'b [u8],
    kinds: &'b [u8],
    offsets: &'b [u8],
}

impl<'b> Block<'b> {
    /// The block at the beginning of `bytes`, and what follows it.
    fn parse(bytes: &'b [u8], width: usize) -> Option<(Self, &'b [u8])> {
        let (head, rest) = bytes.split_at_checked(44)?;
        if !head.starts_with(b"TZif") {
            return None;
        }
        let count = |number: usize| {
            let at = 20 + 4 * number;
            head.get(at..at + 4)?.try_into().ok().map(|bytes| u32::from_be_bytes(bytes) as usize)
        };
        let (times, kinds, letters) = (count(3)?, count(4)?, count(5)?);
        let flags = count(0)?.checked_add(count(1)?)?;
        let leaps = count(2)?.checked_mul(width + 4)?;
        let (time_bytes, rest) = rest.split_at_checked(times.checked_mul(width)?)?;
        let (kind_bytes, rest) = rest.split_at_checked(times)?;
        let (offset_bytes, rest) = rest.split_at_checked(kinds.checked_mul(6)?)?;
        let rest = rest.get(letters.checked_add(leaps)?.checked_add(flags)?..)?;
        let block = Self { version: head[4], width, times: time_bytes, kinds: kind_bytes, offsets: offset_bytes };
        Some((block, rest))
    }

    fn zone(&self, rule: Option<Rule>) -> Option<Zone> {
        let signed = |bytes: &[u8]| {
            let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { -1 } else { 0 };
            bytes.iter().fold(sign, |number: i64, &byte| number << 8 | i64::from(byte))
        };
        let offset = |kind: usize| self.offsets.chunks_exact(6).nth(kind).map(|kind| signed(&kind[..4]));
        let times = self.times.chunks_exact(self.width).zip(self.kinds);
        let transitions = times.map(|(time, &kind)| Some((signed(time), offset(kind.into())?)));
        let transitions: Vec<(i64, i64)> = transitions.collect::<Option<_>>()?;
        let is_sorted = transitions.is_sorted_by_key(|(time, _)| *time);
        is_sorted.then_some(Zone { transitions, before: offset(0)?, rule })
    }
}

impl Rule {
    /// `CET-1CEST,M3.5.0,M10.5.0/3`.
    fn parse(text: &str) -> Option<Self> {
        let rest = after_name(text)?;
        let (west, rest) = time(rest, 24)?;
        if rest.is_empty() {
            return Some(Self { standard: -west, summer: None });
        }
        let rest = after_name(rest)?;
        let (summer_west, rest) = if rest.starts_with(',') { (west - 3600, rest) } else { time(rest, 24)? };
        let (start, rest) = Change::parse(rest.strip_prefix(',')?)?;
        let (end, rest) = Change::parse(rest.strip_prefix(',')?)?;
        let summer = Some(Summer { offset: -summer_west, start, end });
        rest.is_empty().then_some(Self { standard: -west, summer })
    }

    fn offset(&self, seconds: i64) -> i64 {
        let Some(summer) = self.summer else { return self.standard };
        let (year, ..) = super::stamp::date((seconds + self.standard).div_euclid(DAY));
        let start = summer.start.in_year(year) - self.standard;
        let end = summer.end.in_year(year) - summer.offset;
        let is_summer = if start < end { (start..end).contains(&seconds) } else { !(end..start).contains(&seconds) };
        if is_summer { summer.offset } else { self.standard }
    }
}

/// What follows the name of a zone: letters, or anything in angle brackets.
fn after_name(text: &str) -> Option<&str> {
    if let Some(quoted) = text.strip_prefix('<') {
        return quoted.split_once('>').map(|(_, rest)| rest);
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len());
    (end >= 3).then(|| &text[end..])
}

/// A time `[+-]h[h[h]][:mm[:ss]]` of at most so many hours, in seconds, and what follows it.
fn time(text: &str, most_hours: i64) -> Option<(i64, &str)> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut total = 0;
    for (unit, most) in [(3600, most_hours), (60, 59), (1, 59)] {
        let (number, after) = self::number(rest)?;
        total += unit * Some(number).filter(|&number| number <= most)?;
        rest = after;
        match rest.strip_prefix(':') {
            Some(after) if unit > 1 => rest = after,
            _ => break,
        }
    }
    Some((sign * total, rest))
}

fn number(text: &str) -> Option<(i64, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    (digits.len() <= 3).then_some(())?;
    Some((digits.parse().ok()?, rest))
}

impl Change {
    fn parse(text: &str) -> Option<(Self, &str)> {
        let within = |number: i64, least: i64, most: i64| (least..=most).contains(&number).then_some(number);
        let (day, rest) = if let Some(rest) = text.strip_prefix('M') {
            let (month, rest) = number(rest)?;
            let (week, rest) = number(rest.strip_prefix('.')?)?;
            let (day, rest) = number(rest.strip_prefix('.')?)?;
            (YearDay::Weekday(within(month, 1, 12)?, within(week, 1, 5)?, within(day, 0, 6)?), rest)
        } else if let Some(rest) = text.strip_prefix('J') {
            let (day, rest) = number(rest)?;
            (YearDay::Julian(within(day, 1, 365)?), rest)
        } else {
            let (day, rest) = number(text)?;
            (YearDay::Counted(within(day, 0, 365)?), rest)
        };
        let (time, rest) = match rest.strip_prefix('/') {
            Some(rest) => time(rest, 167)?,
            None => (2 * 3600, rest),
        };
        Some((Self { day, time }, rest))
    }

    /// Local seconds since the epoch.
    fn in_year(self, year: i64) -> i64 {
        use super::stamp::days;
        let day = match self.day {
            YearDay::Counted(day) => days(year, 1, 1) + day,
            YearDay::Julian(day) => {
                let has_leap_day = days(year, 3, 1) - days(year, 2, 1) == 29;
                days(year, 1, 1) + day - 1 + i64::from(has_leap_day && day >= 60)
            }
            YearDay::Weekday(month, week, weekday) => {
                let first = days(year, month, 1);
                let next = if month == 12 { days(year + 1, 1, 1) } else { days(year, month + 1, 1) };
                // The epoch was a Thursday.
                let ahead = (weekday - (first + 4)).rem_euclid(7);
                let day = first + ahead + 7 * (week - 1);
                if day < next { day } else { day - 7 }
            }
        };
        day * DAY + self.time
    }
}

#[cfg(test)]
#[path = "zone/tests.rs"]
mod tests;
