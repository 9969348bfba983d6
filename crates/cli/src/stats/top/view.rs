//! The view of the screen, and how keys and new figures change it.

use crate::control::{FileSystemStatus, Status};
use crate::stats::units::per_second;
use fuse::{Op, OpStats};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// The most intervals of which the screen keeps rates: as many as a wide terminal shows.
const MAX_MOMENTS: usize = 512;

/// A column of the table of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Operation,
    Total,
    Errors,
    PerSecond,
    Median,
    P90,
    P99,
    Longest,
}

impl Column {
    /// Each with its title and its width.
    const TABLE: [(Self, &str, usize); 8] = [
        (Self::Operation, "operation", 16),
        (Self::Total, "total", 12),
        (Self::Errors, "errors", 8),
        (Self::PerSecond, "per second", 12),
        (Self::Median, "p50", 8),
        (Self::P90, "p90", 8),
        (Self::P99, "p99", 8),
        (Self::Longest, "max", 8),
    ];

    pub(super) fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.into_iter().map(|(column, ..)| column)
    }

    pub(super) const fn title(self) -> &'static str {
        Self::TABLE[self as usize].1
    }

    pub(super) const fn width(self) -> usize {
        Self::TABLE[self as usize].2
    }

    /// Returns the column so many places to the right, round the end.
    fn next(self, by: usize) -> Self {
        Self::TABLE[(self as usize + by) % Self::TABLE.len()].0
    }
}

/// The rates of one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Operations a second.
    pub(super) operations: u64,
    /// Bytes read a second.
    pub(super) read: u64,
    /// Bytes written a second.
    pub(super) written: u64,
}

impl Moment {
    pub(super) fn of(interval: &Status) -> Self {
        let span_ns = interval.snapshot.span_ns;
        let rate = |count| per_second(count, span_ns);
        Self {
            operations: rate(interval.snapshot.ops.iter().map(|op| op.count).sum()),
            read: rate(interval.moved(Op::Read)),
            written: rate(interval.moved(Op::Write)),
        }
    }
}

/// An operation: since it was mounted, and in the interval, if it occurred there.
pub(super) struct OperationRow<'s> {
    pub(super) total: &'s OpStats,
    pub(super) recent: Option<&'s OpStats>,
}

/// See the [module documentation](self).
pub(super) struct View {
    /// The last status that came.
    last: Status,
    /// The status that is shown.
    pub(super) total: Status,
    /// The counts of the interval before it; first, since it was mounted.
    pub(super) recent: Status,
    /// The newest first.
    pub(super) moments: VecDeque<Moment>,
    /// The operations are in the order of this column.
    pub(super) sorted_by: Column,
    /// The file system that is shown alone, by its position.
    alone: Option<usize>,
    pub(super) is_paused: bool,
    pub(super) has_help: bool,
}

impl View {
    pub(super) fn new(status: Status) -> Self {
        Self {
            last: status.clone(),
            total: status.clone(),
            recent: status,
            moments: VecDeque::new(),
            sorted_by: Column::PerSecond,
            alone: None,
            is_paused: false,
            has_help: false,
        }
    }

    /// Takes a new status. While it is paused, the screen stays.
    pub(super) fn sampled(&mut self, now: Status) {
        let interval = now.since(&self.last);
        if !self.is_paused {
            self.moments.push_front(Moment::of(&interval));
            self.moments.truncate(MAX_MOMENTS);
            (self.recent, self.total) = (interval, now.clone());
        }
        self.last = now;
    }

    pub(super) fn is_quit(key: KeyEvent) -> bool {
        let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
        matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) || is_control && key.code == KeyCode::Char('c')
    }

    /// Obeys a key. `Break`: the program ends.
    pub(super) fn pressed(&mut self, key: KeyEvent) -> ControlFlow<()> {
        if self.has_help && key.code == KeyCode::Esc {
            self.has_help = false;
            return ControlFlow::Continue(());
        }
        if Self::is_quit(key) {
            return ControlFlow::Break(());
        }
        match key.code {
            KeyCode::Char('s' | '>') => self.sorted_by = self.sorted_by.next(1),
            KeyCode::Char('<') => self.sorted_by = self.sorted_by.next(Column::TABLE.len() - 1),
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('f') => {
                let next = self.alone.map_or(0, |alone| alone + 1);
                self.alone = Some(next).filter(|next| *next < self.total.file_systems.len());
            }
            KeyCode::Char('?' | 'h') => self.has_help = !self.has_help,
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// Returns the file system that is shown alone.
    pub(super) fn alone(&self) -> Option<&FileSystemStatus> {
        self.recent.file_systems.get(self.alone?)
    }

    /// Returns all operations that ever occurred, in the order of the chosen column; equal ones by
    /// their totals.
    pub(super) fn operations(&self) -> Vec<OperationRow<'_>> {
        let recent = |name: &str| self.recent.snapshot.ops.iter().find(|op| op.name == name);
        let ops = self.total.snapshot.ops.iter();
        let mut rows: Vec<_> = ops.map(|total| OperationRow { total, recent: recent(&total.name) }).collect();
        let key = |row: &OperationRow<'_>| {
            let of = |figure: fn(&OpStats) -> u64| row.recent.map_or(0, figure);
            match self.sorted_by {
                Column::Operation => 0,
                Column::Total => row.total.count,
                Column::Errors => of(|op| op.errors),
                Column::PerSecond => of(|op| op.count),
                Column::Median => of(|op| op.p50_ns),
                Column::P90 => of(|op| op.p90_ns),
                Column::P99 => of(|op| op.p99_ns),
                Column::Longest => of(|op| op.max_ns),
            }
        };
        let total = |row: &OperationRow<'_>| if self.sorted_by == Column::Operation { 0 } else { row.total.count };
        rows.sort_by(|a, b| {
            let of = |row: &OperationRow<'_>| (Reverse(key(row)), Reverse(total(row)));
            of(a).cmp(&of(b)).then_with(|| a.total.name.cmp(&b.total.name))
        });
        rows
    }
}
