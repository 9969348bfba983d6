//! Requests about forks, and replies, as lines of JSON.

use fuse::message::show;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;

/// A request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "verb", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Request {
    /// Make the fork `name` of `from`, which is the name of a fork, or `base`.
    Fork { from: String, name: String, bytes: Option<u64>, inodes: Option<u64> },
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
}
