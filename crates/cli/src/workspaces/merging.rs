//! `lightfoot commit` and `lightfoot rollback`.

use super::place::Place;
use super::{WorkspacesError, exchange, print_all, shows_progress, write_back};
use crate::workspaces_server::{Reply, Request, Winner};
use clap::Args;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `lightfoot commit`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Commit {
    /// The fork
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Only look for conflicts, and change nothing
    #[arg(long)]
    check: bool,

    /// Which side wins, where the fork and its parent have changed a file
    #[arg(long, value_enum, value_name = "SIDE", default_value_t)]
    conflicts: Winner,

    /// Also write set-user-ID bits, devices, files of other owners and attributes of the system into the source
    #[arg(long)]
    privileged: bool,

    /// Also report what programs have read in the fork and its parent, or the source, has changed since (mount with --reads)
    #[arg(long)]
    reads: bool,

    /// Print a JSON object for each change or conflict
    #[arg(long)]
    json: bool,
}

/// Arguments of `lightfoot rollback`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Rollback {
    /// The fork
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// A fork of the same mount, or MNT/base: its present state (default: the beginning of the fork, or its last commit)
    #[arg(value_name = "TO")]
    to: Option<PathBuf>,
}

/// Commits a fork, and prints its changes, or the conflicts.
///
/// # Errors
/// See [`WorkspacesError`].
pub(super) fn commit(commit: &Commit, out: &mut impl Write) -> Result<(), WorkspacesError> {
    let place = Place::of(&commit.path)?;
    write_back(&place.mount.mountpoint);
    let Commit { check, conflicts, privileged, reads, .. } = *commit;
    let sent = Request::Commit { name: place.fork()?, check, conflicts, privileged, reads, progress: shows_progress() };
    match exchange(&place.mount, &sent)? {
        Reply::Changes(changes) => print_all(&changes, commit.json, out),
        Reply::Conflicts(conflicts) => {
            print_all(&conflicts, commit.json, out)?;
            Err(WorkspacesError::Conflicts)
        }
        _ => Err(WorkspacesError::other_reply()),
    }
}

/// Returns a fork to an earlier state.
///
/// # Errors
/// See [`WorkspacesError`].
pub(super) fn roll_back(rollback: &Rollback) -> Result<(), WorkspacesError> {
    let place = Place::of(&rollback.path)?;
    write_back(&place.mount.mountpoint);
    let to = rollback.to.as_ref().map(|to| place.beside(to)).transpose()?;
    exchange(&place.mount, &Request::Rollback { name: place.fork()?, to }).map(drop)
}
