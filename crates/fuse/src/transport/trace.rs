//! Transcripts: a line for each request that changes the kernel's nodes or handles, at level TRACE of the target [`TARGET`].
//! `crates/fuse/examples/transcript.rs` records the lines, and `crates/fuse/tests/it/transcript.rs` replays them.
//!
//! Tabs separate the fields: the operation, its arguments, and after `->` the reply, a number or an errno. A line that is not
//! recorded costs one load and a branch.

use crate::session::{Entry, Opened};
use fusedev::wire::request::Forgets;
use std::fmt::{self, Display};
use vfs::Errno;

/// The target of the lines.
pub(super) const TARGET: &str = "lightfoot_fuse::transcript";

/// Writes a line.
macro_rules! line {
    ($($words:tt)*) => {
        tracing::trace!(target: $crate::transport::trace::TARGET, $($words)*)
    };
}
pub(super) use line;

/// Returns the node of the reply to a lookup.
pub(super) fn node(found: &Result<Entry, Errno>) -> Replied<u64> {
    Replied(found.as_ref().map(|entry| entry.node).map_err(|errno| *errno))
}

/// Node and handle of the reply to a create.
pub(super) fn created(made: &Result<(Entry, Opened), Errno>) -> Replied<String> {
    let replied = made.as_ref().map(|(entry, opened)| format!("{}\t{}", entry.node, opened.handle));
    Replied(replied.map_err(|errno| *errno))
}

/// The nodes of a BATCH_FORGET, each with its number of lookups.
pub(super) struct Forgotten<'m>(pub(super) Forgets<'m>);

impl Display for Forgotten<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|node| write!(f, "\t{}\t{}", node.nodeid, node.nlookup))
    }
}

/// A reply: a number, or an errno.
pub(super) struct Replied<T>(pub(super) Result<T, Errno>);

impl<T: Display> Display for Replied<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(value) => write!(f, "{value}"),
            Err(errno) => write!(f, "{errno:?}"),
        }
    }
}

/// Returns a name, with escapes for bytes that are not ASCII or would end a field.
pub(super) fn escaped(name: &[u8]) -> impl Display {
    name.escape_ascii()
}
