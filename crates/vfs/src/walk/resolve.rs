//! Scopes of walks: the flags of `openat2(2)`.
//!
//! # What it is
//! The root of a scoped walk (`BENEATH`, `IN_ROOT`) is its start. Names lead down, so only `..` can
//! lead out: when another thread moves a directory out of the scope while the walk stands in it.
//! After each `..` a scoped walk therefore climbs from the new place to the root of its scope. The
//! walk takes the step only if the climb arrives at that root, at a moment when no directory moved
//! and no mount changed. rcu-walk discards a climb that was disturbed; ref-walk blocks moves and
//! mounts during the climb, so that a storm of renames cannot stop a scoped walk.
//!
//! # Where it comes from
//! `openat2(2)`. Linux fails with `EAGAIN` if a scoped walk meets a rename; this walk continues.

use crate::base::rank::Rank;
use crate::cache::tree::Tree;
use crate::mount::place::{Place, climbs_to};
use sync::rcu::ReadGuard;

/// Returns whether `place` is within `root` now; `None` if something moved meanwhile.
pub(crate) fn is_within_rcu(tree: &Tree, guard: &ReadGuard<'_>, place: Place<'_>, root: &Place<'_>) -> Option<bool> {
    let (moves, mounts) = (tree.dir_moves.0.raw_begin(), tree.mount_seq.raw_begin());
    let within = climbs_to(guard, place, root);
    let undisturbed = !tree.dir_moves.0.read_retry(moves) && !tree.mount_seq.read_retry(mounts);
    undisturbed.then_some(within)
}

/// Returns whether `place` is within `root`, for callers that may block: at worst, moves wait.
pub(crate) fn is_within(tree: &Tree, place: Place<'_>, root: &Place<'_>) -> bool {
    if let Some(within) = is_within_rcu(tree, &tree.domain.read(), place, root) {
        return within;
    }
    let _mounts = tree.ranks.lock(Rank::Mounts, &tree.mounts);
    let _renames = tree.ranks.lock(Rank::Rename, &tree.rename_lock);
    climbs_to(&tree.domain.read(), place, root)
}
