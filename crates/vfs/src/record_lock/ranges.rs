//! The byte ranges that one owner has locked in one file.
//!
//! # What it is
//! Pieces by their first byte. They do not overlap, and two adjacent ones differ in kind: locking
//! two halves one by one equals locking the whole.
//!
//! Each piece is also in the [`Index`] of the file, by which the table finds the pieces of other owners.
//!
//! # What it is not
//! Aware of other owners: the table resolves conflicts.
//!
//! # How it is locked
//! By the shard's mutex, of which the table is a part.
//!
//! # Where it comes from
//! `fcntl(2)`, "Advisory record locking": setting a lock on a part splits, joins and converts the
//! locks there.

use super::intervals::{Intervals, Span};
use super::{LockInfo, LockKind};
use core::ops::Range;
use std::collections::BTreeMap;

/// The pieces of all owners of a file, by kind.
pub(super) struct Index {
    pub(super) shared: Intervals,
    pub(super) exclusive: Intervals,
}

impl Index {
    pub(super) fn new(seed: u64) -> Self {
        Self { shared: Intervals::new(seed), exclusive: Intervals::new(!seed) }
    }

    fn of(&mut self, kind: LockKind) -> &mut Intervals {
        if kind == LockKind::Shared { &mut self.shared } else { &mut self.exclusive }
    }
}

/// One owner's pieces.
#[derive(Default)]
pub(super) struct Ranges {
    /// First byte; first byte after, and `Shared` or `Exclusive`.
    pieces: BTreeMap<u64, (u64, LockKind)>,
}

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns by how many pieces [`set`](Self::set) would exceed the present number.
    pub(super) fn growth(&self, kind: LockKind, range: &Range<u64>) -> usize {
        let (mut before, mut after) = (0, 0);
        for piece in self.overlapping(range) {
            before += 1;
            after += usize::from(piece.start < range.start && piece.kind != kind);
            after += usize::from(piece.end > range.end && piece.kind != kind);
        }
        // A range that joins a piece beside it is not a further one.
        let last_before = self.pieces.range(..range.start).next_back();
        let joins_before = last_before.is_some_and(|(_, &piece)| piece == (range.start, kind));
        let joins_after = self.pieces.get(&range.end).is_some_and(|&(_, other)| other == kind);
        before += usize::from(joins_before) + usize::from(joins_after);
        after += usize::from(kind != LockKind::Unlock);
        after.saturating_sub(before)
    }

    /// Returns the first piece that keeps another owner from `kind` on `range`.
    pub(super) fn first_conflict(&self, kind: LockKind, range: &Range<u64>) -> Option<LockInfo> {
        self.overlapping(range).find(|piece| match kind {
            LockKind::Unlock => false,
            LockKind::Shared => piece.kind == LockKind::Exclusive,
            LockKind::Exclusive => true,
        })
    }

    fn insert(&mut self, index: &mut Index, owner: u64, LockInfo { kind, start, end }: LockInfo) {
        self.pieces.insert(start, (end, kind));
        index.of(kind).insert(Span { start, end, owner });
    }

    fn remove(&mut self, index: &mut Index, owner: u64, LockInfo { kind, start, end }: LockInfo) {
        self.pieces.remove(&start);
        index.of(kind).remove(Span { start, end, owner });
    }

    /// Makes `range`, which is not empty, a piece of `owner` and of `kind`. Returns whether other requests may succeed now.
    pub(super) fn set(&mut self, index: &mut Index, owner: u64, kind: LockKind, range: &Range<u64>) -> bool {
        let Range { mut start, mut end } = *range;
        let cut: Vec<_> = self.overlapping(range).collect();
        let mut gives_back = false;
        for piece in cut {
            gives_back |= kind == LockKind::Unlock || (kind, piece.kind) == (LockKind::Shared, LockKind::Exclusive);
            self.remove(index, owner, piece);
            if piece.start < start {
                self.insert(index, owner, LockInfo { end: start, ..piece });
            }
            if piece.end > end {
                self.insert(index, owner, LockInfo { start: end, ..piece });
            }
        }
        if kind == LockKind::Unlock {
            return gives_back;
        }
        if let Some((&before, &(before_end, before_kind))) = self.pieces.range(..start).next_back()
            && (before_end, before_kind) == (start, kind)
        {
            self.remove(index, owner, LockInfo { kind, start: before, end: start });
            start = before;
        }
        if let Some(&(after_end, after_kind)) = self.pieces.get(&end)
            && after_kind == kind
        {
            self.remove(index, owner, LockInfo { kind, start: end, end: after_end });
            end = after_end;
        }
        self.insert(index, owner, LockInfo { kind, start, end });
        gives_back
    }

    /// Returns the pieces that share a byte with `range`, from the first to the last.
    pub(super) fn overlapping(&self, range: &Range<u64>) -> impl Iterator<Item = LockInfo> {
        let reaches_in = |&(_, &(end, _)): &(&u64, &(u64, LockKind))| end > range.start;
        let before = self.pieces.range(..range.start).next_back().filter(reaches_in);
        let inside = self.pieces.range(range.clone());
        before.into_iter().chain(inside).map(|(&start, &(end, kind))| LockInfo { kind, start, end })
    }
}
