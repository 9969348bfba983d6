//! Requests about forks, and replies, as lines of JSON.

use fuse::message::show;
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use vfs::Foreign;
use workspaces::{Change, ChangeKind};

/// A request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Make the fork `name` of `from`, which is the name of a fork, or `base`; with `origin`, of what that fork began with.
    Fork {
        from: String,
        name: String,
        bytes: Option<u64>,
        inodes: Option<u64>,
        #[serde(default)]
        read_only: bool,
        #[serde(default)]
        origin: bool,
    },
    /// List the changes of a fork; with `other`, since the state of that fork, or of `base`.
    Diff { name: String, other: Option<String> },
    /// Make the changes of a fork changes of its parent; with `check`, only look for conflicts.
    Commit {
        name: String,
        #[serde(default)]
        check: bool,
        #[serde(default)]
        privileged: bool,
    },
    /// Return a fork to its beginning, or to the state of the fork `to`.
    Rollback { name: String, to: Option<String> },
    /// Discard a fork; with `lazy`, also while programs use it; with `wait`, reply when its memory is free.
    Discard {
        name: String,
        #[serde(default)]
        lazy: bool,
        #[serde(default)]
        wait: bool,
    },
    /// List all forks.
    List,
}

impl Request {
    /// Returns the request for a fork without options.
    pub(crate) fn fork(from: impl Into<String>, name: &str) -> Self {
        let (from, name) = (from.into(), name.into());
        Self::Fork { from, name, bytes: None, inodes: None, read_only: false, origin: false }
    }
}

/// The reply to a request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reply {
    /// The request was done.
    Done,
    /// The changes of a fork.
    Changes(Vec<ChangeLine>),
    /// The reasons against a commit, which has changed nothing.
    Conflicts(Vec<ConflictLine>),
    /// All forks.
    Forks(Vec<ForkLine>),
    /// The request was refused, for this reason.
    #[serde(untagged)]
    Refused { error: String },
}

/// A change of a fork.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ChangeLine {
    /// `A`, `M`, `D` or `R`.
    pub(crate) kind: char,
    /// The old path of a file that was renamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) from: Option<String>,
    /// The path from the root of the fork.
    pub(crate) path: String,
    /// The bytes of `path` and of `from`, if these have other letters in their place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bytes: Option<(Vec<u8>, Vec<u8>)>,
}

impl ChangeLine {
    /// Returns the line of a change.
    pub(crate) fn of(change: Change) -> Self {
        let (kind, from) = match change.kind {
            ChangeKind::Added => ('A', None),
            ChangeKind::Removed => ('D', None),
            ChangeKind::Modified => ('M', None),
            ChangeKind::Renamed(from) => ('R', Some(from)),
        };
        let text = |path: &[u8]| String::from_utf8_lossy(path).into_owned();
        let (path, from_text) = (text(&change.path), from.as_deref().map(text));
        // A command escapes what it receives.
        let is_other = |path: &[u8]| Foreign::of(OsStr::from_bytes(path)).is_escaped();
        let is_other = is_other(&change.path) || from.as_deref().is_some_and(is_other);
        Self { kind, from: from_text, path, bytes: is_other.then(|| (change.path, from.unwrap_or_default())) }
    }

    /// Returns the path, and the old path of a file that was renamed.
    pub(crate) fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
        let from = self.from.as_deref().unwrap_or_default();
        let (path_bytes, from) = match &self.bytes {
            Some((path, from)) => (&path[..], &from[..]),
            None => (self.path.as_bytes(), from.as_bytes()),
        };
        [path(path_bytes), path(from)].into_iter().filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns the change as a line of JSON, with the text of each path that is text.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        let mut line = self.clone();
        if let Some((path, from)) = &self.bytes
            && let (Ok(path), Ok(from)) = (str::from_utf8(path), str::from_utf8(from))
        {
            line = Self { path: path.into(), from: self.from.as_ref().map(|_| from.into()), bytes: None, ..line };
        }
        serde_json::to_string(&line)
    }
}

/// A reason against a commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ConflictLine {
    /// The path from the root of the fork.
    pub(crate) path: String,
    pub(crate) reason: String,
}

impl fmt::Display for ConflictLine {
    /// Writes the reason as `lightfoot commit` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C {}: {}", show(Path::new(&self.path)), self.reason)
    }
}

impl fmt::Display for ChangeLine {
    /// Writes the change as `lightfoot diff` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(from) = &self.from {
            write!(f, "{} -> ", show(Path::new(from)))?;
        }
        f.write_str(&show(Path::new(&self.path)))
    }
}

/// A fork.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ForkLine {
    pub(crate) name: String,
    /// The fork that it was made from, or `base`.
    pub(crate) parent: String,
    /// Seconds since it was made.
    pub(crate) age_s: u64,
    /// The bytes of its changes, with the parent's at that moment.
    pub(crate) bytes: u64,
    /// The files that it made, with the parent's at that moment.
    pub(crate) inodes: u64,
    /// The number of its changes.
    pub(crate) changes: u64,
    /// How many times its files and directories are open.
    pub(crate) open_files: u64,
}
