//! The events in the log of a directory: the changes of forks, in order.
//!
//! # What it is
//! A batch of events is one change: after a crash it is there whole or not at all. A change of a tree is the difference of two
//! trees, whatever call made it. A node that has a file of the base behind it has the path of this file when the node gets its
//! first record, and [`SavedBase::Same`] later.

use crate::contents::{Contents, File};
use crate::lower::Lower;
use crate::map::Change;
use crate::page::Page;
use crate::record::{Key, Part, Record, is_name};
use crate::tree::Tree;
use crate::usage::ForkLimits;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use sync::pages::PAGE;

/// One event; see the [module documentation](self).
#[derive(Serialize, Deserialize)]
pub(crate) enum Event {
    /// A file of the base whose inode number is too large has this number in the forks.
    Number { ino: u64, node: u64 },
    /// A new fork, which begins as the fork `like`, or as that one began. Its parent is `from`.
    Begin { fork: u64, from: u64, like: u64, of_origin: bool, limits: ForkLimits },
    /// The fork has a name.
    Name { fork: u64, name: Name },
    /// Records of a fork, or of its origin, that have changed.
    Tree { fork: u64, of_origin: bool, changes: Vec<Saved> },
    /// Contents that have changed.
    Contents(SavedContents),
    /// The tree of the fork becomes its origin; in an image (`is_new` is false), the origin becomes its tree.
    Settle { fork: u64, at: i64, is_new: bool },
    /// A commit has moved a file of the base.
    Moved { from: Vec<u8>, to: Vec<u8> },
    /// The fork has ended.
    End { fork: u64 },
    /// All that is before this offset of the same log is durable. The last event of an image.
    Mark { upto: u64 },
}

/// The name of a fork, and how it is shown.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Name {
    pub(crate) name: String,
    /// The name of the fork that it was made from.
    pub(crate) parent: String,
    /// Nanoseconds since the epoch.
    pub(crate) made: i64,
    pub(crate) is_read_only: bool,
    /// Whether files of the base that the fork needs are missing.
    pub(crate) is_lost: bool,
    /// The directory that the fork shows.
    pub(crate) dir: Vec<u8>,
}

/// A record that has changed, with the parts of a node that a log has in another form.
#[derive(Serialize, Deserialize)]
pub(crate) struct Saved {
    pub(crate) key: Key,
    /// `None`: it is removed.
    pub(crate) record: Option<Record>,
    pub(crate) base: SavedBase,
    /// The epoch of the contents.
    pub(crate) contents: Option<u64>,
}

/// The file of the base behind a node.
#[derive(Serialize, Deserialize)]
pub(crate) enum SavedBase {
    None,
    /// As in the record before this one.
    Same,
    /// Its path from the root of the base.
    Path(Vec<u8>),
}

/// The changed pages of a file.
#[derive(Serialize, Deserialize)]
pub(crate) struct SavedContents {
    pub(crate) node: u64,
    pub(crate) epoch: u64,
    /// The epoch of the contents that these are a copy of, if the log has not had them yet.
    pub(crate) from: Option<u64>,
    /// The length up to which the base shows through, and its storage.
    pub(crate) shown: (u64, u64),
    /// The slots of the pages: `None` where the base shows through, `Some(None)` for zeros.
    pub(crate) pages: Vec<(u64, Option<Option<u64>>)>,
}

/// Numbers in a log are smaller. So sums of them do not overflow.
const LIMIT: u64 = 1 << 62;

/// The greatest length of a file.
const LENGTH: u64 = i64::MAX as u64;

impl Event {
    /// Returns whether its numbers and names are as this program writes them. `slots`: the length of the file of pages.
    pub(crate) fn is_sound(&self, slots: u64) -> bool {
        match self {
            Self::Number { node, .. } => *node < LIMIT,
            Self::Begin { fork, from, like, .. } => *fork < LIMIT && from.max(like) < fork,
            Self::Name { name, .. } => is_name(name.name.as_bytes()),
            Self::Tree { changes, .. } => changes.iter().all(Saved::is_sound),
            Self::Contents(SavedContents { node, epoch, shown, pages, .. }) => {
                let is_page = |(number, slot): &(u64, Option<Option<u64>>)| {
                    *number <= LENGTH / PAGE as u64 && slot.flatten().is_none_or(|slot| slot < slots)
                };
                let is_small = [*node, *epoch, shown.1].iter().all(|number| *number < LIMIT);
                is_small && shown.0 <= LENGTH && pages.iter().all(is_page)
            }
            _ => true,
        }
    }

    /// Returns the changes that lead from one tree of a fork to another. `None`: there are none.
    pub(crate) fn tree(lower: &Lower, (fork, of_origin): (u64, bool), old: &Tree, new: &Tree) -> Option<Self> {
        let changed = new.map.diff(&old.map, Record::is_same);
        let changes: Vec<_> = changed.map(|change| Saved::of(lower, change)).collect();
        (!changes.is_empty()).then_some(Self::Tree { fork, of_origin, changes })
    }

    /// Returns the pages of a file that have changed. `all`: all pages.
    pub(crate) fn contents(node: u64, file: &File, contents: &Contents, all: bool) -> Self {
        let saved = |page: Option<Option<&Arc<Page>>>| page.map(|page| page.and_then(|page| page.slot()));
        let pages = if all {
            contents.pages().map(|(number, page)| (number, saved(Some(page)))).collect()
        } else {
            contents.unlogged.iter().map(|(number, _)| (*number, saved(contents.page(*number)))).collect()
        };
        let from = file.from.filter(|_| !all);
        Self::Contents(SavedContents { node, epoch: file.epoch, from, shown: contents.shown(), pages })
    }
}

impl Saved {
    fn is_sound(&self) -> bool {
        // The numbers that keys begin with, too.
        let is_key = self.key.first().is_some_and(|byte| *byte < LIMIT.to_be_bytes()[0]);
        is_key
            && match (Part::of(&self.key), &self.record) {
                (Some(Part::Node(number)), Some(Record::Node(node))) => {
                    node.attr.ino == number && node.attr.size <= LENGTH && node.attr.blocks < LIMIT
                }
                (Some(Part::Place(_)), Some(Record::Place(dir, name))) => *dir < LIMIT && is_name(name),
                (Some(Part::Serial(..)), Some(Record::Listed(name))) => is_name(name),
                (Some(Part::Name(_, name)), Some(Record::Entry(entry))) => {
                    entry.node.max(entry.serial) < LIMIT && is_name(name)
                }
                (Some(Part::Name(_, name)), Some(Record::Whiteout(_))) => is_name(name),
                (part, record) => part.is_some() && record.is_none(),
            }
    }

    fn of(lower: &Lower, (key, new, old): Change<'_, Key, Record>) -> Self {
        let node = new.and_then(Record::node);
        let old = old.and_then(Record::node);
        let base = match (node.and_then(|node| node.base.as_ref()), old.and_then(|old| old.base.as_ref())) {
            (None, _) => SavedBase::None,
            (Some(base), Some(old)) if Arc::ptr_eq(base, old) => SavedBase::Same,
            (Some(base), _) => SavedBase::Path(lower.path(base)),
        };
        let contents = node.and_then(|node| node.contents.as_ref()).map(|file| file.epoch);
        Self { key: key.clone(), record: new.cloned(), base, contents }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_begins_like_an_older_one() {
        let begin = |fork, from, like| {
            Event::Begin { fork, from, like, of_origin: false, limits: ForkLimits::default() }.is_sound(0)
        };
        assert!(begin(1, 0, 0) && begin(7, 3, 5) && begin(7, 5, 3));
        // The next image would not have forks that begin like each other.
        assert!(!begin(2, 3, 1) && !begin(2, 1, 3) && !begin(2, 2, 0) && !begin(LIMIT, 0, 0));
    }
}
