//! The errors of forks by name.

use crate::workspaces::BASE;
use vfs::{Errno, Foreign, NAME_MAX};

/// Why a fork cannot be made, found, compared, committed or discarded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// No fork has this name.
    #[error("{}: no such fork (use {BASE}, or the name of a fork)", Foreign::of(.0))]
    Missing(String),
    /// A fork has this name already.
    #[error("{}: this fork exists (use another name, or discard it)", Foreign::of(.0))]
    Exists(String),
    /// Not the name of a fork.
    #[error(
        "{}: not the name of a fork (use at most {NAME_MAX} bytes without a slash, not . or ..)",
        Foreign::of(.0)
    )]
    BadName(String),
    /// No directory of the tree has this path.
    #[error("{}: not a directory of the tree (name one of it, without links)", Foreign::of(.0))]
    NoDirectory(String),
    /// The fork shows another directory.
    #[error("{}: shows another directory of the tree (name a fork that shows the same)", Foreign::of(.0))]
    OtherDirectory(String),
    /// Only a rollback changes the fork.
    #[error("{}: the fork is read-only (commit into another fork)", Foreign::of(.0))]
    ReadOnly(String),
    /// The reads of the fork are not known.
    #[error(
        "{}: the mount has not noted all that programs read in the fork (mount with --reads, and make the fork then; at most 262,144 names)",
        Foreign::of(.0)
    )]
    ReadsUnknown(String),
    /// Files of the fork are open.
    #[error("{}: files of the fork are open (close them, or use --lazy)", Foreign::of(.0))]
    Busy(String),
    /// Files of the base that the fork needs are missing.
    #[error(
        "{}: another program has removed or replaced files of the source that the fork needs (copy your changes, discard it)",
        Foreign::of(.0)
    )]
    Lost(String),
    /// A commit to the base runs, or was cut off.
    #[error("another commit to the source runs, or was cut off (wait; or mount the source again, which ends it)")]
    CutOff,
    /// The source cannot be changed, or the parent has no space.
    #[error("the commit failed: {0} (the fork stays: make the source writable, free space, commit again)")]
    NotCommitted(Errno),
    /// Another error of the tree.
    #[error("the tree fails: {0} (see the log of the mount)")]
    Failed(Errno),
}

impl From<Errno> for WorkspaceError {
    fn from(errno: Errno) -> Self {
        Self::Failed(errno)
    }
}

/// Returns the error of a comparison with a fork, or of a rollback to it.
pub(crate) fn other_directory(name: &str) -> impl FnOnce(Errno) -> WorkspaceError {
    move |errno| if errno == Errno::EINVAL { WorkspaceError::OtherDirectory(name.into()) } else { errno.into() }
}
