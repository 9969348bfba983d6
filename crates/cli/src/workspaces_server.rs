//! Workspaces in the process of a mount: the forks, and the replies to requests about them.

mod protocol;

pub(crate) use protocol::{ChangeLine, ForkLine, Reply, Request};

use crate::options;
use crate::source::Source;
use clap::Args;
use fuse::Ttls;
use fuse::message::Reason;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;
use thiserror::Error;
use vfs::Vfs;
use workspaces::{Change, ChangeKind, ForkLimits, WorkspaceError, Workspaces};

/// The reply to a line that is not a request.
const UNKNOWN: &str = r#"{"error":"unknown request (use snapshot)"}"#;

/// The error of a mount without forks.
pub(crate) const NO_FORKS: &str = "the mount has no forks (mount the tree with --workspaces)";

/// Arguments of `lightfoot mount` about forks.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkspaceArguments {
    /// Show the source at MOUNTPOINT/base, read-only, and forks of it at MOUNTPOINT/w/NAME (see `lightfoot fork`)
    #[arg(long)]
    workspaces: bool,
}

/// Why a tree cannot have forks.
#[derive(Debug, Error)]
pub(crate) enum ForksError {
    /// Inode numbers are only unique in one file system.
    #[error("forks need one file system (omit cross, and name one source)")]
    Several,

    /// The root directory cannot be read.
    #[error("no forks of the source: {0} (use a directory that you may read)")]
    Root(Reason),
}

/// The forks of a mount; none without `--workspaces`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Forks(Option<Arc<Workspaces>>);

impl WorkspaceArguments {
    /// Returns the tree that is mounted, and its forks.
    ///
    /// # Errors
    /// If the tree has several file systems, or its root directory cannot be read.
    pub(crate) fn over(&self, tree: Vfs, source: &Source) -> Result<(Vfs, Forks), ForksError> {
        if !self.workspaces {
            return Ok((tree, Forks::default()));
        }
        if source.sources().len() > 1 || source.directories().any(|directory| directory.is_crossed) {
            return Err(ForksError::Several);
        }
        let is_fixed = source.ttls().attr >= Ttls::LONG.attr && !source.reports_changes();
        let spaces = over(&tree, is_fixed)?;
        Ok((spaces.tree().clone(), Forks(Some(spaces))))
    }

    /// Returns whether the mount has forks.
    pub(crate) fn is_set(&self) -> bool {
        self.workspaces
    }
}

/// Returns a tree without forks. `is_fixed`: no other program changes the base.
///
/// # Errors
/// If the root directory cannot be read.
pub(crate) fn over(tree: &Vfs, is_fixed: bool) -> Result<Arc<Workspaces>, ForksError> {
    let spaces = Workspaces::over(tree.context(), is_fixed);
    spaces.map(Arc::new).map_err(|errno| ForksError::Root(io::Error::from_raw_os_error(errno.raw()).into()))
}

impl Forks {
    /// Returns the reply to a line, which another process has sent, as a line of JSON.
    pub(crate) fn answer(&self, line: &str) -> serde_json::Result<String> {
        let Ok(request) = serde_json::from_str::<Request>(line) else { return Ok(UNKNOWN.into()) };
        let Some(spaces) = &self.0 else { return serde_json::to_string(&Reply::Refused { error: NO_FORKS.into() }) };
        let reply = done(spaces, request).unwrap_or_else(|error| Reply::Refused { error: error.to_string() });
        serde_json::to_string(&reply)
    }
}

/// Does what a request names.
///
/// # Errors
/// See [`WorkspaceError`].
pub(crate) fn done(spaces: &Workspaces, request: Request) -> Result<Reply, WorkspaceError> {
    Ok(match request {
        Request::Fork { from, name, bytes, inodes } => {
            let usual = ForkLimits::default();
            let limits = ForkLimits { bytes: bytes.unwrap_or(usual.bytes), inodes: inodes.unwrap_or(usual.inodes) };
            spaces.fork(&from, &name, limits)?;
            Reply::Done
        }
        Request::Diff { name } => Reply::Changes(spaces.changes(&name)?.into_iter().map(change_line).collect()),
        Request::Discard { name, lazy } => {
            spaces.discard(&name, lazy)?;
            Reply::Done
        }
        Request::List => Reply::Forks(fork_lines(spaces)),
    })
}

fn change_line(change: Change) -> ChangeLine {
    let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
    let (kind, from) = match change.kind {
        ChangeKind::Added => ('A', None),
        ChangeKind::Removed => ('D', None),
        ChangeKind::Modified => ('M', None),
        ChangeKind::Renamed(from) => ('R', Some(text(&from))),
    };
    ChangeLine { kind, from, path: text(&change.path) }
}

fn fork_lines(spaces: &Workspaces) -> Vec<ForkLine> {
    let now = SystemTime::now();
    let line = |fork: workspaces::ForkInfo| ForkLine {
        age_s: now.duration_since(fork.made).unwrap_or_default().as_secs(),
        changes: spaces.changes(&fork.name).map_or(0, |changes| changes.len() as u64),
        name: fork.name,
        parent: fork.parent,
        bytes: fork.bytes,
        inodes: fork.inodes,
    };
    spaces.list().into_iter().map(line).collect()
}

/// Returns a number with a suffix `k`, `m`, `g` or `t` of 1024.
///
/// # Errors
/// If it is another text.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    options::number(text).ok_or_else(|| "use a number such as 512m".into())
}
