//! A fork for whose changes the base has no conflicts, since one side wins.

use super::Plan;
use crate::commit::{CommitOptions, Conflicts, OnConflict};
use crate::rollback::exchange;
use crate::state::State;
use crate::tree::Tree;
use crate::undo::{accepted, undone};
use vfs::Errno;

/// Gives the fork a tree without conflicts, if the options decide them all. Only to check, returns this tree instead.
///
/// # Errors
/// `ENOSPC`: the limits of the fork; the base's.
pub(super) fn resolve(state: &State, options: CommitOptions) -> Result<Option<Tree>, Errno> {
    if options.conflicts == OnConflict::Refuse {
        return Ok(None);
    }
    let stale = {
        let _closed = state.close();
        let tree = match resolved(state, options)? {
            Some(tree) if !options.check_only => tree,
            checked => return Ok(checked),
        };
        exchange(vec![state.replace_counted(tree)], false, None)?
    };
    stale.iter().for_each(|stale| stale.mark(state));
    Ok(None)
}

fn resolved(state: &State, options: CommitOptions) -> Result<Option<Tree>, Errno> {
    let (tree, origin) = (state.tree.lock().clone(), state.origin());
    let (mut resolved, mut before) = (None, Conflicts::new());
    loop {
        let now = resolved.as_ref().unwrap_or(&tree);
        let conflicts = Plan::of(state, now, options)?.conflicts;
        let next = match options.conflicts {
            _ if conflicts.is_empty() => return Ok(resolved),
            _ if conflicts == before => None,
            OnConflict::Mine => accepted(state, now, &conflicts)?,
            _ => undone(state, (now, &origin), &conflicts)?,
        };
        if next.is_none() {
            return Ok(None);
        }
        (resolved, before) = (next, conflicts);
    }
}
