//! The store's report of an object, or of a prefix.

use crate::kept::Kept;
use std::sync::Arc;

/// The store's report of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) size: u64,
    /// When the object was written, in nanoseconds since the epoch, in whole seconds.
    pub(crate) modified: i64,
    /// The mark of the contents, which changes with them: the ETag, or time and size.
    pub(crate) tag: Arc<str>,
    pub(crate) has_etag: bool,
    /// `None`: the report is from a listing, which has no metadata.
    pub(crate) kept: Option<Kept>,
}

impl Meta {
    /// Returns whether the two reports are of the same contents. Some stores list objects without
    /// their ETags, or report two lengths under one ETag.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let has_same_mark = match self.has_etag == other.has_etag {
            true => self.tag == other.tag,
            false => self.modified == other.modified,
        };
        has_same_mark && self.size == other.size
    }
}

/// The type of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Kind {
    #[default]
    File,
    Dir,
    Link,
}

/// An object, or a prefix of some objects.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// An object. `None`: the store listed it without attributes.
    File(Option<Meta>),
    /// A prefix, with the attributes of its marker if they are known.
    Dir(Option<Kept>),
    /// An object that stands for a symbolic link, as [`Found::File`].
    Link(Option<Meta>),
}

impl Found {
    pub(crate) fn is_dir(&self) -> bool {
        self.kind() == Kind::Dir
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::File(_) => Kind::File,
            Self::Dir(_) => Kind::Dir,
            Self::Link(_) => Kind::Link,
        }
    }

    /// Returns an object as the symbolic link that it stands for.
    pub(crate) fn into_link(self) -> Self {
        if let Self::File(meta) = self { Self::Link(meta) } else { self }
    }
}
