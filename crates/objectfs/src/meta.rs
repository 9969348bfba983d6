//! The store's report of an object.

use std::sync::Arc;

/// The store's report of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) size: u64,
    /// The time of the last change in nanoseconds since the epoch, in whole seconds.
    pub(crate) mtime: i64,
    /// The mark of the contents, which changes with them: the ETag, or time and size.
    pub(crate) tag: Arc<str>,
    pub(crate) has_etag: bool,
}

impl Meta {
    /// Returns whether the two reports are of the same contents. Some stores list objects without
    /// their ETags.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        if self.has_etag == other.has_etag {
            return self.tag == other.tag;
        }
        (self.size, self.mtime) == (other.size, other.mtime)
    }
}
