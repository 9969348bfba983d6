//! The byte ranges that one owner has locked in one file.
//!
//! # What it is
//! Pieces by their first byte. They do not overlap, and two adjacent ones differ in kind: locking
//! two halves one by one equals locking the whole.
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

use super::{LockInfo, LockKind};
use core::ops::Range;
use std::collections::BTreeMap;

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

    /// Returns the first piece that keeps another owner from `kind` on `range`.
    pub(super) fn first_conflict(&self, kind: LockKind, range: &Range<u64>) -> Option<LockInfo> {
        self.overlapping(range).find(|piece| match kind {
            LockKind::Unlock => false,
            LockKind::Shared => piece.kind == LockKind::Exclusive,
            LockKind::Exclusive => true,
        })
    }

    /// Makes `range`, which is not empty, a piece of `kind`. Returns whether other requests may succeed now.
    pub(super) fn set(&mut self, kind: LockKind, range: &Range<u64>) -> bool {
        let Range { mut start, mut end } = *range;
        let cut: Vec<_> = self.overlapping(range).collect();
        let mut gives_back = false;
        for piece in cut {
            gives_back |= kind == LockKind::Unlock || (kind, piece.kind) == (LockKind::Shared, LockKind::Exclusive);
            self.pieces.remove(&piece.start);
            if piece.start < start {
                self.pieces.insert(piece.start, (start, piece.kind));
            }
            if piece.end > end {
                self.pieces.insert(end, (piece.end, piece.kind));
            }
        }
        if kind == LockKind::Unlock {
            return gives_back;
        }
        if let Some((&before, &(before_end, before_kind))) = self.pieces.range(..start).next_back()
            && (before_end, before_kind) == (start, kind)
        {
            start = before;
        }
        if let Some(&(after_end, after_kind)) = self.pieces.get(&end)
            && after_kind == kind
        {
            self.pieces.remove(&end);
            end = after_end;
        }
        self.pieces.insert(start, (end, kind));
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
