//! Requests about forks, and replies, as lines of JSON.

use clap::ValueEnum;
use fuse::message::show;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use vfs::Foreign;
use workspaces::{Change, ChangeKind, Conflict};

/// A request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Make the fork `name` of `from`, which is the name of a fork, or `base`, or a directory of one, as in `base/src`; with `origin`,
    /// of what the fork `from` began with.
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
        conflicts: Winner,
        #[serde(default)]
        privileged: bool,
        #[serde(default)]
        reads: bool,
        #[serde(default)]
        progress: bool,
    },
    /// Return a fork to its beginning, or to the state of the fork `to`.
    Rollback { name: String, to: Option<String> },
    /// Discard a fork; with `lazy`, also while programs use it; with `wait`, reply when its memory is free. `progress`, here and in a
    /// commit: reply also with [`Reply::Progress`], some times a second.
    Discard {
        name: String,
        #[serde(default)]
        lazy: bool,
        #[serde(default)]
        wait: bool,
        #[serde(default)]
        progress: bool,
    },
    /// List all forks.
    List,
}

/// Which side of a commit wins, where both have changed a file.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Winner {
    /// None: the conflicts are printed, and nothing changes
    #[default]
    Refuse,
    /// The fork: its parent loses its own change of the file
    Mine,
    /// The parent: the fork loses its change of the file
    Theirs,
}

impl Request {
    /// Returns whether the client shows how far the request is.
    pub(crate) fn shows_progress(&self) -> bool {
        matches!(self, Self::Commit { progress: true, .. } | Self::Discard { progress: true, .. })
    }

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
    /// How many parts of the request are done, and how many there are; 0: that is not known. Other replies follow.
    Progress { done: u64, of: u64 },
    /// The request was refused, for this reason.
    #[serde(untagged)]
    Refused { error: String },
}

/// The path of a file from the root of the fork, and the old path of a file that was renamed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(from = "Text", into = "Text")]
pub(crate) struct Paths {
    pub(crate) path: PathBuf,
    pub(crate) from: Option<PathBuf>,
}

/// [`Paths`] in JSON.
#[derive(Serialize, Deserialize)]
struct Text {
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    path: String,
    /// The bytes of `path` and of `from`, if one of them is not text, or has characters that the receiver of a reply escapes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bytes: Option<(Vec<u8>, Vec<u8>)>,
}

impl From<Paths> for Text {
    fn from(Paths { path, from }: Paths) -> Self {
        let is_other = [Some(&path), from.as_ref()].into_iter().flatten().any(|path| Foreign::of(path).is_escaped());
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        let (path_text, from_text) = (text(&path), from.as_ref().map(text));
        let bytes = |path: PathBuf| path.into_os_string().into_vec();
        let bytes = is_other.then(|| (bytes(path), from.map(bytes).unwrap_or_default()));
        Self { from: from_text, path: path_text, bytes }
    }
}

impl From<Text> for Paths {
    fn from(Text { from, path, bytes }: Text) -> Self {
        match bytes {
            Some((path, old)) => Self { path: path_of(path), from: from.map(|_| path_of(old)) },
            None => Self { path: path.into(), from: from.map(PathBuf::from) },
        }
    }
}

fn path_of(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}

/// A change of a fork.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ChangeLine {
    /// `A`, `M`, `D` or `R`.
    pub(crate) kind: char,
    #[serde(flatten)]
    pub(crate) of: Paths,
}

impl From<Change> for ChangeLine {
    fn from(change: Change) -> Self {
        let (kind, from) = match change.kind {
            ChangeKind::Added => ('A', None),
            ChangeKind::Removed => ('D', None),
            ChangeKind::Modified => ('M', None),
            ChangeKind::Renamed(from) => ('R', Some(path_of(from))),
        };
        Self { kind, of: Paths { path: path_of(change.path), from } }
    }
}

impl ChangeLine {
    /// Returns the path, and the old path of a file that was renamed.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        let paths = [Some(&*self.of.path), self.of.from.as_deref()];
        paths.into_iter().flatten().filter(|path| !path.as_os_str().is_empty())
    }
}

/// A reason against a commit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ConflictLine {
    #[serde(flatten)]
    of: Paths,
    reason: String,
}

impl From<Conflict> for ConflictLine {
    fn from(conflict: Conflict) -> Self {
        Self { of: Paths { path: path_of(conflict.path), from: None }, reason: conflict.kind.to_string() }
    }
}

impl fmt::Display for ConflictLine {
    /// Writes the reason as `lightfoot commit` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "C {}: {}", show(&self.of.path), self.reason)
    }
}

impl fmt::Display for ChangeLine {
    /// Writes the change as `lightfoot diff` prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.kind)?;
        if let Some(from) = &self.of.from {
            write!(f, "{} -> ", show(from))?;
        }
        f.write_str(&show(&self.of.path))
    }
}

/// A fork.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct ForkLine {
    pub(crate) name: String,
    /// The fork that it was made from, or `base`.
    pub(crate) parent: String,
    /// The directory of the source that it shows, if not all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) dir: String,
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
