//! What operations answer, and how answers of two implementations are made comparable.

use super::errno::Errno;
use super::ops::{RawPath, fold};
use std::collections::HashMap;
use std::fmt;

/// What an operation answered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    Err(Errno),
    Done,
    Attr(Attr),
    Data(Data),
    Count(u64),
    /// Names with their file type (`S_IFMT` bits), sorted.
    Listing(Vec<(RawPath, u32)>),
    Path(RawPath),
}

impl<T: Into<Outcome>> From<Result<T, Errno>> for Outcome {
    fn from(result: Result<T, Errno>) -> Self {
        match result {
            Ok(value) => value.into(),
            Err(errno) => Outcome::Err(errno),
        }
    }
}

macro_rules! from {
    ($($type:ty => |$value:pat_param| $outcome:expr;)*) => {
        $(impl From<$type> for Outcome {
            fn from($value: $type) -> Self {
                $outcome
            }
        })*
    };
}

from! {
    () => |()| Outcome::Done;
    u64 => |count| Outcome::Count(count);
    Attr => |attr| Outcome::Attr(attr);
    RawPath => |path| Outcome::Path(path);
    Vec<u8> => |data| Outcome::Data(Data(data));
    Vec<(RawPath, u32)> => |listing| Outcome::Listing(listing);
}

impl From<Outcome> for Result<Outcome, Errno> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Err(errno) => Err(errno),
            other => Ok(other),
        }
    }
}

/// The answer to a test of a lock, as data. Where there is none, the range does not matter.
pub(crate) fn lock_text(kind: &str, start: u64, len: u64) -> Vec<u8> {
    if kind == "none" { b"none".to_vec() } else { format!("{kind}, {len} bytes from {start}").into_bytes() }
}

/// File contents, shown with long runs folded.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Data(pub(crate) Vec<u8>);

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes \"{}\"", self.0.len(), fold(&self.0))
    }
}

/// A point in time: raw from an implementation, otherwise what can be compared of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Time {
    /// Nanoseconds since 1970.
    Raw(i64),
    /// One of [`EXPLICIT_TIMES`].
    Set(i64),
    /// Taken from the clock, and the same as when these attributes were last looked at (or this is the first look).
    Kept,
    /// Taken from the clock since these attributes were last looked at.
    Changed,
    /// Taken from the clock.
    Clock,
}

/// The times that [`super::ops::Op::Utimens`] sets, in nanoseconds: before 1970, long ago, ahead of the clock. No clock
/// will read just these.
pub(crate) const EXPLICIT_TIMES: [i64; 4] =
    [-1_000_000_123_456_789, 1_000_123_456_789, 1_000_000_000_123_456_789, 4_000_000_000_123_456_789];

/// Attributes of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Attr {
    /// File type and permission bits.
    pub(crate) mode: u32,
    pub(crate) nlink: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    /// Major and minor number of a device.
    pub(crate) rdev: (u32, u32),
    /// Units of 512 bytes allocated to a regular file; `None` for anything else.
    pub(crate) blocks: Option<u64>,
    /// Identity: raw the inode number, normalised the order in which the object was first looked at.
    pub(crate) ino: u64,
    /// Which file system; normalised 0.
    pub(crate) dev: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

/// Makes the answers of one implementation comparable with those of another.
#[derive(Debug)]
pub(crate) struct Normaliser {
    /// Whether it is compared that modification and change times moved between two looks.
    moves: bool,
    /// The file system that was looked at first.
    dev: Option<u64>,
    /// Order of first look, by file system and inode number.
    seen: HashMap<(u64, u64), u64>,
    /// Modification and change time at the last look.
    last: HashMap<(u64, u64), (Time, Time)>,
}

impl Normaliser {
    pub(crate) fn new(moves: bool) -> Self {
        Normaliser { moves, dev: None, seen: HashMap::new(), last: HashMap::new() }
    }

    pub(crate) fn outcome(&mut self, raw: Outcome) -> Outcome {
        match raw {
            Outcome::Attr(attr) => Outcome::Attr(self.attr(attr)),
            other => other,
        }
    }

    fn attr(&mut self, raw: Attr) -> Attr {
        let first_seen = self.seen.len() as u64;
        // Numbers of file systems, and so of what is on them, come again when they have gone: only the first is counted.
        if raw.dev != *self.dev.get_or_insert(raw.dev) {
            return Attr { ino: u64::MAX, dev: 0, atime: Time::Clock, mtime: Time::Clock, ctime: Time::Clock, ..raw };
        }
        let ino = *self.seen.entry((raw.dev, raw.ino)).or_insert(first_seen);
        let before = self.last.insert((raw.dev, raw.ino), (raw.mtime, raw.ctime)).unwrap_or((raw.mtime, raw.ctime));
        Attr {
            ino,
            dev: 0,
            atime: comparable(raw.atime, None),
            mtime: comparable(raw.mtime, self.moves.then_some(before.0)),
            ctime: comparable(raw.ctime, self.moves.then_some(before.1)),
            ..raw
        }
    }
}

fn comparable(raw: Time, before: Option<Time>) -> Time {
    let Time::Raw(nanos) = raw else { panic!("an implementation answered {raw:?}") };
    match before {
        _ if EXPLICIT_TIMES.contains(&nanos) => Time::Set(nanos),
        Some(before) if before == raw => Time::Kept,
        Some(_) => Time::Changed,
        None => Time::Clock,
    }
}
