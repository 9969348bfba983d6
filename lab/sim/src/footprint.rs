//! Which cache lines an operation touches, and where in the source.
//!
//! # What it is
//! [`record`] writes down every charged access that the calling simulated thread makes inside a
//! closure. Two footprints conflict on a line that one of them writes and the other touches.
//! Conflicts keep operations from scaling; footprints find them without running the operations at
//! the same time ("the scalable commutativity rule", Clements et al., SOSP 2013, does the same for
//! a whole kernel).
//!
//! # What it is not
//! A race detector, nor a view of plain memory: memory that is not reached through an atomic or a
//! cell of the facade is not seen.

use crate::engine::{Kind, current, mode};
use core::fmt;
use core::panic::Location;
use std::collections::{BTreeMap, BTreeSet};

/// One kind of access to one address from one place in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touch {
    /// The kind of the access.
    pub kind: Kind,
    /// The first byte.
    pub address: usize,
    /// The source file of the access.
    pub file: &'static str,
    /// The line of the access in the file.
    pub line: u32,
}

impl fmt::Display for Touch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}:{}", self.kind, self.file, self.line)
    }
}

/// The lines that an operation touched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    lines: BTreeMap<usize, BTreeSet<Touch>>,
}

pub(crate) type Record = Footprint;

/// A line that one of two operations writes and the other touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The number of the cache line; the same in every run of the same program.
    pub line: usize,
    /// The touches of the one operation.
    pub ours: Vec<Touch>,
    /// The touches of the other operation.
    pub theirs: Vec<Touch>,
}

impl Conflict {
    /// Returns whether no address is both written by one and touched by the other: they share the
    /// line, not the data.
    #[must_use]
    pub fn is_false_sharing(&self) -> bool {
        !self.ours.iter().any(|our| {
            self.theirs
                .iter()
                .any(|their| our.address == their.address && (our.kind != Kind::Load || their.kind != Kind::Load))
        })
    }
}

impl Footprint {
    pub(crate) fn add(&mut self, number: usize, address: usize, kind: Kind, from: &'static Location<'static>) {
        let touch = Touch { kind, address, file: from.file(), line: from.line() };
        self.lines.entry(number).or_default().insert(touch);
    }

    /// Returns the number of lines that the closure touched.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Returns the number of lines that the closure wrote to.
    #[must_use]
    pub fn written(&self) -> usize {
        self.lines.values().filter(|touches| is_written(touches)).count()
    }

    /// Returns each line that the operation touched, and how.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &BTreeSet<Touch>)> {
        self.lines.iter().map(|(&line, touches)| (line, touches))
    }

    /// Adds the touches of another operation.
    pub fn merge(&mut self, other: &Self) {
        for (&line, touches) in &other.lines {
            self.lines.entry(line).or_default().extend(touches);
        }
    }

    /// Returns the lines that one of the two operations writes and the other operation touches.
    #[must_use]
    pub fn conflicts(&self, other: &Self) -> Vec<Conflict> {
        let mut found = Vec::new();
        for (&line, ours) in &self.lines {
            let Some(theirs) = other.lines.get(&line) else { continue };
            if is_written(ours) || is_written(theirs) {
                let (ours, theirs) = (ours.iter().copied().collect(), theirs.iter().copied().collect());
                found.push(Conflict { line, ours, theirs });
            }
        }
        found
    }
}

fn is_written(touches: &BTreeSet<Touch>) -> bool {
    touches.iter().any(|touch| touch.kind != Kind::Load)
}

/// Calls `operation`; returns its result and the lines that the calling simulated thread touched in
/// it.
///
/// Calls must not nest. The footprint is empty outside of a simulation, and where nothing is
/// charged (while the state is set up or taken down, inside [`crate::uncharged`]).
pub fn record<R>(operation: impl FnOnce() -> R) -> (R, Footprint) {
    let Some(engine) = current() else { return (operation(), Footprint::default()) };
    let before = engine.task().footprint.replace(Some(Footprint::default()));
    assert!(before.is_none(), "a footprint inside a footprint");
    let result = engine.with_mode(mode::FOOTPRINT, operation);
    (result, engine.task().footprint.take().unwrap_or_default())
}
