//! A line for each request that changes what the kernel knows or has open, at level TRACE of the target [`TARGET`]: what
//! `crates/fuse/examples/transcript.rs` records and `crates/fuse/tests/transcript.rs` replays.
//!
//! Words stand between tabs: the operation, what it was asked with, and after `->` what was answered, a number or an errno. Where
//! nobody records, a line costs one load and a branch.

use crate::session::{Entry, Opened};
use std::fmt::{self, Display};
use vfs::Errno;

/// By what recorders know these lines.
pub(super) const TARGET: &str = "fuse::transcript";

/// Writes a line.
macro_rules! line {
    ($($words:tt)*) => {
        tracing::trace!(target: $crate::transport::trace::TARGET, $($words)*)
    };
}
pub(super) use line;

/// The node of an entry, as it is answered.
pub(super) fn node(told: &Result<Entry, Errno>) -> Answered<u64> {
    Answered(told.as_ref().map(|entry| entry.node).map_err(|errno| *errno))
}

/// Node and handle of what was made and opened.
pub(super) fn created(made: &Result<(Entry, Opened), Errno>) -> Answered<String> {
    let told = made.as_ref().map(|(entry, opened)| format!("{}\t{}", entry.node, opened.handle));
    Answered(told.map_err(|errno| *errno))
}

/// What was answered: a number, or an errno.
pub(super) struct Answered<T>(pub(super) Result<T, Errno>);

impl<T: Display> Display for Answered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(value) => write!(f, "{value}"),
            Err(errno) => write!(f, "{errno:?}"),
        }
    }
}

/// A name, with escapes for what is not ASCII or would end a word.
pub(super) fn escaped(name: &[u8]) -> impl Display {
    name.escape_ascii()
}
