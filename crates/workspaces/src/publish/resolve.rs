//! The tree of a fork for which the base has no conflicts, since one side wins.

use super::Plan;
use crate::commit::{CommitOptions, Conflicts, OnConflict};
use crate::state::State;
use crate::tree::Tree;
use crate::undo::{accepted, undone};
use vfs::Errno;

/// Returns the tree of a fork without conflicts, if the options decide them all.
pub(super) fn resolve(state: &State, tree: &Tree, options: CommitOptions) -> Result<Option<Tree>, Errno> {
    let (origin, mut resolved, mut before) = (state.origin(), None, Conflicts::new());
    loop {
        let now = resolved.as_ref().unwrap_or(tree);
        let conflicts = Plan::of(state, now, options)?.conflicts;
        let next = match options.conflicts {
            _ if conflicts.is_empty() => return Ok(resolved),
            OnConflict::Theirs if conflicts != before => undone(state, (now, &origin), &conflicts)?,
            OnConflict::Mine if conflicts != before => accepted(state, now, &conflicts)?,
            _ => None,
        };
        if next.is_none() {
            return Ok(None);
        }
        (resolved, before) = (next, conflicts);
    }
}
