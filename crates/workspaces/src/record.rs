//! Keys and records of a fork's map.
//!
//! # What it is
//! A key is the number of a node, a tag, and a name or a number, all in one string of bytes. So the records of a directory
//! follow each other, its names in the order of their bytes.
//!
//! | key | record |
//! |---|---|
//! | node | [`Record::Node`]: all attributes, after the first change |
//! | directory, name | [`Record::Entry`], or [`Record::Whiteout`] for a name of the base that was removed |
//! | directory, serial | [`Record::Listed`]: the name, for listings in the order in which names were made |
//! | node | [`Record::Place`]: a name of the node, for paths |

use crate::contents::File;
use crate::map::Compare;
use core::cmp::Ordering;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;
use vfs::{Attr, Errno, NAME_MAX, PathRef};

/// The bytes of a record besides its key, of its names and values, as they count against a limit.
pub(crate) const RECORD_BYTES: u64 = 192;

/// The numbers of nodes that a fork made begin here. Nodes of the base have smaller numbers.
pub(crate) const MADE: u64 = 1 << 40;

const NODE: u8 = 0;
const PLACE: u8 = 1;
const NAME: u8 = 2;
const SERIAL: u8 = 3;

/// The bytes before the name of a key.
const HEAD: usize = 9;

/// Returns whether a file can have a name.
pub(crate) fn is_name(name: &[u8]) -> bool {
    let is_short = !name.is_empty() && name.len() <= NAME_MAX;
    is_short && !matches!(name, b"." | b"..") && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

/// The key of a record.
pub(crate) type Key = Arc<[u8]>;

/// A directory, and a name in it.
pub(crate) type Place = (u64, Key);

/// Extended attributes by name.
pub(crate) type Xattrs = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// A key that is not stored.
pub(crate) struct KeyBuf {
    bytes: [u8; HEAD + NAME_MAX],
    len: usize,
}

impl KeyBuf {
    fn new(node: u64, tag: u8, rest: &[u8]) -> Self {
        let mut bytes = [0; HEAD + NAME_MAX];
        bytes[..8].copy_from_slice(&node.to_be_bytes());
        bytes[8] = tag;
        let rest = &rest[..rest.len().min(NAME_MAX)];
        bytes[HEAD..HEAD + rest.len()].copy_from_slice(rest);
        Self { bytes, len: HEAD + rest.len() }
    }

    /// Returns the key of a node's attributes.
    pub(crate) fn node(node: u64) -> Self {
        Self::new(node, NODE, b"")
    }

    /// Returns the key of a node's place.
    pub(crate) fn place(node: u64) -> Self {
        Self::new(node, PLACE, b"")
    }

    /// Returns the key of a name, which is before all names that follow it.
    pub(crate) fn name(dir: u64, name: &[u8]) -> Self {
        Self::new(dir, NAME, name)
    }

    /// Returns the key of a serial number.
    pub(crate) fn serial(dir: u64, serial: u64) -> Self {
        Self::new(dir, SERIAL, &serial.to_be_bytes())
    }

    /// Returns the key, to be stored.
    pub(crate) fn key(&self) -> Key {
        Key::from(&**self)
    }
}

impl core::ops::Deref for KeyBuf {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Compare<Key> for [u8] {
    fn compare(&self, key: &Key) -> Ordering {
        self.cmp(key)
    }
}

/// A key, taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part<'k> {
    Node(u64),
    Place(u64),
    Name(u64, &'k [u8]),
    Serial(u64, u64),
}

impl<'k> Part<'k> {
    /// Returns the parts of a key.
    pub(crate) fn of(key: &'k [u8]) -> Option<Self> {
        let (node, rest) = key.split_first_chunk()?;
        let (node, (tag, rest)) = (u64::from_be_bytes(*node), rest.split_first()?);
        Some(match *tag {
            NODE => Self::Node(node),
            PLACE => Self::Place(node),
            NAME => Self::Name(node, rest),
            _ => Self::Serial(node, u64::from_be_bytes(*rest.first_chunk()?)),
        })
    }
}

/// A name of the base that the fork hides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Covered {
    /// The base's node of the name.
    pub(crate) node: u64,
    /// When the fork first changed the name: a commit finds later changes of the file by it.
    at: i64,
}

impl Covered {
    /// Hides a name of the base at this moment.
    pub(crate) fn now(node: u64) -> Self {
        Self { node, at: now_ns() }
    }

    /// Returns whether a file has changed since, and since `settled`.
    pub(crate) fn is_before(&self, attr: &Attr, settled: i64) -> bool {
        self.at.max(settled) < attr.ctime
    }
}

/// Returns the time. File times are coarser, so a file that changes at the next moment may look older.
pub(crate) fn now_ns() -> i64 {
    ns(SystemTime::now())
}

/// Returns a time in nanoseconds since the epoch.
pub(crate) fn ns(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// A name in a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) node: u64,
    /// The file type: `S_IFMT`.
    pub(crate) kind: u32,
    /// The place in listings.
    pub(crate) serial: u64,
    /// The name of the base that it hides.
    pub(crate) covered: Option<Covered>,
}

/// The attributes of a file of the base at its first change, by which a commit finds that another program changed the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) ino: u64,
    /// Mode, owner, group.
    pub(crate) rights: (u32, u32, u32),
    pub(crate) size: u64,
    /// The last change of the contents, and of the inode.
    pub(crate) times: (i64, i64),
}

impl Stamp {
    /// Returns the stamp of a file. Names that come and go do not change the stamp of a directory.
    pub(crate) fn of(attr: &Attr) -> Self {
        let (size, times) = if attr.is_dir() { (0, (0, 0)) } else { (attr.size, (attr.mtime, attr.ctime)) };
        Self { ino: attr.ino, rights: (attr.mode, attr.uid, attr.gid), size, times }
    }
}

/// One record; see the [module documentation](self).
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Record {
    Node(Arc<Node>),
    Entry(Entry),
    /// A name of the base that was removed.
    Whiteout(Covered),
    Listed(Key),
    /// A directory, and the name in it.
    Place(u64, Key),
}

impl Record {
    /// Returns the node, if it is the record of one.
    pub(crate) fn node(&self) -> Option<&Arc<Node>> {
        if let Self::Node(node) = self { Some(node) } else { None }
    }

    /// Returns whether nothing has changed from one record to the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Node(one), Self::Node(other)) => Arc::ptr_eq(one, other),
            (Self::Entry(one), Self::Entry(other)) => one == other,
            (Self::Whiteout(one), Self::Whiteout(other)) => one == other,
            (Self::Listed(one), Self::Listed(other)) => one == other,
            (Self::Place(dir, name), Self::Place(other, other_name)) => dir == other && name == other_name,
            _ => false,
        }
    }
}

/// The fields of [`Attr`], by which a log has them.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Attr")]
struct SavedAttr {
    ino: u64,
    mode: u32,
    nlink: u32,
    uid: u32,
    gid: u32,
    rdev: u32,
    size: u64,
    blocks: u64,
    atime: i64,
    mtime: i64,
    ctime: i64,
}

/// The state of a file, after its first change in the fork or in a fork before it.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Node {
    #[serde(with = "SavedAttr")]
    pub(crate) attr: Attr,
    pub(crate) birth: Option<i64>,
    /// The file of the base behind it, whose names, contents and attributes show through. A log has its path beside the node.
    #[serde(skip)]
    pub(crate) base: Option<Arc<PathRef>>,
    /// The state of the file of the base.
    pub(crate) stamp: Option<Stamp>,
    /// Whether the file was made without a name and has had none since.
    pub(crate) is_unnamed: bool,
    pub(crate) link_body: Option<Arc<[u8]>>,
    /// `None`: as in the base.
    pub(crate) xattrs: Option<Arc<Xattrs>>,
    /// `None`: as in the base. A log has the epoch beside the node.
    #[serde(skip)]
    pub(crate) contents: Option<Arc<File>>,
}

impl Node {
    /// Returns the node `ino` as its file of the base is.
    ///
    /// # Errors
    /// The base's.
    pub(crate) fn of_base(base: Arc<PathRef>, ino: u64) -> Result<Self, Errno> {
        let attr = base.attr()?;
        let stamp = Some(Stamp::of(&attr));
        Ok(Self { attr: Attr { ino, ..attr }, base: Some(base), stamp, ..Self::default() })
    }

    /// Returns when the file was made. A record has the time; for another node the base reads it, maybe by a system call.
    pub(crate) fn birth(&self) -> Result<Option<i64>, Errno> {
        match (self.birth, &self.base) {
            (None, Some(base)) => base.birth(),
            (birth, _) => Ok(birth),
        }
    }

    /// Returns the bytes that the node counts beside its pages.
    pub(crate) fn bytes(&self) -> u64 {
        let of = |xattrs: &Arc<Xattrs>| {
            xattrs.iter().map(|(name, value)| (name.len() + value.len()) as u64 + 64).sum::<u64>()
        };
        RECORD_BYTES + self.link_body.as_ref().map_or(0, |body| body.len() as u64) + self.xattrs.as_ref().map_or(0, of)
    }

    /// Returns whether a user sees no difference, but for names, links and times.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let seen = |node: &Self| {
            let size = if node.attr.is_dir() { 0 } else { node.attr.size };
            (node.attr.mode, node.attr.uid, node.attr.gid, node.attr.rdev, size)
        };
        self.has_contents_of(other) && seen(self) == seen(other) && self.xattrs == other.xattrs
    }

    /// Returns whether two states of a file have one object with their contents, or none.
    pub(crate) fn has_contents_of(&self, other: &Self) -> bool {
        match (&self.contents, &other.contents) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Sets the times of a change of the contents or of the names.
    pub(crate) fn touch(&mut self, now: i64) {
        (self.attr.mtime, self.attr.ctime) = (now, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_directory_follow_each_other() {
        let keys = [
            KeyBuf::node(1),
            KeyBuf::place(1),
            KeyBuf::name(1, b""),
            KeyBuf::name(1, b"a"),
            KeyBuf::name(1, b"a\0"),
            KeyBuf::name(1, &[255; NAME_MAX]),
            KeyBuf::serial(1, 0),
            KeyBuf::serial(1, 256),
            KeyBuf::node(2),
            KeyBuf::node(256),
        ];
        assert!(keys.is_sorted_by(|one, other| **one < **other));
        let parts = [Part::Node(1), Part::Place(1), Part::Name(1, b""), Part::Name(1, b"a")];
        assert_eq!(keys.iter().take(4).map(|key| Part::of(key)).collect::<Vec<_>>(), parts.map(Some));
        assert_eq!(Part::of(&keys[7]), Some(Part::Serial(1, 256)));
        assert_eq!((Part::of(b""), Part::of(&[0; 8])), (None, None));
    }
}
