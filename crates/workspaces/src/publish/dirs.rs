//! Moves and removals of directories in a base that cannot rename a directory: overlayfs fails with `EXDEV` for one of a lower layer.
//!
//! # What it is
//! A directory that moves is made anew at its place, and its files move there. A directory that is removed is emptied first.

use super::Plan;
use super::journal::{Attributes, Found, Path, Step, found, join};
use super::staging::Staging;
use crate::record::Stamp;
use crate::remade::Remade;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use vfs::{Attr, Errno};

/// A directory that cannot be renamed, or a file in it.
pub(super) struct Spread {
    before: Attr,
    at: Path,
    /// `None`: it is removed.
    to: Option<Path>,
}

/// The steps for the directories of a commit.
#[derive(Default)]
pub(super) struct DirSteps {
    /// Make the directories writable.
    pub(super) empty: Vec<Step>,
    /// Remove them.
    pub(super) remove: Vec<Step>,
    /// Give the new directories their attributes.
    pub(super) change: Vec<Step>,
    /// New objects and files, by the paths that they get.
    places: Vec<(Path, Step)>,
}

impl DirSteps {
    /// Returns whether a removed directory must leave its path to another object.
    pub(super) fn is_in_the_way(&self, places: &[(Path, Step)]) -> bool {
        let taken: HashSet<&Path> = places.iter().map(|(path, _)| path).collect();
        self.remove.iter().any(|step| taken.contains(step.path()))
    }
}

/// Returns the paths of the directories above a path.
fn above(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| &path[..at])
}

impl Plan<'_> {
    /// Plans the moves of directories of the base: out of the way first, since one may take the place of another.
    ///
    /// # Errors
    /// The base's.
    pub(super) fn move_dirs(
        &self,
        leaving: &mut HashMap<Path, Found>,
        places: &mut Vec<(Path, Step)>,
        staging: &mut Staging<'_>,
    ) -> Result<(), Errno> {
        let mut moved = Vec::new();
        for (number, place) in core::mem::take(&mut staging.moved) {
            let base = self.state.base_in(self.tree, number)?.ok_or(Errno::ESTALE)?;
            moved.push((self.target.0.path(&base), found(&base.attr_anew()?), place));
        }
        let returned: HashSet<Path> =
            moved.iter().filter(|(from, _, to)| from == to).map(|(from, ..)| from.clone()).collect();
        let other = |path: &&Path| !returned.contains(*path);
        let gone: HashSet<Path> =
            leaving.keys().chain(moved.iter().map(|(from, ..)| from)).filter(other).cloned().collect();
        for (from, found, to) in moved {
            // It has moved and returned. After a failure, a step out and a step back look like none.
            if returned.contains(&from) && !above(&from).any(|dir| gone.contains(dir)) {
                leaving.remove(&from);
                continue;
            }
            leaving.insert(from.clone(), found);
            places.push((to.clone(), Step::Move { from, to, found }));
        }
        Ok(())
    }

    /// Replaces the moves of directories by moves of all their files.
    ///
    /// # Errors
    /// The base's.
    pub(super) fn spread(
        &mut self,
        leaving: &mut HashMap<Path, Found>,
        places: &mut Vec<(Path, Step)>,
        staging: &mut Staging<'_>,
    ) -> Result<DirSteps, Errno> {
        let mut steps = DirSteps::default();
        let planned: HashSet<Path> = leaving.keys().cloned().collect();
        let mut dirs = Vec::new();
        for at in &planned {
            if self.target.attr(at)?.is_dir() {
                leaving.remove(at);
                let mut moves =
                    places.extract_if(.., |(_, step)| matches!(step, Step::Move { from, .. } if from == at));
                dirs.push((at.clone(), moves.next().map(|(to, _)| to)));
            }
        }
        while let Some((at, to)) = dirs.pop() {
            self.spread_one(&at, to.as_deref(), staging, &mut steps)?;
            for name in self.target.names(&at)? {
                let (from, to) = (join(&at, &name), to.as_ref().map(|to| join(to, &name)));
                if planned.contains(&from) {
                    continue;
                }
                let attr = self.target.attr(&from)?;
                if attr.is_dir() {
                    dirs.push((from, to));
                    continue;
                }
                leaving.insert(from.clone(), found(&attr));
                self.spread.push(Spread { before: attr, at: from.clone(), to: to.clone() });
                steps.places.extend(to.map(|to| (to.clone(), Step::Move { from, to, found: found(&attr) })));
            }
        }
        // A file takes its place before the fork's new file is exchanged for it.
        places.splice(0..0, core::mem::take(&mut steps.places));
        // A directory can be used while those above it are writable.
        steps.empty.sort_by(|one, other| one.path().cmp(other.path()));
        for deepest_first in [&mut steps.remove, &mut steps.change] {
            deepest_first.sort_by(|one, other| other.path().cmp(one.path()));
        }
        Ok(steps)
    }

    /// Plans the end of a directory, and another one at the path that it gets.
    fn spread_one(
        &mut self,
        at: &[u8],
        to: Option<&[u8]>,
        staging: &mut Staging<'_>,
        steps: &mut DirSteps,
    ) -> Result<(), Errno> {
        let held = self.target.0.at(at)?;
        let attr = held.attr_anew()?;
        let old = Attributes::of(&attr, Some(self.target.0.xattrs(&held)?));
        steps.empty.push(Step::Empty { at: at.into(), ino: attr.ino, old: old.clone() });
        steps.remove.push(Step::Rmdir { at: at.into(), ino: attr.ino });
        self.spread.push(Spread { before: attr, at: at.into(), to: to.map(Path::from) });
        let Some(to) = to else { return Ok(()) };
        let staged = staging.path();
        self.target.make_dir(&staged)?;
        let made = self.target.attr(&staged)?;
        staging.remade.insert(attr.ino, made.ino);
        steps.places.push((to.into(), Step::Move { from: staged, to: to.into(), found: found(&made) }));
        steps.change.push(Step::Change { at: to.into(), ino: made.ino, new: old, old: Attributes::of(&made, None) });
        Ok(())
    }

    /// Returns the directories that were made anew, and the files that moved: at their new paths, or at the old ones after the
    /// steps were undone.
    ///
    /// # Errors
    /// The base's.
    pub(super) fn remade(&self, is_done: bool) -> Result<Remade, Errno> {
        let mut remade = Remade::new();
        for Spread { before, at, to } in &self.spread {
            let Some(at) = (if is_done { to.as_ref() } else { Some(at) }) else { continue };
            let new = Arc::new(self.target.0.at(at)?);
            let ino = new.attr_anew()?.ino;
            // Otherwise the commit has replaced the file.
            if ino == before.ino || before.is_dir() {
                self.state.renumber(before.ino, ino);
                remade.insert(before.ino, (Stamp::of(before), new));
            }
        }
        Ok(remade)
    }
}
